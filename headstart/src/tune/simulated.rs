//! The bench of a simulated device: its model, the functional engine that checks, the timer that tells times.

use std::sync::Arc;

use super::search::{Bench, Timed, Witness};
use super::workload::Workload;
use crate::advise::Evidence;
use crate::back::machine;
use crate::device::model::occupancy::Footprint;
use crate::device::model::{DeviceModel, Reached, Vendor};
use crate::device::sim::functional::Options;
use crate::device::sim::{Clock, Simulator};
use crate::ir::{CacheLevel, Kernel, OpKind};
use crate::prefetch;

/// A simulated device on which plans are tried.
pub struct SimulatedBench {
    model: DeviceModel,
    device: Simulator,
    clock: Arc<dyn Clock>,
}

impl SimulatedBench {
    /// The simulated device of this model.
    pub fn new(model: DeviceModel, clock: Arc<dyn Clock>) -> SimulatedBench {
        let device = Simulator::new(model.description(), Options::CHECKING, None);
        SimulatedBench { model, device, clock }
    }

    /// The device's model.
    pub fn model(&self) -> &DeviceModel {
        &self.model
    }

    /// What searches and single runs need.
    pub fn as_bench(&self) -> Bench<'_> {
        let line = self.model.l1.as_ref().map_or(&self.model.l2.line, |l1| &l1.line);
        Bench {
            device: &self.device,
            clock: Some(self.clock.as_ref()),
            target: prefetch::Target {
                line: u32::try_from(**line).unwrap_or(u32::MAX),
                ..prefetch::Target::default()
            },
            levels: self.levels(),
            witness: self,
        }
    }

    /// The cache levels that hints can be told apart by; none where hints do nothing.
    pub fn levels(&self) -> Vec<CacheLevel> {
        let mut seen = vec![Reached::Nothing];
        let mut levels = Vec::new();
        for (level, form) in self.model.prefetch.levels() {
            if !seen.contains(&form.reaches) {
                seen.push(form.reaches);
                levels.push(level);
            }
        }
        levels
    }

    /// How many work-groups of a kernel fit into a core.
    fn fits(&self, workload: &Workload, kernel: &Kernel) -> crate::device::model::occupancy::Occupancy {
        let sub_group = kernel.sub_group_size.unwrap_or(*self.model.core.sub_group_size);
        let registers = self.model.registers_per_work_item(sub_group);
        let target = match self.model.vendor {
            Vendor::Nvidia => machine::Target {
                max_registers: registers,
                ..machine::Target::nvidia()
            },
            Vendor::Intel => machine::Target {
                max_registers: registers,
                ..machine::Target::intel(sub_group, 4 * sub_group * registers)
            },
        };
        let program = machine::lower(kernel, &target);
        let group = workload.geometry().group;
        self.model.occupancy(&Footprint {
            registers: program.register_estimate.registers,
            shared: u32::try_from(kernel.shared_bytes()).unwrap_or(u32::MAX),
            barrier: has_barrier(kernel),
            ..Footprint::new(group, sub_group)
        })
    }
}

impl Witness for SimulatedBench {
    fn evidence(&self, workload: &Workload, kernel: &Kernel, timed: &Timed) -> Evidence {
        let geometry = workload.geometry();
        Evidence {
            cores: *self.model.core.count,
            places: *self.model.core.sub_groups,
            groups: geometry.groups,
            group: geometry.group,
            fits: Some(self.fits(workload, kernel)),
            time_ns: timed.time_ns,
            memory_bytes: None,
            bandwidth: Some(*self.model.dram.bandwidth),
            latency_ns: Some(self.model.nanoseconds(f64::from(*self.model.dram.latency))),
            waiting_for_loads: None,
            issued: None,
        }
    }
}

fn has_barrier(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel
        .body
        .walk(&mut |op| found |= matches!(op.kind, OpKind::Barrier));
    found
}
