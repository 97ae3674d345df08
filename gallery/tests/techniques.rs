//! `results/techniques.md`, made from `results/techniques-sim.json`: the time of each technique on a simulator; and from
//! `results/techniques-h200.json`, what `headstart-lab bench --suite techniques` wrote on an H200. `HEADSTART_BLESS=1` makes the page
//! anew, `HEADSTART_MEASURE=1` the results, too, or `HEADSTART_MEASURE=article,atomics` those of some parts.

mod pages;

use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use headstart::back::{machine, spirv};
use headstart::device::model::{self, DeviceModel};
use headstart::ir::Kernel;
use headstart::prefetch::{self, PlanTarget};
use headstart::tune::{ArgumentSpec, Bench, SimulatedBench, Subject};
use headstart_gallery::kernels;
use headstart_gallery::techniques::{FAMILIES, Family, Shown};
use headstart_testing::ocloc::Ocloc;
use pages::{compare, repository};
use serde_json::{Value, json};

/// A kernel with the settings and the plan that its page shows.
fn label(
    Shown {
        kernel,
        settings,
        plan,
    }: &Shown,
) -> String {
    let usual = [
        "groups=132",
        "groups=1056",
        "groups=528",
        "groups=264",
        "group=256",
        "elements=51200",
    ];
    let settings = settings.iter().filter(|setting| !usual.contains(setting));
    let plan = (*plan != "none").then_some(plan);
    let words: Vec<&str> = [kernel]
        .into_iter()
        .chain(settings)
        .chain(plan)
        .copied()
        .collect();
    words.join(" ")
}

/// Times the techniques of some pages on the simulator, of all where none are named; the others stay as they were.
fn measure(pages: &str, before: &Value) -> Value {
    let mut results = Vec::new();
    for family in FAMILIES {
        if !matches!(pages, "1" | "all") && !pages.split(',').any(|page| page == family.page) {
            let kept = family
                .kernels
                .iter()
                .filter_map(|shown| of(&before["results"], shown));
            results.extend(kept.cloned());
            continue;
        }
        let model = model::built_in(family.device, &[]).expect("a model");
        let bench = SimulatedBench::new(model.clone());
        for shown in family.kernels {
            let result = measure_one(&bench, &model, family.device, shown);
            println!(
                "{} {:.1} µs",
                label(shown),
                result["time_ns"].as_f64().unwrap_or_default() / 1e3
            );
            results.push(result);
        }
    }
    json!({"results": results})
}

fn measure_one(bench: &SimulatedBench, model: &DeviceModel, device: &str, shown: &Shown) -> Value {
    let Shown {
        kernel,
        settings,
        plan,
    } = shown;
    let texts: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let chosen = kernels::find(kernel).and_then(|kernel| kernel.with(&texts, None));
    let workload = chosen.and_then(|chosen| chosen.workload()).expect("a workload");
    let target = PlanTarget {
        group_size: Some(workload.group),
        ..bench.platform().target()
    };
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes");
    let planned = prefetch::apply(&plain, &plan.parse().expect("a plan"), &target);
    let planned = planned
        .unwrap_or_else(|error| panic!("{kernel} {plan}: {error}"))
        .kernel;
    let lowering = machine::Target::of(model, planned.sub_group_size.unwrap_or(32));
    let estimate = machine::lower(&planned, &lowering).register_estimate;
    let spills = (device == "xe-lp").then(|| spills(&planned)).flatten();
    let bound = workload.bind(bench.device()).expect("it fits");
    let time = bench
        .time(&bound, &Arc::new(planned))
        .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let left = workload.given.iter().map(|given| match given {
        ArgumentSpec::Output { length, .. } => *length,
        _ => 0,
    });
    let mut command = format!("headstart run {kernel} --device sim:{device}");
    for setting in *settings {
        let _ = write!(command, " --set {setting}");
    }
    if *plan != "none" {
        let _ = write!(command, " --plan {plan}");
    }
    json!({
        "kernel": kernel,
        "settings": settings,
        "plan": plan,
        "device": device,
        "groups": workload.groups[0],
        "group": workload.group[0],
        "time_ns": time.time_ns,
        "values_left": left.sum::<u64>(),
        "registers": estimate.registers + estimate.spilled_bytes / 4,
        "room": lowering.max_registers,
        "spills": spills,
        "command": command,
    })
}

/// How often Intel's compiler spills registers of a kernel for an Xe-LP GPU, if it is there.
fn spills(kernel: &Kernel) -> Option<u32> {
    let ocloc = Ocloc::find()?;
    let spirv = spirv::emit(kernel, &spirv::Options::new(spirv::SpirvTarget::IntelOlder)).expect("a module");
    Some(
        ocloc
            .compile(&spirv, "tgllp")
            .unwrap_or_else(|said| panic!("{said}"))
            .spills,
    )
}

/// A technique's line: times in microseconds.
struct Row<'r> {
    label: String,
    kernel: &'static str,
    simulated: f64,
    measured: Option<f64>,
    /// What is compared: measured, where all lines of the page were.
    time: f64,
    left: u64,
    /// Registers that our own lowering wants for a work-item, and those that there are.
    registers: u64,
    room: u64,
    /// How often Intel's compiler spilled, where it was asked.
    spills: Option<u64>,
    command: &'r str,
}

