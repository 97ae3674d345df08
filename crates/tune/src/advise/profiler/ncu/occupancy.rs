//! How full the cores were: places, the work-groups that fit, and the warps that were resident, as the profile has them.
//!
//! Nothing here needs a model of the device: the profiler worked out the limits for the GPU that it ran on, whatever its
//! generation.

use super::launch::Launch;
use super::metrics::{Unit, WARP};
use crate::model::occupancy::{Limit, Occupancy};

/// Warps that a core has places for, by compute capability: "Maximum number of resident warps per SM" in the table of technical
/// specifications of NVIDIA's CUDA C++ Programming Guide, 11.8 for the first six and 13.0 for the others.
const WARPS: [(&str, u32); 19] = [
    ("5.0", 64),
    ("5.2", 64),
    ("5.3", 64),
    ("6.0", 64),
    ("6.1", 64),
    ("6.2", 64),
    ("7.0", 64),
    ("7.2", 64),
    ("7.5", 32),
    ("8.0", 64),
    ("8.6", 48),
    ("8.7", 48),
    ("8.9", 48),
    ("9.0", 64),
    ("10.0", 64),
    ("10.3", 64),
    ("11.0", 48),
    ("12.0", 48),
    ("12.1", 48),
];

/// Schedulers of a core: four, but for the P100's.
fn schedulers(capability: &str) -> f64 {
    if capability == "6.0" { 2.0 } else { 4.0 }
}

impl Launch {
    /// The compute capability: `9.0`.
    fn compute_capability(&self) -> Option<String> {
        let part = |which: &str| self.count(&[&format!("device__attribute_compute_capability_{which}")]);
        match self.capability.is_empty() {
            false => Some(self.capability.clone()),
            true => Some(format!("{}.{}", part("major")?, part("minor")?)),
        }
    }

    /// Warps that a core has places for.
    pub(super) fn places(&self) -> Option<u32> {
        let capability = self.compute_capability();
        let by_capability = || {
            let own = WARPS.iter().find(|(own, _)| Some(*own) == capability.as_deref());
            own.map(|&(_, warps)| warps)
        };
        self.count(&["device__attribute_max_warps_per_multiprocessor"])
            .or_else(by_capability)
    }

    /// Warps resident in a core on average while it was active.
    pub(super) fn achieved(&self) -> Option<f64> {
        let warps = self.find(
            &[
                "sm__warps_active.avg.per_cycle_active",
                "achieved active warps per sm",
            ],
            Unit::Other,
        );
        let share = || {
            let percent = self.find(
                &[
                    "sm__warps_active.avg.pct_of_peak_sustained_active",
                    "achieved occupancy",
                ],
                Unit::Percent,
            )?;
            Some(percent / 100.0 * f64::from(self.places()?))
        };
        let by_scheduler = || {
            let warps = self.find(
                &[
                    "smsp__warps_active.avg.per_cycle_active",
                    "active warps per scheduler",
                ],
                Unit::Other,
            )?;
            Some(warps * schedulers(&self.compute_capability().unwrap_or_default()))
        };
        warps.or_else(share).or_else(by_scheduler)
    }

    /// The work-groups of `group` work-items that fit into a core, and why not more.
    pub(super) fn fits(&self, group: u32) -> Option<Occupancy> {
        let places = self.places();
        let sub_groups = group.div_ceil(WARP).max(1);
        let (groups, limits) = match (self.block_limits(), self.theoretical(places)) {
            (Some(known), _) => known,
            (None, Some(warps)) => (warps / sub_groups, Vec::new()),
            (None, None) => return None,
        };
        let resident = groups.checked_mul(sub_groups).filter(|&resident| resident > 0)?;
        Some(Occupancy {
            groups_per_core: groups,
            sub_groups_per_group: sub_groups,
            sub_groups_per_core: resident,
            occupancy: (f64::from(resident) / f64::from(places.unwrap_or(64).max(1))).min(1.0),
            limits,
            registers_per_group: 0,
            shared_per_group: 0,
        })
    }

    /// The fewest of the work-groups that each resource allows, and the resources that do.
    fn block_limits(&self) -> Option<(u32, Vec<Limit>)> {
        let limits = [
            (
                Limit::SubGroups,
                self.count(&["launch__occupancy_limit_warps", "block limit warps"]),
            ),
            (
                Limit::Registers,
                self.count(&["launch__occupancy_limit_registers", "block limit registers"]),
            ),
            (
                Limit::SharedMemory,
                self.count(&["launch__occupancy_limit_shared_mem", "block limit shared mem"]),
            ),
            (
                Limit::WorkGroups,
                self.count(&["launch__occupancy_limit_blocks", "block limit sm"]),
            ),
            (
                Limit::Barriers,
                self.count(&["launch__occupancy_limit_barriers", "block limit barriers"]),
            ),
        ];
        let known: Vec<(Limit, u32)> = limits
            .into_iter()
            .filter_map(|(limit, groups)| Some((limit, groups?)))
            .collect();
        let groups = known
            .iter()
            .map(|&(_, groups)| groups)
            .min()
            .filter(|&groups| groups > 0)?;
        let nearest = known.into_iter().filter(|&(_, own)| own == groups);
        Some((groups, nearest.map(|(limit, _)| limit).collect()))
    }

    /// Warps that may be resident in a core.
    fn theoretical(&self, places: Option<u32>) -> Option<u32> {
        let warps = self.count(&[
            "sm__maximum_warps_avg_per_active_cycle",
            "theoretical active warps per sm",
        ]);
        let share = || {
            let percent = self.find(
                &["sm__maximum_warps_per_active_cycle_pct", "theoretical occupancy"],
                Unit::Percent,
            )?;
            Some((percent / 100.0 * f64::from(places?)).round() as u32)
        };
        warps.or_else(share)
    }
}
