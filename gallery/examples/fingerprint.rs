//! A hash of what every kernel becomes: to show that a change of the house changed no output.
//!
//! ```text
//! cargo run -p headstart-gallery --example fingerprint > before.txt
//! cargo run -p headstart-gallery --example fingerprint > after.txt
//! diff before.txt after.txt
//! ```
//!
//! A line is a kernel of the gallery, an entry of `corpus/`, or a kernel of `headstart/tests/in`, with one thing that was
//! made of it and its hash: the plans that are tried, and for the plain kernel and some of the plans ([`APART`]) the
//! text form, PTX for both targets, SPIR-V for any device and with Intel's messages, and the machine listings for an
//! NVIDIA and an Intel model. A refusal is hashed by its message. An argument keeps the lines whose kernel contains it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use headstart::back::{machine, ptx, spirv};
use headstart::device::model::{self, DeviceModel};
use headstart::front::ptx::{Facts, entries, import};
use headstart::ir::{self, CacheLevel, Kernel};
use headstart::prefetch::{self, Plan, apply};
use headstart::tune::search::main_loads;
use headstart::tune::space::{default_plans, likely_plans_of, shared_plans};
use headstart::tune::{LaunchFile, Subject as _};
use headstart_gallery::kernels;
use rayon::prelude::*;

/// Of a kernel's plans one of this many is carried out.
const APART: usize = 7;

/// Work-items of a sub-group, by model.
const MODELS: [(&str, u32); 2] = [("h200", 32), ("pvc-1550", 16)];

/// A kernel and what plans have to know of its launch.
struct Subject {
    name: String,
    kernel: Kernel,
    target: prefetch::PlanTarget,
}

fn gallery() -> Vec<Subject> {
    let subject = |kernel: &'static kernels::GalleryKernel| {
        let workload = kernel.with(&[], None).and_then(|chosen| chosen.workload());
        let workload = workload.expect("the defaults are right");
        Subject {
            name: format!("gallery/{}", kernel.name),
            target: prefetch::PlanTarget::of(workload.group),
            kernel: (*workload.kernel).clone(),
        }
    };
    kernels::all().map(subject).collect()
}

/// The files of a folder with this extension, sorted, with their texts.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("readable"))
    };
    paths.into_iter().map(read).collect()
}

/// What is known of an entry's launch, from its file beside the corpus.
fn facts(entry: &str) -> Facts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../corpus/launch/{entry}.toml"));
    let text = fs::read_to_string(&path).expect("every entry has a launch");
    LaunchFile::parse(&text, entry).expect("a launch").facts()
}

fn corpus() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for (file, text) in files("corpus", "ptx") {
        for entry in entries(&text).expect("a module") {
            let imported =
                import(&text, &file, Some(&entry), &facts(&entry)).expect("an entry of the corpus");
            subjects.push(Subject {
                name: format!("corpus/{file}:{entry}"),
                kernel: imported.kernel,
                target: prefetch::PlanTarget::default(),
            });
        }
    }
    for (file, text) in files("headstart/tests/in", "hsir") {
        subjects.push(Subject {
            kernel: ir::parse(&text, &file).expect("a kernel of the tests"),
            name: format!("in/{file}"),
            target: prefetch::PlanTarget::default(),
        });
    }
    subjects
}

/// A hash that is the same in every run.
fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What was made, or why it was not.
fn outcome<T>(made: headstart::Result<T>, shown: impl Fn(T) -> String) -> u64 {
    hash(made.map(shown).map_err(|error| error.to_string()))
}

/// The hashes of everything that a kernel becomes.
fn forms(kernel: &Kernel, models: &[(DeviceModel, u32)]) -> String {
    let mut line = format!("hsir {:016x}", hash(ir::print(kernel)));
    for target in [ptx::PtxTarget::Sm80, ptx::PtxTarget::Sm90] {
        let made = ptx::emit(kernel, &ptx::Options::new(target));
        line += &format!(" {} {:016x}", target.name(), outcome(made, |ptx| ptx.text));
    }
    for target in [spirv::SpirvTarget::Portable, spirv::SpirvTarget::IntelLsc] {
        let options = spirv::Options {
            block_prefetch: target == spirv::SpirvTarget::IntelLsc,
            ..spirv::Options::new(target)
        };
        let made = spirv::emit(kernel, &options);
        line += &format!(" {} {:016x}", target.name(), outcome(made, |spirv| spirv.text));
    }
    for (model, width) in models {
        let program = machine::lower(kernel, &machine::Target::of(model, *width));
        line += &format!(" {} {:016x}", model.name, hash(program.to_string()));
    }
    line
}

fn lines(subject: &Subject, models: &[(DeviceModel, u32)]) -> Vec<String> {
    let Subject { name, kernel, target } = subject;
    let plain = match prefetch::carry_out_wishes(kernel, target) {
        Ok(plain) => plain,
        Err(error) => return vec![format!("{name} wishes {:016x}", hash(error.to_string()))],
    };
    let (loads, levels) = (main_loads(&plain), [CacheLevel::L1, CacheLevel::L2]);
    let plans = |plans: headstart::Result<Vec<Plan>>| plans.expect("few loads");
    let all = plans(default_plans(&loads, &levels));
    let likely = plans(likely_plans_of(&plain, &levels));
    let shared = plans(shared_plans(&loads, &levels));
    let listed: Vec<String> = [&all, &likely, &shared]
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    let mut lines = vec![
        format!("{name} plans {} {:016x}", listed.len(), hash(&listed)),
        format!("{name} plain {}", forms(&plain, models)),
    ];
    // Hints that a sub-group shares are legal in few kernels, so all of them are tried.
    for plan in all.iter().step_by(APART).chain(&shared) {
        lines.push(match apply(&plain, plan, target) {
            Ok(applied) => format!("{name} {plan} {}", forms(&applied.kernel, models)),
            Err(error) => format!("{name} {plan} refused {:016x}", hash(error.to_string())),
        });
    }
    lines
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let models: Vec<(DeviceModel, u32)> = MODELS
        .into_iter()
        .map(|(name, width)| {
            let model = model::built_in(name, &[]).expect("the model is there");
            (model, width)
        })
        .collect();
    let subjects: Vec<Subject> = gallery().into_iter().chain(corpus()).collect();
    let lines: Vec<Vec<String>> = subjects
        .par_iter()
        .filter(|subject| subject.name.contains(&wanted))
        .map(|subject| lines(subject, &models))
        .collect();
    for line in lines.iter().flatten() {
        println!("{line}");
    }
}
