//! Every entry of `corpus/spirv/`, as clang and LLVM's translator compiled it: it is read and runs on the simulator; put
//! back into its module, plain and with plans, the module is valid, reads the same, and computes the same bits on an OpenCL
//! device as the one that it came from.
//!
//! A run takes a third of the strategies and a few plans of the default space for each entry, others each time (`HEADSTART_SEED`
//! repeats one). The ignored test takes every legal plan of all entries, 2,900 modules. Nearly all of its time is that of the
//! OpenCL device's compiler: half a minute of processor time for an entry with 130 plans. It prints the verdict and the time of
//! each entry, and `HEADSTART_PART=2/8` takes the third eighth of each entry's plans, so that it can run in pieces.
//! `HEADSTART_CORPUS=TEXT` picks the entries whose `FILE:ENTRY` contains it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use headstart::back::spirv::{Options, Spirv, SpirvTarget};
use headstart::device::opencl::device::OpenClDevice;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional;
use headstart::device::{Command, Device, Outcome, Program, model};
use headstart::front::spirv::{Imported, Module};
use headstart::ir::{CacheLevel, Kernel};
use headstart::prefetch::{self, Plan};
use headstart::tune::{self, FileSubject, LaunchFile, Subject, Workload};
use headstart_testing as testing;
use headstart_testing::ocloc::Ocloc;
use headstart_testing::spirv_val::SpirvVal;
use headstart_testing::tools;

/// Shared memory of a work-group that both devices have, in bytes.
const MOST_SHARED: u64 = 128 << 10;

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/spirv")
}

/// An entry of a module, with its launch.
struct Case {
    name: String,
    file: String,
    entry: String,
    bytes: Vec<u8>,
    launch: LaunchFile,
}

/// The launch of an entry, on few work-groups.
pub fn launch(entry: &str) -> LaunchFile {
    let path = folder().join("launch").join(format!("{entry}.toml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let few = |line: &str| match line.split_once(" = ") {
        Some(("groups", groups)) if groups.parse::<u32>().is_ok() => "groups = 2".to_owned(),
        _ => line.to_owned(),
    };
    let text: Vec<String> = text.lines().map(few).collect();
    LaunchFile::parse(&text.join("\n"), &path.to_string_lossy()).unwrap_or_else(|error| panic!("{error}"))
}

fn cases() -> Vec<Case> {
    let wanted = std::env::var("HEADSTART_CORPUS").unwrap_or_default();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the corpus is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "spv"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let bytes = fs::read(&path).expect("readable");
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let module = Module::new(&bytes, &file).unwrap_or_else(|error| panic!("{file}: {error}"));
        for entry in module.entries() {
            let name = format!("{file}:{entry}");
            if name.contains(&wanted) {
                cases.push(Case {
                    launch: launch(entry),
                    file: file.clone(),
                    bytes: bytes.clone(),
                    entry: entry.to_owned(),
                    name,
                });
            }
        }
    }
    cases
}

