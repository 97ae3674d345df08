//! VTune's CSV of GPU compute tasks: `vtune -report hotspots -group-by computing-task -format csv -csv-delimiter comma`.
//!
//! Columns are found by parts of their names, because VTune has renamed them with each generation of GPUs (`EU Array` became
//! `XVE Array`): active, stalled for any reason, idle, waiting for the scoreboard (SBID), occupancy, and the memory's bandwidth; and from the full set of
//! counters the L3 miss rate, the active lanes of an instruction (SIMD utilization), spills, and the task's sizes. Numbers that
//! VTune does not count are derived from the model and these: the resident work-groups from the task's sizes and its shared
//! memory, the bytes in flight from bandwidth and latency. A file names its device only where it is grouped by adapters, too;
//! elsewhere the user does.

use super::number::Spelling;
use super::table::Table;
use super::{Profiled, Wanted, spelled};
use crate::device::sim::timer::{StallReason, saturation};
use crate::error::{Error, Result};
use crate::evidence::{Cache, Diverging, Evidence, Profile, Resources, Stall};
use crate::model::occupancy::{Footprint, Occupancy};
use crate::model::{self, DeviceModel, Vendor};
use crate::report::number::percent;

/// The name of the first column.
const TASK: &str = "Computing Task";

/// What a file has to be.
const EXPECTED: &str = "a report that `vtune -report hotspots -group-by computing-task -format csv -csv-delimiter comma` \
                        writes of a `gpu-hotspots` collection";

/// Reads the text of a file.
pub(super) fn parse(text: &str, wanted: &Wanted<'_>) -> Result<Profiled> {
    let table = Table::find(text, TASK, &[TASK], "", EXPECTED)?;
    let columns = Columns::of(&table);
    if columns.time.is_none() {
        let error = Error::input("the profile has no column with the task's time");
        return Err(error.accepted(EXPECTED));
    }
    let spelling = Spelling::of(table.rows.iter().flatten().map(String::as_str));
    let all: Vec<Task<'_>> = table
        .rows
        .iter()
        .map(|row| Task {
            row,
            columns: &columns,
            spelling,
        })
        .collect();
    let (task, note) = chosen(&all, wanted)?;
    let named = columns.adapter.and_then(|column| of_adapter(&task.row[column]));
    let model = wanted.model.cloned().or(named).ok_or_else(|| {
        Error::usage("the profile does not name its device")
            .accepted("`--device` with the device that it was made on, such as `--device sim:pvc-1550`")
    })?;
    let spills = task.number(columns.spilled).map(|bytes| bytes > 0.0);
    let spills_nothing = (spills != Some(true) && columns.spilled.is_some()).then(|| {
        "The task spills nothing; how many registers it leaves free VTune does not tell.".to_owned()
    });
    let spent = spent(
        task.share(columns.active),
        task.share(columns.stalled),
        task.share(columns.idle),
    );
    let notes = [note, spent, task.missing(), spills_nothing];
    Ok(Profiled {
        kernel: task.name().to_owned(),
        device: model.title.clone(),
        simulated: Some(format!("sim:{}", model.name)),
        // How many VTune does not tell.
        registers: None,
        is_of_another_launch: false,
        evidence: task.evidence(&model),
        profile: task.profile(&model, spills == Some(true)),
        notes: notes.into_iter().flatten().collect(),
    })
}

/// The task that is wanted, or else the one that takes longest; with a note if there are others.
fn chosen<'t>(all: &[Task<'t>], wanted: &Wanted<'_>) -> Result<(Task<'t>, Option<String>)> {
    let is_wanted = |(position, task): &(usize, &Task<'_>)| {
        let is_kernel = !NO_KERNELS.iter().any(|begin| task.name().starts_with(begin));
        let is_named = |kernel: &str| task.name().contains(kernel) || task.name().contains(&spelled(kernel));
        wanted
            .launch
            .map_or(is_kernel, |launch| launch == *position as u64)
            && wanted.kernel.is_none_or(is_named)
            && task.seconds() > 0.0
    };
    let fitting: Vec<(usize, &Task<'_>)> = all.iter().enumerate().filter(is_wanted).collect();
    let longest = fitting
        .iter()
        .max_by(|(_, one), (_, other)| one.seconds().total_cmp(&other.seconds()));
    let Some((position, task)) = longest else {
        let names: Vec<&str> = all.iter().take(8).map(Task::name).collect();
        let what = match (wanted.kernel, wanted.launch) {
            (_, Some(launch)) => format!("the profile has no task {launch} with a time"),
            (Some(kernel), None) => format!("the profile has no task `{kernel}` with a time"),
            (None, None) => "the profile has no task with a time".to_owned(),
        };
        return Err(Error::usage(what).accepted(match names.as_slice() {
            [] => EXPECTED.to_owned(),
            names => format!("its tasks are {}", names.join(", ")),
        }));
    };
    let note = (fitting.len() > 1).then(|| {
        format!(
            "Task {position} of the profile, the one of {} that takes longest; FILE.csv#N takes another.",
            fitting.len()
        )
    });
    Ok((**task, note))
}

/// A row of the file.
#[derive(Clone, Copy)]
struct Task<'t> {
    row: &'t [String],
    columns: &'t Columns,
    spelling: Spelling,
}

