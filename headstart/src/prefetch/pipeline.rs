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
//! Under `unroll:N` everything works in groups: the loop runs while N whole iterations are left, fetches N
//! values at once, waits once, and holds N copies of the arithmetic; what is left over runs in the plain
//! loop behind it. Where the end of a loop cannot be counted, or a batch is asked for, the N copies keep
//! their tests instead, and nothing is left over.
//!
//! A strategy says what it carries from step to step, how it fills that before the loop, and how it moves it
//! on ([`Fetch`]).

use super::early::Early;
use super::limits::Limits;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoadSite, LoopSummary, Step, summarize};
use crate::error::{Error, Result};
use crate::ir::copy::{Copier, exchange_terminators};
use crate::ir::{Builder, Kernel, Label, LoopWishes, Op, OpKind, Place, Region, Value};

/// Most operations that one rewritten loop may hold: beyond, no instruction cache is large enough.
const MAX_OPERATIONS: usize = 60_000;

/// One strategy at work on one load.
pub(super) trait Fetch {
    /// The load it serves.
    fn site(&self) -> &LoadSite;

    /// Fetches the first iterations, in front of the loop, and gives the first state.
    fn prologue(
        &mut self,
        early: &mut Early<'_>,
        limits: &mut Limits,
        b: &mut Builder<'_>,
    ) -> Result<Vec<Value>>;

    /// At the start of a step of `group` iterations: takes what they use out of `state` and makes it known
    /// to `early`, fetches as many further ahead, and gives the next state.
    fn advance(
        &mut self,
        early: &mut Early<'_>,
        limits: &mut Limits,
        b: &mut Builder<'_>,
        state: &[Value],
        group: u32,
    ) -> Result<Vec<Value>>;

    /// At the end of a step, behind the uses of its values: what can wait until there.
    fn finish(&mut self, _b: &mut Builder<'_>) {}

    /// Whether the load itself is replaced by what the strategy has.
    fn replaces_load(&self) -> bool;

    /// The token in `state` that covers all copies in flight, if there may be any.
    fn in_flight(&self, _state: &[Value]) -> Option<Value> {
        None
    }
}

/// How a step of several iterations treats the counting test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tests {
    /// One test for the whole group; the rest runs in a plain loop.
    Once,
    /// Each copy keeps its own.
    Kept,
}

/// What to do with a loop.
pub(super) struct Rewrite<'f> {
    /// Iterations a step.
    pub(super) group: u32,
    /// How they are tested.
    pub(super) tests: Tests,
    /// The strategies, a load's parents before it.
    pub(super) fetches: Vec<&'f mut dyn Fetch>,
    /// Other loads to bring to the start of the step, where that is legal.
    pub(super) gather_loads: bool,
}

/// Rewrites a loop; the operations returned define what `op` defined. Also gives the label of the new loop.
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
    let size = count(&body) * (plan.group as usize + 1);
    if size > MAX_OPERATIONS {
        return Err(Error::usage(format!(
            "{} copies of the loop would be {size} operations of code",
            plan.group
        ))
        .at(kernel.describe_place(op.place))
        .accepted(format!("at most {MAX_OPERATIONS}")));
    }
    let mut limits = Limits::default();

    // In front of the loop.
    let mut b = Builder::new(kernel, op.place);
    let mut early = Early::new(&summary, definitions, &initial, 0);
    let mut first_state = Vec::new();
    let mut widths = Vec::new();
    for fetch in &mut plan.fetches {
        let state = fetch.prologue(&mut early, &mut limits, &mut b)?;
        widths.push(state.len());
        first_state.extend(state);
    }
    let prologue = b.finish().ops;

    let frame = Frame {
        summary: &summary,
        definitions,
        label,
        body: &body,
        place: op.place,
        widths,
    };
    let main = frame.main_loop(kernel, &mut limits, &mut plan, initial, first_state)?;

    let new_label = main.op_loop.kind.label().unwrap_or(label);
    let mut ops = std::mem::take(&mut limits.ops);
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
            ops.push(Op {
                kind: rest,
                results: results.clone(),
                place: op.place,
            });
            let end = Op {
                kind: OpKind::Break(block, results),
                results: Vec::new(),
                place: op.place,
            };
            ops.push(end);
            let kind = OpKind::Block {
                label: block,
                body: Region { ops },
            };
            ops = vec![Op {
                kind,
                results: op.results,
                place: op.place,
            }];
        }
    }
    Ok((ops, new_label))
}

