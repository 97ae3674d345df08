//! Nsight Compute's CSV: the raw page (a column a metric, a row of units) and the details page (a row a metric).
//!
//! `ncu --csv --page raw --set full PROGRAM > FILE.csv` writes one, after whatever the program prints.

use std::collections::BTreeMap;

use super::number::Spelling;
use super::table::Table;
use super::{Profiled, Wanted};
use crate::advise::Evidence;
use crate::advise::profile::{Cache, LoadTime, Profile, Resources, Stall};
use crate::device::model::occupancy::{Footprint, Limit, Occupancy};
use crate::device::model::{self, DeviceModel, Vendor};
use crate::device::sim::timer::StallReason;
use crate::error::{Error, Result};
use crate::report::number::duration;

/// Work-items of a warp, on every NVIDIA GPU.
const WARP: u32 = 32;

/// On the details page a metric's row ends here; only a rule's has the columns behind.
const LAST: &str = "Rule Name";

/// Bytes of a sector, of which a load that is coalesced uses all.
const SECTOR: f64 = 32.0;

/// The metrics that the procedure needs, as the raw page calls them.
const DURATION: &str = "gpu__time_duration.sum";
const BYTES_READ: &str = "dram__bytes_read.sum";
const BYTES_WRITTEN: &str = "dram__bytes_write.sum";
const BYTES_RATE: &str = "dram__bytes.sum.per_second";
const BANDWIDTH_USED: &str = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
const STALLS: &str = "smsp__average_warps_issue_stalled_";
const STALLS_END: &str = "_per_issue_active.ratio";
const REGISTERS: &str = "launch__registers_per_thread";
const SHARED_STATIC: &str = "launch__shared_mem_per_block_static";
const SHARED_DYNAMIC: &str = "launch__shared_mem_per_block_dynamic";
const CACHE_HITS: &str = "lts__t_sector_hit_rate.pct";
const BYTES_OF_SECTOR: &str = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
const ISSUED: &str = "smsp__issue_active.avg.pct_of_peak_sustained_active";

/// One launch of a kernel.
#[derive(Clone, Debug, Default)]
struct Launch {
    id: u64,
    kernel: String,
    capability: String,
    groups: Option<u64>,
    group: Option<u32>,
    /// By name in lower case: units and values, in base units.
    metrics: BTreeMap<String, Vec<(Unit, f64)>>,
    /// What is text, such as the device's name.
    words: BTreeMap<String, String>,
    /// Share of the time spent waiting for L1TEX, where a rule says it.
    waiting_by_rule: Option<f64>,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Bytes,
    BytesPerSecond,
    Percent,
    Other,
}

/// Reads the text of a file.
pub(super) fn parse(text: &str, wanted: &Wanted<'_>) -> Result<Profiled> {
    let table =
        Table::find(text, "ID", &["ID", "Kernel Name"], LAST).map_err(|error| match error.what() {
            what if what.starts_with("no line") => {
                error.accepted("what `ncu --csv --page raw --set full PROGRAM` writes, or the details page")
            }
            _ => error,
        })?;
    let launches = launches(&table)?;
    let (launch, notes) = choose(&launches, wanted)?;
    let time_ns = launch
        .find(&[DURATION, "duration", "gpu__time_duration.avg"], Unit::Seconds)
        .filter(|&seconds| seconds > 0.0)
        .map(|seconds| seconds * 1e9)
        .ok_or_else(|| {
            Error::input(format!("launch {} of the profile has no duration", launch.id)).accepted(format!(
                "a profile with the metric {DURATION}; {}",
                command(&[DURATION])
            ))
        })?;
    Ok(launch.profiled(time_ns, wanted.model, notes))
}

