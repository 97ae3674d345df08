//! Rewriting a loop so that it fetches ahead: the frame that all strategies share.
//!
//! ```text
//! before                          after, one iteration at a time
//! loop 'items (%j = 0) {          (limits and prologue: iterations 0 to D-1 are fetched)
//!   (test, or break)              loop 'items (%j = 0, state…) {
//!   %x = load …                     (test, or break)
//!   (uses of %x)                    (what this iteration uses comes from the state; D ahead is fetched)
//!   continue %j1                    (uses)
//! }                                 continue %j1, state'…
//!                                 }
//! ```
//!
//! Under `unroll:N` everything works in groups: the loop runs while N whole iterations are left, fetches N values together,
//! waits once, and holds N copies of the arithmetic; the remaining iterations run in the plain loop behind it. If the trip
//! count is unknown, or the strategy is a batch, the N copies keep their tests instead, and there is no remainder.
//!
//! A strategy defines the values that it carries from step to step, how it fills them before the loop, and how it advances them
//! ([`Fetch`](super::fetch::Fetch)).

use super::early::Early;
use super::fetch::{Frame, Rewrite, Tests};
use super::limits::Limits;
use super::step::StepWriter;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoopSummary, summarize};
use crate::error::{Error, Result};
use crate::ir::{Builder, Kernel, Label, LoopWishes, Op, OpKind, Place, Region, Value};

/// Most operations of a rewritten loop, with the code in front of it and behind it.
const MAX_OPERATIONS: usize = 60_000;
/// Most operations of a loop's body in several copies. An instruction cache of 128 KB (NVIDIA's since Volta;
/// `instruction-cache.size` of `devices/h200.toml`) holds 8,192 instructions of 16 bytes. Assemblers take minutes for more.
const MAX_COPIED: usize = 8_192;

/// Rewrites a loop; the returned operations define the results of `op`. Also gives the label of the new loop.
pub(super) fn rewrite(
    kernel: &mut Kernel,
    definitions: &Definitions,
    op: Op,
    mut plan: Rewrite<'_>,
) -> Result<(Vec<Op>, Label)> {
    let summary = summarize(kernel, definitions, &op);
    let OpKind::Loop {
        label, initial, body, ..
    } = op.kind
    else {
        return Err(Error::bug("only loops are rewritten"));
    };
    fits(kernel, op.place, &body, plan.group)?;
    let limits = Limits::default();
    let Started {
        ops: prologue,
        state: first_state,
        widths,
    } = start(
        kernel,
        definitions,
        &summary,
        (op.place, &initial),
        &limits,
        &mut plan,
    )?;

    let frame = Frame {
        summary: &summary,
        definitions,
        label,
        body: &body,
        place: op.place,
        widths,
        limits,
    };
    let main = frame.main_loop(kernel, &mut plan, initial, first_state)?;

    let new_label = main.op_loop.kind.label().unwrap_or(label);
    let mut ops = frame.limits.take();
    ops.extend(prologue);
    match plan.tests {
        Tests::Kept => {
            let MainLoop { mut op_loop, .. } = main;
            op_loop.results = op.results;
            ops.push(op_loop);
        }
        Tests::Once => {
            let left_over = main.op_loop.results.clone();
            let block = main.outer;
            ops.push(main.op_loop);
            let result_types = kernel.labels[label].results.clone();
            let results: Vec<Value> = result_types.iter().map(|&ty| kernel.value(ty)).collect();
            let wishes = LoopWishes::default();
            let params = summary.params.clone();
            let rest = OpKind::Loop {
                label,
                params,
                initial: left_over,
                body,
                wishes,
            };
            ops.push(Op::new(rest, results.clone(), op.place));
            let end = Op::new(OpKind::Break(block, results), Vec::new(), op.place);
            ops.push(end);
            let kind = OpKind::Block {
                label: block,
                body: Region { ops },
            };
            ops = vec![Op::new(kind, op.results, op.place)];
        }
    }
    Ok((ops, new_label))
}

/// What stands in front of a rewritten loop.
pub(super) struct Started {
    pub(super) ops: Vec<Op>,
    /// The strategies' first state.
    pub(super) state: Vec<Value>,
    /// How many values of it each strategy has.
    pub(super) widths: Vec<usize>,
}

/// Lets every strategy begin, in front of a loop that starts at `place` with the values `initial`.
pub(super) fn start(
    kernel: &mut Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    (place, initial): (Place, &[Value]),
    limits: &Limits,
    plan: &mut Rewrite<'_>,
) -> Result<Started> {
    let mut b = Builder::new(kernel, place);
    let mut early = Early::new(summary, definitions, initial, 0, limits);
    let (mut state, mut widths) = (Vec::new(), Vec::new());
    for fetch in &mut plan.fetches {
        let own = fetch.prologue(&mut early, &mut b)?;
        widths.push(own.len());
        state.extend(own);
    }
    let ops = b.finish().ops;
    Ok(Started { ops, state, widths })
}

/// Refuses numbers of copies of a body that are too much code.
pub(super) fn fits(kernel: &Kernel, place: Place, body: &Region, group: u32) -> Result<()> {
    let (one, group) = (count(body), group as usize);
    let is_too_large = |size: usize, most: usize| {
        Error::usage(format!(
            "{group} copies of the loop would be {size} operations of code"
        ))
        .at(kernel.describe_place(place))
        .accepted(format!("at most {most}"))
    };
    if group > 1 && one * group > MAX_COPIED {
        return Err(is_too_large(one * group, MAX_COPIED));
    }
    if one * (group + 1) > MAX_OPERATIONS {
        return Err(is_too_large(one * (group + 1), MAX_OPERATIONS));
    }
    Ok(())
}

/// Operations in a region, those inside included.
pub(super) fn count(region: &Region) -> usize {
    let mut count = 0;
    region.walk(&mut |_| count += 1);
    count
}

struct MainLoop {
    op_loop: Op,
    /// Where exits go that end the whole loop, remainder included.
    outer: Label,
}

impl Frame<'_> {
    fn main_loop(
        &self,
        kernel: &mut Kernel,
        plan: &mut Rewrite<'_>,
        initial: Vec<Value>,
        first_state: Vec<Value>,
    ) -> Result<MainLoop> {
        let name = kernel.labels[self.label].name.clone();
        let results = kernel.labels[self.label].results.clone();
        let outer = kernel.label(name.clone(), results);
        let params: Vec<Value> = self
            .summary
            .params
            .iter()
            .map(|&param| kernel.value_like(param))
            .collect();
        let state: Vec<Value> = first_state
            .iter()
            .map(|&value| kernel.value_like(value))
            .collect();
        let main = match plan.tests {
            // With tests kept, the loop itself is the only way out.
            Tests::Kept => outer,
            Tests::Once => {
                let types = params.iter().map(|&param| kernel.ty(param)).collect();
                kernel.label(name, types)
            }
        };
        let step = StepWriter {
            frame: self,
            params: &params,
            state: &state,
            main,
            outer,
        };
        let body = match plan.tests {
            Tests::Once => step.tested_once(kernel, plan)?,
            Tests::Kept => step.tests_kept(kernel, plan)?,
        };
        let initial = initial.into_iter().chain(first_state).collect();
        let results = kernel.labels[main].results.clone();
        let results = results.into_iter().map(|ty| kernel.value(ty)).collect();
        let all_params = params.into_iter().chain(state).collect();
        let kind = OpKind::Loop {
            label: main,
            params: all_params,
            initial,
            body,
            wishes: LoopWishes::default(),
        };
        Ok(MainLoop {
            op_loop: Op::new(kind, results, self.place),
            outer,
        })
    }
}
