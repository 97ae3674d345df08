//! Two versions of a loop: one whose counter cannot wrap and whose strides keep its accesses apart, and the loop as it was.
//!
//! ```text
//! loop (%i = %a) {                     %fits = %n ≤ 2³¹-1 - 4
//!   %more = lt.s %i, %n                if %fits {
//!   …                                    loop (%i = %a) { …  %next = add.nsw %i, 4  … }     this one gets the plan
//!   %next = add %i, 4                  } else {
//!   continue %next                       loop (%i = %a) { …  %next = add %i, 4  … }
//! }                                    }
//! ```
//! PTX does not say that a counter stays below its type's limit, and `for (i = tid; i < n; i += threads)` may reach it. What
//! it takes to stay below is known when the loop is entered: the bound, the step, the first value. So it is tested there, once.
//! The test asks for more than is needed where that is simpler: a bound so near to the limit belongs to no launch of practical length.
//! A stride that has to lie between two numbers for a load to cross a store ([`Stride`]) is tested there, too.

use std::collections::HashMap;

use super::legality::{Stride, may_move_if};
use super::loads::{find_loop, replace_loop};
use super::plan::{Strategy, Unroll};
use super::text::Hosted;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoadSite, LoopSummary, Relation, Step, UnlessWraps, summarize};
use crate::analysis::ranges::range;
use crate::analysis::uniform::Divergence;
use crate::error::{Error, Result};
use crate::ir::copy::Copier;
use crate::ir::{
    BinaryOp, Builder, CompareOp, Kernel, Label, LoadId, NoWrapOp, Op, OpKind, Region, Type, Value, Wrap,
};

/// The greatest step of a version whose step only the run tells: far more than work-items of a launch, and so little that
/// hundreds of steps fit into 64 bits.
const MOST_STEP: u64 = 1 << 40;

/// Puts a loop that counts if its counter does not wrap, or whose loads may move if its strides are large enough, into two
/// versions. The label stays with the one that does; the other one of a loop that stands in a text is there. A loop stays alone
/// whose versions would meet at barriers, or exchange values, with work-items of the other version.
pub(super) fn make(
    kernel: &mut Kernel,
    label: Label,
    (unroll, strategies, group): (Option<Unroll>, &HashMap<LoadId, Strategy>, Option<[u32; 3]>),
    hosted: Option<&Hosted<'_>>,
) -> Result<()> {
    let definitions = Definitions::of(kernel);
    let Some(op) = find_loop(&kernel.body, label) else {
        return Ok(());
    };
    let summary = summarize(kernel, &definitions, op);
    let unless = summary.unless_wraps.clone();
    let (mut strides, mut apart) = self::strides(kernel, &definitions, &summary, unroll, strategies);
    // The fewer work-items a work-group has, the nearer rows may be.
    if !strides.is_empty() && kernel.group_size.is_none() {
        kernel.group_size = group;
        (strides, apart) = self::strides(kernel, &definitions, &summary, unroll, strategies);
    }
    if unless.is_none() && strides.is_empty() {
        return Ok(());
    }
    // Strides are the same for all work-items of a work-group.
    if let Some(unless) = unless.as_ref().filter(|_| meets(op)) {
        let divergence = Divergence::of_work_group(kernel);
        let mut depends_on = decides(kernel, &definitions, &summary, unless, op);
        // Where work-items leave the loop at different times, who is together would depend on how many iterations are done at
        // a time.
        if let OpKind::Loop { initial, .. } = &op.kind {
            depends_on.push(initial[unless.exit.param]);
        }
        if depends_on.iter().any(|&value| divergence.differs(value)) {
            return Ok(());
        }
    }
    replace_loop(kernel, label, |kernel, op| {
        let plain = match hosted {
            Some(hosted) => hosted.leave(kernel, op.results.clone(), op.place),
            None => Copier::default().op(kernel, &op),
        };
        versions(
            kernel,
            &definitions,
            &summary,
            unless.as_ref(),
            &strides,
            [op, plain],
        )
    })?;
    kernel.labels[label].apart = apart;
    Ok(())
}

/// The strides on which it depends whether the planned loads of a loop may move, or all where none is named, each stride once; and how
/// far those loads may.
fn strides(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    unroll: Option<Unroll>,
    strategies: &HashMap<LoadId, Strategy>,
) -> (Vec<Stride>, Vec<(LoadId, u32)>) {
    let distances = strategies.values().map(|strategy| strategy.distance().get());
    let furthest = distances.max().unwrap_or(0) + unroll.and_then(Unroll::iterations).unwrap_or(1);
    let is_planned = |site: &&LoadSite| strategies.is_empty() || strategies.contains_key(&site.id);
    let mut all: Vec<Stride> = Vec::new();
    let mut apart: Vec<(LoadId, u32)> = Vec::new();
    for site in summary.loads.iter().filter(is_planned) {
        // What is not legal that far may be so nearer by.
        let halved = std::iter::successors(Some(furthest), |&ahead| (ahead > 1).then_some(ahead / 2));
        let strides = |ahead| {
            Some((
                ahead,
                may_move_if(kernel, definitions, summary, site, ahead).ok()?,
            ))
        };
        let Some((ahead, strides)) = halved.filter_map(strides).next() else {
            continue;
        };
        for new in strides {
            match all.iter_mut().find(|known| known.value == new.value) {
                Some(known) => {
                    known.least = known.least.max(new.least);
                    known.most = known.most.min(new.most);
                }
                None => all.push(new),
            }
        }
        match apart.iter_mut().find(|(id, _)| *id == site.id) {
            Some((_, known)) => *known = ahead.min(*known),
            None => apart.push((site.id, ahead)),
        }
    }
    (all, apart)
}

