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
use crate::model::occupancy::Footprint;
use crate::model::{self, DeviceModel, Vendor};
use crate::report::number::percent;

/// The name of the first column.
const TASK: &str = "Computing Task";

/// Reads the text of a file.
pub(super) fn parse(text: &str, wanted: &Wanted<'_>) -> Result<Profiled> {
    let expected = "a report that `vtune -report hotspots -group-by computing-task -format csv -csv-delimiter comma` \
                    writes of a `gpu-hotspots` collection";
    let table = Table::find(text, TASK, &[TASK], "", expected)?;
    let columns = Columns::of(&table);
    let time = columns
        .time
        .ok_or_else(|| Error::input("the profile has no column with the task's time").accepted(expected))?;
    let spelling = Spelling::of(table.rows.iter().flatten().map(String::as_str));
    let number =
        |row: &[String], column: Option<usize>| spelling.number(row[column?].trim_end_matches(['s', '%']));
    let task = |row: &[String]| row[columns.task].clone();
    let mut rows: Vec<(usize, &Vec<String>)> = table.rows.iter().enumerate().collect();
    let is_kernel = |row: &[String]| {
        let task = task(row);
        !NO_KERNELS.iter().any(|begin| task.starts_with(begin))
    };
    rows.retain(|(position, row)| {
        (wanted.launch.is_some() || is_kernel(row))
            && wanted.launch.is_none_or(|launch| launch == *position as u64)
            && wanted.kernel.is_none_or(|kernel| {
                let task = task(row);
                task.contains(kernel) || task.contains(&spelled(kernel))
            })
            && number(row, Some(time)).is_some_and(|seconds| seconds > 0.0)
    });
    let longest = rows.iter().max_by(|(_, one), (_, other)| {
        let seconds = |row: &[String]| number(row, Some(time)).unwrap_or(0.0);
        seconds(one).total_cmp(&seconds(other))
    });
    let Some((position, row)) = longest else {
        let names: Vec<String> = table.rows.iter().take(8).map(|row| task(row)).collect();
        let what = match (wanted.kernel, wanted.launch) {
            (_, Some(launch)) => format!("the profile has no task {launch} with a time"),
            (Some(kernel), None) => format!("the profile has no task `{kernel}` with a time"),
            (None, None) => "the profile has no task with a time".to_owned(),
        };
        return Err(Error::usage(what).accepted(match names.as_slice() {
            [] => expected.to_owned(),
            names => format!("its tasks are {}", names.join(", ")),
        }));
    };
    let mut notes = Vec::new();
    if rows.len() > 1 {
        notes.push(format!(
            "Task {position} of the profile, the one of {} that takes longest; FILE.csv#N takes another.",
            rows.len()
        ));
    }
    let share = |column: Option<usize>| {
        number(row, column)
            .map(|percent| percent / 100.0)
            .filter(|share| (0.0..=1.0).contains(share))
    };
    let instances = number(row, columns.instances)
        .filter(|&count| count >= 1.0)
        .unwrap_or(1.0);
    let time_ns = number(row, Some(time)).unwrap_or(0.0) * 1e9 / instances;
    let rate = match (number(row, columns.read), number(row, columns.written)) {
        (None, None) => None,
        (read, written) => Some(read.unwrap_or(0.0) + written.unwrap_or(0.0)),
    };
    let (stalled, scoreboard) = (share(columns.stalled), share(columns.scoreboard));
    let idle = share(columns.idle);
    notes.extend(spent(share(columns.active), stalled, idle));
    let missing: Vec<&str> = [
        (scoreboard.is_none(), "the scoreboard (SBID) share of the stalls"),
        (rate.is_none(), "GPU Memory Bandwidth"),
        (columns.l3_misses.is_none(), "L3's miss ratio"),
        (columns.local.is_none(), "the task's work sizes"),
    ]
    .into_iter()
    .filter_map(|(is_missing, name)| is_missing.then_some(name))
    .collect();
    if !missing.is_empty() {
        notes.push(format!(
            "Missing in the profile: {}. To collect them: `vtune -collect gpu-hotspots -knob profiling-mode=characterization \
             -knob characterization-mode=full-compute PROGRAM`, and for the stalls' reasons `-knob profiling-mode=source-analysis \
             -knob source-analysis=stall-sampling`.",
            missing.join(", ")
        ));
    }
    let named = columns.adapter.and_then(|column| of_adapter(&row[column]));
    let model = wanted.model.cloned().or(named).ok_or_else(|| {
        Error::usage("the profile does not name its device")
            .accepted("`--device` with the device that it was made on, such as `--device sim:pvc-1550`")
    })?;
    let waiting = match (stalled, scoreboard) {
        // The scoreboard's share is one of the stalls, which are a share of the time.
        (Some(stalled), Some(scoreboard)) if columns.scoreboard_is_part => Some(stalled * scoreboard),
        (_, scoreboard) => scoreboard,
    };
    let model = Some(&model);
    let size = |column: Option<usize>| column.and_then(|column| product(&row[column]));
    let group = size(columns.local)
        .and_then(|items| u32::try_from(items).ok())
        .unwrap_or(0);
    let groups = size(columns.global).map_or(0, |items| items / u64::from(group.max(1)));
    let simd = number(row, columns.simd)
        .map(|width| width as u32)
        .filter(|width| width.is_power_of_two() && (8..=32).contains(width));
    let shared = number(row, columns.slm).map_or(0, |bytes| bytes as u32);
    let footprint = Footprint {
        shared,
        barrier: shared > 0,
        ..Footprint::new(group, simd.unwrap_or(32))
    };
    let fits = model
        .filter(|_| group > 0 && groups > 0)
        .map(|model| model.occupancy(&footprint))
        .filter(|fits| fits.groups_per_core > 0);
    // A kernel with spills has no free registers.
    let spilled = number(row, columns.spilled).is_some_and(|bytes| bytes > 0.0);
    let resources = model.zip(fits.as_ref()).filter(|_| spilled).map(|(model, fits)| {
        let all = model.registers_per_work_item(&footprint);
        let footprint = Footprint {
            registers: all,
            ..footprint
        };
        Resources::of(model, &footprint, fits, groups)
    });
    if !spilled && columns.spilled.is_some() {
        notes.push(
            "The task spills nothing; how many registers it leaves free VTune does not tell.".to_owned(),
        );
    }
    let cache = model.zip(share(columns.l3_misses)).map(|(model, misses)| Cache {
        name: model.l2.name.clone(),
        bytes: *model.l2.size,
        hits: 1.0 - misses,
    });
    let diverging = share(columns.lanes).map(|active| Diverging {
        active,
        conditions: 0,
        place: None,
    });
    let evidence = Evidence {
        cores: model.map_or(0, |model| *model.core.count),
        places: model.map_or(0, |model| *model.core.sub_groups),
        groups,
        group,
        // VTune has the achieved occupancy; the possible one follows from the task's sizes.
        fits,
        achieved: share(columns.occupancy)
            .zip(model)
            .map(|(share, model)| share * f64::from(*model.core.sub_groups)),
        time_ns,
        launch_ns: None,
        cache: None,
        memory_bytes: rate.map(|rate| rate * time_ns),
        bandwidth: model.map(|model| *model.dram.bandwidth),
        bandwidth_counted: None,
        scattered_bandwidth: None,
        latency_ns: model.map(|model| model.nanoseconds(f64::from(*model.dram.latency))),
        saturating_bytes: model.map(|model| saturation(model).bytes),
        bytes_in_flight: None,
        waiting_for_loads: waiting,
        issued: share(columns.active),
    };
    let stalls = waiting.map(|share| Stall {
        reason: StallReason::LongScoreboard,
        share,
    });
    Ok(Profiled {
        kernel: task(row),
        device: model.map_or("an Intel GPU".to_owned(), |model| model.title.clone()),
        simulated: model.map(|model| format!("sim:{}", model.name)),
        // How many VTune does not tell.
        registers: None,
        is_of_another_launch: false,
        evidence,
        profile: Profile {
            stalls: stalls.into_iter().collect(),
            resources,
            cache,
            diverging,
            idle,
            ..Profile::default()
        },
        notes,
    })
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
