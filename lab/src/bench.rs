//! `headstart-lab bench`: the gallery's kernels under many plans on a GPU, beside CUDA written by hand, in one run.

use std::sync::Arc;
use std::time::Instant;

use headstart::device::cuda::timing::TimingOptions;
use headstart::device::sim::Simulator;
use headstart::ir::Kernel;
use headstart::prefetch::{self, Plan};
use headstart::tune::gpu::{GpuBench, Wanted};
use headstart::tune::{Shard, Subject, Workload};
use headstart::{Error, Result};
use headstart_gallery::kernels;
use headstart_gallery::techniques::{FAMILIES, Shown};
use headstart_gallery::workloads::cases::{self as workload_cases, Bags};
use serde_json::{Value, json};

use crate::accuracy;
use crate::arguments;
use crate::arguments::Suite;
use crate::cases::{self, Case};
use crate::compare::{self, Programs, Tools};
use crate::runs::Runs;
use crate::shown::{line, milliseconds, trial};
use crate::{functions, host, peers, timer};
use headstart_cli::device;
use headstart_cli::output::{Destination, json_line, print};
use headstart_cli::published;

/// The name of the kernel without a plan.
const PLAIN: &str = "none";

/// How often the plain kernel is compiled alone, to time it.
const COMPILATIONS: u32 = 7;

/// Iterations of a kernel's loop with `--small`: enough for every ring to go around.
const SMALL_ITERATIONS: u64 = 70;

/// Runs the command.
pub fn run(options: &arguments::Bench) -> Result<()> {
    if options.suite == Suite::Accuracy {
        return accuracy::run(options);
    }
    if options.suite == Suite::Functions {
        return functions::run(options);
    }
    if options.suite == Suite::Host {
        return host::run(options);
    }
    if options.suite == Suite::Timer {
        return timer::run(options);
    }
    let destination = Destination::asked("--json", options.json.as_deref())?;
    let mut runs = Runs::open(&options.from)?;
    let shard: Option<Shard> = options.shard.as_deref().map(str::parse).transpose()?;
    let mut bench = device::worker(&device::gpu(&options.device)?)?;
    let facts = bench.facts().clone();
    print(&format!(
        "{} · driver for CUDA {} · {} cores\n",
        facts.name, facts.driver, facts.cores
    ))?;

    let is_named = |name: &str, text: &str| match text.strip_prefix('=') {
        Some(whole) => name == whole,
        None => name.contains(text),
    };
    let wanted = |name: &str| options.case.is_empty() || options.case.iter().any(|text| is_named(name, text));
    let in_suite = |suite: Suite| options.suite == Suite::All || options.suite == suite;
    let mut results = Vec::new();
    let documents = cases::all()
        .into_iter()
        .filter(|case| in_suite(Suite::Documents) && wanted(case.name));
    for case in &documents.collect::<Vec<_>>() {
        match measure(&mut bench, case, options) {
            Ok(result) => results.push(result),
            Err(error) => {
                print(&format!("{}: {error}\n", case.name))?;
                results.push(json!({"case": case.name, "error": error.to_string()}));
            }
        }
    }
    let (major, minor) = facts.capability;
    let bags = if options.all_bags { Bags::All } else { Bags::Pairs };
    let mut all = workload_cases::all(bags);
    let order: Vec<String> = all.iter().map(|case| case.name.clone()).collect();
    all.retain(|case| in_suite(Suite::Workloads) && wanted(&case.name) && !runs.has(&case.name));
    if let Some(shard) = shard {
        all = shard.of(all);
    }
    let command = published::command(crate::PROGRAM);
    let report = |runs: &Runs, techniques: &[Value], peers: &[peers::Peer]| {
        json!({
            "command": command,
            "date": published::date(),
            "driver": published::driver(),
            "version": env!("CARGO_PKG_VERSION"),
            "device": facts,
            "cases": results,
            "copy_bytes_per_s": runs.copy,
            "workloads": runs.in_order(order.iter().map(String::as_str)),
            "techniques": techniques,
            "peers": peers,
        })
    };
    let write = |report: &Value| match &destination {
        // A stream is written once.
        Some(destination @ Destination::File(_)) => destination.write(&json_line(report)?),
        _ => Ok(()),
    };
    measure_workloads(&mut bench, &all, (major, minor), options, &mut runs, &|runs| {
        write(&report(runs, &[], &[]))
    })?;
    let mut techniques = Vec::new();
    // The others are about Intel's GPUs.
    let families = FAMILIES.iter().filter(|family| family.device == "h200");
    let families = families.flat_map(|family| family.kernels);
    for shown in families.filter(|shown| in_suite(Suite::Techniques) && wanted(shown.kernel)) {
        let Shown {
            kernel,
            settings,
            plan,
        } = shown;
        match compare::technique(&mut bench, shown, options.rounds) {
            Ok(result) => {
                let microseconds = result["time_ns"].as_f64().unwrap_or(0.0) * 1e-3;
                print(&format!(
                    "  {microseconds:9.2} µs {kernel} {} {plan}\n",
                    settings.join(" ")
                ))?;
                techniques.push(result);
            }
            Err(error) => print(&format!("  failed {kernel} {plan}: {error}\n"))?,
        }
    }
    let peers = match &options.peers {
        Some(folder) => peers::run(folder, &options.nvcc, &format!("sm_{major}{minor}"))?,
        None => Vec::new(),
    };
    for peer in &peers {
        let error = peer.error.as_deref().map(|error| format!("  {error}\n"));
        print(&format!(
            "\n{}\n{}{}",
            peer.file,
            peer.output,
            error.unwrap_or_default()
        ))?;
    }
    let Some(destination) = &destination else {
        return Ok(());
    };
    destination.write(&json_line(&report(&runs, &techniques, &peers))?)
}