/// Lets every strategy end its step.
fn finish(b: &mut Builder<'_>, plan: &mut Rewrite<'_>) {
    for fetch in &mut plan.fetches {
        let place = b.place();
        b.at(fetch.site().place);
        fetch.finish(b);
        b.at(place);
    }
}

/// Operations in a region, those inside included.
pub(super) fn count(region: &Region) -> usize {
    let mut count = 0;
    region.walk(&mut |_| count += 1);
    count
}

struct Frame<'a> {
    summary: &'a LoopSummary,
    definitions: &'a Definitions,
    label: Label,
    body: &'a Region,
    place: Place,
    /// How many state values each fetch has.
    widths: Vec<usize>,
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
        limits: &mut Limits,
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
            Tests::Once => step.tested_once(kernel, limits, plan)?,
            Tests::Kept => step.tests_kept(kernel, limits, plan)?,
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
            op_loop: Op {
                kind,
                results,
                place: self.place,
            },
            outer,
        })
    }

    /// How many operations of the body come before the values of its iteration are taken: up to the
    /// counting test, if nothing but pure operations precede it.
    fn head(&self) -> usize {
        match &self.summary.exit {
            Ok(exit) if exit.leading => exit.position + 1,
            _ => 0,
        }
    }
}

/// Writes the body of the main loop.
struct StepWriter<'a> {
    frame: &'a Frame<'a>,
    params: &'a [Value],
    state: &'a [Value],
    main: Label,
    outer: Label,
}

