//! A workload on a GPU: the plain kernel at several geometries, plans at the fastest of them, and the programs that do the same
//! work, with the same data and the same state of the L2 cache.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use headstart::device::CacheState;
use headstart::device::cuda::timing::{Timing, TimingOptions};
use headstart::device::sim::Simulator;
use headstart::ir::Kernel;
use headstart::prefetch;
use headstart::report::number;
use headstart::tune::gpu::{GpuBench, Measured, Wanted};
use headstart::tune::{ArgumentSpec, Compare, Subject, Workload};
use headstart::{Error, Result};
use headstart_gallery::kernels::{self, Chosen};
use headstart_gallery::techniques::Shown;
use headstart_gallery::workloads::cases::Case;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::made::Made;
use crate::manifest;
use crate::process::{Process, ProgramResult};
use crate::shown;
use crate::workloads;

use headstart_cli::output::explain_command;

/// Every workload comes from memory, as it does where it is not the only thing that runs.
const CACHE: CacheState = CacheState::Flushed;

/// The programs to compare with, by name: built or found once.
pub struct Programs {
    folder: TempDir,
    all: Vec<(String, Result<Process>)>,
}

/// Where the programs are made.
pub struct Tools<'a> {
    /// The interpreter that has PyTorch.
    pub python: &'a Path,
    /// NVIDIA's compiler.
    pub nvcc: &'a Path,
    /// For example `sm_90`.
    pub architecture: &'a str,
    /// Programs that speak as ours do.
    pub others: &'a [PathBuf],
}

impl Programs {
    /// Starts PyTorch and the others, and builds the CUDA programs. Missing ones are reported when they are needed.
    ///
    /// # Errors
    /// There is no place for files.
    pub fn start(tools: &Tools<'_>) -> Result<Programs> {
        let failed = |error: std::io::Error| Error::device(format!("no temporary folder: {error}"));
        let folder = tempfile::tempdir().map_err(failed)?;
        let file = |name: &str, text: &str| -> Result<PathBuf> {
            let path = folder.path().join(name);
            std::fs::write(&path, text).map_err(failed)?;
            Ok(path)
        };
        let script = file("gallery.py", include_str!("../../peers/gallery.py"))?;
        file("workload.cuh", include_str!("../../peers/workload.cuh"))?;
        let source = file("gallery.cu", include_str!("../../peers/gallery.cu"))?;
        let torch = Process::start(tools.python.as_os_str(), &[script.as_os_str()]);
        let program = folder.path().join("gallery");
        let cuda = build(&source, &program, tools).and_then(|()| Process::start(program.as_os_str(), &[]));
        let mut all = vec![("torch".to_owned(), torch), ("cuda".to_owned(), cuda)];
        for other in tools.others {
            let name = other.file_name().unwrap_or_default().to_string_lossy();
            all.push((name.into_owned(), Process::start(other.as_os_str(), &[])));
        }
        Ok(Programs { folder, all })
    }

    /// The bandwidth of a copy within the GPU's memory, in bytes read and written per second.
    ///
    /// # Errors
    /// It cannot be measured.
    pub fn copy_bandwidth(&mut self, rounds: u32) -> Result<f64> {
        let bytes: u64 = 2 << 30;
        let lines = self.folder.path().join("copy.txt");
        let text = format!("kernel copy\ncache flushed\nrounds {rounds}\nbytes {bytes}\n");
        std::fs::write(&lines, text).map_err(|error| Error::device(error.to_string()))?;
        let (_, torch) = &mut self.all[0];
        let answers = ask(torch, &lines)?;
        let answer = answers
            .first()
            .ok_or_else(|| Error::device("PyTorch copies nothing"))?;
        Ok(2.0 * bytes as f64 / timing(answer)?.median_ns * 1e9)
    }
}

fn ask(process: &mut Result<Process>, manifest: &Path) -> Result<Vec<ProgramResult>> {
    process.as_mut().map_err(|error| error.clone())?.measure(manifest)
}

fn build(source: &Path, program: &Path, tools: &Tools<'_>) -> Result<()> {
    let mut build = Command::new(tools.nvcc);
    build
        .args(["-O3", "-arch", tools.architecture, "-o"])
        .arg(program)
        .arg(source);
    let failed = |what: String| Error::device(format!("{}: {what}", tools.nvcc.display()));
    explain_command(&build);
    let output = build.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said
        .lines()
        .find(|line| line.contains("error"))
        .unwrap_or("it failed");
    Err(failed(line.to_owned()))
}