/// The workloads and the bandwidth of a copy, with the programs for comparison; after each of them the results so far go to
/// `write`.
fn measure_workloads(
    bench: &mut GpuBench,
    cases: &[workload_cases::Case],
    (major, minor): (u32, u32),
    options: &arguments::Bench,
    runs: &mut Runs,
    write: &dyn Fn(&Runs) -> Result<()>,
) -> Result<()> {
    if cases.is_empty() {
        return Ok(());
    }
    let start = Instant::now();
    // At small sizes there is nothing to compare.
    let mut programs = match options.small || options.without_programs {
        true => None,
        false => Some(Programs::start(&Tools {
            python: &options.python,
            nvcc: &options.nvcc,
            architecture: &format!("sm_{major}{minor}"),
            others: &options.beside,
        })?),
    };
    let copy = programs
        .as_mut()
        .map(|programs| programs.copy_bandwidth(options.rounds));
    match copy {
        Some(Ok(copy)) => {
            print(&format!("a copy reads and writes {:.0} GB/s\n", copy / 1e9))?;
            runs.copy = Some(copy);
        }
        Some(Err(error)) => print(&format!("a copy could not be measured: {error}\n"))?,
        None => {}
    }
    let small = options.small.then_some(SMALL_ITERATIONS);
    for (number, case) in cases.iter().enumerate() {
        let is_over = |limit: u64| start.elapsed().as_secs() >= limit;
        if options.limit.is_some_and(is_over) {
            let left = cases.len() - number;
            return print(&format!(
                "\nno time was left for {left} workloads; `--from FILE` continues from the file of `--json`\n"
            ));
        }
        let programs = programs.as_mut();
        match compare::measure(bench, programs, case, options.rounds, small, &options.except) {
            Ok((text, mut result)) => {
                print(&text)?;
                result["date"] = json!(published::date());
                runs.add(result);
            }
            Err(error) => {
                print(&format!("\n{}: {error}\n", case.name))?;
                runs.add(json!({"case": case.name, "error": error.to_string()}));
            }
        }
        write(runs)?;
    }
    Ok(())
}

