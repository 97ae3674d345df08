//! `unroll:full`.
//!
//! ```text
//! before                      after
//! loop (%k = 0, %s = %s0) {   %s1 = fadd %s0, …0
//!   (test of %k against 3)    %s2 = fadd %s1, …1
//!   %s1 = fadd %s, …%k        %s3 = fadd %s2, …2
//!   continue %k + 1, %s1
//! }
//! ```
//!
//! `unroll:N` is the frame's business ([`super::pipeline`]).

use super::pipeline::count;
use super::text::Hosted;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{CountedExit, LoopSummary, Relation, Step, summarize};
use crate::error::{Error, Result};
use crate::ir::copy::{Copier, exchange_terminators};
use crate::ir::eval::{compare, signed};
use crate::ir::{CompareOp, Kernel, Op, OpKind, Region};

/// Most iterations that are unrolled fully.
const MAX_ITERATIONS: u64 = 4_096;
/// Most operations that full unrolling makes.
const MAX_OPERATIONS: u64 = 60_000;

/// Replaces a loop of constant trip count by its iterations.
pub(super) fn unroll_fully(kernel: &mut Kernel, op: &Op, hosted: Option<&mut Hosted<'_>>) -> Result<Vec<Op>> {
    let place = kernel.describe_place(op.place);
    let refuse = |why: String| {
        Error::usage(format!("the loop cannot be unrolled fully: {why}"))
            .at(place.clone())
            .accepted("constant bounds, or `unroll:N`")
    };
    let definitions = Definitions::of(kernel);
    let summary = summarize(kernel, &definitions, op);
    let OpKind::Loop { initial, body, .. } = &op.kind else {
        return Err(Error::bug("only loops are unrolled"));
    };
    let exit = summary.exit.clone().map_err(&refuse)?;
    // The bound's: a wide counter may be tested by its low bits.
    let ty = kernel.ty(exit.bound);
    let (Some(first), Some(bound), Step::Constant(step)) = (
        kernel.as_constant(initial[exit.param]),
        kernel.as_constant(exit.bound),
        summary.steps[exit.param],
    ) else {
        return Err(refuse("its number of iterations is not a constant".to_owned()));
    };
    // Tests that pass, counted by taking them.
    let mut passed = 0u64;
    let mut counter = first.wrapping_add((step.wrapping_mul(exit.steps_ahead)) as u64) & ty.mask();
    while goes_on(exit.relation, ty, counter, bound) {
        passed += 1;
        counter = counter.wrapping_add(step as u64) & ty.mask();
        if passed > MAX_ITERATIONS {
            return Err(refuse(format!("it has more than {MAX_ITERATIONS} iterations")));
        }
    }
    if (passed + 1) * count(body) as u64 > MAX_OPERATIONS {
        return Err(refuse(format!(
            "it would be more than {MAX_OPERATIONS} operations"
        )));
    }

    if let Some(hosted) = hosted {
        return Ok(hosted.all_iterations(kernel, op, passed, body.ops[exit.position].place));
    }

    written_out(kernel, op, &summary, passed + 1, Some(&exit))
}

/// As many iterations of a loop, one after the other. Either all: each but the last one passes the counting test `all`. Or each keeps its
/// tests, and the loop stands behind them for what is left.
pub(super) fn written_out(
    kernel: &mut Kernel,
    op: &Op,
    summary: &LoopSummary,
    iterations: u64,
    all: Option<&CountedExit>,
) -> Result<Vec<Op>> {
    let OpKind::Loop {
        label, initial, body, ..
    } = &op.kind
    else {
        return Err(Error::bug("only loops are unrolled"));
    };
    let results = kernel.labels[*label].results.clone();
    let outer = kernel.label(None, results);
    let test = all.map(|exit| match body.ops[exit.position].kind {
        OpKind::If { cond, .. } => Ok((cond, exit.continues_on)),
        _ => Err(Error::bug("a counting test that is not an `if`")),
    });
    let test = test.transpose()?;
    let types: Vec<_> = summary.params.iter().map(|&param| kernel.ty(param)).collect();
    let mut ops = Vec::new();
    let mut current = initial.clone();
    for iteration in 1..=iterations {
        let mut copier = Copier::default();
        summary
            .params
            .iter()
            .zip(&current)
            .for_each(|(&param, &now)| copier.map(param, now));
        if let Some((condition, continues_on)) = test {
            let goes_on = (iteration < iterations) == continues_on;
            let decided = kernel.constant(crate::ir::Type::Bool, u64::from(goes_on));
            copier.map(condition, decided);
            copier.leave_out(condition);
        }
        let mut copies = copier.ops(kernel, &body.ops);
        let next = kernel.label(None, types.clone());
        exchange_terminators(&mut copies, &mut |end| {
            let kind = match &end.kind {
                OpKind::Break(target, values) if target == label => OpKind::Break(outer, values.clone()),
                OpKind::Continue(target, args) if target == label => OpKind::Break(next, args.clone()),
                _ => return None,
            };
            Some(vec![Op::new(kind, Vec::new(), end.place)])
        });
        current = types.iter().map(|&ty| kernel.value(ty)).collect();
        let kind = OpKind::Block {
            label: next,
            body: Region { ops: copies },
        };
        ops.push(Op::new(kind, current.clone(), op.place));
    }
    let results = &kernel.labels[outer].results.clone();
    let ended = match test {
        // Never reached: the last test ends the loop. The region still needs an end.
        Some(_) => results.iter().map(|&ty| kernel.constant(ty, 0)).collect(),
        None => {
            let mut rest = op.clone();
            if let OpKind::Loop { initial, .. } = &mut rest.kind {
                *initial = current;
            }
            rest.results = results.iter().map(|&ty| kernel.value(ty)).collect();
            let values = rest.results.clone();
            ops.push(rest);
            values
        }
    };
    ops.push(Op::new(OpKind::Break(outer, ended), Vec::new(), op.place));
    let kind = OpKind::Block {
        label: outer,
        body: Region { ops },
    };
    Ok(vec![Op::new(kind, op.results.clone(), op.place)])
}

/// Whether the loop goes on with this counter.
fn goes_on(relation: Relation, ty: crate::ir::Type, counter: u64, bound: u64) -> bool {
    let below = |is_signed: bool, or_equal: bool, a: u64, b: u64| {
        let op = match (is_signed, or_equal) {
            (true, false) => CompareOp::LtS,
            (true, true) => CompareOp::LeS,
            (false, false) => CompareOp::LtU,
            (false, true) => CompareOp::LeU,
        };
        compare(op, ty, a, b)
    };
    match relation {
        Relation::NotEqual => signed(ty, counter) != signed(ty, bound),
        Relation::Less { signed, or_equal } => below(signed, or_equal, counter, bound),
        Relation::Greater { signed, or_equal } => below(signed, or_equal, bound, counter),
    }
}