fn timing(answer: &ProgramResult) -> Result<Timing> {
    match &answer.error {
        Some(error) => Err(Error::device(error.clone())),
        None => Timing::of(answer.times_ns.clone(), CACHE)
            .ok_or_else(|| Error::device("a program to compare with measured nothing")),
    }
}

/// The plain kernel at one geometry.
struct MeasuredGeometry {
    kernel: &'static str,
    chosen: Chosen,
    workload: Workload,
    plain: Arc<Kernel>,
    measured: Measured,
}

/// Measures one case: a line of text for people, and its JSON. `small` is for tools that slow kernels
/// down; plans that contain one of `except` are left out.
///
/// # Errors
/// The plain kernel runs at none of its geometries.
pub fn measure(
    bench: &mut GpuBench,
    programs: Option<&mut Programs>,
    case: &Case,
    rounds: u32,
    small: Option<u64>,
    except: &[String],
) -> Result<(String, Value)> {
    let options = TimingOptions {
        rounds,
        cache: CACHE,
        ..TimingOptions::default()
    };
    let start = Instant::now();
    let mut shapes = Vec::new();
    let mut failures = Vec::new();
    let mut made = Made::default();
    for (kernel, settings) in &case.shapes {
        match shape(bench, case, kernel, settings, options, small, &mut made) {
            Ok(shape) => shapes.push(shape),
            Err(error) => failures.push((kernel, settings, error)),
        }
    }
    let tried: Vec<Value> = shapes
        .iter()
        .map(|shape| {
            json!({
                "kernel": shape.kernel,
                "groups": shape.workload.groups[0],
                "group": shape.workload.group[0],
                "parameters": parameters(&shape.chosen),
                "plain_ns": shape.measured.timing.median_ns,
            })
        })
        .collect();
    let time = |shape: &MeasuredGeometry| shape.measured.timing.median_ns;
    let Some(best) = shapes.into_iter().min_by(|a, b| time(a).total_cmp(&time(b))) else {
        let first = failures.into_iter().next().map(|(_, _, error)| error);
        return Err(first.unwrap_or_else(|| Error::bug("a case without geometries")));
    };

    let (kernels, refused) = derived(&best, except)?;
    let right = best
        .measured
        .found
        .clone()
        .map_or(Wanted::Unread, |found| Wanted::Compared(Arc::new(found)));
    let measured = bench.measure(&best.workload, &kernels, &mut || Ok(right.clone()), options)?;
    let plain_ns = measured
        .first()
        .and_then(|plain| plain.as_ref().ok())
        .map_or(0.0, |plain| plain.timing.median_ns);
    let mut order: Vec<usize> = (0..kernels.len()).collect();
    let of = |index: usize| {
        measured[index]
            .as_ref()
            .map_or(f64::INFINITY, |m| m.timing.median_ns)
    };
    order.sort_by(|&a, &b| of(a).total_cmp(&of(b)));
    let best_ns = order.first().map_or(plain_ns, |&first| of(first));

    let bytes = workloads::moved(case, &best.workload);
    let mut text = format!(
        "\n{}, {}: {} as {} × {}",
        case.name,
        number::bytes(best.workload.bytes() as f64),
        best.kernel,
        best.workload.groups[0],
        best.workload.group[0]
    );
    for (name, value) in parameters(&best.chosen) {
        text.push_str(&format!(" {name}={value}"));
    }
    text.push('\n');
    for &index in order
        .iter()
        .filter(|&&index| index == 0 || of(index) <= of(order[order.len().min(4) - 1]))
    {
        text.push_str(&shown::line(&kernels[index].0, &measured[index], Some(plain_ns)));
    }
    for &index in &order {
        if let Err(error) = &measured[index] {
            text.push_str(&format!("  failed      {}: {error}\n", kernels[index].0));
        }
    }
    let beside = beside(programs, case, &best, rounds);
    for peer in &beside {
        match (&peer["median_ns"].as_f64(), &peer["error"]) {
            (Some(peer_ns), _) => text.push_str(&format!(
                "  {:9.4} ms {:5.2}× ours at best, {:.2}× plain: {} [{}]{}\n",
                peer_ns * 1e-6,
                peer_ns / best_ns,
                peer_ns / plain_ns,
                peer["name"].as_str().unwrap_or("?"),
                peer["note"].as_str().unwrap_or(""),
                peer["outputs"]
                    .as_str()
                    .map_or(String::new(), |outputs| format!(" {outputs}")),
            )),
            (None, error) => text.push_str(&format!("  {}: {error}\n", peer["program"])),
        }
    }
    if let Some(bytes) = bytes {
        text.push_str(&format!("  {:.0} GB/s at best\n", bytes as f64 / best_ns));
    }
    let trials: Vec<Value> = order
        .iter()
        .map(|&index| shown::trial(&kernels[index].0, &measured[index], Some(plain_ns)))
        .collect();
    let value = json!({
        "case": case.name,
        "kernel": best.kernel,
        "parameters": parameters(&best.chosen),
        "trace": case.trace,
        "groups": best.workload.groups[0],
        "group": best.workload.group[0],
        "shapes": tried,
        "shapes_failed": failures.iter().map(|(kernel, settings, error)| json!({
            "kernel": kernel, "settings": settings, "reason": error.to_string(),
        })).collect::<Vec<_>>(),
        "rounds": rounds,
        "l2": CACHE,
        "buffer_bytes": best.workload.bytes(),
        "moved_bytes": bytes,
        "occupancy": bench.occupancy(&best.workload, &best.measured),
        "plain_ns": plain_ns,
        "best_ns": best_ns,
        "trials": trials,
        "refused": refused.iter().map(|(plan, reason)| json!({"plan": plan, "reason": reason})).collect::<Vec<_>>(),
        "peers": beside,
        "wall_s": start.elapsed().as_secs_f64(),
    });
    Ok((text, value))
}

