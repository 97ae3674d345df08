//! Intel's rules, Gen11, Gen12 (Xe-LP) and Xe-HPC (PVC): those of Intel's GPU Occupancy Calculator (oneAPI samples).
//!
//! Every work-group stays within one subslice, has at most as many work-items as the device launches, and a subslice keeps track of
//! as many work-groups as the calculator's table says. The optimization guide for Gen11 and Gen12 says the same of work-groups with a
//! barrier or shared memory, but for two numbers: it launches 448 work-items on Gen11, where drivers stop at 256, and has 16
//! work-groups in a subslice, where the calculator has 64. It also spreads work-groups without either over several subslices. The
//! timer follows the calculator, and so does everything else.
//!
//! Registers do not limit residency: each thread has its own file of a fixed size. Values that do not fit are spilled
//! ([`IntelCore::registers_per_work_item`]).

use std::ops::RangeInclusive;

use super::{Footprint, Limit, Occupancy, least};

/// The resources of a core (subslice, Xe-core), and how they are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IntelCore {
    /// Vector engines.
    pub engines: u32,
    /// Threads (sub-groups) resident in one vector engine at once.
    pub threads_per_engine: u32,
    /// Widths that a kernel can be compiled for.
    pub sub_groups: Vec<u32>,
    /// Work-items of the largest work-group.
    pub max_group: u32,
    /// Work-groups resident at once.
    pub max_groups: u32,
    /// Work-groups with a barrier resident at once.
    pub max_groups_with_barrier: u32,
    /// Bytes of shared memory (SLM).
    pub shared: u32,
    /// Bytes of shared memory that a work-group can be given, ascending, 0 included.
    pub shared_sizes: Vec<u32>,
    /// Bytes of a thread's register file.
    pub register_file: u32,
    /// Whether threads can have twice the registers at half the number of threads.
    pub has_large_register_file: bool,
}

/// Threads that a work-group should at least have, by the guide.
const GUIDE_MIN_THREADS: u32 = 4;

#[cfg(test)]
const KIB: u32 = 1024;

impl IntelCore {
    /// Gen11 (Ice Lake).
    #[cfg(test)]
    pub(crate) fn gen11() -> IntelCore {
        IntelCore {
            engines: 8,
            max_group: 256,
            max_groups: 56,
            ..IntelCore::gen12()
        }
    }

    /// Gen12 (Xe-LP: Tiger Lake, DG1).
    #[cfg(test)]
    pub(crate) fn gen12() -> IntelCore {
        IntelCore {
            engines: 16,
            threads_per_engine: 7,
            sub_groups: vec![8, 16, 32],
            max_group: 512,
            max_groups: 112,
            max_groups_with_barrier: 64,
            shared: 64 * KIB,
            shared_sizes: [0, 1, 2, 4, 8, 16, 32, 64].map(|kib| kib * KIB).to_vec(),
            // 128 registers of 32 bytes.
            register_file: 4 * KIB,
            has_large_register_file: false,
        }
    }

    /// Xe-HPC (Ponte Vecchio, Data Center GPU Max).
    #[cfg(test)]
    pub(crate) fn pvc() -> IntelCore {
        IntelCore {
            engines: 8,
            threads_per_engine: 8,
            sub_groups: vec![16, 32],
            max_group: 1024,
            max_groups: 64,
            max_groups_with_barrier: 64,
            shared: 128 * KIB,
            shared_sizes: [0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128]
                .map(|kib| kib * KIB)
                .to_vec(),
            // 128 registers of 64 bytes.
            register_file: 8 * KIB,
            has_large_register_file: true,
        }
    }

    /// Thread contexts: the sub-groups that a core holds with the normal register file.
    pub(crate) fn threads(&self) -> u32 {
        self.engines * self.threads_per_engine
    }

    /// Thread contexts in the mode that the launch asks for.
    fn threads_for(&self, footprint: &Footprint) -> u32 {
        if footprint.large_register_file {
            self.threads() / 2
        } else {
            self.threads()
        }
    }

    /// 32-bit registers of a work-item before values are spilled.
    pub(crate) fn registers_per_work_item(&self, footprint: &Footprint) -> u32 {
        let bytes = self.register_file * if footprint.large_register_file { 2 } else { 1 };
        bytes / 4 / footprint.sub_group.max(1)
    }

    /// Bytes that a work-group asking for `shared` bytes is given; none where no size suffices.
    pub(crate) fn rounded_shared(&self, shared: u32) -> Option<u32> {
        self.shared_sizes.iter().copied().find(|&size| size >= shared)
    }

