//! `headstart-lab corpus`: a folder of PTX modules on a GPU. Each entry is measured as it is and tuned; the results are stored as JSON.
//!
//! The folder holds modules, and a launch file for each entry, `launch/ENTRY.toml`. Where that names several geometries,
//! an entry is measured where the original is fastest.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headstart::device::cuda::device::describe;
use headstart::device::cuda::timing::TimingOptions;
use headstart::files;
use headstart::front::ptx;
use headstart::ir::limits;
use headstart::report::Outputs;
use headstart::tune::gpu::{GpuBench, Wanted, as_it_was};
use headstart::tune::{
    self, Bench, FileSubject, LaunchFile, MeasuredBench, SearchSettings, Subject, Workload, check,
};
use headstart::{Error, Result};
use serde_json::{Value, json};

use crate::arguments;
use headstart_cli::device;
use headstart_cli::output::{Destination, json_line, print};
use headstart_cli::progress::{Bar, Clock};
use headstart_cli::published;

/// Runs the command.
pub fn run(options: &arguments::Corpus) -> Result<()> {
    let destination = Destination::asked("--json", options.json.as_deref())?;
    let facts = device::gpu(&options.device)?;
    let mut gpu = device::worker(&facts)?;
    let tuner = match options.without_tuning {
        true => None,
        false => Some(MeasuredBench::new(Box::new(device::worker(&facts)?))?),
    };
    let command = published::command(crate::PROGRAM);
    let large = large_import(&options.folder).unwrap_or_else(|error| json!({"error": error.to_string()}));
    let mut entries = Vec::new();
    let mut failed = 0;
    for path in modules(&options.folder)? {
        let text = files::text(&path, limits::TEXT_BYTES as u64)
            .map_err(|error| Error::usage(format!("{}: {error}", path.display())))?;
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for entry in ptx::entries(&text).map_err(|error| error.within(&file))? {
            let name = format!("{file}:{entry}");
            if !options.case.is_empty() && !options.case.iter().any(|wanted| name.contains(wanted)) {
                continue;
            }
            let case = Case {
                text: &text,
                file: &file,
                entry: &entry,
                folder: &options.folder,
            };
            let found = case
                .measure(&mut gpu, tuner.as_ref())
                .unwrap_or_else(|error| json!({"error": error.to_string()}));
            failed += u32::from(found["error"].is_string());
            print(&format!("{name}: {}\n", line(&found)))?;
            entries.push(json!({"module": file, "entry": entry, "found": found}));
            // Measurements are saved, whatever stops the rest.
            if let Some(destination) = &destination {
                destination.write(&json_line(&json!({
                    "command": command,
                    "date": published::date(),
                    "driver": published::driver(),
                    "version": env!("CARGO_PKG_VERSION"),
                    "device": gpu.facts(),
                    "import": large,
                    "entries": entries,
                }))?)?;
            }
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Error::input(format!("{failed} entries could not be measured"))),
    }
}

/// The results of an entry, on one line.
fn line(found: &Value) -> String {
    if let Some(error) = found["error"].as_str() {
        return error.to_owned();
    }
    let milliseconds = |value: &Value| value.as_f64().unwrap_or(f64::NAN) * 1e-6;
    let mut line = format!(
        "{:.4} ms, simulator {}",
        milliseconds(&found["original_ns"]),
        found["simulator"].as_str().unwrap_or("?"),
    );
    let tuned = &found["tuned"];
    if let Some(plan) = tuned["plan"].as_str() {
        line.push_str(&format!(
            "; best {plan}: {:.3} times as fast",
            tuned["speedup"].as_f64().unwrap_or(f64::NAN)
        ));
    } else if let Some(error) = tuned["error"].as_str() {
        line.push_str(&format!("; not tuned: {error}"));
    }
    line
}

/// How long it takes to read a module of ten megabytes and import one of its entries: the folder's largest module, its
/// entries again and again under other names.
fn large_import(folder: &Path) -> Result<Value> {
    let mut texts = Vec::new();
    for path in modules(folder)? {
        texts.extend(files::text(&path, limits::TEXT_BYTES as u64));
    }
    const ENTRY: &str = ".visible .entry ";
    let largest = texts.iter().max_by_key(|text| text.len());
    let Some((head, entries)) = largest.and_then(|text| text.split_once(ENTRY)) else {
        return Ok(Value::Null);
    };
    let (mut module, mut last, mut copies) = (head.to_owned(), String::new(), 0);
    while module.len() < 10_000_000 {
        for part in entries.split(ENTRY) {
            let name = part.split('(').next().unwrap_or_default();
            last = format!("{name}_{copies}");
            module.push_str(ENTRY);
            module.push_str(&part.replace(name, &last));
        }
        copies += 1;
    }
    let start = Instant::now();
    let entries = ptx::entries(&module)?.len();
    let imported = ptx::import(&module, "large.ptx", Some(&last), &ptx::Facts::default())?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    print(&format!(
        "{entries} entries in {} bytes are read, and `{}` imported, in {milliseconds:.0} ms\n",
        module.len(),
        imported.kernel.name
    ))?;
    Ok(json!({"bytes": module.len(), "entries": entries, "ms": milliseconds}))
}