/// Measures a technique under the plan that its page shows it with.
///
/// # Errors
/// It cannot be run.
pub fn technique(bench: &mut GpuBench, shown: &Shown, rounds: u32) -> Result<Value> {
    let Shown {
        kernel,
        settings,
        plan,
    } = shown;
    let texts: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let workload = kernels::find(kernel)?.with(&texts, None)?.workload()?;
    let plain = Arc::new(prefetch::carry_out_wishes(&workload.kernel, &target(&workload))?);
    let simulator = Simulator::untimed();
    let (_, right) = workload.bind(&simulator)?.run(&simulator, &plain)?;
    let right = Wanted::Compared(Arc::new(right));
    let options = TimingOptions {
        rounds,
        ..TimingOptions::default()
    };
    let planned = prefetch::apply(&plain, &plan.parse()?, &target(&workload))?;
    let named = [((*plan).to_owned(), Arc::new(planned.kernel))];
    let measured = bench.measure(&workload, &named, &mut || Ok(right.clone()), options)?;
    let measured = measured
        .into_iter()
        .next()
        .ok_or_else(|| Error::bug("nothing was measured"))??;
    Ok(json!({
        "kernel": kernel,
        "settings": settings,
        "plan": plan,
        "time_ns": measured.timing.median_ns,
        "timing": measured.timing,
        "outputs": measured.outputs.map(|outputs| format!("{outputs:?}").to_lowercase()),
    }))
}

fn parameters(chosen: &Chosen) -> std::collections::BTreeMap<String, String> {
    chosen.parameters().into_iter().collect()
}

fn shape(
    bench: &mut GpuBench,
    case: &Case,
    kernel: &'static str,
    settings: &[String],
    options: TimingOptions,
    small: Option<u64>,
    made: &mut Made,
) -> Result<MeasuredGeometry> {
    let chosen = case.chosen(kernel, settings)?;
    let mut workload = match small {
        Some(iterations) => chosen
            .small(iterations)?
            .ok_or_else(|| Error::bug("a kernel is never small"))?,
        None => chosen.workload()?,
    };
    made.fill(&mut workload);
    let plain = Arc::new(prefetch::carry_out_wishes(&workload.kernel, &target(&workload))?);
    let named = [("none".to_owned(), Arc::clone(&plain))];
    let measured = bench.measure(&workload, &named, &mut || Ok(Wanted::Found), options)?;
    let measured = measured
        .into_iter()
        .next()
        .ok_or_else(|| Error::bug("nothing was measured"))??;
    Ok(MeasuredGeometry {
        kernel,
        chosen,
        workload,
        plain,
        measured,
    })
}