impl StepWriter<'_> {
    /// One test for the group, then the group.
    fn tested_once(
        &self,
        kernel: &mut Kernel,
        limits: &mut Limits,
        plan: &mut Rewrite<'_>,
    ) -> Result<Region> {
        let Frame {
            summary,
            definitions,
            place,
            ..
        } = *self.frame;
        let Ok(exit) = &summary.exit else {
            return Err(Error::bug("a group of uncounted iterations"));
        };
        let mut b = Builder::new(kernel, place);
        let mut early = Early::new(summary, definitions, self.params, 0);
        let whole = early.test(&mut b, limits, plan.group - 1)?;
        let whole = whole.ok_or_else(|| Error::bug("a group without a test"))?;
        let pending = in_flight(plan, &self.frame.widths, self.state);
        let (main, params) = (self.main, self.params.to_vec());
        b.if_(
            whole,
            &[],
            |_| Vec::new(),
            |b| {
                pending.into_iter().for_each(|token| b.wait(token));
                b.break_(main, params);
                Vec::new()
            },
        );

        // All tests of the group pass from here on.
        let mut early = Early::new(summary, definitions, self.params, plan.group);
        let next_state = self.advance(&mut b, limits, plan, &mut early)?;
        if plan.gather_loads {
            gather(&mut b, limits, &mut early, summary, plan.group)?;
        }
        let drained = in_flight(plan, &self.frame.widths, &next_state);
        let mut current = self.params.to_vec();
        for iteration in 0..plan.group {
            let mut copier = self.copier(&current);
            self.replace_loads(plan, &early, &mut copier, iteration);
            if let Some(cond) = self.test_condition(exit.position) {
                let passes = b.bool(exit.continues_on);
                copier.map(cond, passes);
                copier.leave_out(cond);
            }
            let args = self.copy_body(&mut b, &mut copier, &self.frame.body.ops, &drained);
            current = self.counters(&mut b, limits, &mut early, args, iteration + 1)?;
        }
        finish(&mut b, plan);
        current.extend(next_state);
        b.continue_(self.main, current);
        Ok(b.finish())
    }

    /// Copies that keep their tests.
    fn tests_kept(&self, kernel: &mut Kernel, limits: &mut Limits, plan: &mut Rewrite<'_>) -> Result<Region> {
        let Frame {
            summary,
            definitions,
            place,
            body,
            ..
        } = *self.frame;
        let head = self.frame.head();
        let mut b = Builder::new(kernel, place);
        let before = in_flight(plan, &self.frame.widths, self.state);

        // The first copy up to its test, then the step's fetches.
        let mut copier = self.copier(self.params);
        let mut opening = copier.ops(b.kernel, &body.ops[..head]);
        self.redirect_exits(b.kernel, &mut opening, &before);
        opening.into_iter().for_each(|op| b.append(op));
        let certain = u32::from(head > 0);
        let mut early = Early::new(summary, definitions, self.params, certain);
        let next_state = self.advance(&mut b, limits, plan, &mut early)?;
        if plan.gather_loads {
            gather(&mut b, limits, &mut early, summary, plan.group)?;
        }
        let drained = in_flight(plan, &self.frame.widths, &next_state);

        self.replace_loads(plan, &early, &mut copier, 0);
        let mut current = self.copy_body(&mut b, &mut copier, &body.ops[head..], &drained);
        for iteration in 1..plan.group {
            let mut copier = self.copier(&current);
            self.replace_loads(plan, &early, &mut copier, iteration);
            current = self.copy_body(&mut b, &mut copier, &body.ops, &drained);
        }
        finish(&mut b, plan);
        current.extend(next_state);
        b.continue_(self.main, current);
        Ok(b.finish())
    }

    /// Lets every strategy move on.
    fn advance(
        &self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        plan: &mut Rewrite<'_>,
        early: &mut Early<'_>,
    ) -> Result<Vec<Value>> {
        let mut next = Vec::new();
        let mut rest = self.state;
        for (fetch, &width) in plan.fetches.iter_mut().zip(&self.frame.widths) {
            let (own, others) = rest.split_at(width);
            rest = others;
            let place = b.place();
            b.at(fetch.site().place);
            next.extend(fetch.advance(early, limits, b, own, plan.group)?);
            b.at(place);
        }
        Ok(next)
    }

    /// A copier in which the loop's parameters are `current`.
    fn copier(&self, current: &[Value]) -> Copier {
        let mut copier = Copier::default();
        let params = self.frame.summary.params.iter();
        params
            .zip(current)
            .for_each(|(&param, &now)| copier.map(param, now));
        copier
    }

    /// Replaces the loads whose values are there.
    fn replace_loads(&self, plan: &Rewrite<'_>, early: &Early<'_>, copier: &mut Copier, iteration: u32) {
        for site in &self.frame.summary.loads {
            let planned = plan
                .fetches
                .iter()
                .find(|fetch| fetch.site().results == site.results);
            if planned.is_some_and(|fetch| !fetch.replaces_load())
                || (planned.is_none() && !plan.gather_loads)
            {
                continue;
            }
            if let Some(values) = early.known_load(site, iteration) {
                copier.leave_out(site.results[0]);
                site.results
                    .iter()
                    .zip(values)
                    .for_each(|(&result, value)| copier.map(result, value));
            }
        }
    }

    /// Counters of the next iteration in closed form; other parameters from the arguments.
    fn counters(
        &self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        early: &mut Early<'_>,
        args: Vec<Value>,
        iteration: u32,
    ) -> Result<Vec<Value>> {
        let summary = self.frame.summary;
        let mut next = Vec::new();
        for (index, arg) in args.into_iter().enumerate() {
            next.push(match summary.steps[index] {
                Step::Carried | Step::Remade(_) => arg,
                _ => early.value(b, limits, summary.params[index], iteration)?,
            });
        }
        Ok(next)
    }

    /// Copies (a part of) the body and gives what its `continue` passes.
    fn copy_body(
        &self,
        b: &mut Builder<'_>,
        copier: &mut Copier,
        ops: &[Op],
        drained: &[Value],
    ) -> Vec<Value> {
        let looped = self.frame.label;
        let mut copies = copier.ops(b.kernel, ops);
        self.redirect_exits(b.kernel, &mut copies, drained);
        // The usual body has one `continue`, at its end: then the copies simply follow each other.
        let mut continues = 0;
        let region = Region { ops: copies };
        region.walk(&mut |op| {
            continues += usize::from(matches!(&op.kind, OpKind::Continue(to, _) if *to == looped))
        });
        let mut copies = region.ops;
        if continues == 1
            && let Some(Op {
                kind: OpKind::Continue(to, args),
                ..
            }) = copies.last()
            && *to == looped
        {
            let args = args.clone();
            copies.pop();
            copies.into_iter().for_each(|op| b.append(op));
            return args;
        }
        let types: Vec<_> = self
            .frame
            .summary
            .params
            .iter()
            .map(|&param| b.kernel.ty(param))
            .collect();
        let next = b.kernel.label(None, types.clone());
        exchange_terminators(&mut copies, &mut |op| match &op.kind {
            OpKind::Continue(to, args) if *to == looped => Some(vec![Op {
                kind: OpKind::Break(next, args.clone()),
                results: Vec::new(),
                place: op.place,
            }]),
            _ => None,
        });
        b.push(
            OpKind::Block {
                label: next,
                body: Region { ops: copies },
            },
            &types,
        )
    }

    /// Exits of the old loop leave the new one, and wait for copies still in flight.
    fn redirect_exits(&self, kernel: &Kernel, ops: &mut Vec<Op>, in_flight: &[Value]) {
        let mut inside = Vec::new();
        let region = Region {
            ops: std::mem::take(ops),
        };
        region.walk(&mut |op| inside.extend(op.kind.label()));
        *ops = region.ops;
        let in_flight: Vec<Value> = in_flight
            .iter()
            .copied()
            .filter(|&token| kernel.as_constant(token).is_none())
            .collect();
        let (old, outer) = (self.frame.label, self.outer);
        exchange_terminators(ops, &mut |op| {
            let mut end = op.clone();
            match &mut end.kind {
                OpKind::Break(label, _) if *label == old => *label = outer,
                OpKind::Break(label, _) if !inside.contains(label) => {}
                OpKind::Continue(label, _) if *label != old && !inside.contains(label) => {}
                OpKind::Return => {}
                _ => return None,
            }
            let wait = |&token: &Value| Op {
                kind: OpKind::Wait(token),
                results: Vec::new(),
                place: op.place,
            };
            Some(in_flight.iter().map(wait).chain([end]).collect())
        });
    }

    /// The condition of the counting test, in the old body.
    fn test_condition(&self, position: usize) -> Option<Value> {
        match self.frame.body.ops[position].kind {
            OpKind::If { cond, .. } => Some(cond),
            _ => None,
        }
    }
}

/// Brings the loads that may move to the start of a step, parents first: they lie in that order.
fn gather(
    b: &mut Builder<'_>,
    limits: &mut Limits,
    early: &mut Early<'_>,
    summary: &LoopSummary,
    group: u32,
) -> Result<()> {
    for site in &summary.loads {
        for iteration in 0..group {
            // A load that may not move stays where it is: unrolling alone promises nothing about it.
            let mut attempt = early.clone();
            let mut aside = Builder::new(b.kernel, site.place);
            let outcome = attempt.load(&mut aside, limits, site, iteration);
            let ops = aside.finish().ops;
            if outcome.is_ok() {
                ops.into_iter().for_each(|op| b.append(op));
                *early = attempt;
            }
        }
    }
    Ok(())
}

/// The tokens that a way out waits for: each strategy's last one.
fn in_flight(plan: &Rewrite<'_>, widths: &[usize], state: &[Value]) -> Vec<Value> {
    let mut rest = state;
    let mut tokens = Vec::new();
    for (fetch, &width) in plan.fetches.iter().zip(widths) {
        let (own, others) = rest.split_at(width);
        rest = others;
        tokens.extend(fetch.in_flight(own));
    }
    tokens
}
