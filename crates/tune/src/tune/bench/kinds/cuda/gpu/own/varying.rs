//! Outputs that vary from launch to launch of the user's own kernel.

use std::collections::BTreeMap;
use std::time::Duration;

use super::chance::{self, Class, Words};
use super::{GpuBench, Output, outputs};
use crate::device::cuda::worker::{Piece, Whose};
use crate::error::{Error, Result};
use crate::tune::subject::workload::Workload;

impl GpuBench {
    /// Launches the user's own kernel a few more times, and finds the class of each output that varies.
    ///
    /// # Errors
    /// What it leaves from launch to launch has too little in common.
    pub(super) fn look_for_chance(&mut self, workload: &Workload, own: &str, limit: Duration) -> Result<()> {
        let outputs = outputs(workload);
        let mut left: BTreeMap<usize, Vec<Vec<u64>>> = BTreeMap::new();
        for launch in 1..chance::LAUNCHES {
            let verified = self.worker.verify(own, limit, 0)?;
            for (index, output) in outputs
                .iter()
                .enumerate()
                .filter(|(_, own)| own.compare.is_exact())
            {
                let difference = verified.differences.get(index).copied().unwrap_or_default();
                if difference.is_none() && !left.contains_key(&index) {
                    continue;
                }
                if output.bytes > chance::MOST_BYTES {
                    return Err(self.by_chance(workload, output, "which is too long to be looked at"));
                }
                let words = self.words(Whose::Last, index, output)?;
                let launches = match left.remove(&index) {
                    Some(launches) => launches,
                    // Those before left what was kept.
                    None => vec![self.words(Whose::Reference, index, output)?; launch],
                };
                left.insert(index, [launches, vec![words]].concat());
            }
        }
        for (index, launches) in left {
            let class = Class::of(&launches).ok_or_else(|| {
                self.by_chance(workload, &outputs[index], "which have too little in common")
            })?;
            self.known.classes.insert(index, class);
        }
        Ok(())
    }

    /// All words of an output.
    fn words(&mut self, whose: Whose, index: usize, output: &Output<'_>) -> Result<Vec<u64>> {
        let all = Piece {
            output: index,
            offset: 0,
            bytes: output.bytes,
        };
        let bytes = self.worker.fetch(whose, &[all])?;
        Ok(Words::of(output.element, output.bytes).read(&bytes))
    }

    /// That the user's own kernel leaves other bits from launch to launch, and nothing can be compared with it.
    fn by_chance(&self, workload: &Workload, output: &Output<'_>, why: &str) -> Error {
        Error::input(format!(
            "`{}` is not deterministic: launches with the same data on {} left other bits in `{}`, {why}",
            workload.kernel.name,
            self.facts().name,
            output.name,
        ))
        .accepted(
            "a kernel without races, or an output that is compared within a tolerance or in any order, so that a plan can be \
             told from chance",
        )
    }

    /// Whether an output of the user's own kernel turns out to vary from launch to launch, after a plan's was another: a difference
    /// by chance is not the plan's fault. If nothing can be compared with it, nothing can be said of any plan.
    pub(super) fn varies(
        &mut self,
        workload: &Workload,
        own: &str,
        limit: Duration,
        index: usize,
        chance: &mut Option<Error>,
    ) -> Result<bool> {
        if let Err(error) = self.look_for_chance(workload, own, limit) {
            *chance = Some(error.clone());
            return Err(error);
        }
        Ok(self.known.classes.contains_key(&index))
    }

    /// Compares what a module, launched last, leaves in an output that varies.
    ///
    /// # Errors
    /// It leaves what the user's own kernel does not leave there.
    pub(super) fn is_alike(
        &mut self,
        index: usize,
        output: &Output<'_>,
        (module, limit): (&str, Duration),
    ) -> Result<()> {
        let mut launches = vec![self.words(Whose::Last, index, output)?];
        while launches.len() < chance::HELD_OUT {
            self.worker.verify(module, limit, 0)?;
            launches.push(self.words(Whose::Last, index, output)?);
        }
        let class = self.known.classes.get(&index);
        match class.is_none_or(|class| class.has(&launches)) {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "`{}` varies from launch to launch, and holds what no launch of the kernel as it is left",
                output.name
            ))),
        }
    }
}
