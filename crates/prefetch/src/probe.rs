//! Which loads can be fetched even one iteration early.
//!
//! Carrying out a plan rewrites its loop: in a kernel with hundreds of loads that takes a tenth of a second for each of them. So
//! each load is first judged without rewriting: a copy of the kernel, which is thrown away, gets the address and the guard of the next
//! iteration, in front of the loop and in it; a load that is refused there is judged once more in a loop with versions. The loads
//! that pass are then planned together; a refused group is split in halves.

use std::collections::HashMap;

use super::apply::{Loads, name_the_load};
use super::early::Early;
use super::limits::Limits;
use super::loads::{find_loop, may_change};
use super::plan::{Distance, Plan, Strategy, StrategyKind};
use super::planned::PlanTarget;
use super::shape::StepShape;
use super::versions;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoadSite, LoopSummary, summarize};
use crate::error::{Error, Result};
use crate::ir::{Builder, Kernel, Label, LoadId, OpKind, Place, Value};

impl Loads<'_> {
    /// For each load whether it can be fetched even one iteration early: if not, the refusal of a register ring, which needs
    /// nothing but an address.
    pub fn can_be_early(&self) -> Vec<Result<()>> {
        let mut by_loop: HashMap<Label, Vec<usize>> = HashMap::new();
        for (number, candidate) in self.all().iter().enumerate() {
            by_loop.entry(candidate.looped).or_default().push(number);
        }
        let mut found = vec![Ok(()); self.all().len()];
        for (label, own) in by_loop {
            let name = self.all()[own[0]].name.param();
            let may_change = may_change(self.kernel(), label, name);
            if let Err(error) = may_change.and_then(|()| self.probe(label, &own, &mut found)) {
                own.iter().for_each(|&number| found[number] = Err(error.clone()));
            }
        }
        found
    }

    /// # Errors
    /// None of them can.
    fn probe(&self, label: Label, own: &[usize], found: &mut [Result<()>]) -> Result<()> {
        let strategy = Strategy::new(StrategyKind::RollingRegisters, Distance::new(1)?);
        let ids = own.iter().map(|&number| self.all()[number].id);
        let all: HashMap<LoadId, Strategy> = ids.map(|id| (id, strategy)).collect();
        let mut plain = Probe::of(self.kernel().clone(), label)?;
        let mut versioned = None;
        for &number in own {
            let id = self.all()[number].id;
            let Err(refusal) = plain.ask(id, strategy) else {
                continue;
            };
            let versioned = versioned.get_or_insert_with(|| {
                let mut kernel = self.kernel().clone();
                versions::make(&mut kernel, label, (None, &all, None), None)?;
                Probe::of(kernel, label)
            });
            let passes = versioned
                .as_mut()
                .is_ok_and(|probe| probe.ask(id, strategy).is_ok());
            found[number] = if passes { Ok(()) } else { Err(refusal) };
        }
        let passed = own.iter().copied().filter(|&number| found[number].is_ok());
        let passed: Vec<usize> = passed.collect();
        let mut left = if passed.is_empty() {
            Vec::new()
        } else {
            vec![passed]
        };
        while let Some(mut some) = left.pop() {
            match (self.are_early(&some, strategy), &some[..]) {
                (Ok(()), _) => {}
                (Err(refusal), &[only]) => found[only] = Err(refusal),
                (Err(_), _) => {
                    left.push(some.split_off(some.len() / 2));
                    left.push(some);
                }
            }
        }
        Ok(())
    }

    fn are_early(&self, some: &[usize], strategy: Strategy) -> Result<()> {
        let mut plan = Plan::none();
        for name in some.iter().map(|&number| &self.all()[number].name) {
            if plan.strategy(name).is_none() {
                plan = plan.with(name.clone(), strategy)?;
            }
        }
        self.with_versions(&plan, &PlanTarget::default()).map(|_| ())
    }
}

/// A loop that is asked about.
struct Probe {
    /// What is asked is written nowhere, but makes values.
    kernel: Kernel,
    definitions: Definitions,
    summary: LoopSummary,
    place: Place,
    initial: Vec<Value>,
}

impl Probe {
    fn of(kernel: Kernel, label: Label) -> Result<Probe> {
        let definitions = Definitions::of(&kernel);
        let op = find_loop(&kernel.body, label).ok_or_else(|| Error::bug("a loop that is not there"))?;
        let OpKind::Loop { initial, .. } = &op.kind else {
            return Err(Error::bug("only loops are asked about"));
        };
        Ok(Probe {
            summary: summarize(&kernel, &definitions, op),
            place: op.place,
            initial: initial.clone(),
            definitions,
            kernel,
        })
    }

    /// Whether a load can be fetched one iteration early, as far as its address and guard decide that.
    fn ask(&mut self, id: LoadId, strategy: Strategy) -> Result<()> {
        let only = HashMap::from([(id, strategy)]);
        let place = self.kernel.describe_place(self.place);
        StepShape::of(&self.kernel, &self.summary, None, &only).map_err(|error| error.at(place))?;
        let mut refusal = None;
        // One name may be several loads: those that can be early are fetched.
        for site in self.summary.loads.iter().filter(|site| site.id == id) {
            let at = (self.place, &self.initial[..]);
            match early_at(&mut self.kernel, &self.definitions, &self.summary, at, (site, 1)) {
                Ok(()) => return Ok(()),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        let refusal = refusal.unwrap_or_else(|| Error::bug("a load of the loop that its summary lacks"));
        Err(name_the_load(&self.kernel, &self.summary, &only, refusal))
    }
}

/// Whether a load can be fetched `furthest` iterations early, as far as its address and its guard decide. The loop begins with the
/// values `initial`. The answer leaves new values in the kernel, but no operations.
///
/// # Errors
/// It cannot: why.
pub(super) fn early_at(
    kernel: &mut Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    (place, initial): (Place, &[Value]),
    (site, furthest): (&LoadSite, u32),
) -> Result<()> {
    for (base, ahead) in [(initial, 0), (&summary.params, furthest)] {
        let mut early = Early::new(summary, definitions, base, 0, &Limits::default());
        let mut b = Builder::new(kernel, place);
        early.load(&mut b, site, ahead)?;
    }
    Ok(())
}