fn target(workload: &Workload) -> prefetch::PlanTarget {
    prefetch::PlanTarget::of(workload.group)
}

/// Kernels by their plans, the plain one first; and the plans that were refused, with the reasons.
fn derived(
    shape: &MeasuredGeometry,
    except: &[String],
) -> Result<(Vec<(String, Arc<Kernel>)>, Vec<(String, String)>)> {
    let mut kernels = vec![("none".to_owned(), Arc::clone(&shape.plain))];
    let mut refused = Vec::new();
    for plan in workloads::plans(&shape.plain)? {
        if except.iter().any(|text| plan.to_string().contains(text)) {
            continue;
        }
        match prefetch::apply(&shape.plain, &plan, &target(&shape.workload)) {
            Ok(applied) => kernels.push((plan.to_string(), Arc::new(applied.kernel))),
            Err(error) => refused.push((plan.to_string(), error.to_string())),
        }
    }
    Ok((kernels, refused))
}

/// The time of each program's ways, and whether their results equal ours.
fn beside(programs: Option<&mut Programs>, case: &Case, shape: &MeasuredGeometry, rounds: u32) -> Vec<Value> {
    let Some(programs) = programs.filter(|_| !case.is_control()) else {
        return Vec::new();
    };
    let written = || -> Result<(TempDir, manifest::Manifest)> {
        let folder =
            tempfile::tempdir_in(programs.folder.path()).map_err(|error| Error::device(error.to_string()))?;
        let settings = shape.chosen.parameters();
        let manifest = manifest::write(
            folder.path(),
            shape.kernel,
            &settings,
            &shape.workload,
            CACHE,
            rounds,
        )?;
        Ok((folder, manifest))
    };
    let (_folder, manifest) = match written() {
        Ok(written) => written,
        Err(error) => return vec![json!({"program": "all", "error": error.to_string()})],
    };
    let mut told = Vec::new();
    for (program, process) in &mut programs.all {
        match ask(process, &manifest.lines) {
            Ok(answers) => told.extend(answers.iter().enumerate().map(|(number, answer)| {
                let found = manifest.answer.with_extension(number.to_string());
                let told = told_of(program, answer, || {
                    agreement(shape, answer.element.as_deref(), &found)
                });
                // The next program's answers have the same names.
                let _ = std::fs::remove_file(found);
                told
            })),
            Err(error) => told.push(json!({"program": program, "error": error.to_string()})),
        }
    }
    told
}

/// One way in which a program does the work, as JSON.
fn told_of(program: &str, answer: &ProgramResult, agreement: impl FnOnce() -> String) -> Value {
    match timing(answer) {
        Ok(timing) => json!({
            "program": program,
            "name": answer.name,
            "note": answer.note,
            "median_ns": timing.median_ns,
            "timing": timing,
            "outputs": agreement(),
        }),
        Err(error) => json!({"program": program, "name": answer.name, "error": error.to_string()}),
    }
}

/// Whether a program's answer is ours: sums of floats in another order differ a little, those that were computed in a
/// shorter type more.
fn agreement(shape: &MeasuredGeometry, computed_in: Option<&str>, answer: &Path) -> String {
    let output = shape.workload.given.iter().find_map(|given| match given {
        ArgumentSpec::Output { element, .. } => Some(*element),
        _ => None,
    });
    let ours = shape.measured.found.as_ref().and_then(|found| found.first());
    let (Some(element), Some(ours)) = (output, ours) else {
        return "there is no output".to_owned();
    };
    let share = match computed_in.unwrap_or(element.name()) {
        "f16" => 4e-3,
        "f32" => 1e-3,
        "f64" => 1e-6,
        _ => 0.0,
    };
    let checked = std::fs::read(answer)
        .map_err(|error| Error::device(error.to_string()))
        .and_then(|found| match found.len() == ours.len() {
            true => Compare::Relative(share).check(element, ours, &found),
            false => Err(Error::device(format!(
                "{} bytes, not {}",
                found.len(),
                ours.len()
            ))),
        });
    match checked {
        Ok(_) if share > 0.0 => format!("same to a relative {share:e}"),
        Ok(_) => "same".to_owned(),
        Err(error) => format!("DIFFERENT: {error}"),
    }
}