/// Measures one case.
fn measure(bench: &mut GpuBench, case: &Case, options: &arguments::Bench) -> Result<Value> {
    let settings: Vec<String> = case
        .settings
        .iter()
        .map(|setting| (*setting).to_owned())
        .collect();
    let subject = kernels::find(case.kernel)?.with(&settings, None)?;
    let workload = match options.small {
        true => subject
            .small(SMALL_ITERATIONS)?
            .ok_or_else(|| Error::bug("a kernel of the gallery is never small"))?,
        false => subject.workload()?,
    };
    let start = Instant::now();
    let wanted = |plan: &&String| !options.except.iter().any(|text| plan.contains(text));
    let plans: Vec<String> = case.plans.iter().filter(wanted).cloned().collect();
    let (kernels, refused) = derive(&workload, &plans)?;
    let derive_time = start.elapsed();

    let start = Instant::now();
    let right = match options.without_simulator {
        true => Wanted::Found,
        false => Wanted::Compared(Arc::new(simulated(&workload, &kernels[0].1)?)),
    };
    let simulator_time = (!options.without_simulator).then(|| start.elapsed());

    let start = Instant::now();
    let timing = TimingOptions {
        rounds: options.rounds,
        cache: case.cache,
        ..TimingOptions::default()
    };
    let measured = bench.measure(&workload, &kernels, &mut || Ok(right.clone()), timing)?;
    let wall = start.elapsed();

    let (emit_time, load_time) = bench.compile_time(&workload, &kernels[0].1, COMPILATIONS)?;

    let plain_ns = measured
        .first()
        .and_then(|plain| plain.as_ref().ok())
        .map(|plain| plain.timing.median_ns);
    let mut order: Vec<usize> = (0..kernels.len()).collect();
    let time = |index: usize| {
        measured[index]
            .as_ref()
            .map_or(f64::INFINITY, |m| m.timing.median_ns)
    };
    order.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
    let mut text = format!("\n{} {}\n", case.name, case.settings.join(" "));
    for &index in &order {
        text.push_str(&line(&kernels[index].0, &measured[index], plain_ns));
    }
    for (plan, reason) in &refused {
        text.push_str(&format!("  refused     {plan}: {reason}\n"));
    }
    text.push_str(&format!(
        "  {} plans in {:.1} s on the GPU's side, derived in {:.1} s{}\n",
        kernels.len(),
        wall.as_secs_f64(),
        derive_time.as_secs_f64(),
        simulator_time.map_or(String::new(), |time| format!(
            ", simulated in {:.1} s",
            time.as_secs_f64()
        )),
    ));
    text.push_str(&format!(
        "  plain kernel to loaded module: {:.3} ms, of which the driver's compiler takes {:.3} (medians of {COMPILATIONS})\n",
        milliseconds(emit_time + load_time),
        milliseconds(load_time)
    ));
    print(&text)?;
    let trials: Vec<Value> = order
        .iter()
        .map(|&index| trial(&kernels[index].0, &measured[index], plain_ns))
        .collect();
    Ok(json!({
        "case": case.name,
        "kernel": case.kernel,
        "parameters": subject.parameters().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "groups": workload.groups,
        "group": workload.group,
        "rounds": options.rounds,
        "l2": case.cache,
        "plain_ns": plain_ns,
        "trials": trials,
        "refused": refused.iter().map(|(plan, reason)| json!({"plan": plan, "reason": reason})).collect::<Vec<_>>(),
        "derive_s": derive_time.as_secs_f64(),
        "simulator_s": simulator_time.map(|time| time.as_secs_f64()),
        "gpu_s": wall.as_secs_f64(),
        "kernel_to_module_ms": milliseconds(emit_time + load_time),
        "ptx_to_module_ms": milliseconds(load_time),
    }))
}

/// Kernels by their plans, the plain one first; and the plans that were refused, with the reasons.
type Derived = (Vec<(String, Arc<Kernel>)>, Vec<(String, String)>);

fn derive(workload: &Workload, plans: &[String]) -> Result<Derived> {
    let target = prefetch::PlanTarget::of(workload.group);
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target)?;
    let mut kernels = Vec::new();
    let mut refused = Vec::new();
    for text in plans {
        let plan: Plan = text.parse()?;
        match prefetch::apply(&plain, &plan, &target) {
            Ok(applied) => kernels.push((text.clone(), Arc::new(applied.kernel))),
            Err(error) => refused.push((text.clone(), error.to_string())),
        }
    }
    kernels.insert(0, (PLAIN.to_owned(), Arc::new(plain)));
    Ok((kernels, refused))
}

/// The plain kernel's outputs, from the simulator's functional engine.
fn simulated(workload: &Workload, plain: &Arc<Kernel>) -> Result<Vec<Vec<u8>>> {
    let simulator = Simulator::untimed();
    let (_, outputs) = workload.bind(&simulator)?.run(&simulator, plain)?;
    Ok(outputs)
}