impl Case {
    fn read(&self, bytes: &[u8]) -> Imported {
        let module = Module::new(bytes, &self.file);
        let imported = module.and_then(|module| module.import(Some(&self.entry), &self.launch.facts()));
        imported.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn subject(&self, bytes: &[u8]) -> FileSubject {
        FileSubject::of_spirv(self.read(bytes), self.launch.clone())
    }
}

pub fn simulator() -> Simulator {
    let model = model::built_in("pvc-1550", &[]).expect("a model");
    Simulator::custom(model.description(), functional::Options::CHECKING, None)
}

/// What becomes of a launch on the simulator, under its checks.
pub fn simulated_outcome(workload: &Workload, kernel: &Arc<Kernel>) -> Arc<Outcome> {
    let simulator = simulator();
    let bound = workload.bind(&simulator).expect("bound");
    bound
        .run(&simulator, kernel)
        .unwrap_or_else(|error| panic!("{error}"))
        .0
}

fn simulated(case: &Case, workload: &Workload, kernel: &Arc<Kernel>) -> Vec<Vec<u8>> {
    let simulator = simulator();
    let bound = workload.bind(&simulator).expect("bound");
    let run = bound.run(&simulator, kernel);
    run.unwrap_or_else(|error| panic!("{}: {error}", case.name)).1
}

/// What an entry of a module computes on an OpenCL device.
pub fn run(
    device: &OpenClDevice,
    workload: &Workload,
    imported: &Imported,
    words: &[u32],
) -> headstart::Result<Vec<Vec<u8>>> {
    let own = tune::own_entry(&imported.original, words);
    let program: Program = device.own_entry(&workload.kernel, own)?;
    let queue = device.queue()?;
    let prepared = workload.bind(device)?.prepare(device)?;
    queue
        .submit(Command::Launch(program, prepared.launch), &[])
        .wait()?;
    prepared
        .outputs
        .iter()
        .map(|output| output.read(queue.as_ref()))
        .collect()
}

/// Which plans are tried of those that are legal for an entry.
#[derive(Clone, Copy, Debug)]
enum Taken {
    /// One for each of a third of the strategies, and [`FURTHER`] of the default space: which, the number says.
    Some(usize),
    /// Of the default space each plan whose number leaves the first number as the remainder by the second.
    Share(usize, usize),
}

/// Plans of the default space that a run takes for each entry.
const FURTHER: usize = 2;

/// The plans that are tried.
fn plans(workload: &Workload, taken: Taken) -> Vec<Plan> {
    let target = prefetch::PlanTarget::of(workload.group);
    let loads = tune::search::main_loads(&workload.kernel);
    let legal = |plan: &Plan| {
        let applied = prefetch::apply(&workload.kernel, plan, &target);
        !plan.is_none() && applied.is_ok_and(|applied| applied.kernel.shared_bytes() <= MOST_SHARED)
    };
    let levels = [CacheLevel::L1, CacheLevel::L3];
    let space = tune::space::default_plans(&loads, &levels).expect("plans");
    let part = match taken {
        Taken::Share(part, parts) => {
            let share = space.into_iter().skip(part).step_by(parts);
            return share.filter(legal).collect();
        }
        Taken::Some(part) => part,
    };
    let start = part * FURTHER % space.len().max(1);
    let further = space.iter().cycle().skip(start).take(space.len());
    let further = further.filter(|plan| legal(plan)).take(FURTHER).cloned();
    let strategies = [
        "rolling-registers:3",
        "cache:L3:4",
        "cache:L1:2",
        "batched-registers:4",
        "batched-shared:2",
        "rolling-shared:3",
    ];
    let first = |strategy: &&str| {
        let each: Vec<String> = loads.iter().map(|name| format!("{name}={strategy}")).collect();
        std::iter::once(each.join(","))
            .chain(each)
            .filter_map(|plan| plan.parse::<Plan>().ok())
            .find(legal)
    };
    // A third of them in each part, so that all are tried in time.
    let strategies = strategies.iter().enumerate();
    strategies
        .filter(|(number, _)| (number + part).is_multiple_of(3))
        .filter_map(|(_, strategy)| first(strategy))
        .chain(further)
        .collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn every_entry_is_read_run_written_and_runs_as_it_did() {
    every_entry(Taken::Some(testing::base_seed() as usize % 10_000));
}

#[test]
#[ignore = "nightly: half an hour: every legal plan of every entry"]
fn every_plan_of_every_entry_has_the_bits() {
    let share = std::env::var("HEADSTART_PART").unwrap_or_default();
    let share = if matches!(share.as_str(), "" | "all") {
        "0/1"
    } else {
        &share
    };
    let numbers = share.split_once('/').and_then(|(part, parts)| {
        let (part, parts): (usize, usize) = (part.parse().ok()?, parts.parse().ok()?);
        (part < parts).then_some((part, parts))
    });
    let (part, parts) =
        numbers.unwrap_or_else(|| panic!("HEADSTART_PART is `all` or as `2/8`, not `{share}`"));
    every_entry(Taken::Share(part, parts));
}

/// Reads each entry, runs it, writes it with some of its plans, and runs these.
fn every_entry(taken: Taken) {
    let validator = SpirvVal::find();
    let device = match OpenClDevice::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            tools::skip("opencl", &error.to_string());
            None
        }
    };
    let (mut entries, mut planned, mut modules, mut complaints) = (0, 0, 0, Vec::new());
    for case in cases() {
        let imported = case.read(&case.bytes);
        let workload = case
            .subject(&case.bytes)
            .workload()
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let right = simulated(&case, &workload, &workload.kernel);
        let before = device.as_ref().map(|device| {
            let found = run(device, &workload, &imported, &imported.original.words);
            found.unwrap_or_else(|error| panic!("{}: {error}", case.name))
        });
        // A device's own functions have bits of their own, and what it may fuse it does.
        let approximates = tune::check::approximates(&workload.kernel) || imported.original.may_fuse;
        if !approximates && before.as_ref().is_some_and(|found| *found != right) {
            complaints.push(format!(
                "{}: other bits on the device than on the simulator",
                case.name
            ));
        }
        let plans = plans(&workload, taken);
        let (count, begun, faults) = (plans.len(), Instant::now(), complaints.len());
        planned += usize::from(!plans.is_empty());
        for plan in std::iter::once(Plan::none()).chain(plans) {
            let target = prefetch::PlanTarget::of(workload.group);
            let applied = prefetch::apply(&workload.kernel, &plan, &target);
            let kernel = applied
                .unwrap_or_else(|error| panic!("{}, {plan}: {error}", case.name))
                .kernel;
            let options = Options::new(SpirvTarget::Portable);
            let words = match tune::exchanged(&imported.original, &kernel, &options) {
                Ok(words) => words,
                Err(error) => {
                    complaints.push(format!("{}, {plan}: {error}", case.name));
                    continue;
                }
            };
            if let Some(Err(said)) = validator.as_ref().map(|validator| validator.check_words(&words)) {
                complaints.push(format!("{}, {plan}: {said}", case.name));
                continue;
            }
            modules += 1;
            let again = case.subject(&bytes(&words)).workload();
            let again = again.unwrap_or_else(|error| panic!("{}, {plan}: {error}", case.name));
            if simulated(&case, &again, &again.kernel) != right {
                complaints.push(format!("{}, {plan}: other bits when it is read again", case.name));
            }
            if let (Some(device), Some(before)) = (&device, &before) {
                match run(device, &workload, &imported, &words) {
                    Ok(found) if found == *before => {}
                    Ok(_) => complaints.push(format!("{}, {plan}: other bits on the device", case.name)),
                    Err(error) => complaints.push(format!("{}, {plan}: {error}", case.name)),
                }
            }
        }
        let verdict = match complaints.len() - faults {
            0 => "the same bits".to_owned(),
            wrong => format!("{wrong} wrong"),
        };
        println!(
            "{}: {count} plans, {verdict}, {:.0} s",
            case.name,
            begun.elapsed().as_secs_f64()
        );
        entries += 1;
    }
    println!("{entries} entries, {planned} with a plan, {modules} modules written");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    if std::env::var_os("HEADSTART_CORPUS").is_none() {
        assert!(
            entries >= 35 && planned >= 20,
            "{entries} entries, {planned} with a plan"
        );
    }
}

