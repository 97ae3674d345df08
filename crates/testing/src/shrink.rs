//! Makes a failing kernel smaller: operations go, as long as it still fails.

use std::time::{Duration, Instant};

use cranelift_entity::{EntityRef, PrimaryMap};

use crate::ir::{Kernel, Label, LoadId, OpKind, Region, Value, verify};

/// Removes operations, whole loops and branches first, and puts one side of a branch in its place, while
/// `fails` holds. What used removed results gets zeros. The kernel stays well formed, but `fails` must
/// itself refuse kernels that fail for another reason than the first one. Ends after a minute with what it has: without
/// its condition a loop runs to the limit of steps.
pub fn shrink(kernel: &Kernel, mut fails: impl FnMut(&Kernel) -> bool) -> Kernel {
    let end = Instant::now() + Duration::from_secs(60);
    let mut accepted =
        |candidate: &Kernel| Instant::now() < end && verify(candidate).is_ok() && fails(candidate);
    let mut smallest = kernel.clone();
    loop {
        let mut shrunk = false;
        let mut number = 0;
        // A number is an operation in the order of the text; what is removed takes its inside along.
        while number < operations(&smallest) {
            let candidates = [Reduction::Remove, Reduction::Keep(0), Reduction::Keep(1)]
                .map(|reduction| changed(&smallest, number, reduction));
            match candidates.into_iter().flatten().find(&mut accepted) {
                Some(smaller) => {
                    smallest = smaller;
                    shrunk = true;
                }
                None => number += 1,
            }
        }
        if !shrunk {
            break;
        }
    }
    let pruned = without_unused_loads(&smallest);
    if accepted(&pruned) { pruned } else { smallest }
}

/// What is done to an operation.
#[derive(Clone, Copy)]
enum Reduction {
    Remove,
    /// This region of a branch or block stays, in place of the whole.
    Keep(usize),
}

fn operations(kernel: &Kernel) -> usize {
    let mut count = 0;
    kernel
        .body
        .walk(&mut |op| count += usize::from(!op.kind.is_terminator()));
    count
}

/// The kernel with its operation of this number (terminators are not counted) removed or replaced, if
/// that is possible.
fn changed(kernel: &Kernel, number: usize, reduction: Reduction) -> Option<Kernel> {
    let mut changed = kernel.clone();
    let mut body = std::mem::take(&mut changed.body);
    let mut left = number;
    let replaced = change(&mut body, &mut left, reduction)??;
    let replaced: Vec<(Value, Value)> = replaced
        .into_iter()
        .map(|(old, new)| (old, new.unwrap_or_else(|| changed.constant(changed.ty(old), 0))))
        .collect();
    body.walk_mut(&mut |op| {
        op.kind.map_operands(|operand| {
            let new = replaced.iter().find(|(old, _)| *old == operand);
            new.map_or(operand, |&(_, new)| new)
        });
    });
    changed.body = body;
    Some(changed)
}

/// Old results, and their replacements; zeros if there are none.
type Replaced = Vec<(Value, Option<Value>)>;

/// Finds the operation and changes it. The inner option says whether the change was possible.
fn change(region: &mut Region, left: &mut usize, reduction: Reduction) -> Option<Option<Replaced>> {
    for index in 0..region.ops.len() {
        if region.ops[index].kind.is_terminator() {
            continue;
        }
        if *left == 0 {
            return Some(match reduction {
                Reduction::Remove => {
                    let op = region.ops.remove(index);
                    Some(op.results.into_iter().map(|result| (result, None)).collect())
                }
                Reduction::Keep(side) => keep(region, index, side),
            });
        }
        *left -= 1;
        for inner in region.ops[index].kind.regions_mut() {
            if let Some(done) = change(inner, left, reduction) {
                return Some(done);
            }
        }
    }
    None
}

/// Puts one region of a branch or block in its place, if it is only left at its end.
fn keep(region: &mut Region, index: usize, side: usize) -> Option<Replaced> {
    let op = &region.ops[index];
    let (OpKind::If { label, .. } | OpKind::Block { label, .. }) = op.kind else {
        return None;
    };
    let mut inside = op.kind.regions().nth(side)?.ops.clone();
    let OpKind::Break(to, values) = inside.pop()?.kind else {
        return None;
    };
    if to != label || inside.iter().any(|op| mentions(&op.kind, label)) {
        return None;
    }
    let results = op.results.clone();
    region.ops.splice(index..=index, inside);
    Some(results.into_iter().zip(values.into_iter().map(Some)).collect())
}

fn mentions(kind: &OpKind, label: Label) -> bool {
    let mut found = matches!(kind, OpKind::Break(to, _) if *to == label);
    for region in kind.regions() {
        region.walk(&mut |op| found |= matches!(&op.kind, OpKind::Break(to, _) if *to == label));
    }
    found
}

/// Loads that nothing mentions go.
fn without_unused_loads(kernel: &Kernel) -> Kernel {
    let mut pruned = kernel.clone();
    let mut loads: PrimaryMap<LoadId, _> = PrimaryMap::new();
    let mut numbers = vec![None; kernel.loads.len()];
    pruned.body.walk_mut(&mut |op| {
        let (OpKind::Load { id, .. } | OpKind::Copy { id, .. } | OpKind::Prefetch { id: Some(id), .. }) =
            &mut op.kind
        else {
            return;
        };
        let number = &mut numbers[id.index()];
        *id = *number.get_or_insert_with(|| loads.push(kernel.loads[*id].clone()));
    });
    pruned.loads = loads;
    pruned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_kernel;

    #[test]
    fn what_matters_stays() {
        let loads = |kernel: &Kernel| {
            let mut count = 0;
            kernel
                .body
                .walk(&mut |op| count += usize::from(matches!(op.kind, OpKind::Load { .. })));
            count
        };
        let shrunk = shrink(&random_kernel(3), |kernel| loads(kernel) > 0);
        assert_eq!((loads(&shrunk), shrunk.loads.len()), (1, 1));
        // The load, and perhaps loops around it.
        assert!(operations(&shrunk) <= 4, "{}", crate::ir::print(&shrunk));
    }
}
