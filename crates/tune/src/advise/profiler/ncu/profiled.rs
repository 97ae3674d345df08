//! Which questions of the checklist a launch answers, and which it leaves open.

use super::launch::Launch;
use super::metrics::{
    BANDWIDTH_USED, BYTES_OF_SECTOR, CACHE_HITS, ISSUED, REGISTERS, SECTOR, SHARED_DYNAMIC, SHARED_STATIC,
    THROUGHPUT, Unit, WARP,
};
use crate::advise::profiler::Profiled;
use crate::device::sim::timer::{StallReason, saturation};
use crate::evidence::{Cache, Evidence, LoadTime, Profile, Resources, UnitTime};
use crate::model::DeviceModel;
use crate::model::occupancy::{Footprint, Occupancy};

/// A share of the bandwidth from which on it tells the whole: the profiler rounds to a hundredth of a percent.
const TOLD: f64 = 0.01;

/// What the profile and a model say of a launch's work-groups.
struct Groups {
    groups: u64,
    /// Work-items of each.
    group: u32,
    registers: Option<u32>,
    shared: Option<u32>,
    footprint: Option<Footprint>,
    fits: Option<Occupancy>,
}

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
        let sizes = self.sizes(model);
        let stalls = self.stalls();
        let by_stalls = stalls
            .iter()
            .find(|stall| stall.reason == StallReason::LongScoreboard);
        let waiting = by_stalls.map(|stall| stall.share).or(self.rules.waiting);
        let evidence = Evidence {
            waiting_for_loads: waiting,
            // A generation is no device: what its name leaves open the profile tells better.
            ..self.evidence(
                time_ns,
                model,
                &sizes,
                chosen.is_some() || self.names_its_device(),
            )
        };
        let hits = self.share(&[CACHE_HITS, "l2 hit rate"]);
        let knows_bandwidth = evidence.bandwidth_used().is_some();
        let missing = [
            (
                knows_bandwidth,
                "the traffic of device memory",
                "MemoryWorkloadAnalysis",
            ),
            (
                !stalls.is_empty() || waiting.is_some(),
                "reasons of stalls",
                "WarpStateStats",
            ),
            (sizes.registers.is_some(), "registers", "LaunchStats"),
            (hits.is_some(), "L2's hit rate", "MemoryWorkloadAnalysis"),
        ];
        let missing = missing.iter().filter(|(is_known, ..)| !is_known);
        let (what, mut sections): (Vec<&str>, Vec<&str>) =
            missing.map(|&(_, what, section)| (what, section)).unzip();
        sections.sort_unstable();
        sections.dedup();
        if !what.is_empty() {
            notes.push(format!(
                "Missing in the profile: {}. To collect them: `ncu --csv --page raw --section {} PROGRAM > FILE.csv`",
                what.join(", "),
                sections.join(" --section ")
            ));
        }
        let throughput = self.share(&[THROUGHPUT, "compute (sm) throughput", "sm throughput", "sol sm"]);
        let units = throughput.map(|share| UnitTime {
            name: "instructions".to_owned(),
            busy_ns: share * time_ns,
        });
        Profiled {
            kernel: self.kernel.clone(),
            device: self.device(),
            simulated: known.as_ref().map(|model| format!("sim:{}", model.name)),
            registers: sizes.registers,
            is_of_another_launch: false,
            evidence,
            profile: Profile {
                stalls,
                loads: self.loads(time_ns).into_iter().collect(),
                units: units.into_iter().collect(),
                uncoalesced: self.rules.excessive,
                registers: sizes.registers,
                resources: resources(model, &sizes),
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

    /// The first of these metrics, in percent, as a share of one.
    fn share(&self, names: &[&str]) -> Option<f64> {
        self.find(names, Unit::Percent).map(|percent| percent / 100.0)
    }

    fn sizes(&self, model: Option<&DeviceModel>) -> Groups {
        let registers = self.count(&[REGISTERS, "registers per thread"]);
        let bytes = |names: &[&str]| self.find(names, Unit::Bytes).map(|bytes| bytes as u32);
        let fixed = bytes(&[SHARED_STATIC, "static shared memory per block"]);
        let dynamic = bytes(&[SHARED_DYNAMIC, "dynamic shared memory per block"]);
        let shared = match (fixed, dynamic) {
            (None, None) => None,
            (fixed, dynamic) => Some(fixed.unwrap_or(0).saturating_add(dynamic.unwrap_or(0))),
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
        let by_model = || {
            let fits = model?.occupancy(footprint.as_ref()?);
            (fits.groups_per_core > 0).then_some(fits)
        };
        Groups {
            groups,
            group,
            registers,
            shared,
            fits: self.fits(group).or_else(by_model),
            footprint,
        }
    }

    /// What the numbers say, but for what is waited for. `is_named` says that the model is the GPU's own.
    fn evidence(
        &self,
        time_ns: f64,
        model: Option<&DeviceModel>,
        sizes: &Groups,
        is_named: bool,
    ) -> Evidence {
        let places = self.places().or(model.map(|model| *model.core.sub_groups));
        let cores = self
            .count(&[
                "device__attribute_multiprocessor_count",
                "launch__sm_count",
                "# sms",
            ])
            .or(model.map(|model| *model.core.count));
        let memory_bytes = self.memory_bytes(time_ns);
        let used = self.share(&[
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
        let of_model = model.map(|model| *model.dram.bandwidth);
        let bandwidth = of_model.filter(|_| is_named).or(peak).or(of_model);
        Evidence {
            cores: cores.unwrap_or(0),
            places: places.unwrap_or(0),
            groups: sizes.groups,
            group: sizes.group,
            // Without cores it is not known how many work-groups each of them gets.
            fits: sizes
                .fits
                .clone()
                .filter(|_| cores.is_some() && places.is_some() && sizes.groups > 0),
            achieved: self.achieved().filter(|_| places.is_some()),
            time_ns,
            launch_ns: None,
            starts_ns: model.and_then(|model| model.starts_ns(sizes.groups)),
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
            waiting_for_loads: None,
            issued: self.share(&[ISSUED, "one or more eligible"]),
        }
    }

    /// The loads of global memory, if they use little of what they fetch.
    fn loads(&self, time_ns: f64) -> Option<LoadTime> {
        let used = self
            .find(&[BYTES_OF_SECTOR], Unit::Bytes)
            .or(self.rules.of_sector)
            .filter(|&used| 0.0 < used && used < SECTOR / 2.0)?;
        Some(LoadTime {
            name: "global memory".to_owned(),
            place: String::new(),
            // Of 4 bytes for each work-item.
            lines: f64::from(4 * WARP) / used,
            fetched: SECTOR / used,
            memory_bytes: self.memory_bytes(time_ns).unwrap_or(0.0),
            waiting: 1.0,
        })
    }
}

fn resources(model: Option<&DeviceModel>, sizes: &Groups) -> Option<Resources> {
    let (footprint, fits) = (sizes.footprint.as_ref()?, sizes.fits.as_ref()?);
    sizes.shared?;
    Some(Resources::of(model?, footprint, fits, sizes.groups.max(1)))
}
