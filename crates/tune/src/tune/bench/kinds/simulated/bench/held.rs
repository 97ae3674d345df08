//! What a core holds of a kernel: by the model's estimate, or by NVIDIA's assembler.

#[cfg(feature = "cuda")]
use crate::back::ptx;
use crate::device::Launch;
use crate::error::Result;
use crate::ir::Kernel;
use crate::model::Registers;
use crate::tune::bench::Held;
use crate::tune::subject::workload::Workload;

use super::SimulatedBench;

impl SimulatedBench {
    /// The kernel as the timer compiles it.
    pub(super) fn held_by_model(&self, workload: &Workload, kernel: &Kernel) -> Result<Held> {
        let launch = Launch {
            groups: workload.groups,
            group: workload.group,
            ..Launch::new(1, 1, Vec::new())
        };
        let timer = self.timer_of(workload);
        let code = timer.compile(kernel, &launch)?;
        let estimate = code.program().register_estimate;
        Ok(Held {
            groups_per_core: timer.groups_per_core(&code, &launch)?,
            registers: match &self.model.registers {
                Registers::Pooled(_) => estimate.registers,
                // Each sub-group has all of its own.
                Registers::Fixed(_) => 0,
            },
            spilled_bytes: estimate.spilled_bytes,
            shared_bytes: kernel.shared_bytes(),
        })
    }

    /// The text that is given away for a kernel, as NVIDIA's assembler compiles it; none where no assembler is named.
    #[cfg(feature = "cuda")]
    pub(super) fn held_by_assembler(&self, workload: &Workload, kernel: &Kernel) -> Result<Option<Held>> {
        use crate::device::cuda::ptxas::resources_for;
        use crate::model::occupancy::Footprint;

        let Some(target) = ptx::PtxTarget::for_model(&self.model) else {
            return Ok(None);
        };
        let written = self.ptx(target, workload, kernel)?;
        let before = match &workload.original {
            Some(_) => workload.kernel.shared_bytes(),
            None => u64::from(written.dynamic_shared_bytes),
        };
        // With the scratch words of hints for L1, which no array of the kernel has.
        let shared_bytes = before + u64::from(written.static_shared_bytes);
        let Some(taken) = resources_for(target.name(), &written.text, &written.entry)? else {
            return Ok(None);
        };
        let footprint = Footprint {
            registers: taken.registers,
            shared: u32::try_from(shared_bytes).unwrap_or(u32::MAX),
            ..Footprint::new(workload.group.iter().product(), *self.model.core.sub_group_size)
        };
        Ok(Some(Held {
            groups_per_core: self.model.occupancy(&footprint).groups_per_core,
            registers: taken.registers,
            spilled_bytes: taken.local_bytes,
            shared_bytes,
        }))
    }

    #[cfg(not(feature = "cuda"))]
    pub(super) fn held_by_assembler(&self, _workload: &Workload, _kernel: &Kernel) -> Result<Option<Held>> {
        Ok(None)
    }
}