/// The launches of a table, in order.
fn launches(table: &Table) -> Result<Vec<Launch>> {
    let id = table
        .column("ID")
        .ok_or_else(|| Error::bug("a table without its first column"))?;
    let name = table
        .column("Kernel Name")
        .ok_or_else(|| Error::input("no column `Kernel Name`"))?;
    let (metric, unit, value) = (
        table.column("Metric Name"),
        table.column("Metric Unit"),
        table.column("Metric Value"),
    );
    // Compute capabilities and versions look like numbers with a point everywhere.
    let holds_numbers = |column: usize| match value {
        Some(value) => column == value,
        None => table.header[column].contains("__"),
    };
    let cells = table.rows.iter().flat_map(|row| row.iter().enumerate());
    let numbers = cells.filter(|&(column, _)| holds_numbers(column));
    let spelling = Spelling::of(numbers.map(|(_, cell)| cell.as_str()));
    let mut launches: Vec<Launch> = Vec::new();
    let mut units: Vec<String> = vec![String::new(); table.header.len()];
    for row in &table.rows {
        // The row of units has no launch.
        if row[id].is_empty() {
            units.clone_from(row);
            continue;
        }
        let number = row[id].parse().map_err(|_| {
            Error::input(format!(
                "a launch has the number {}",
                crate::suggest::quoted(&row[id])
            ))
            .accepted("whole numbers in the column `ID`")
        })?;
        let known = launches.iter().position(|launch: &Launch| launch.id == number);
        let position = known.unwrap_or_else(|| {
            let cell = |name: &str| table.column(name).map(|column| row[column].as_str());
            launches.push(Launch {
                id: number,
                kernel: row[name].clone(),
                capability: cell("CC").unwrap_or_default().to_owned(),
                groups: cell("Grid Size").and_then(extent),
                group: cell("Block Size")
                    .and_then(extent)
                    .and_then(|items| u32::try_from(items).ok()),
                ..Launch::default()
            });
            launches.len() - 1
        });
        let launch = &mut launches[position];
        match (metric, unit, value) {
            (Some(metric), Some(unit), Some(value)) => {
                launch.add(&row[metric], &row[unit], &row[value], spelling);
                if let Some(rule) = table.column("Rule Description") {
                    launch.read_rule(&row[rule], spelling);
                }
            }
            _ => {
                for ((name, unit), cell) in table.header.iter().zip(&units).zip(row) {
                    launch.add(name, unit, cell, spelling);
                }
            }
        }
    }
    Ok(launches)
}

/// The number of work-items or work-groups in `(128, 1, 1)`, `128` or `128x1x1`.
fn extent(cell: &str) -> Option<u64> {
    let numbers = cell
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty());
    let mut product: Option<u64> = None;
    for number in numbers {
        product = Some(product.unwrap_or(1).checked_mul(number.parse().ok()?)?);
    }
    product
}

/// The launch that is wanted, and which one it is; of several the longest.
fn choose<'l>(launches: &'l [Launch], wanted: &Wanted<'_>) -> Result<(&'l Launch, Vec<String>)> {
    if launches.is_empty() {
        return Err(Error::input("the profile has no launch").accepted("a profile of at least one kernel"));
    }
    let is_wanted = |launch: &&Launch| {
        wanted.launch.is_none_or(|id| launch.id == id)
            && wanted
                .kernel
                .is_none_or(|kernel| is_kernel(&launch.kernel, kernel))
    };
    let fitting: Vec<&Launch> = launches.iter().filter(is_wanted).collect();
    let time = |launch: &Launch| launch.find(&[DURATION, "duration"], Unit::Seconds).unwrap_or(0.0);
    let mut longest: Option<&Launch> = None;
    for launch in &fitting {
        if longest.is_none_or(|other| time(launch) > time(other)) {
            longest = Some(launch);
        }
    }
    let Some(launch) = longest else {
        let mut names: Vec<&str> = launches.iter().map(|launch| launch.kernel.as_str()).collect();
        names.dedup();
        names.truncate(8);
        let what = match (wanted.kernel, wanted.launch) {
            (_, Some(id)) => format!("the profile has no launch {id}"),
            (Some(kernel), None) => format!("the profile has no kernel `{kernel}`"),
            (None, None) => "the profile has no launch".to_owned(),
        };
        return Err(Error::usage(what).accepted(format!(
            "its launches are {} to {}, of {}; `FILE.csv#N` takes number N",
            launches.first().map_or(0, |launch| launch.id),
            launches.last().map_or(0, |launch| launch.id),
            names.join(", ")
        )));
    };
    let notes = match fitting.len() {
        1 => Vec::new(),
        count => vec![format!(
            "Launch {} of the profile, the longest of {count} with {}; FILE.csv#N takes another.",
            launch.id,
            duration(time(launch) * 1e9)
        )],
    };
    Ok((launch, notes))
}

/// Whether a profiler's name is that of a kernel: `void gather<4>(const int *, …)` is `gather`.
fn is_kernel(found: &str, wanted: &str) -> bool {
    let found = found.strip_prefix("void ").unwrap_or(found);
    let name = found.split(['(', '<']).next().unwrap_or(found);
    name == wanted || name.rsplit("::").next() == Some(wanted)
}

impl Launch {
    /// Adds a metric. What is not available is not there.
    fn add(&mut self, name: &str, unit: &str, cell: &str, spelling: Spelling) {
        let name = name.to_ascii_lowercase();
        let (unit, factor) = base(unit);
        match spelling.number(cell) {
            Some(number) => self
                .metrics
                .entry(name)
                .or_default()
                .push((unit, number * factor)),
            None => {
                self.words.insert(name, cell.to_owned());
            }
        }
    }

