//! NVIDIA's rules, compute capabilities 8.0 and 9.0.
//!
//! Registers are allotted to whole warps, in pieces of 256, from the register file of the warp's
//! own scheduler; shared memory to whole work-groups, in pieces of 128 bytes on top of 1 KiB that
//! the system keeps. Source: `cuda_occupancy.h` of the CUDA toolkit and the table "Technical
//! Specifications per Compute Capability" of the CUDA C++ Programming Guide.

use super::{Footprint, Limit, Occupancy, least};

/// The resources of a core (SM), and how they are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NvidiaCore {
    /// Work-items of a warp.
    pub sub_group: u32,
    /// Warps resident at once.
    pub max_sub_groups: u32,
    /// Work-groups resident at once.
    pub max_groups: u32,
    /// Work-items of the largest work-group.
    pub max_group: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// 32-bit registers that one work-group may have.
    pub max_registers_per_group: u32,
    /// 32-bit registers that one work-item may have.
    pub max_registers: u32,
    /// Registers are allotted to a warp in pieces of this many.
    pub register_granule: u32,
    /// Schedulers; each has an equal share of warps and registers.
    pub schedulers: u32,
    /// Bytes of L1 and shared memory together.
    pub l1_and_shared: u32,
    /// Bytes that can be set aside for shared memory, ascending.
    pub carve_outs: Vec<u32>,
    /// Shared memory is allotted to a work-group in pieces of this many bytes.
    pub shared_granule: u32,
    /// Bytes of shared memory that the system takes for each work-group.
    pub shared_reserved: u32,
}

#[cfg(test)]
const KIB: u32 = 1024;

impl NvidiaCore {
    /// Compute capability 8.0: A100.
    #[cfg(test)]
    pub(crate) fn sm_80() -> NvidiaCore {
        NvidiaCore {
            l1_and_shared: 192 * KIB,
            carve_outs: [0, 8, 16, 32, 64, 100, 132, 164].map(|kib| kib * KIB).to_vec(),
            ..NvidiaCore::sm_90()
        }
    }

    /// Compute capability 9.0: H100, H200, GH200.
    #[cfg(test)]
    pub(crate) fn sm_90() -> NvidiaCore {
        NvidiaCore {
            sub_group: 32,
            max_sub_groups: 64,
            max_groups: 32,
            max_group: 1024,
            registers: 65536,
            max_registers_per_group: 65536,
            max_registers: 255,
            register_granule: 256,
            schedulers: 4,
            l1_and_shared: 256 * KIB,
            carve_outs: [0, 8, 16, 32, 64, 100, 132, 164, 196, 228]
                .map(|kib| kib * KIB)
                .to_vec(),
            shared_granule: 128,
            shared_reserved: KIB,
        }
    }

    /// Bytes of the largest carve-out, which is all the shared memory that a core can have.
    pub(crate) fn max_shared(&self) -> u32 {
        self.carve_outs.last().copied().unwrap_or(0)
    }

    /// Bytes of shared memory that the largest work-group can ask for.
    #[cfg(test)]
    pub(crate) fn max_shared_per_group(&self) -> u32 {
        self.max_shared().saturating_sub(self.shared_reserved)
    }

    /// Occupancy with as much shared memory as the carve-outs allow.
    pub(crate) fn occupancy(&self, footprint: &Footprint) -> Occupancy {
        self.occupancy_with_carve_out(footprint, self.max_shared())
    }

    /// Occupancy when `carve_out` bytes of a core are shared memory and the rest is L1.
    pub(crate) fn occupancy_with_carve_out(&self, footprint: &Footprint, carve_out: u32) -> Occupancy {
        let sub_groups = footprint.group.div_ceil(self.sub_group);
        let registers_per_sub_group = footprint
            .registers
            .saturating_mul(self.sub_group)
            .div_ceil(self.register_granule)
            .saturating_mul(self.register_granule);
        let shared_per_group = footprint
            .shared
            .saturating_add(self.shared_reserved)
            .checked_next_multiple_of(self.shared_granule)
            .unwrap_or(u32::MAX);

        let mut bounds = vec![
            (Limit::SubGroups, self.max_sub_groups / sub_groups.max(1)),
            (
                Limit::Registers,
                self.groups_by_registers(footprint, registers_per_sub_group),
            ),
            // Who takes none is not limited by it.
            (
                Limit::SharedMemory,
                carve_out.checked_div(shared_per_group).unwrap_or(u32::MAX),
            ),
            (Limit::WorkGroups, self.max_groups),
        ];
        if footprint.group == 0 || footprint.group > self.max_group {
            bounds = vec![(Limit::GroupSize, 0)];
        }
        let (groups, limits) = least(&bounds);
        Occupancy {
            groups_per_core: groups,
            sub_groups_per_group: sub_groups,
            sub_groups_per_core: groups * sub_groups,
            occupancy: f64::from(groups * sub_groups) / f64::from(self.max_sub_groups),
            limits,
            registers_per_group: registers_per_sub_group.saturating_mul(sub_groups),
            shared_per_group,
        }
    }