/// The modules of a folder, in the order of their names.
fn modules(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| Error::usage(format!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

struct Case<'c> {
    text: &'c str,
    file: &'c str,
    entry: &'c str,
    folder: &'c Path,
}

impl Case<'_> {
    fn measure(&self, gpu: &mut GpuBench, tuner: Option<&MeasuredBench>) -> Result<Value> {
        let launch = LaunchFile::read(&self.folder.join("launch").join(format!("{}.toml", self.entry)))?;
        let start = Instant::now();
        let imported = ptx::import(self.text, self.file, Some(self.entry), &launch.facts())?;
        let import_time = start.elapsed();
        let (subject, most) = fastest(gpu, FileSubject::of_module(imported, launch))?;
        let workload = subject.workload()?;
        let mut found = self.measured(gpu, &workload)?;
        found["import_ms"] = json!(import_time.as_secs_f64() * 1e3);
        // What the entry could have in another of its geometries.
        let most = most.or_else(|| found["occupancy"].as_f64());
        found["most_occupancy"] = json!(most);
        found["groups"] = json!(workload.groups);
        found["group"] = json!(workload.group);
        if let Some(tuner) = tuner {
            found["tuned"] =
                tuned(&subject, tuner).unwrap_or_else(|error| json!({"error": error.to_string()}));
        }
        Ok(found)
    }

    /// The entry as it was, and whether the simulator leaves the same bits.
    fn measured(&self, gpu: &mut GpuBench, workload: &Workload) -> Result<Value> {
        let original = workload.original.as_deref();
        let original = original.ok_or_else(|| Error::bug("an entry came from no module"))?;
        let names = ["original".to_owned()];
        let emitted = vec![Ok((as_it_was(original), Duration::ZERO))];
        let timing = TimingOptions::default();
        let measured = gpu.measure_modules(workload, &names, emitted, &mut || Ok(Wanted::Found), timing)?;
        let original = measured.into_iter().next();
        let original = original.ok_or_else(|| Error::bug("a module was not measured"))??;
        let occupancy = gpu.occupancy(workload, &original);
        let right = original.found.clone().unwrap_or_default();
        let simulator = workload.computed(&workload.kernel, describe(gpu.facts()));
        let agrees = match &simulator {
            Ok(simulated) => said(check::compare_across(workload, simulated, &right)),
            Err(error) => error.to_string(),
        };
        Ok(json!({
            "original_ns": original.timing.median_ns,
            "occupancy": occupancy,
            "spread": original.timing.spread(),
            "simulator": agrees,
            "registers": original.loaded.compiled.registers,
        }))
    }
}

/// The geometry, of those that the launch file names, in which the original is fastest, and the highest occupancy of any of
/// them.
fn fastest(gpu: &mut GpuBench, subject: FileSubject) -> Result<(FileSubject, Option<f64>)> {
    let elsewhere = subject.elsewhere()?;
    if elsewhere.is_empty() {
        return Ok((subject, None));
    }
    let mut most: Option<f64> = None;
    let mut timed = Vec::new();
    let mut right: Option<Vec<Vec<u8>>> = None;
    for subject in std::iter::once(subject).chain(elsewhere) {
        let workload = subject.workload()?;
        let original = workload.original.as_deref();
        let original = original.ok_or_else(|| Error::bug("an entry came from no module"))?;
        let (names, emitted) = (
            ["original".to_owned()],
            vec![Ok((as_it_was(original), Duration::ZERO))],
        );
        let timing = TimingOptions::default();
        let mut measured =
            gpu.measure_modules(&workload, &names, emitted, &mut || Ok(Wanted::Found), timing)?;
        let measured = measured
            .pop()
            .ok_or_else(|| Error::bug("a module was not measured"))??;
        let occupancy = gpu.occupancy(&workload, &measured);
        most = Some(most.map_or(occupancy, |most| most.max(occupancy)));
        // Where each work-item has an output of its own, another geometry may have more of them.
        let found = measured.found.unwrap_or_default();
        let lengths = |outputs: &[Vec<u8>]| outputs.iter().map(Vec::len).collect::<Vec<_>>();
        match &right {
            None => right = Some(found),
            Some(right) if lengths(right) == lengths(&found) => {
                check::compare(&workload, right, &found)
                    .map_err(|error| error.at(format!("{} work-groups", workload.geometry().groups)))?;
            }
            Some(_) => {}
        }
        timed.push((measured.timing.median_ns, subject));
    }
    let fastest = timed
        .into_iter()
        .min_by(|(one, _), (other, _)| one.total_cmp(other));
    let (_, fastest) = fastest.ok_or_else(|| Error::bug("no geometry"))?;
    Ok((fastest, most))
}

fn said(compared: Result<Outputs>) -> String {
    match compared {
        Ok(Outputs::Identical) => "identical".to_owned(),
        Ok(_) => "equivalent".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The best of the plans that win most often.
fn tuned(subject: &FileSubject, tuner: &MeasuredBench) -> Result<Value> {
    let plans = tune::likely(subject, tuner)?;
    let asked = SearchSettings {
        plans: Some(&plans),
        ..SearchSettings::default()
    };
    let report = tune::search(subject, tuner, &asked, &Bar::new(&Clock::start(), None))?.report;
    Ok(json!({
        "plan": report.best.plan.to_string(),
        "time_ns": report.best.time_ns,
        "baseline_ns": report.baseline_ns,
        "speedup": report.best.speedup,
        "verdict": report.verdict.name(),
        "device": Bench::device(tuner).description().name,
        "trials": report.trials,
    }))
}