    /// Work-items that the guide recommends for a work-group: at least 4 threads, at most as many as the core has contexts (56
    /// on Gen11) in the footprint's mode, since more do not raise its utilisation, and never more than the device launches.
    pub(crate) fn recommended_group(&self, footprint: &Footprint) -> RangeInclusive<u32> {
        let most = (self.threads_for(footprint) * footprint.sub_group).min(self.max_group);
        (GUIDE_MIN_THREADS * footprint.sub_group).min(most)..=most
    }

    /// How many work-groups a core holds.
    pub(crate) fn occupancy(&self, footprint: &Footprint) -> Occupancy {
        let groups_limit = if footprint.barrier {
            (Limit::Barriers, self.max_groups_with_barrier)
        } else {
            (Limit::WorkGroups, self.max_groups)
        };
        let mut bounds = self.bounds(footprint, groups_limit);
        if footprint.group == 0 || footprint.group > self.max_group {
            bounds = vec![(Limit::GroupSize, 0)];
        }
        let (groups, limits) = least(&bounds);
        self.bound_occupancy(footprint, groups, limits)
    }

    fn bounds(&self, footprint: &Footprint, groups_limit: (Limit, u32)) -> Vec<(Limit, u32)> {
        let threads = self.threads_for(footprint);
        let by_shared = match self.rounded_shared(footprint.shared) {
            Some(0) => u32::MAX,
            Some(bytes) => self.shared / bytes,
            None => 0,
        };
        vec![
            (Limit::SubGroups, threads / footprint.sub_groups().max(1)),
            (Limit::SharedMemory, by_shared),
            groups_limit,
        ]
    }

