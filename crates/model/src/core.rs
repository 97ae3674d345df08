//! The resources of a core, and the rules by which work-groups share them.

use std::ops::RangeInclusive;

use serde::Deserialize;

use super::numbers::numbers;
use super::occupancy::intel::IntelCore;
use super::occupancy::nvidia::NvidiaCore;
use super::occupancy::{Footprint, Occupancy};
use super::quantity::{Bytes, Count, Cycles, Megahertz, PerCycle, Quantities, Quantity};
use super::{DeviceModel, Observation, SharedMemory};

numbers! {
    /// The resources of a core (SM, Xe-core, subslice).
    pub struct Core in "core" {
        /// Cores of the device (SMs, Xe-cores, compute units).
        count: Quantity<Count> [positive];
        /// Stacks of a card that the device has: each has as many of the cores, and as much of the memory.
        stacks: Quantity<Count> = {
        nvidia: 1 because "one die",
        intel: 1 because "one stack",
    };
        /// Clock of the cores; every number in cycles counts these.
        clock: Quantity<Megahertz>;
        /// Schedulers (vector engines), each of which issues one instruction a cycle.
        schedulers: Quantity<Count> [positive];
        /// Sub-groups resident at once; with `schedulers`, an equal share for each.
        sub_groups: Quantity<Count> [positive];
        /// Work-groups resident at once.
        work_groups: Quantity<Count> [positive];
        /// Work-items of the largest work-group.
        work_group_size: Quantity<Count> [positive];
        /// Sub-group sizes that a kernel can be compiled for, ascending: powers of two, 64 at most.
        sub_group_sizes: Quantities<Count>;
        /// The sub-group size of a kernel that asks for none; of one that exchanges values, if that is not more than 32.
        sub_group_size: Quantity<Count> [power_of_two];
        /// Work-items of the largest sub-group that has block loads and stores. In a larger one they are refused.
        block_items: Quantity<Count> = {
        nvidia: 64 because "a block is adjacent loads, in sub-groups of any size",
        intel: 32 because "disassembled (ocloc): the compiler takes block reads in sub-groups of 16 and 32 for pvc and bmg",
    };
        /// Results that are still on their way which a sub-group can tell apart (scoreboards, SBIDs).
        scoreboards: Quantity<Count> [positive];
        /// 32-bit words of a work-item's registers that a scheduler reads per cycle for an instruction; without it, no limit.
        operand_words: Option<Quantity<PerCycle>>;
        /// The additional latency of a result to an instruction of another arithmetic unit, if both have fixed latencies.
        crossing: Quantity<Cycles>;
        /// The additional latency of a load of four 32-bit words per work-item over a load of one, beside the time of its lines
        /// on the core's port; a load of two takes a third of that.
        vector_latency: Quantity<Cycles> = {
        nvidia: 0 because "loads of any width have the latencies that were measured",
        intel: 4 because "Intel, GPU Memory System (oneAPI optimization guide): a load of 32 bits completes in 6 cycles plus memory's latency, one of four elements in 12; the lines are the other two",
    };
        /// Whether powers and logarithms of two and reciprocals by tables ([`ir::eval::table`](crate::ir::eval::table)) are an
        /// instruction each. Elsewhere they are written out.
        table_functions: Observation;
        /// The time from an event in front of a launch until its first work-group runs, and from the end of its last one until
        /// the event behind it; 0 where it is not known, and not modelled.
        launch: Quantity<Cycles>;
        /// Work-groups that the whole device starts per cycle, in turns over its cores; without it, any number at once.
        group_starts: Option<Quantity<PerCycle>>;
        /// The longest that a launch may take where `launch` is not known.
        slowest_launch: Quantity<Cycles> = {
        nvidia: 0 because "launch was measured",
        intel: 250000 because "reported for an integrated GPU at 300 MHz (intel/compute-runtime#735): 156 microseconds a call; 33 at 1300 MHz, 42 on a Xe-LP and about 8 on an A770M (intel/compute-runtime#600)",
    };
    }
}

/// How the register file is shared out.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Registers {
    /// Sub-groups take the registers that the kernel needs from a common file (NVIDIA).
    Pooled(PooledRegisters),
    /// Every sub-group has its own file of a fixed size (Intel).
    Fixed(FixedRegisters),
}

numbers! {
    /// A register file that sub-groups take from.
    pub struct PooledRegisters in "registers.pooled" {
        /// 32-bit registers of a core.
        per_core: Quantity<Count>;
        /// 32-bit registers that one work-group may have.
        per_work_group: Quantity<Count>;
        /// 32-bit registers that one work-item may have.
        per_work_item: Quantity<Count>;
        /// A sub-group takes registers in pieces of this many.
        granule: Quantity<Count> [positive];
    }
}

numbers! {
    /// A register file for each sub-group.
    pub struct FixedRegisters in "registers.fixed" {
        /// Bytes of a sub-group's register file.
        per_sub_group: Quantity<Bytes>;
        /// Whether a sub-group can have twice that, at half the number of sub-groups.
        has_large_mode: bool;
        /// Work-groups with a barrier resident at once.
        work_groups_with_barrier: Quantity<Count>;
    }
}

