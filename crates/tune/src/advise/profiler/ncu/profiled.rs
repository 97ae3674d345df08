//! Which questions of the checklist a launch answers, and which it leaves open.

use super::launch::Launch;
use super::metrics::{
    BANDWIDTH_USED, BYTES_OF_SECTOR, BYTES_READ, BYTES_WRITTEN, CACHE_HITS, ISSUED, REGISTERS, SECTOR,
    SHARED_DYNAMIC, SHARED_STATIC, THROUGHPUT, Unit, WARP, command, listed, stall_metrics,
};
use crate::advise::profiler::Profiled;
use crate::device::sim::timer::{StallReason, saturation};
use crate::evidence::{Cache, Evidence, LoadTime, Profile, Resources, UnitTime};
use crate::model::DeviceModel;
use crate::model::occupancy::Footprint;

/// A share of the bandwidth from which on it tells the whole: the profiler rounds to a hundredth of a percent.
const TOLD: f64 = 0.01;

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
            .count(&["launch__grid_size", "grid size"])
            .map(u64::from)
            .or(self.groups)
            .unwrap_or(0);
        let group = self
            .count(&["launch__block_size", "block size"])
            .or(self.group)
            .unwrap_or(0);
        let footprint = registers.filter(|_| group > 0).map(|registers| Footprint {
            registers,
            shared: shared.unwrap_or(0),
            ..Footprint::new(group, WARP)
        });
        // The profiler's own limits are those of the GPU that it ran on; a model's may be another's.
        let by_model = || match (model, &footprint) {
            (Some(model), Some(footprint)) => {
                Some(model.occupancy(footprint)).filter(|fits| fits.groups_per_core > 0)
            }
            _ => None,
        };
        let fits = self.fits(group).or_else(by_model);
        let places = self.places().or(model.map(|model| *model.core.sub_groups));
        let stalls = self.stalls();
        let by_stalls = stalls
            .iter()
            .find(|stall| stall.reason == StallReason::LongScoreboard);
        let waiting = by_stalls.map(|stall| stall.share).or(self.rules.waiting);
        let memory_bytes = self.memory_bytes(time_ns);
        let percent = |names: &[&str]| self.find(names, Unit::Percent).map(|percent| percent / 100.0);
        let used = percent(&[
            BANDWIDTH_USED,
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram throughput",
            "sol dram",
        ]);
        let delivered = memory_bytes.map(|bytes| bytes / time_ns);
        let peak = delivered
            .zip(used)
            .filter(|(_, used)| *used >= TOLD)
            .map(|(rate, used)| rate / used);
        // A generation is no device: what its name leaves open the profile tells better.
        let is_named = chosen.is_some() || self.names_its_device();
        let of_model = model.map(|model| *model.dram.bandwidth);
        let bandwidth = of_model.filter(|_| is_named).or(peak).or(of_model);
        let throughput = percent(&[THROUGHPUT, "compute (sm) throughput", "sm throughput", "sol sm"]);
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
            places: places.unwrap_or(0),
            groups,
            group,
            // Without cores it is not known how many work-groups each of them gets.
            fits: fits
                .clone()
                .filter(|_| cores.is_some() && places.is_some() && groups > 0),
            achieved: self.achieved().filter(|_| places.is_some()),
            time_ns,
            launch_ns: None,
            cache: None,
            memory_bytes: memory_bytes.or_else(|| Some(used? * bandwidth? * time_ns)),
            bandwidth,
            bandwidth_counted: used,
            scattered_bandwidth: bandwidth
                .zip(model)
                .map(|(bandwidth, model)| bandwidth * model.dram.scattered_efficiency(*model.core.clock)),
            latency_ns: model.map(|model| model.nanoseconds(f64::from(*model.dram.latency))),
            saturating_bytes: model.map(|model| saturation(model).bytes),
            bytes_in_flight: None,
            waiting_for_loads: waiting,
            issued,
        };
        let missing = [
            (
                evidence.bandwidth_used().is_none(),
                vec![BYTES_READ.to_owned(), BYTES_WRITTEN.to_owned()],
            ),
            (
                evidence.bandwidth_used().is_none(),
                vec![BANDWIDTH_USED.to_owned()],
            ),
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
            .or(self.rules.of_sector)
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
            simulated: known.as_ref().map(|model| format!("sim:{}", model.name)),
            registers,
            is_of_another_launch: false,
            evidence,
            profile: Profile {
                stalls,
                loads: loads.into_iter().collect(),
                units: throughput
                    .map(|share| UnitTime {
                        name: "instructions".to_owned(),
                        busy_ns: share * time_ns,
                    })
                    .into_iter()
                    .collect(),
                uncoalesced: self.rules.excessive,
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
}
