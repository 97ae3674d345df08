//! Loops of a program's text: an iteration is copied as the text that it is, and the frame stands between the copies.
//!
//! ```text
//! before                          after, two iterations at a time
//! loop 'items (%j = 0, %s = …) {  (limits and prologue)
//!   (test, or break)              loop (%i = 0, state…) {
//!   %x = load …                     (two whole iterations, or break)
//!   %t = add %s, %x                 (each strategy moves on)
//!   continue %j1, %t                copy 0 (%x0); copy 0 (%x1)
//! }                                 continue %i2, state'…
//!                                 }
//!                                 leave for the loop as it was
//! ```
//!
//! A copy works on the registers of the text: what iterations hand on to each other is not seen here, and neither are the ways
//! out of a copy. What the fetches need of the counters is counted beside them (`%i`).

use std::collections::HashSet;

use super::early::Early;
use super::fetch::{Fetch, Frame, Rewrite, Tests};
use super::limits::Limits;
use super::pipeline::{Started, fits, start};
use super::step::{StepWriter, finish};
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoadSite, Step, summarize};
use crate::error::{Error, Result};
use crate::ir::{
    Builder, CutEdge, Kernel, Label, LoopWishes, Op, OpKind, Opaque, OpaqueOperands, Place, Region, Type,
    Value,
};

/// A loop as text. Places are those of its statements.
pub trait LoopText {
    /// Whether the statement at this place loads values of these types, and does nothing else.
    fn loads(&self, place: Place, types: &[Type]) -> bool;

    /// The number of a copy in which values of these types take the place of the loads at these places, one after the other; and
    /// the test at `passes` is known to stay in the loop.
    fn copy(&mut self, replaced: Vec<(Place, Vec<Type>)>, passes: Option<Place>) -> usize;
}

/// A loop that is planned as text.
pub(super) struct Hosted<'h> {
    /// Its label.
    pub(super) label: Label,
    /// The number of its edges.
    pub(super) number: u32,
    /// Its text.
    pub(super) text: &'h mut dyn LoopText,
}

impl Hosted<'_> {
    /// The way to the loop as it was; the results take part in nothing.
    pub(super) fn leave(&self, kernel: &mut Kernel, results: Vec<Value>, place: Place) -> Op {
        let types: Vec<Type> = results.iter().map(|&result| kernel.ty(result)).collect();
        let values = types.iter().map(|&ty| kernel.constant(ty, 0)).collect();
        let label = kernel.label(None, types);
        kernel.labels[label].edge = Some(CutEdge::Leave(self.number));
        let ops = vec![Op::new(OpKind::Break(label, values), Vec::new(), place)];
        let body = Region { ops };
        let kind = OpKind::Block { label, body };
        Op { kind, results, place }
    }

    /// Iterations that pass their test, and a last one that does not.
    pub(super) fn all_iterations(
        &mut self,
        kernel: &mut Kernel,
        op: &Op,
        passed: u64,
        test: Place,
    ) -> Vec<Op> {
        let mut iteration = |passes: Option<Place>| self.text.copy(Vec::new(), passes);
        let numbers = [Some(test), None].map(&mut iteration);
        let copies = (0..=passed).map(|at| copy(numbers[usize::from(at == passed)], Vec::new(), op.place));
        let mut ops: Vec<Op> = copies.collect();
        ops.push(self.leave(kernel, op.results.clone(), op.place));
        ops
    }

    /// Rewrites the loop; the returned operations define the results of `op`. Also gives the label of the new loop.
    pub(super) fn rewrite(
        &mut self,
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
        let around = (op.place, &initial[..]);
        let Started {
            mut ops,
            state,
            widths,
        } = start(kernel, definitions, &summary, around, &limits, &mut plan)?;
        let frame = Frame {
            summary: &summary,
            definitions,
            label,
            body: &body,
            place: op.place,
            widths,
            limits,
        };
        let name = kernel.labels[label].name.clone();
        let main = kernel.label(name, Vec::new());
        let own: Vec<Value> = (summary.params.iter().zip(&summary.steps).zip(&initial))
            .map(|((&param, step), &initial)| match step {
                Step::Invariant => initial,
                // Of what the text alone hands on there is a value that nothing defines.
                _ => kernel.value_like(param),
            })
            .collect();
        let states: Vec<Value> = state.iter().map(|&value| kernel.value_like(value)).collect();
        let step = StepWriter {
            frame: &frame,
            params: &own,
            state: &states,
            main,
            outer: main,
        };
        let (body, counted) = self.step(&step, kernel, &mut plan)?;
        let params = counted
            .iter()
            .map(|&index| own[index])
            .chain(states.iter().copied());
        let firsts = counted.iter().map(|&index| initial[index]).chain(state);
        let kind = OpKind::Loop {
            label: main,
            params: params.collect(),
            initial: firsts.collect(),
            body,
            wishes: LoopWishes::default(),
        };
        ops.splice(..0, frame.limits.take());
        ops.push(Op::new(kind, Vec::new(), op.place));
        ops.push(self.leave(kernel, op.results, op.place));
        Ok((ops, main))
    }

    /// The body of the main loop, and the parameters that it counts beside the text.
    fn step(
        &mut self,
        step: &StepWriter<'_>,
        kernel: &mut Kernel,
        plan: &mut Rewrite<'_>,
    ) -> Result<(Region, Vec<usize>)> {
        let Frame {
            summary,
            definitions,
            body,
            place,
            ..
        } = *step.frame;
        let mut b = Builder::new(kernel, place);
        let known = match plan.tests {
            Tests::Kept => 0,
            Tests::Once => step.whole_or_break(&mut b, plan)?,
        };
        let mut early = Early::new(summary, definitions, step.params, known, &step.frame.limits);
        let (counted, unknown) = counted(&mut b, &early, step.params, plan.group);
        let next_state = step.advance(&mut b, plan, &mut early)?;
        if plan.gather_loads {
            self.gather(&mut b, &mut early, &unknown, plan.group);
        }
        let test = summary
            .exit
            .as_ref()
            .ok()
            .map(|exit| body.ops[exit.position].place);
        for iteration in 0..plan.group {
            let (mut places, mut values) = (Vec::new(), Vec::new());
            for site in &summary.loads {
                let is_own = |fetch: &&mut &mut dyn Fetch| fetch.site().results == site.results;
                let planned = plan.fetches.iter_mut().find(is_own);
                let replaces = planned.map_or(plan.gather_loads, |fetch| fetch.replaces_load());
                let Some(loaded) = early.known_load(site, iteration).filter(|_| replaces) else {
                    continue;
                };
                let types = types(b.kernel, site);
                if !self.text.loads(site.place, &types) {
                    return Err(Error::input("the load is no statement of its own in the text")
                        .at(b.kernel.describe_place(site.place))
                        .accepted("hints, or plans for other loads"));
                }
                places.push((site.place, types));
                values.extend(loaded);
            }
            let passes = test.filter(|_| iteration < known);
            b.append(copy(self.text.copy(places, passes), values, place));
        }
        finish(&mut b, plan);
        let mut next = Vec::new();
        for &index in &counted {
            next.push(early.value(&mut b, summary.params[index], plan.group)?);
        }
        next.extend(next_state);
        b.continue_(step.main, next);
        let region = b.finish();
        match uses(&region.ops, &unknown) {
            false => Ok((region, counted)),
            true => Err(Error::usage(
                "its address depends on what an iteration hands on to the next one in registers",
            )),
        }
    }

    /// Brings the loads that may move, and are statements, to the start of a step.
    fn gather(&self, b: &mut Builder<'_>, early: &mut Early<'_>, unknown: &HashSet<Value>, group: u32) {
        let loads = &early.summary.loads;
        for site in loads {
            if !self.text.loads(site.place, &types(b.kernel, site)) {
                continue;
            }
            for iteration in 0..group {
                let mut attempt = early.clone();
                let mut aside = Builder::new(b.kernel, site.place);
                let outcome = attempt.load(&mut aside, site, iteration);
                let ops = aside.finish().ops;
                if outcome.is_ok() && !uses(&ops, unknown) {
                    ops.into_iter().for_each(|op| b.append(op));
                    *early = attempt;
                }
            }
        }
    }
}

