//! The body of a rewritten loop: a step of one or several iterations.
//!
//! ```text
//! tested once                        tests kept
//! (N whole iterations, or break)     (test, or break)
//! (each strategy moves on)           (each strategy moves on)
//! (N copies of the arithmetic, the   (copy, test, copy, test … copy)
//!  last with a test at its end)
//! continue                           continue
//! ```

use super::early::Early;
use super::fetch::{Frame, Rewrite};
use crate::analysis::loops::{LoopSummary, Step};
use crate::error::{Error, Result};
use crate::ir::copy::{Copier, exchange_terminators};
use crate::ir::{Builder, Kernel, Label, Op, OpKind, Region, Value};

/// Writes the body of the main loop.
pub(super) struct StepWriter<'a> {
    pub(super) frame: &'a Frame<'a>,
    /// The old loop's carried values.
    pub(super) params: &'a [Value],
    /// The strategies' carried values.
    pub(super) state: &'a [Value],
    pub(super) main: Label,
    /// Where exits go that end the whole loop, remainder included.
    pub(super) outer: Label,
}

impl StepWriter<'_> {
    /// One test for the group, then the group.
    pub(super) fn tested_once(&self, kernel: &mut Kernel, plan: &mut Rewrite<'_>) -> Result<Region> {
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
        let known = self.whole_or_break(&mut b, plan)?;

        // The tests that are known pass from here on.
        let mut early = Early::new(summary, definitions, self.params, known, &self.frame.limits);
        let next_state = self.advance(&mut b, plan, &mut early)?;
        if plan.gather_loads {
            gather(&mut b, &mut early, summary, plan.group)?;
        }
        let drained = in_flight(plan, &self.frame.widths, &next_state);
        let mut current = self.params.to_vec();
        for iteration in 0..plan.group {
            let mut copier = self.copier(&current);
            self.replace_loads(plan, &early, &mut copier, iteration);
            if let Some(cond) = self.test_condition(exit.position)
                && iteration < known
            {
                let passes = b.bool(exit.continues_on);
                copier.map(cond, passes);
                copier.leave_out(cond);
            }
            let args = self.copy_body(&mut b, &mut copier, &self.frame.body.ops, &drained);
            current = self.counters(&mut b, &mut early, args, iteration + 1)?;
        }
        finish(&mut b, plan);
        current.extend(next_state);
        b.continue_(self.main, current);
        Ok(b.finish())
    }

    /// Leaves the main loop unless a whole group is left; says how many of its iterations then pass their test.
    pub(super) fn whole_or_break(&self, b: &mut Builder<'_>, plan: &Rewrite<'_>) -> Result<u32> {
        let summary = self.frame.summary;
        let Ok(exit) = &summary.exit else {
            return Err(Error::bug("a group of uncounted iterations"));
        };
        // A test at the end of an iteration stays in the last copy: the group runs while it is whole, not only while another
        // iteration follows.
        let is_last = !exit.leading && summary.loads.iter().all(|site| !site.after_exit);
        let known = plan.group - u32::from(is_last);
        let mut early = Early::new(
            summary,
            self.frame.definitions,
            self.params,
            0,
            &self.frame.limits,
        );
        let whole = early.test(b, known - 1)?;
        let whole = whole.ok_or_else(|| Error::bug("a group without a test"))?;
        let pending = in_flight(plan, &self.frame.widths, self.state);
        let main = self.main;
        let params = match b.kernel.labels[main].results.is_empty() {
            true => Vec::new(),
            false => self.params.to_vec(),
        };
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
        Ok(known)
    }

    /// Copies that keep their tests.
    pub(super) fn tests_kept(&self, kernel: &mut Kernel, plan: &mut Rewrite<'_>) -> Result<Region> {
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
        let mut early = Early::new(summary, definitions, self.params, certain, &self.frame.limits);
        let next_state = self.advance(&mut b, plan, &mut early)?;
        if plan.gather_loads {
            gather(&mut b, &mut early, summary, plan.group)?;
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
    pub(super) fn advance(
        &self,
        b: &mut Builder<'_>,
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
            next.extend(fetch.advance(early, b, own, plan.group)?);
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
        early: &mut Early<'_>,
        args: Vec<Value>,
        iteration: u32,
    ) -> Result<Vec<Value>> {
        let summary = self.frame.summary;
        let mut next = Vec::new();
        for (index, arg) in args.into_iter().enumerate() {
            next.push(match summary.steps[index] {
                Step::Carried | Step::Derived(_) => arg,
                _ => early.value(b, summary.params[index], iteration)?,
            });
        }
        Ok(next)
    }

    /// Copies (a part of) the body and gives the values of its `continue`.
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
        let region = Region { ops: copies };
        let continues = region.continues(looped);
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
            let wait = |&token: &Value| Op::new(OpKind::Wait(token), Vec::new(), op.place);
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
fn gather(b: &mut Builder<'_>, early: &mut Early<'_>, summary: &LoopSummary, group: u32) -> Result<()> {
    for site in &summary.loads {
        for iteration in 0..group {
            // A load that may not move stays where it is: unrolling alone promises nothing about it.
            let mut attempt = early.clone();
            let mut aside = Builder::new(b.kernel, site.place);
            let outcome = attempt.load(&mut aside, site, iteration);
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
pub(super) fn in_flight(plan: &Rewrite<'_>, widths: &[usize], state: &[Value]) -> Vec<Value> {
    let mut rest = state;
    let mut tokens = Vec::new();
    for (fetch, &width) in plan.fetches.iter().zip(widths) {
        let (own, others) = rest.split_at(width);
        rest = others;
        tokens.extend(fetch.in_flight(own));
    }
    tokens
}

/// Lets every strategy end its step.
pub(super) fn finish(b: &mut Builder<'_>, plan: &mut Rewrite<'_>) {
    for fetch in &mut plan.fetches {
        let place = b.place();
        b.at(fetch.site().place);
        fetch.finish(b);
        b.at(place);
    }
}