/// A technique's result.
fn of<'s>(all: &'s Value, shown: &Shown) -> Option<&'s Value> {
    let is_it = |found: &&Value| {
        found["kernel"] == shown.kernel
            && found["settings"] == json!(shown.settings)
            && found["plan"].as_str().unwrap_or("none") == shown.plan
    };
    all.as_array()?.iter().find(is_it)
}

/// The results of a family.
fn rows<'s>(results: &'s Value, measured: &'s Value, family: &Family) -> Vec<Row<'s>> {
    let row = |shown: &Shown| {
        let found = of(&results["results"], shown);
        let found = found.unwrap_or_else(|| panic!("{} was not simulated", label(shown)));
        let measured = (family.device == "h200")
            .then(|| of(&measured["techniques"], shown))
            .flatten();
        Row {
            label: label(shown),
            kernel: shown.kernel,
            simulated: found["time_ns"].as_f64().expect("a time") / 1e3,
            measured: measured.and_then(|found| Some(found["time_ns"].as_f64()? / 1e3)),
            time: f64::NAN,
            left: found["values_left"].as_u64().expect("a number"),
            registers: found["registers"].as_u64().unwrap_or_default(),
            room: found["room"].as_u64().unwrap_or_default(),
            spills: found["spills"].as_u64(),
            command: found["command"].as_str().expect("a command"),
        }
    };
    let mut rows: Vec<Row<'_>> = family.kernels.iter().map(row).collect();
    let all = rows.iter().all(|row| row.measured.is_some());
    for row in &mut rows {
        row.time = row.measured.filter(|_| all).unwrap_or(row.simulated);
    }
    rows
}

/// Where the times come from: a GPU only if all of them do.
fn device(family: &Family, rows: &[Row<'_>]) -> String {
    match (family.device, rows.iter().all(|row| row.measured.is_some())) {
        (_, true) => "an H200".to_owned(),
        ("h200", false) => "a simulated H200".to_owned(),
        (other, false) => format!("sim:{other}"),
    }
}

const BEGIN: &str = "# Techniques\n\nEach part compares a few kernels that do the same work in different ways. A kernel with several \
                     lines is compared with its first one; simulated times are those of `results/techniques-sim.json`, made by the \
                     test `techniques` of the gallery. The kernels are in `gallery/src/techniques`. What a host can do in several \
                     ways is in [host.md](host.md).\n\nAtomic operations that meet in one line take turns in the simulator, too: of \
                     kernels with such operations all cores are simulated.\n";

/// The part of a family.
fn part(family: &Family, rows: &[Row<'_>]) -> String {
    let mut text = pages::heading(family.page, family.title, &family.text);
    text.push_str(&match family.device {
        "h200" => measured_table(rows),
        _ => register_table(family, rows),
    });
    let _ = writeln!(text, "\nThe ratios are those of {}.", device(family, rows));
    text
}

/// How many times as fast a line is as the first of the same kernel, or of the page.
fn speedup(rows: &[Row<'_>], at: usize) -> f64 {
    let alike = |row: &&Row<'_>| row.kernel == rows[at].kernel;
    let first = match rows.iter().filter(alike).count() {
        1 => &rows[0],
        _ => rows.iter().find(alike).expect("it is there"),
    };
    first.time / rows[at].time
}

/// The lines of a page with measured times.
fn measured_table(rows: &[Row<'_>]) -> String {
    let mut text = "| kernel | µs, simulated | µs, H200 | against the first | values left | command |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for (at, row) in rows.iter().enumerate() {
        let measured = row.measured.map_or("–".to_owned(), |time| format!("{time:.1}"));
        let (label, simulated, left, command) = (&row.label, row.simulated, row.left, row.command);
        let speedup = speedup(rows, at);
        let _ = writeln!(
            text,
            "| {label} | {simulated:.1} | {measured} | {speedup:.2}× | {left} | `{command}` |"
        );
    }
    text
}

/// The lines of a page about registers.
fn register_table(family: &Family, rows: &[Row<'_>]) -> String {
    let device = family.device;
    let mut text = format!(
        "| kernel | µs, sim:{device} | against the first | registers wanted | registers there are | spills | command |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for (at, row) in rows.iter().enumerate() {
        let (label, simulated, registers, room) = (&row.label, row.simulated, row.registers, row.room);
        let (speedup, command) = (speedup(rows, at), row.command);
        let spills = row.spills.map_or("–".to_owned(), |spills| spills.to_string());
        let _ = writeln!(
            text,
            "| {label} | {simulated:.1} | {speedup:.2}× | {registers} | {room} | {spills} | `{command}` |"
        );
    }
    text.push_str(
        "\nRegisters of 32 bits for each work-item, wanted by the simulator's lowering. Spills: what Intel's compiler (IGC \
         1.0.12504, `ocloc -device tgllp`) reports, in registers of 32 bytes of a thread; the simulator stores and loads what does not \
         fit in any order, about as many bytes.\n",
    );
    text
}

#[test]
fn the_pages_say_what_was_simulated() {
    let path = repository().join("results/techniques-sim.json");
    if let Ok(pages) = std::env::var("HEADSTART_MEASURE") {
        let before = pages::results("techniques-sim.json");
        let text = serde_json::to_string_pretty(&measure(&pages, &before)).expect("JSON") + "\n";
        fs::write(&path, text).expect("results can be written");
    }
    let results = pages::results("techniques-sim.json");
    let measured = pages::results("techniques-h200.json");
    let mut text = BEGIN.to_owned();
    for family in FAMILIES {
        text += &part(family, &rows(&results, &measured, family));
    }
    compare(&repository().join("results/techniques.md"), &text);
}