impl Task<'_> {
    fn name(&self) -> &str {
        &self.row[self.columns.task]
    }

    fn number(&self, column: Option<usize>) -> Option<f64> {
        self.spelling
            .number(self.row[column?].trim_end_matches(['s', '%']))
    }

    /// A number of percent, as a share of one.
    fn share(&self, column: Option<usize>) -> Option<f64> {
        let share = self.number(column)? / 100.0;
        (0.0..=1.0).contains(&share).then_some(share)
    }

    fn seconds(&self) -> f64 {
        self.number(self.columns.time).unwrap_or(0.0)
    }

    /// Bytes of memory that are read and written in a nanosecond.
    fn rate(&self) -> Option<f64> {
        match (self.number(self.columns.read), self.number(self.columns.written)) {
            (None, None) => None,
            (read, written) => Some(read.unwrap_or(0.0) + written.unwrap_or(0.0)),
        }
    }

    /// The share of the time in which loads are waited for.
    fn waiting(&self) -> Option<f64> {
        let (stalled, scoreboard) = (
            self.share(self.columns.stalled),
            self.share(self.columns.scoreboard),
        );
        match stalled {
            // The scoreboard's share is one of the stalls, which are a share of the time.
            Some(stalled) if self.columns.scoreboard_is_part => Some(stalled * scoreboard?),
            _ => scoreboard,
        }
    }

    /// What the file lacks, and how to collect it.
    fn missing(&self) -> Option<String> {
        let columns = self.columns;
        let missing: Vec<&str> = [
            (
                self.share(columns.scoreboard).is_none(),
                "the scoreboard (SBID) share of the stalls",
            ),
            (self.rate().is_none(), "GPU Memory Bandwidth"),
            (columns.l3_misses.is_none(), "L3's miss ratio"),
            (columns.local.is_none(), "the task's work sizes"),
        ]
        .into_iter()
        .filter_map(|(is_missing, name)| is_missing.then_some(name))
        .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "Missing in the profile: {}. To collect them: `vtune -collect gpu-hotspots -knob profiling-mode=characterization \
                 -knob characterization-mode=full-compute PROGRAM`, and for the stalls' reasons `-knob \
                 profiling-mode=source-analysis -knob source-analysis=stall-sampling`.",
                missing.join(", ")
            )
        })
    }

    /// Work-items of a work-group and work-groups; zeros if they are not known.
    fn sizes(&self) -> (u32, u64) {
        let size = |column: Option<usize>| column.and_then(|column| product(&self.row[column]));
        let group = size(self.columns.local)
            .and_then(|items| u32::try_from(items).ok())
            .unwrap_or(0);
        let groups = size(self.columns.global).map_or(0, |items| items / u64::from(group.max(1)));
        (group, groups)
    }

    /// What a work-group takes, and how many are resident; none if its sizes are not known.
    fn residency(&self, model: &DeviceModel) -> Option<(Footprint, Occupancy)> {
        let (group, groups) = self.sizes();
        let simd = self
            .number(self.columns.simd)
            .map(|width| width as u32)
            .filter(|width| width.is_power_of_two() && (8..=32).contains(width));
        let shared = self.number(self.columns.slm).map_or(0, |bytes| bytes as u32);
        let footprint = Footprint {
            shared,
            barrier: shared > 0,
            ..Footprint::new(group, simd.unwrap_or(32))
        };
        let fits = (group > 0 && groups > 0).then(|| model.occupancy(&footprint))?;
        (fits.groups_per_core > 0).then_some((footprint, fits))
    }

    fn evidence(&self, model: &DeviceModel) -> Evidence {
        let columns = self.columns;
        let instances = self
            .number(columns.instances)
            .filter(|&count| count >= 1.0)
            .unwrap_or(1.0);
        let time_ns = self.seconds() * 1e9 / instances;
        let (group, groups) = self.sizes();
        let sub_groups = *model.core.sub_groups;
        Evidence {
            cores: *model.core.count,
            places: sub_groups,
            groups,
            group,
            // VTune has the achieved occupancy; the possible one follows from the task's sizes.
            fits: self.residency(model).map(|(_, fits)| fits),
            achieved: self
                .share(columns.occupancy)
                .map(|share| share * f64::from(sub_groups)),
            time_ns,
            launch_ns: None,
            starts_ns: model.starts_ns(groups),
            cache: None,
            memory_bytes: self.rate().map(|rate| rate * time_ns),
            bandwidth: Some(*model.dram.bandwidth),
            bandwidth_counted: None,
            scattered_bandwidth: None,
            latency_ns: Some(model.nanoseconds(f64::from(*model.dram.latency))),
            saturating_bytes: Some(saturation(model).bytes),
            bytes_in_flight: None,
            waiting_for_loads: self.waiting(),
            issued: self.share(columns.active),
        }
    }

    fn profile(&self, model: &DeviceModel, spills: bool) -> Profile {
        let columns = self.columns;
        // A kernel with spills has no free registers.
        let resources = self.residency(model).filter(|_| spills).map(|(footprint, fits)| {
            let footprint = Footprint {
                registers: model.registers_per_work_item(&footprint),
                ..footprint
            };
            Resources::of(model, &footprint, &fits, self.sizes().1)
        });
        let stall = |share| Stall {
            reason: StallReason::LongScoreboard,
            share,
        };
        Profile {
            stalls: self.waiting().map(stall).into_iter().collect(),
            resources,
            cache: self.share(columns.l3_misses).map(|misses| Cache {
                name: model.l2.name.clone(),
                bytes: *model.l2.size,
                hits: 1.0 - misses,
            }),
            diverging: self.share(columns.lanes).map(|active| Diverging {
                active,
                conditions: 0,
                place: None,
            }),
            idle: self.share(columns.idle),
            ..Profile::default()
        }
    }
}