    /// The smallest carve-out that holds the resident work-groups, as the driver chooses it.
    pub(crate) fn carve_out(&self, occupancy: &Occupancy) -> u32 {
        let needed = occupancy
            .groups_per_core
            .saturating_mul(occupancy.shared_per_group);
        let fits = |bytes: &&u32| **bytes >= needed;
        self.carve_outs
            .iter()
            .find(fits)
            .copied()
            .unwrap_or(self.max_shared())
    }

    /// Work-groups that the register file holds: a multiple of whole warps per scheduler.
    fn groups_by_registers(&self, footprint: &Footprint, registers_per_sub_group: u32) -> u32 {
        let sub_groups = footprint.group.div_ceil(self.sub_group).max(1);
        // A launch is refused as if every scheduler got an equal number of its warps.
        let assumed = sub_groups
            .next_multiple_of(self.schedulers)
            .saturating_mul(registers_per_sub_group);
        if footprint.registers > self.max_registers || assumed > self.max_registers_per_group {
            return 0;
        }
        if registers_per_sub_group == 0 {
            return self.max_groups;
        }
        let per_scheduler = self.registers / self.schedulers / registers_per_sub_group;
        per_scheduler * self.schedulers / sub_groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rows of the reference file, every column.
    #[test]
    fn reference_rows() {
        let text = include_str!("../../../../headstart/tests/data/occupancy/nvidia.csv");
        let mut rows = 0;
        for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let [
                cc,
                group,
                registers,
                shared,
                groups,
                warps,
                percent,
                regs,
                smem,
                mask,
            ] = fields[..].try_into().unwrap();
            let core = if cc == 8.0 {
                NvidiaCore::sm_80()
            } else {
                NvidiaCore::sm_90()
            };
            let footprint = Footprint {
                registers: registers as u32,
                shared: shared as u32,
                ..Footprint::new(group as u32, 32)
            };
            let occupancy = core.occupancy(&footprint);
            assert_eq!(occupancy.groups_per_core, groups as u32, "{line}");
            assert_eq!(occupancy.sub_groups_per_core, warps as u32, "{line}");
            assert!((occupancy.occupancy * 100.0 - percent).abs() <= 0.0501, "{line}");
            assert_eq!(occupancy.registers_per_group, regs as u32, "{line}");
            assert_eq!(occupancy.shared_per_group, smem as u32, "{line}");
            let named = [
                Limit::SubGroups,
                Limit::Registers,
                Limit::SharedMemory,
                Limit::WorkGroups,
            ];
            let mask = mask as u32;
            let expected: Vec<Limit> = (0..4)
                .filter(|bit| mask >> bit & 1 == 1)
                .map(|bit| named[bit])
                .collect();
            assert_eq!(occupancy.limits, expected, "{line}");
            rows += 1;
        }
        assert_eq!(rows, 52);
    }

    #[test]
    fn impossible_launches_name_what_forbids_them() {
        let core = NvidiaCore::sm_90();
        let too_large = core.occupancy(&Footprint::new(1025, 32));
        assert_eq!(
            (too_large.groups_per_core, too_large.limit().as_str()),
            (0, "work-group size")
        );
        assert_eq!(core.occupancy(&Footprint::new(0, 32)).groups_per_core, 0);

        let shared = Footprint {
            shared: core.max_shared_per_group() + 1,
            ..Footprint::new(32, 32)
        };
        assert_eq!(core.occupancy(&shared).limit(), "shared memory");
        let shared = Footprint {
            shared: u32::MAX,
            ..shared
        };
        assert_eq!(core.occupancy(&shared).groups_per_core, 0);

        let registers = Footprint {
            registers: 256,
            ..Footprint::new(32, 32)
        };
        assert_eq!(core.occupancy(&registers).limit(), "registers");
    }

    /// Shared memory and L1 come out of one store: a ring in shared memory takes L1 away.
    #[test]
    fn the_carve_out_is_the_smallest_that_holds_the_groups() {
        let core = NvidiaCore::sm_90();
        let none = Footprint {
            registers: 255,
            ..Footprint::new(128, 32)
        };
        // Two groups with 1 KiB each for the system.
        let occupancy = core.occupancy(&none);
        assert_eq!(
            (occupancy.groups_per_core, core.carve_out(&occupancy)),
            (2, 8 * KIB)
        );

        let ring = Footprint {
            shared: 20 * KIB,
            ..none
        };
        assert_eq!(core.carve_out(&core.occupancy(&ring)), 64 * KIB);

        let small = core.occupancy_with_carve_out(&ring, 32 * KIB);
        assert_eq!(
            (small.groups_per_core, small.limit().as_str()),
            (1, "shared memory")
        );
    }
}