    fn bound_occupancy(&self, footprint: &Footprint, groups: u32, limits: Vec<Limit>) -> Occupancy {
        let sub_groups = footprint.sub_groups();
        Occupancy {
            groups_per_core: groups,
            sub_groups_per_group: sub_groups,
            sub_groups_per_core: groups * sub_groups,
            // With the large register file a full core counts as half occupied, as in the
            // calculator: half of its contexts are unused.
            occupancy: f64::from(groups * sub_groups) / f64::from(self.threads()),
            limits,
            registers_per_group: 0,
            shared_per_group: self.rounded_shared(footprint.shared).unwrap_or(footprint.shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(occupancy: &Occupancy) -> f64 {
        occupancy.occupancy * 100.0
    }

    /// All rows of the reference file, every column.
    #[test]
    fn reference_rows() {
        let text = include_str!("../../../../headstart/tests/data/occupancy/intel.csv");
        let mut rows = 0;
        for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
            let (code, numbers) = line.split_once(',').unwrap();
            let core = match code {
                "gen11" => IntelCore::gen11(),
                "gen12" => IntelCore::gen12(),
                "xe_hpc_pvc" => IntelCore::pvc(),
                other => panic!("unknown device {other}"),
            };
            let fields: Vec<f64> = numbers.split(',').map(|field| field.parse().unwrap()).collect();
            let [
                group,
                sub_group,
                slm,
                rounded,
                large,
                barrier,
                threads,
                groups,
                expected,
            ] = fields[..].try_into().unwrap();
            let footprint = Footprint {
                shared: slm as u32 * KIB,
                barrier: barrier == 1.0,
                large_register_file: large == 1.0,
                ..Footprint::new(group as u32, sub_group as u32)
            };
            let occupancy = core.occupancy(&footprint);
            assert_eq!(occupancy.shared_per_group, rounded as u32 * KIB, "{line}");
            assert_eq!(occupancy.sub_groups_per_group, threads as u32, "{line}");
            assert_eq!(occupancy.groups_per_core, groups as u32, "{line}");
            assert!((percent(&occupancy) - expected).abs() <= 0.005_001, "{line}");
            rows += 1;
        }
        assert_eq!(rows, 21);
    }

    /// "Each EU is multithreaded with 7 threads", 8 of them in a subslice of Gen11, 16 in Gen12.
    #[test]
    fn thread_contexts() {
        assert_eq!(IntelCore::gen11().threads(), 56);
        assert_eq!(IntelCore::gen12().threads(), 112);
        assert_eq!(IntelCore::pvc().threads(), 64);
    }

    /// "We recommend 56 as the thread upper bound, 4 as the thread lower bound", and "the GPU compute driver may have additional
    /// constraints to the maximum work-group size": with sub-groups of 8 the guide's 448 are more than Gen11 launches.
    #[test]
    fn no_recommended_work_group_is_larger_than_the_device_launches() {
        let recommended = |core: &IntelCore, sub_group| core.recommended_group(&Footprint::new(1, sub_group));
        assert_eq!(recommended(&IntelCore::gen11(), 8), 32..=256);
        assert_eq!(recommended(&IntelCore::gen11(), 32), 128..=256);
        assert_eq!(recommended(&IntelCore::gen12(), 32), 128..=512);
        let larger = IntelCore {
            max_group: 512,
            ..IntelCore::gen11()
        };
        assert_eq!(recommended(&larger, 8), 32..=448);
        for core in [IntelCore::gen11(), IntelCore::gen12(), IntelCore::pvc()] {
            for (&sub_group, large_register_file) in core
                .sub_groups
                .iter()
                .flat_map(|size| [(size, false), (size, true)])
            {
                let of = |group| Footprint {
                    large_register_file: large_register_file && core.has_large_register_file,
                    ..Footprint::new(group, sub_group)
                };
                for group in core.recommended_group(&of(1)) {
                    let occupancy = core.occupancy(&of(group));
                    assert!(
                        occupancy.groups_per_core > 0,
                        "{group} in sub-groups of {sub_group}"
                    );
                }
            }
        }
        // Twice the registers, half the threads: 32 of 16 work-items.
        let large = Footprint {
            large_register_file: true,
            ..Footprint::new(1, 16)
        };
        assert_eq!(IntelCore::pvc().recommended_group(&large), 64..=512);
    }

    #[test]
    fn simd_widths() {
        assert_eq!(IntelCore::gen11().sub_groups, [8, 16, 32]);
        assert_eq!(IntelCore::pvc().sub_groups, [16, 32]);
    }

    /// 128 registers of 32 bytes: a wider sub-group leaves fewer to each work-item.
    #[test]
    fn registers_of_a_work_item() {
        let registers = |core: IntelCore, sub_group, large_register_file| {
            core.registers_per_work_item(&Footprint {
                large_register_file,
                ..Footprint::new(64, sub_group)
            })
        };
        assert_eq!(registers(IntelCore::gen11(), 8, false), 128);
        assert_eq!(registers(IntelCore::gen11(), 16, false), 64);
        assert_eq!(registers(IntelCore::gen11(), 32, false), 32);
        assert_eq!(registers(IntelCore::pvc(), 32, false), 64);
        assert_eq!(registers(IntelCore::pvc(), 32, true), 128);
    }

    #[test]
    fn shared_memory_is_rounded_up_to_an_allotment() {
        assert_eq!(IntelCore::gen12().rounded_shared(33 * KIB), Some(64 * KIB));
        assert_eq!(IntelCore::pvc().rounded_shared(33 * KIB), Some(48 * KIB));
        assert_eq!(IntelCore::pvc().rounded_shared(1), Some(KIB));
        assert_eq!(IntelCore::pvc().rounded_shared(129 * KIB), None);
        let too_much = Footprint {
            shared: 65 * KIB,
            ..Footprint::new(64, 16)
        };
        let occupancy = IntelCore::gen12().occupancy(&too_much);
        assert_eq!(
            (occupancy.groups_per_core, occupancy.limit().as_str()),
            (0, "shared memory")
        );
    }

    /// Half the threads, twice the registers: at most half the contexts are used.
    #[test]
    fn the_large_register_file_halves_the_threads() {
        let footprint = Footprint {
            large_register_file: true,
            ..Footprint::new(512, 32)
        };
        let occupancy = IntelCore::pvc().occupancy(&footprint);
        assert_eq!(percent(&occupancy), 50.0);
    }

    /// The guide's example on Gen11: 64×64×64 work-items with a barrier, work-groups of 1×R×64,
    /// sub-groups of 8. R = 7 fills a subslice, R = 4 leaves 43 % of it unused, R > 7 cannot launch. The device launches R = 4 at most,
    /// so the example has one with larger work-groups.
    #[test]
    fn the_guides_example() {
        let core = IntelCore {
            max_group: 1024,
            ..IntelCore::gen11()
        };
        let rows = |core: &IntelCore, rows: u32| {
            let footprint = Footprint {
                barrier: true,
                ..Footprint::new(64 * rows, 8)
            };
            core.occupancy(&footprint)
        };
        let (seven, four) = (rows(&core, 7), rows(&core, 4));
        assert_eq!((seven.groups_per_core, percent(&seven)), (1, 100.0));
        assert_eq!((four.groups_per_core, percent(&four).round()), (1, 57.0));
        for more in 8..=16 {
            let none = rows(&core, more);
            assert_eq!((none.groups_per_core, none.limit().as_str()), (0, "sub-groups"));
        }
        let gen11 = IntelCore::gen11();
        assert_eq!(percent(&rows(&gen11, 4)).round(), 57.0);
        assert_eq!(rows(&gen11, 5).limit(), "work-group size");
    }
}
