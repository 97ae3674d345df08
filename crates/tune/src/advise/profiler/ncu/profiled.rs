//! Which questions of the checklist a launch answers, and which it leaves open.

use super::launch::Launch;
use super::metrics::{
    BANDWIDTH_USED, BYTES_OF_SECTOR, BYTES_READ, BYTES_WRITTEN, CACHE_HITS, ISSUED, REGISTERS, SECTOR,
    SHARED_DYNAMIC, SHARED_STATIC, Unit, WARP, command, listed, stall_metrics,
};
use crate::advise::profiler::Profiled;
use crate::device::sim::timer::StallReason;
use crate::evidence::{Cache, Evidence, LoadTime, Profile, Resources};
use crate::model::DeviceModel;
use crate::model::occupancy::{Footprint, Limit, Occupancy};

impl Launch {
    /// Everything that follows.
    pub(super) fn profiled(
        &self,
        time_ns: f64,
        chosen: Option<&DeviceModel>,
        mut notes: Vec<String>,
    ) -> Profiled {
        let known = self.model();
        let model = chosen.or(known.as_ref());
        let registers = self.count(&[REGISTERS, "registers per thread"]);
        let shared = {
            let part = |names: &[&str]| self.find(names, Unit::Bytes).map(|bytes| bytes as u32);
            let fixed = part(&[SHARED_STATIC, "static shared memory per block"]);
            let dynamic = part(&[SHARED_DYNAMIC, "dynamic shared memory per block"]);
            match (fixed, dynamic) {
                (None, None) => None,
                (fixed, dynamic) => Some(fixed.unwrap_or(0).saturating_add(dynamic.unwrap_or(0))),
            }
        };
        let groups = self
            .count(&["launch__grid_size"])
            .map(u64::from)
            .or(self.groups)
            .unwrap_or(0);
        let group = self.count(&["launch__block_size"]).or(self.group).unwrap_or(0);
        let footprint = registers.filter(|_| group > 0).map(|registers| Footprint {
            registers,
            shared: shared.unwrap_or(0),
            ..Footprint::new(group, WARP)
        });
        let fits = match (model, &footprint) {
            (Some(model), Some(footprint)) => {
                Some(model.occupancy(footprint)).filter(|fits| fits.groups_per_core > 0)
            }
            _ => None,
        };
        let fits = fits.or_else(|| self.block_limits(group));
        let stalls = self.stalls();
        let by_stalls = stalls
            .iter()
            .find(|stall| stall.reason == StallReason::LongScoreboard);
        let waiting = by_stalls.map(|stall| stall.share).or(self.waiting_by_rule);
        let memory_bytes = self.memory_bytes(time_ns);
        let percent = |names: &[&str]| self.find(names, Unit::Percent).map(|percent| percent / 100.0);
        let used = percent(&[
            BANDWIDTH_USED,
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram throughput",
        ]);
        let delivered = memory_bytes.map(|bytes| bytes / time_ns);
        let peak = delivered
            .zip(used)
            .filter(|(_, used)| *used > 0.0)
            .map(|(rate, used)| rate / used);
        let bandwidth = model.map(|model| *model.dram.bandwidth).or(peak);
        let hits = percent(&[CACHE_HITS, "l2 hit rate"]);
        let issued = percent(&[ISSUED, "one or more eligible"]);
        let cores = self
            .count(&[
                "device__attribute_multiprocessor_count",
                "launch__sm_count",
                "# sms",
            ])
            .or(model.map(|model| *model.core.count));
        let evidence = Evidence {
            cores: cores.unwrap_or(0),
            places: model.map_or(64, |model| *model.core.sub_groups),
            groups,
            group,
            // Without cores nobody knows how many work-groups each of them gets.
            fits: fits.clone().filter(|_| cores.is_some() && groups > 0),
            time_ns,
            launch_ns: None,
            cache: None,
            memory_bytes: memory_bytes.or_else(|| Some(used? * bandwidth? * time_ns)),
            bandwidth,
            scattered_bandwidth: model
                .map(|model| *model.dram.bandwidth * model.dram.scattered_efficiency(*model.core.clock)),
            latency_ns: model.map(|model| model.nanoseconds(f64::from(*model.dram.latency))),
            bytes_in_flight: None,
            waiting_for_loads: waiting,
            issued,
        };
        let missing = [
            (
                evidence.memory_bytes.is_none(),
                vec![BYTES_READ.to_owned(), BYTES_WRITTEN.to_owned()],
            ),
            (bandwidth.is_none(), vec![BANDWIDTH_USED.to_owned()]),
            (stalls.is_empty() && waiting.is_none(), stall_metrics()),
            (registers.is_none(), vec![REGISTERS.to_owned()]),
            (hits.is_none(), vec![CACHE_HITS.to_owned()]),
        ];
        let missing: Vec<String> = missing
            .into_iter()
            .filter(|(is_missing, _)| *is_missing)
            .flat_map(|(_, names)| names)
            .collect();
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(String::as_str).collect();
            notes.push(format!(
                "Missing in the profile: {}. To collect them: {}",
                listed(&names),
                command(&names)
            ));
        }
        let loads = self
            .find(&[BYTES_OF_SECTOR], Unit::Bytes)
            .filter(|&used| 0.0 < used && used < SECTOR / 2.0);
        let loads = loads.map(|used| LoadTime {
            name: "global memory".to_owned(),
            place: String::new(),
            // Of 4 bytes for each work-item.
            lines: f64::from(4 * WARP) / used,
            fetched: SECTOR / used,
            memory_bytes: memory_bytes.unwrap_or(0.0),
            waiting: 1.0,
        });
        let resources = match (model, &footprint, &fits) {
            (Some(model), Some(footprint), Some(fits)) if shared.is_some() => {
                Some(Resources::of(model, footprint, fits, groups.max(1)))
            }
            _ => None,
        };
        Profiled {
            kernel: self.kernel.clone(),
            device: self.device(),
            evidence,
            profile: Profile {
                stalls,
                loads: loads.into_iter().collect(),
                resources,
                cache: hits.map(|hits| Cache {
                    name: "L2".to_owned(),
                    bytes: model.map_or(0, |model| *model.l2.size),
                    hits,
                }),
                ..Profile::default()
            },
            notes,
        }
    }

    /// Occupancy from the limits that the profiler has worked out, for devices without a model.
    fn block_limits(&self, group: u32) -> Option<Occupancy> {
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
        let sub_groups = group.div_ceil(WARP);
        Some(Occupancy {
            groups_per_core: groups,
            sub_groups_per_group: sub_groups,
            sub_groups_per_core: groups.saturating_mul(sub_groups),
            occupancy: (f64::from(groups) * f64::from(sub_groups) / 64.0).min(1.0),
            limits: known
                .into_iter()
                .filter(|&(_, own)| own == groups)
                .map(|(limit, _)| limit)
                .collect(),
            registers_per_group: 0,
            shared_per_group: 0,
        })
    }
}