/// Whether work-items meet in a loop, or exchange values.
fn meets(op: &Op) -> bool {
    let mut found = false;
    for region in op.kind.regions() {
        region.walk(&mut |op| {
            // A text may wait for others in its own way.
            found |= op.kind.effects().meets() || matches!(op.kind, OpKind::Opaque(..));
        });
    }
    found
}

/// A loop's first value, if the test in front must look at it.
fn first_value(kernel: &Kernel, definitions: &Definitions, unless: &UnlessWraps, op: &Op) -> Option<Value> {
    let OpKind::Loop { initial, .. } = &op.kind else {
        return None;
    };
    let first = initial[unless.exit.param];
    let least_room = kernel.ty(first).mask() >> 2;
    let small = range(kernel, definitions, first).max <= least_room;
    (unless.adds_first && !small).then_some(first)
}

/// What the choice between the versions depends on.
fn decides(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    unless: &UnlessWraps,
    op: &Op,
) -> Vec<Value> {
    let mut values = vec![unless.exit.bound];
    match &op.kind {
        OpKind::Loop { initial, .. } if unless.exit.relation == Relation::NotEqual => {
            values.push(initial[unless.exit.param]);
        }
        _ => values.extend(first_value(kernel, definitions, unless, op)),
    }
    if let Step::Value { value, .. } = summary.steps[unless.exit.param] {
        values.push(value);
    }
    values
}

fn versions(
    kernel: &mut Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    unless: Option<&UnlessWraps>,
    strides: &[Stride],
    [mut op, mut plain]: [Op; 2],
) -> Result<Vec<Op>> {
    let first = unless.and_then(|unless| first_value(kernel, definitions, unless, &op));
    let results: Vec<Type> = op.results.iter().map(|&result| kernel.ty(result)).collect();
    let place = op.place;
    let mut b = Builder::new(kernel, place);
    let mut all = Vec::new();
    if let Some(unless) = unless {
        let (fits, step) = match (unless.exit.relation, summary.steps[unless.exit.param]) {
            (Relation::NotEqual, Step::Constant(step)) => (meets_its_bound(&mut b, unless, &op, step)?, None),
            _ => fits(&mut b, summary, unless, first)?,
        };
        let signed = match unless.exit.relation {
            Relation::Less { signed, .. } | Relation::Greater { signed, .. } => signed,
            Relation::NotEqual => true,
        };
        promise(&mut op, unless, signed, step);
        all.push(fits);
    }
    for stride in strides {
        let ty = b.kernel.ty(stride.value);
        let (least, most) = (b.constant(ty, stride.least), b.constant(ty, stride.most));
        let low = b.compare(CompareOp::LeU, least, stride.value);
        let high = b.compare(CompareOp::LeU, stride.value, most);
        all.push(b.and(low, high));
    }
    let fits = all.into_iter().reduce(|all, one| b.and(all, one));
    let fits = fits.ok_or_else(|| Error::bug("versions that nothing tells apart"))?;
    let ends = |op: &mut Op, kernel: &mut Kernel, label| {
        let inner: Vec<Value> = results.iter().map(|&ty| kernel.value(ty)).collect();
        op.results.clone_from(&inner);
        Op::new(OpKind::Break(label, inner), Vec::new(), place)
    };
    let whole = op.results.clone();
    let mut before = b.finish().ops;
    let label = kernel.label(None, results.clone());
    let end = ends(&mut op, kernel, label);
    let then = Region { ops: vec![op, end] };
    let end = ends(&mut plain, kernel, label);
    let otherwise = Region {
        ops: vec![plain, end],
    };
    before.push(Op {
        kind: OpKind::if_(label, fits, then, otherwise),
        results: whole,
        place,
    });
    Ok(before)
}