/// Tasks of the runtime, and the time between tasks: no kernels of the user.
const NO_KERNELS: [&str; 3] = ["[Outside any task]", "zeCommandList", "clEnqueue"];

/// How the cores spent their time. What they are stalled for, the scoreboard's share alone tells.
fn spent(active: Option<f64>, stalled: Option<f64>, idle: Option<f64>) -> Option<String> {
    let (active, stalled, idle) = (active?, stalled?, idle?);
    Some(format!(
        "The profile's vector engines are active {} of the time, stalled for any reason {}, and idle, without a thread, {}.",
        percent(active),
        percent(stalled),
        percent(idle)
    ))
}

/// The model of the adapter that VTune names, where there is one: `Intel(R) Data Center GPU Max 1550`.
fn of_adapter(name: &str) -> Option<DeviceModel> {
    let plain = name.replace("(R)", "").replace("(TM)", "");
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_ascii_lowercase).collect() };
    let wanted = words(&plain);
    let models = model::built_in_names().filter_map(|name| model::built_in(name, &[]).ok());
    let mut found = models.filter(|model| {
        // Behind the name stands which part of it, or how many units.
        let title = words(model.title.split(" (").next().unwrap_or_default());
        model.vendor == Vendor::Intel && wanted.windows(title.len()).any(|part| part == title)
    });
    found.next()
}

/// A size in several dimensions, `64 x 264`, multiplied.
fn product(text: &str) -> Option<u64> {
    let parts = text
        .split(['x', '*'])
        .map(|part| part.trim().replace([',', '\u{a0}'], ""));
    let sizes: Vec<u64> = parts.map(|part| part.parse().ok()).collect::<Option<_>>()?;
    sizes
        .into_iter()
        .try_fold(1u64, u64::checked_mul)
        .filter(|&all| all > 0)
}

/// Where the columns are.
struct Columns {
    task: usize,
    time: Option<usize>,
    instances: Option<usize>,
    active: Option<usize>,
    /// Stalled for any reason.
    stalled: Option<usize>,
    idle: Option<usize>,
    adapter: Option<usize>,
    scoreboard: Option<usize>,
    /// Whether the scoreboard's share is one of the stalls and not of the time.
    scoreboard_is_part: bool,
    occupancy: Option<usize>,
    global: Option<usize>,
    local: Option<usize>,
    simd: Option<usize>,
    spilled: Option<usize>,
    slm: Option<usize>,
    l3_misses: Option<usize>,
    /// Lanes that work.
    lanes: Option<usize>,
    read: Option<usize>,
    written: Option<usize>,
}

impl Columns {
    fn of(table: &Table) -> Columns {
        let names: Vec<String> = table
            .header
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .collect();
        let find = |parts: &[&str]| {
            names
                .iter()
                .position(|name| parts.iter().all(|part| name.contains(part)))
        };
        let array = |what: &str| find(&["xve array", what]).or_else(|| find(&["eu array", what]));
        let scoreboard = find(&["sbid"]).or_else(|| find(&["scoreboard"]));
        Columns {
            task: table.column(TASK).unwrap_or(0),
            time: find(&["total time"]).or_else(|| find(&["time"])),
            instances: find(&["instance count"]),
            active: array("active"),
            stalled: array("stalled"),
            idle: array("idle"),
            adapter: find(&["adapter"]),
            scoreboard_is_part: scoreboard.is_some_and(|column| names[column].contains("of stall")),
            scoreboard,
            // The peak is what could be resident, and not what was.
            occupancy: names
                .iter()
                .position(|name| name.contains("threads occupancy") && !name.starts_with("peak")),
            global: find(&["work size", "global"]),
            local: find(&["work size", "local"]),
            simd: find(&["simd width"]),
            spilled: find(&["spill memory"]),
            slm: find(&["slm size"]),
            l3_misses: find(&["l3", "miss ratio"]),
            lanes: find(&["simd utilization"]),
            read: find(&["gpu memory bandwidth", "read"]),
            written: find(&["gpu memory bandwidth", "writ"]),
        }
    }
}