/// Everything but the entry's body, and what was said of its ids, stays word for word.
#[test]
fn nothing_else_is_touched() {
    let bytes = fs::read(folder().join("memory.spv")).expect("readable");
    let module = Module::new(&bytes, "memory.spv").expect("a module");
    let imported = module
        .import(Some("gather"), &launch("gather").facts())
        .expect("an entry");
    let old = &imported.original.words;
    let plan: Plan = "values=cache:L1:4".parse().expect("a plan");
    let applied = prefetch::apply(&imported.kernel, &plan, &prefetch::PlanTarget::default()).expect("legal");
    let new = tune::exchanged(
        &imported.original,
        &applied.kernel,
        &Options::new(SpirvTarget::IntelLsc),
    );
    let new = new.expect("it is written");
    let split = |words: &[u32]| {
        let (mut functions, mut rest, mut at) = (Vec::new(), Vec::new(), 5);
        while at < words.len() {
            let (count, code) = ((words[at] >> 16) as usize, words[at] & 0xffff);
            let instruction = words[at..at + count].to_vec();
            at += count;
            match code {
                // OpFunction
                54 => functions.push(vec![instruction]),
                _ => match functions.last_mut() {
                    Some(function) => function.push(instruction),
                    None => rest.push(instruction),
                },
            }
        }
        (functions, rest)
    };
    let ((old_functions, old_rest), (new_functions, new_rest)) = (split(old), split(&new));
    let own = |function: &&Vec<Vec<u32>>| function[0][2] == imported.original.body;
    for function in &old_functions {
        let kept = new_functions.contains(function);
        assert_eq!(kept, !own(&function), "function {}", function[0][2]);
    }
    let entry = new_functions.iter().find(own).expect("the entry");
    let before = old_functions.iter().find(own).expect("the entry");
    // `OpFunction` and its four parameters.
    assert_eq!(entry[..5], before[..5]);
    let lost: Vec<_> = old_rest.iter().filter(|one| !new_rest.contains(one)).collect();
    // The entry point lists more variables, perhaps; names and decorations of the old body are gone.
    let allowed = |one: &&&Vec<u32>| matches!(one[0] & 0xffff, 5 | 15 | 71);
    assert!(lost.iter().all(|one| allowed(&one)), "{lost:?}");
}