    /// The details page tells stalls in sentences only: "… waiting for a scoreboard dependency on a L1TEX … operation. …
    /// This stall type represents about 83.1% of the total average of 14.9 cycles …".
    fn read_rule(&mut self, text: &str, spelling: Spelling) {
        let lower = text.to_ascii_lowercase();
        if !lower.contains("l1tex") || !lower.contains("scoreboard") {
            return;
        }
        let Some((before, _)) = lower.split_once("% of the total") else {
            return;
        };
        let number = before
            .rsplit(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
            .next();
        let share = number
            .and_then(|number| spelling.number(number))
            .map(|percent| percent / 100.0);
        self.waiting_by_rule = share
            .filter(|share| (0.0..=1.0).contains(share))
            .or(self.waiting_by_rule);
    }

    /// The first of these metrics that is there, in this unit.
    fn find(&self, names: &[&str], unit: Unit) -> Option<f64> {
        names.iter().find_map(|name| {
            let found = self.metrics.get(&name.to_ascii_lowercase())?;
            let of_unit = found.iter().find(|(own, _)| *own == unit);
            // A raw page without units counts in base units.
            let bare = found.iter().find(|(own, _)| *own == Unit::Other);
            of_unit.or(bare).map(|&(_, value)| value)
        })
    }

    fn count(&self, names: &[&str]) -> Option<u32> {
        let value = self.find(names, Unit::Other)?;
        (value >= 0.0 && value <= f64::from(u32::MAX)).then_some(value as u32)
    }

    /// Bytes that device memory moved.
    fn memory_bytes(&self, time_ns: f64) -> Option<f64> {
        let sum = |read: &str, written: &str, unit| {
            let read = self.find(&[read], unit)?;
            Some(read + self.find(&[written], unit).unwrap_or(0.0))
        };
        let seconds = time_ns / 1e9;
        sum(BYTES_READ, BYTES_WRITTEN, Unit::Bytes)
            .or_else(|| self.find(&["dram__bytes.sum"], Unit::Bytes))
            .or_else(|| {
                self.find(&[BYTES_RATE], Unit::BytesPerSecond)
                    .map(|rate| rate * seconds)
            })
            .or_else(|| {
                let rate = sum(
                    "dram__bytes_read.sum.per_second",
                    "dram__bytes_write.sum.per_second",
                    Unit::BytesPerSecond,
                );
                rate.map(|rate| rate * seconds)
            })
            .or_else(|| {
                // The details page has two metrics of this name; the other one is a percentage.
                let found = self.metrics.get("memory throughput")?;
                let rate = found.iter().find(|(unit, _)| *unit == Unit::BytesPerSecond)?;
                Some(rate.1 * seconds)
            })
    }

    /// Shares of the warps' time by reason, the largest first; empty where they are not there.
    fn stalls(&self) -> Vec<Stall> {
        // By what stands around the reason: several families of metrics count the same.
        let mut families: BTreeMap<(&str, &str), Vec<(&str, f64)>> = BTreeMap::new();
        for (name, values) in &self.metrics {
            let (Some((before, after)), Some(&(_, value))) =
                (name.split_once("issue_stalled_"), values.first())
            else {
                continue;
            };
            if after.contains("not_issued") {
                continue;
            }
            let reason = REASONS.iter().find(|(reason, _)| {
                after
                    .strip_prefix(reason)
                    .is_some_and(|end| end.is_empty() || end.starts_with(['_', '.', 's']))
            });
            if let Some((reason, _)) = reason {
                let end = after[reason.len()..].trim_start_matches('s');
                families.entry((before, end)).or_default().push((reason, value));
            }
        }
        let Some(family) = families
            .into_values()
            .max_by_key(Vec::len)
            .filter(|family| family.len() >= 3)
        else {
            return Vec::new();
        };
        let all: f64 = family.iter().map(|(_, value)| value).sum();
        if all <= 0.0 {
            return Vec::new();
        }
        let mut stalls: Vec<Stall> = Vec::new();
        for (name, value) in family {
            let Some(&(_, Some(reason))) = REASONS.iter().find(|(own, _)| *own == name) else {
                continue;
            };
            match stalls.iter_mut().find(|stall| stall.reason == reason) {
                Some(stall) => stall.share += value / all,
                None => stalls.push(Stall {
                    reason,
                    share: value / all,
                }),
            }
        }
        stalls.sort_by(|one, other| other.share.total_cmp(&one.share));
        stalls
    }

    /// The model of the device that the launch ran on, where there is one.
    fn model(&self) -> Option<DeviceModel> {
        let title = self.device().to_ascii_lowercase();
        let names = model::built_in_names().filter(|name| title.contains(*name));
        let by_name = names.max_by_key(|name| name.len()).map(str::to_owned);
        let by_capability = || match self.capability.as_str() {
            "8.0" => Some("a100"),
            "9.0" => Some("h200"),
            _ => None,
        };
        let name = by_name.or_else(|| by_capability().map(str::to_owned))?;
        model::built_in(&name, &[])
            .ok()
            .filter(|model| model.vendor == Vendor::Nvidia)
    }

    fn device(&self) -> String {
        self.words
            .get("device__attribute_display_name")
            .cloned()
            .unwrap_or_else(|| match self.capability.as_str() {
                "" => "an NVIDIA GPU".to_owned(),
                capability => format!("compute capability {capability}"),
            })
    }

    /// Everything that follows.
    fn profiled(&self, time_ns: f64, chosen: Option<&DeviceModel>, mut notes: Vec<String>) -> Profiled {
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

/// What Nsight Compute calls the reasons, and what they are here; `selected` and some others only count in the sum. Where
/// one name begins with another, the longer one comes first.
const REASONS: [(&str, Option<StallReason>); 20] = [
    ("long_scoreboard", Some(StallReason::LongScoreboard)),
    ("short_scoreboard", Some(StallReason::ShortScoreboard)),
    ("wait", Some(StallReason::Wait)),
    ("barrier", Some(StallReason::Barrier)),
    ("no_instruction", Some(StallReason::NoInstruction)),
    ("branch_resolving", Some(StallReason::BranchResolving)),
    ("math_pipe_throttle", Some(StallReason::MathPipeThrottle)),
    ("lg_throttle", Some(StallReason::MemoryThrottle)),
    ("mio_throttle", Some(StallReason::MemoryThrottle)),
    ("tex_throttle", Some(StallReason::MemoryThrottle)),
    ("not_selected", Some(StallReason::NotSelected)),
    ("selected", None),
    ("dispatch_stall", None),
    ("drain", None),
    ("gmma", None),
    ("imc_miss", None),
    ("membar", None),
    ("misc", None),
    ("sleeping", None),
    ("warpgroup_arrive", None),
];

/// The metrics of the reasons that advice needs.
fn stall_metrics() -> Vec<String> {
    REASONS
        .iter()
        .map(|(reason, _)| format!("{STALLS}{reason}{STALLS_END}"))
        .collect()
}

/// The base unit and the factor to it. Nsight Compute has written its units in two ways: `usecond`, `Gbyte/second`, and
/// `us`, `GB/s`.
fn base(unit: &str) -> (Unit, f64) {
    let unit = unit.trim();
    if unit == "%" {
        return (Unit::Percent, 1.0);
    }
    let seconds = |text: &str| match text {
        "second" | "s" | "sec" => Some(1.0),
        "msecond" | "ms" => Some(1e-3),
        "usecond" | "us" | "µs" => Some(1e-6),
        "nsecond" | "ns" => Some(1e-9),
        _ => None,
    };
    let bytes = |text: &str| match text.to_ascii_lowercase().as_str() {
        "byte" | "b" | "bytes" => Some(1.0),
        "kbyte" | "kb" => Some(1e3),
        "mbyte" | "mb" => Some(1e6),
        "gbyte" | "gb" => Some(1e9),
        "tbyte" | "tb" => Some(1e12),
        _ => None,
    };
    match unit.split_once('/') {
        Some((amount, per)) => match (bytes(amount), seconds(per)) {
            (Some(amount), Some(per)) => (Unit::BytesPerSecond, amount / per),
            // A work-group's: `Kbyte/block`.
            (Some(amount), None) => (Unit::Bytes, amount),
            _ => (Unit::Other, 1.0),
        },
        None => match (seconds(unit), bytes(unit)) {
            (Some(factor), _) => (Unit::Seconds, factor),
            (None, Some(factor)) => (Unit::Bytes, factor),
            (None, None) => (Unit::Other, 1.0),
        },
    }
}

/// At most four names.
fn listed(names: &[&str]) -> String {
    match names.len() {
        0..=4 => names.join(", "),
        count => format!("{} and {} more", names[..4].join(", "), count - 4),
    }
}

/// The command that collects metrics.
fn command(metrics: &[&str]) -> String {
    format!(
        "`ncu --csv --page raw --metrics {} PROGRAM > FILE.csv`",
        metrics.join(",")
    )
}