impl DeviceModel {
    /// How many work-groups of a footprint a core holds.
    pub fn occupancy(&self, footprint: &Footprint) -> Occupancy {
        match &self.registers {
            Registers::Pooled(registers) => self.nvidia_core(registers).occupancy(footprint),
            Registers::Fixed(registers) => self.intel_core(registers).occupancy(footprint),
        }
    }

    /// Work-items that Intel's guide recommends for a work-group of this footprint, whose own size does not matter; none for other
    /// makers.
    pub fn recommended_group(&self, footprint: &Footprint) -> Option<RangeInclusive<u32>> {
        match &self.registers {
            Registers::Pooled(_) => None,
            Registers::Fixed(registers) => Some(self.intel_core(registers).recommended_group(footprint)),
        }
    }

    /// Bytes of L1 that a core has left when work-groups of this occupancy are resident.
    #[doc(hidden)]
    pub fn l1_bytes(&self, occupancy: &Occupancy) -> u64 {
        let Some(l1) = &self.l1 else { return 0 };
        let shared = match &self.registers {
            _ if !l1.holds_shared => 0,
            Registers::Pooled(registers) => u64::from(self.nvidia_core(registers).carve_out(occupancy)),
            Registers::Fixed(_) => {
                u64::from(occupancy.groups_per_core) * u64::from(occupancy.shared_per_group)
            }
        };
        (*l1.size).saturating_sub(shared).min(*l1.most)
    }

    /// Most bytes of shared memory that one work-group can have.
    pub fn shared_per_group(&self) -> u64 {
        let most = self.shared.sizes.last().copied().unwrap_or(0);
        most.saturating_sub(*self.shared.reserved)
    }

    /// 32-bit registers that a work-item can have before values are spilled.
    pub fn registers_per_work_item(&self, footprint: &Footprint) -> u32 {
        match &self.registers {
            Registers::Pooled(registers) => *registers.per_work_item,
            Registers::Fixed(registers) => self.intel_core(registers).registers_per_work_item(footprint),
        }
    }

    /// The core as NVIDIA's occupancy rules see it.
    fn nvidia_core(&self, registers: &PooledRegisters) -> NvidiaCore {
        NvidiaCore {
            sub_group: *self.core.sub_group_size,
            max_sub_groups: *self.core.sub_groups,
            max_groups: *self.core.work_groups,
            max_group: *self.core.work_group_size,
            registers: *registers.per_core,
            max_registers_per_group: *registers.per_work_group,
            max_registers: *registers.per_work_item,
            register_granule: *registers.granule,
            schedulers: *self.core.schedulers,
            l1_and_shared: self.l1.as_ref().map_or(0, |l1| saturate(*l1.size)),
            carve_outs: shared_sizes(&self.shared),
            shared_granule: saturate(*self.shared.granule),
            shared_reserved: saturate(*self.shared.reserved),
        }
    }

    /// The core as Intel's occupancy rules see it.
    fn intel_core(&self, registers: &FixedRegisters) -> IntelCore {
        let shared_sizes = shared_sizes(&self.shared);
        IntelCore {
            engines: *self.core.schedulers,
            threads_per_engine: *self.core.sub_groups / (*self.core.schedulers).max(1),
            sub_groups: self.core.sub_group_sizes.to_vec(),
            max_group: *self.core.work_group_size,
            max_groups: *self.core.work_groups,
            max_groups_with_barrier: *registers.work_groups_with_barrier,
            shared: shared_sizes.last().copied().unwrap_or(0),
            shared_sizes,
            register_file: saturate(*registers.per_sub_group),
            has_large_register_file: registers.has_large_mode,
        }
    }
}

fn shared_sizes(shared: &SharedMemory) -> Vec<u32> {
    shared.sizes.iter().map(|&size| saturate(size)).collect()
}

fn saturate(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::load::built_in;
    use super::*;

    #[test]
    fn models_and_occupancy_rules_agree() {
        for (name, expected) in [
            ("h200", NvidiaCore::sm_90()),
            ("h100", NvidiaCore::sm_90()),
            ("a100", NvidiaCore::sm_80()),
        ] {
            let model = built_in(name, &[]).unwrap();
            let Registers::Pooled(registers) = &model.registers else {
                panic!("{name}")
            };
            assert_eq!(model.nvidia_core(registers), expected, "{name}");
        }
        for (name, expected) in [
            ("pvc-1550", IntelCore::pvc()),
            ("xe-lp", IntelCore::gen12()),
            ("gen11", IntelCore::gen11()),
        ] {
            let model = built_in(name, &[]).unwrap();
            let Registers::Fixed(registers) = &model.registers else {
                panic!("{name}")
            };
            assert_eq!(model.intel_core(registers), expected, "{name}");
        }
    }

    #[test]
    fn shared_memory_is_cut_out_of_l1() {
        let model = built_in("h200", &[]).unwrap();
        let mut footprint = Footprint::new(128, 32);
        // 16 groups, for each of which the system keeps 1 KiB, would leave 240 KiB: more than ever holds global memory.
        assert_eq!(model.l1_bytes(&model.occupancy(&footprint)), 208 * 1024);
        footprint.shared = 9 * 1024;
        assert_eq!(model.l1_bytes(&model.occupancy(&footprint)), 92 * 1024);
        footprint.shared = 100 * 1024;
        assert_eq!(model.l1_bytes(&model.occupancy(&footprint)), 28 * 1024);
    }
}