fn copy(number: usize, values: Vec<Value>, place: Place) -> Op {
    Op {
        kind: OpKind::Opaque(Opaque::copy(number), OpaqueOperands(values)),
        results: Vec::new(),
        place,
    }
}

fn types(kernel: &Kernel, site: &LoadSite) -> Vec<Type> {
    site.results.iter().map(|&result| kernel.ty(result)).collect()
}

/// The parameters that are counted beside the text, by number: those that go in steps, and those that follow from others by
/// arithmetic. Of the others only the text has values.
fn counted(
    b: &mut Builder<'_>,
    early: &Early<'_>,
    params: &[Value],
    group: u32,
) -> (Vec<usize>, HashSet<Value>) {
    let summary = early.summary;
    let all = || (0..params.len()).filter(|&index| summary.steps[index] != Step::Invariant);
    let carried = all().filter(|&index| summary.steps[index] == Step::Carried);
    let mut unknown: HashSet<Value> = carried.map(|index| params[index]).collect();
    let mut follows = |index: usize, unknown: &HashSet<Value>| {
        let mut aside = Builder::new(b.kernel, b.place());
        let value = early.clone().value(&mut aside, summary.params[index], group);
        value.is_ok() && !uses(&aside.finish().ops, unknown)
    };
    loop {
        let before = unknown.len();
        for index in all().filter(|&index| matches!(summary.steps[index], Step::Derived(_))) {
            if !unknown.contains(&params[index]) && !follows(index, &unknown) {
                unknown.insert(params[index]);
            }
        }
        if unknown.len() == before {
            break;
        }
    }
    (
        all().filter(|&index| !unknown.contains(&params[index])).collect(),
        unknown,
    )
}

/// Whether operations use one of these values.
fn uses(ops: &[Op], values: &HashSet<Value>) -> bool {
    let mut found = false;
    for op in ops {
        let mut look = |value| found |= values.contains(&value);
        op.kind.for_each_operand(&mut look);
        for region in op.kind.regions() {
            region.walk(&mut |op| op.kind.for_each_operand(&mut look));
        }
    }
    found
}
