//! Kernels with spills, recompiled with more registers for fewer resident work-groups.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::{Compilation, GpuBench};
use crate::Result;
use crate::back::ptx::{self, Options, Ptx};
use crate::device::cuda::gpu::GpuFacts;
use crate::ir::Kernel;
use crate::tune::subject::workload::Workload;

impl GpuBench {
    /// Compiles kernels that spilled again, for fewer work-groups in a core, as long as that gives them more registers: those
    /// that get by without spilling then, each with its kernel's place in the list. Several of a kernel differ in their registers.
    ///
    /// ptxas saves registers for more work-groups than it was told of. Without `.minnctapersm` it held the article's loop,
    /// unrolled by 16, to 40 registers and spilled 136 bytes, where 62 registers need none (ptxas 13.0, sm_90). Whether more
    /// work-groups or more registers are worth more, only the clock says: with 528 work-groups of 256, a ring in registers went
    /// from 455 to 117 µs, and a search in a B-tree from 107 to 132 µs.
    pub(super) fn compiled_without_spilling(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        compiled: &[Result<Compilation>],
    ) -> Result<Vec<(usize, Compilation)>> {
        let options = self.options(workload);
        let items = workload.group.iter().product();
        let spilled = |(index, compiled): (usize, &Result<Compilation>)| {
            let loaded = &compiled.as_ref().ok()?.loaded;
            (loaded.compiled.local_bytes > 0).then_some((index, loaded.groups_per_core))
        };
        let mut spilled: Vec<(usize, u32)> = compiled.iter().enumerate().filter_map(spilled).collect();
        let mut found: Vec<(usize, Compilation)> = Vec::new();
        for (registers, groups) in fewer_groups(&self.facts, items) {
            let again: Vec<usize> = spilled
                .iter()
                .filter(|&&(_, held)| groups < held)
                .map(|&(index, _)| index)
                .collect();
            if again.is_empty() {
                continue;
            }
            let options = Options {
                groups_per_core: Some(groups),
                ..options.clone()
            };
            let emit = |&index: &usize| {
                let start = Instant::now();
                ptx::emit(&kernels[index].1, &options).map(|ptx| (ptx, start.elapsed()))
            };
            let emitted: Vec<Result<(Ptx, Duration)>> = again.par_iter().map(emit).collect();
            let name = |&index: &usize| format!("{} for {groups} work-groups in a core", kernels[index].0);
            let names: Vec<String> = again.iter().map(name).collect();
            let attempts = self.compiled(workload, &names, emitted, Some(groups))?;
            let mut useless = Vec::new();
            for (index, attempt) in again.into_iter().zip(attempts) {
                let Ok(attempt) = attempt else { continue };
                let code = &attempt.loaded.compiled;
                // It took what it wants: the next would be the same.
                if code.registers + REGISTERS_AT_A_TIME <= registers {
                    spilled.retain(|&(other, _)| other != index);
                }
                let is_known = |(other, before): &(usize, Compilation)| {
                    *other == index && before.loaded.compiled.registers == code.registers
                };
                match code.local_bytes > 0 || found.iter().any(is_known) {
                    true => useless.push(attempt.module),
                    false => found.push((index, attempt)),
                }
            }
            self.worker.unload(&useless)?;
        }
        Ok(found)
    }
}

/// Registers are given to work-items in multiples of this.
const REGISTERS_AT_A_TIME: u32 = 8;

/// Registers that a work-item could have, and how many work-groups a core holds then: from a little more than the 40 at which
/// ptxas spills rather than take more, to all that an instruction can name.
fn fewer_groups(facts: &GpuFacts, items: u32) -> Vec<(u32, u32)> {
    let items = items.next_multiple_of(facts.sub_group.max(1));
    let step = |registers: u32| (registers, facts.registers_per_core / (registers * items).max(1));
    let mut steps = [48, 56, 64, 80, 96, 128, 168, 255].map(step).to_vec();
    steps.retain(|&(_, groups)| groups > 0);
    steps.dedup_by_key(|&mut (_, groups)| groups);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_work_groups_leave_more_registers() {
        let facts = headstart_testing::h200();
        let expected = [
            (48, 10),
            (56, 9),
            (64, 8),
            (80, 6),
            (96, 5),
            (128, 4),
            (168, 3),
            (255, 2),
        ];
        assert_eq!(fewer_groups(&facts, 128), expected);
        // The first number of registers at which this many fit: with 64, too, there is room for one.
        assert_eq!(fewer_groups(&facts, 1024), [(48, 1)]);
        assert_eq!(fewer_groups(&facts, 100), expected);
    }
}