/// Hints are there in the machine code of Intel's GPUs.
#[test]
fn hints_reach_the_machine_code() {
    let Some(ocloc) = Ocloc::newest() else { return };
    let bytes = fs::read(folder().join("memory.spv")).expect("readable");
    let module = Module::new(&bytes, "memory.spv").expect("a module");
    for (plan, hints) in [
        ("none", 0),
        ("values=cache:L1:4", 1),
        ("indices=cache:L3:8,values=cache:L1:4", 2),
    ] {
        let imported = module
            .import(Some("gather"), &launch("gather").facts())
            .expect("an entry");
        let plan: Plan = plan.parse().expect("a plan");
        let applied =
            prefetch::apply(&imported.kernel, &plan, &prefetch::PlanTarget::default()).expect("legal");
        let words = tune::exchanged(
            &imported.original,
            &applied.kernel,
            &Options::new(SpirvTarget::IntelLsc),
        );
        let spirv = Spirv {
            words: words.expect("it is written"),
            text: String::new(),
            entry: "gather".to_owned(),
            build_options: "",
            hints: Vec::new(),
        };
        let assembly = ocloc
            .compile(&spirv, "pvc")
            .unwrap_or_else(|said| panic!("{plan}: {said}"));
        let found: u32 = assembly.prefetches().values().sum();
        println!("{plan}: {:?}", assembly.prefetches());
        assert!(
            (found > 0) == (hints > 0) && found >= hints,
            "{plan}: {:?}",
            assembly.prefetches()
        );
    }
}

/// A module of this many bytes at least: the functions and entries of one again and again, each time with ids of their own.
fn large(bytes: &[u8], least: usize) -> Vec<u8> {
    let (words, _) = bytes.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let module = rspirv::dr::load_words(&words).expect("a module");
    let bound = words[3];
    let mut made = module.clone();
    let mut inside: std::collections::HashSet<u32> = Default::default();
    for function in &module.functions {
        inside.extend(function.all_inst_iter().filter_map(|one| one.result_id));
    }
    let copies = least / (words.len() * 4 / 2) + 1;
    for copy in 1..=copies as u32 {
        let moved = |one: &rspirv::dr::Instruction| {
            let mut one = one.clone();
            let new = |id: u32| {
                if inside.contains(&id) {
                    id + copy * bound
                } else {
                    id
                }
            };
            one.result_id = one.result_id.map(new);
            for operand in &mut one.operands {
                if let Some(id) = operand.id_ref_any_mut() {
                    *id = new(*id);
                }
            }
            one
        };
        for entry in &module.entry_points {
            let mut entry = moved(entry);
            if let rspirv::dr::Operand::LiteralString(name) = &mut entry.operands[2] {
                name.push_str(&format!("_{copy}"));
            }
            made.entry_points.push(entry);
        }
        let of_inside = |one: &&rspirv::dr::Instruction| {
            one.operands[0]
                .id_ref_any()
                .is_some_and(|id| inside.contains(&id))
        };
        made.annotations
            .extend(module.annotations.iter().filter(of_inside).map(moved));
        for function in &module.functions {
            let mut function = function.clone();
            let all = function.all_inst_iter_mut();
            all.for_each(|one| *one = moved(one));
            made.functions.push(function);
        }
    }
    if let Some(header) = &mut made.header {
        header.bound = bound * (copies as u32 + 1);
    }
    use rspirv::binary::Assemble;
    made.assemble()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

#[test]
fn ten_megabytes_are_read_in_a_second() {
    let bytes = fs::read(folder().join("memory.spv")).expect("readable");
    let large = large(&bytes, 10 << 20);
    assert!(large.len() >= 10 << 20, "{}", large.len());
    if let Some(path) = std::env::var_os("HEADSTART_KEEP") {
        fs::write(path, &large).expect("it can be kept");
    }
    // The least of some times: others may be at work here.
    let time = || {
        let begun = Instant::now();
        let module = Module::new(&large, "large.spv").expect("a module");
        let listed = begun.elapsed();
        let last = module.entries().last().map(|name| (*name).to_owned());
        let last = last.expect("an entry");
        module.import(Some(&last), &Default::default()).expect("an entry");
        (begun.elapsed(), listed, module.entries().len())
    };
    let (taken, listed, entries) = (0..5).map(|_| time()).min().expect("a time");
    println!(
        "{} bytes, {entries} entries: listed in {listed:?}, one read in {taken:?}",
        large.len()
    );
    assert!(taken.as_secs_f64() < 1.0, "{taken:?}");
}