/// Whether the counter stays below its type's limit, and the step with what is then known of it.
fn fits(
    b: &mut Builder<'_>,
    summary: &LoopSummary,
    unless: &UnlessWraps,
    first: Option<Value>,
) -> Result<(Value, Option<(Value, Value)>)> {
    let exit = &unless.exit;
    let ty = b.kernel.ty(exit.bound);
    let (signed, downwards) = match exit.relation {
        Relation::Less { signed, .. } => (signed, false),
        Relation::Greater { signed, .. } => (signed, true),
        Relation::NotEqual => return Err(Error::bug("a test `!=` without constant step")),
    };
    let at_most = if signed { CompareOp::LeS } else { CompareOp::LeU };
    let greatest = if signed { ty.mask() >> 1 } else { ty.mask() };
    match summary.steps[exit.param] {
        Step::Constant(step) => {
            let size = step.unsigned_abs();
            // Twice: an addition in front of the test has passed the test before alone. What is small leaves a fourth.
            let Some(twice) = size.checked_mul(2).filter(|&twice| twice <= greatest >> 1) else {
                return Ok((b.bool(false), None));
            };
            // Downwards signed numbers alone go.
            let limit = match downwards {
                false => b.constant(ty, greatest - twice),
                true => b.constant(ty, (greatest + 1).wrapping_add(twice)),
            };
            let mut all = None;
            for value in [Some(exit.bound), first].into_iter().flatten() {
                let (low, high) = if downwards { (limit, value) } else { (value, limit) };
                let holds = b.compare(at_most, low, high);
                all = Some(all.map_or(holds, |all| b.and(all, holds)));
            }
            Ok((all.ok_or_else(|| Error::bug("a test without a bound"))?, None))
        }
        Step::Value { value, scale } => {
            let most = MOST_STEP.min(greatest >> 2) / scale.unsigned_abs().max(1);
            let (least, most) = (b.constant(ty, 1), b.constant(ty, most));
            let low = b.compare(at_most, least, value);
            let high = b.compare(at_most, value, most);
            let mut all = b.and(low, high);
            let times = b.constant(ty, 2 * scale.unsigned_abs());
            // No more than half of the type: nothing wraps where the step is as it should be.
            let twice = b.mul(value, times);
            let top = b.constant(ty, greatest);
            let limit = b.sub(top, twice);
            for value in [Some(exit.bound), first].into_iter().flatten() {
                let holds = b.compare(at_most, value, limit);
                all = b.and(all, holds);
            }
            let known = match b.kernel.ty(value) == ty && ty == Type::I64 {
                true => {
                    let known = b.binary(BinaryOp::MaxU, value, least);
                    let known = b.binary(BinaryOp::MinU, known, most);
                    Some((value, known))
                }
                false => None,
            };
            Ok((all, known))
        }
        _ => Err(Error::bug("a counter without a step")),
    }
}

/// Whether whole steps lead to the bound, and the way there is none round the type.
fn meets_its_bound(b: &mut Builder<'_>, unless: &UnlessWraps, op: &Op, step: i64) -> Result<Value> {
    let OpKind::Loop { initial, .. } = &op.kind else {
        return Err(Error::bug("only loops count"));
    };
    let (first, bound) = (initial[unless.exit.param], unless.exit.bound);
    let ty = b.kernel.ty(bound);
    let size = step.unsigned_abs();
    let way = b.sub(bound, first);
    let rest = b.constant(ty, size - 1);
    let rest = b.and(way, rest);
    let none = b.constant(ty, 0);
    let whole = b.compare(CompareOp::Eq, rest, none);
    // Where the next value is tested, there is at least one step. After the last step one more may be made that is not tested.
    let ahead = if unless.exit.steps_ahead > 0 {
        CompareOp::LtS
    } else {
        CompareOp::LeS
    };
    let greatest = ty.mask() >> 1;
    let (low, high, last) = match step > 0 {
        true => (first, bound, b.constant(ty, greatest - size)),
        false => (bound, first, b.constant(ty, (greatest + 1).wrapping_add(size))),
    };
    let towards = b.compare(ahead, low, high);
    let fits = if step > 0 {
        b.compare(CompareOp::LeS, bound, last)
    } else {
        b.compare(CompareOp::LeS, last, bound)
    };
    let met = b.and(whole, towards);
    Ok(b.and(met, fits))
}

/// The counter's sums promise not to wrap, and are made with the step of which more is known.
fn promise(op: &mut Op, unless: &UnlessWraps, signed: bool, step: Option<(Value, Value)>) {
    let wrap = |already: Option<Wrap>| match (already, signed) {
        (None | Some(Wrap::NotSigned), true) => Wrap::NotSigned,
        (None | Some(Wrap::NotUnsigned), false) => Wrap::NotUnsigned,
        _ => Wrap::Neither,
    };
    for region in op.kind.regions_mut() {
        region.walk_mut(&mut |inner| {
            if inner
                .results
                .first()
                .is_some_and(|result| unless.sums.contains(result))
            {
                let kind = match inner.kind {
                    OpKind::Binary(BinaryOp::Add, a, b) => Some((wrap(None), a, b)),
                    OpKind::NoWrap(NoWrapOp::Add, kept, a, b) => Some((wrap(Some(kept)), a, b)),
                    _ => None,
                };
                if let Some((wrap, a, b)) = kind {
                    inner.kind = OpKind::NoWrap(NoWrapOp::Add, wrap, a, b);
                }
            }
            if let Some((old, new)) = step {
                inner
                    .kind
                    .map_operands(|value| if value == old { new } else { value });
            }
        });
    }
}
