//! Every entry of `corpus/`, as nvcc, clang, Triton, Numba and rustc compiled it: it is read, runs on the simulator, and
//! what is written back into its module is read again, assembled, and computes the same bits.
//!
//! `HEADSTART_CORPUS=TEXT` picks the entries whose `FILE:ENTRY` contains it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use headstart::device::model;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::front::ptx::{self, Facts, Imported};
use headstart::prefetch;
use headstart::tune::drop_in::placed;
use headstart::tune::granted::without_names;
use headstart::tune::{self, FileSubject, Granted, LaunchFile, Subject, Workload};
use headstart_testing::ptxas::Ptxas;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

/// An entry of a module, with its launch.
struct Case {
    name: String,
    file: String,
    entry: String,
    text: String,
    launch: LaunchFile,
    /// Which of the plans are tried: those whose places, counted from here on, are multiples of three.
    turn: u64,
}

/// The launch of an entry, on few work-groups.
fn launch(entry: &str) -> LaunchFile {
    let path = corpus().join("launch").join(format!("{entry}.toml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let few = |line: &str| match line.split_once(" = ") {
        Some(("groups", groups)) if groups != "1" => "groups = 2".to_owned(),
        _ => line.to_owned(),
    };
    let text: Vec<String> = text.lines().map(few).collect();
    LaunchFile::parse(&text.join("\n"), &path.to_string_lossy()).unwrap_or_else(|error| panic!("{error}"))
}

fn cases() -> Vec<Case> {
    let wanted = std::env::var("HEADSTART_CORPUS").unwrap_or_default();
    let mut files: Vec<PathBuf> = fs::read_dir(corpus())
        .expect("the corpus is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    files.sort();
    let seed = headstart_testing::base_seed();
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("readable");
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        for entry in ptx::entries(&text).unwrap_or_else(|error| panic!("{file}: {error}")) {
            let name = format!("{file}:{entry}");
            if name.contains(&wanted) {
                cases.push(Case {
                    launch: launch(&entry),
                    file: file.clone(),
                    text: text.clone(),
                    name,
                    entry,
                    turn: seed % 3 + cases.len() as u64,
                });
            }
        }
    }
    cases
}

fn simulator() -> Simulator {
    let model = model::built_in("h200", &[]).expect("a model");
    Simulator::custom(model.description(), Options::CHECKING, None)
}

fn workload(case: &Case, text: &str) -> Workload {
    let imported: Imported = ptx::import(text, &case.file, Some(&case.entry), &case.launch.facts())
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let subject = FileSubject::of_module(imported, case.launch.clone());
    subject
        .workload()
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

fn run(case: &Case, workload: &Workload) -> Vec<Vec<u8>> {
    let simulator = simulator();
    let bound = workload.bind(&simulator).expect("bound");
    let run = bound.run(&simulator, &workload.kernel);
    run.unwrap_or_else(|error| panic!("{}: {error}", case.name)).1
}

/// For each strategy a plan for the loads that matter, if one is legal.
fn some_plans(workload: &Workload) -> Vec<prefetch::Plan> {
    let target = prefetch::PlanTarget::of(workload.group);
    let loads = tune::search::main_loads(&workload.kernel);
    let legal = |strategy: &&str| {
        let each = |name: &_| format!("{name}={strategy}");
        let all: Vec<String> = loads.iter().map(each).collect();
        std::iter::once(all.join(","))
            .chain(all)
            .filter_map(|plan| plan.parse::<prefetch::Plan>().ok())
            .filter(|plan| !plan.is_none())
            .find(|plan| prefetch::apply(&workload.kernel, plan, &target).is_ok())
    };
    let strategies = [
        "rolling-async:2",
        "rolling-registers:3",
        "cache:L2:4",
        "cache:L1:2",
        "batched-registers:4",
        "batched-shared:2",
        "rolling-shared:3/padded",
    ];
    strategies.iter().filter_map(legal).collect()
}

#[test]
fn every_entry_is_read_run_written_and_read_again() {
    let ptxas = Ptxas::find();
    let (cases, next) = (cases(), AtomicUsize::new(0));
    let (planned, differing) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Not rayon's threads: a run waits for a queue that takes those.
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (has_plans, differs) = tried(case, ptxas.as_ref());
                    planned.fetch_add(usize::from(has_plans), Ordering::Relaxed);
                    differing.lock().expect("no other thread failed").extend(differs);
                }
            });
        }
    });
    let (planned, differing) = (
        planned.into_inner(),
        differing.into_inner().expect("no thread failed"),
    );
    assert!(differing.is_empty(), "{differing:?}");
    if std::env::var_os("HEADSTART_CORPUS").is_none() {
        let entries = cases.len();
        assert!(
            entries >= 50 && planned >= 20,
            "{entries} entries, {planned} with a plan"
        );
    }
}

/// Reads, runs and writes one entry, with plans and without: whether it has plans, and its name for each that changed bits.
fn tried(case: &Case, ptxas: Option<&Ptxas>) -> (bool, Vec<String>) {
    let mut differing: Vec<String> = Vec::new();
    let plain = workload(case, &case.text);
    let right = run(case, &plain);
    let plans = some_plans(&plain);
    println!("{}: {} plans", case.name, plans.len());
    let mut texts = Vec::new();
    // Of every third entry a plan is checked on many launches, as it is before it is shipped: that takes most of the time.
    let is_checked = case.turn.is_multiple_of(3);
    let (shipped, others) = plans.split_at(usize::from(is_checked && !plans.is_empty()));
    for plan in std::iter::once(prefetch::Plan::none()).chain(shipped.iter().cloned()) {
        let module = tune::planned_module(
            &case.text,
            &case.file,
            Some(&case.entry),
            &case.launch,
            &plan,
            None,
        );
        let module = match module {
            Ok(module) => module,
            // It has a cache of its own, and no pointer that a copy could take.
            Err(refusal)
                if refusal
                    .to_string()
                    .contains("constant memory is not fetched ahead") =>
            {
                continue;
            }
            // Its sums are left to the assembler, or only the text has the values that an address needs.
            Err(refusal)
                if ["cannot be edited", "in registers"]
                    .iter()
                    .any(|said| refusal.to_string().contains(said)) =>
            {
                println!("  not written: {refusal}");
                continue;
            }
            Err(error) => panic!("{}, {plan}: {error}", case.name),
        };
        let again = workload(case, &module.text);
        if run(case, &again) != right {
            println!("{}, {plan}: other bits\n{}", case.name, module.text);
            differing.push(case.name.clone());
        }
        if plan.is_none() {
            assert_eq!(module.text, case.text, "{}", case.name);
        } else {
            is_edited_only_where_marked(&case.name, &case.text, &module.text);
            rests_on_what_it_says(case, &module);
        }
        texts.push(module.text);
    }
    if let Some(ptxas) = ptxas {
        for text in &texts {
            ptxas
                .assemble_module(text)
                .unwrap_or_else(|said| panic!("{}: {said}\n{text}", case.name));
        }
    }
    // Of the others every third: which, changes from run to run and from entry to entry.
    let others = (case.turn..).zip(others);
    for (_, plan) in others.filter(|(number, _)| number % 3 == 0) {
        let Some(text) = written(case, &plain, plan) else {
            continue;
        };
        is_edited_only_where_marked(&case.name, &case.text, &text);
        let again = workload(case, &text);
        if run(case, &again) != right {
            println!("{}, {plan}: other bits\n{text}", case.name);
            differing.push(case.name.clone());
        }
    }
    (!plans.is_empty(), differing)
}

/// Without what stands between the marks, an edited module is the one that it was made of, but for its version, the entry's
/// directives and jumps to planned loops.
fn is_edited_only_where_marked(name: &str, old: &str, new: &str) {
    let mut rest = new;
    let mut plain = String::with_capacity(new.len());
    while let Some((before, behind)) = rest.split_once("// Headstart begins\n") {
        plain.push_str(before);
        rest = behind
            .split_once("// Headstart ends\n")
            .expect("an insertion ends")
            .1;
    }
    plain.push_str(rest);
    // Behind the note at the top.
    let first = old.lines().next().expect("a module has lines");
    let note = plain
        .find(&format!("{first}\n"))
        .expect("the module begins somewhere");
    let mut lines = plain[note..].lines();
    for old in old.lines() {
        let mut new = lines.next().unwrap_or_default();
        if new.starts_with(".maxnreg") && new != old {
            new = lines.next().unwrap_or_default();
        }
        let is_jump = old.contains("bra") && new.contains("$headstart_");
        let is_version = old.starts_with(".version") && new.starts_with(".version");
        assert!(old == new || is_jump || is_version, "{name}:\n{old}\n{new}");
    }
    assert_eq!(lines.next(), None, "{name}");
}

/// The module with a plan carried out on its entry, without a search for what it rests on; nothing where it is refused.
fn written(case: &Case, plain: &Workload, plan: &prefetch::Plan) -> Option<String> {
    let target = prefetch::PlanTarget::of(plain.group);
    let imported = ptx::import(&case.text, &case.file, Some(&case.entry), &case.launch.facts());
    let imported = imported.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let applied = prefetch::apply(&imported.kernel, plan, &target);
    let applied = applied.unwrap_or_else(|error| panic!("{}, {plan}: {error}", case.name));
    match placed(&imported.original, &imported.kernel, &applied.kernel) {
        Ok(placed) => Some(placed.module(&imported.original)),
        Err(refusal) => {
            println!("  {plan}: not written: {refusal}");
            None
        }
    }
}

/// Under the facts of its note alone the same body comes out, and the note has each of them.
fn rests_on_what_it_says(case: &Case, module: &tune::PlannedModule) {
    let mut facts = Facts {
        dynamic_shared_bytes: case.launch.facts().dynamic_shared_bytes,
        unbounded_variables: true,
        ..Facts::default()
    };
    for granted in &module.granted {
        let sentence = format!("// Taken for granted: {granted}.\n");
        assert!(module.text.contains(&sentence), "{}: {sentence}", case.name);
        let parameters = &mut facts.parameters;
        match granted {
            Granted::ReadOnly(name) => parameters.entry(name.clone()).or_default().read_only = true,
            Granted::Unaliased(name) => parameters.entry(name.clone()).or_default().unaliased = true,
            Granted::Length(name, length) => {
                parameters.entry(name.clone()).or_default().length = Some(*length);
            }
            Granted::Alignment(name, bytes) => {
                parameters.entry(name.clone()).or_default().align = Some(*bytes);
            }
            Granted::NoOverflow => facts.no_overflow = true,
            Granted::VariablesEnd => facts.unbounded_variables = false,
            // Not of the text.
            Granted::DynamicSharedBytes(_)
            | Granted::Assembler(_)
            | Granted::Spaces
            | Granted::Residency { .. } => {}
        }
    }
    let imported = ptx::import(&case.text, &case.file, Some(&case.entry), &facts).expect("read again");
    let target = prefetch::PlanTarget::of(workload(case, &case.text).group);
    let applied = prefetch::apply(&imported.kernel, &module.plan, &target);
    let applied = applied.unwrap_or_else(|error| panic!("{}, {}: {error}", case.name, module.plan));
    let again = placed(&imported.original, &imported.kernel, &applied.kernel).expect("it is written");
    let (again, text) = (without_names(&again.text), without_names(&module.drop_in.text));
    assert_eq!(again, text, "{}, {}", case.name, module.plan);
}

/// A plan that fixes the size of work-groups leaves launches of other sizes as they were.
#[test]
fn other_work_groups_take_the_plain_path() {
    let text = fs::read_to_string(corpus().join("first.ptx")).expect("readable");
    let launch = |group: u32| {
        let path = corpus().join("launch/gather.toml");
        let text = fs::read_to_string(path).expect("a launch file");
        let text = text.replace("groups = 132", "groups = 2");
        let text = text.replace("group = 128", &format!("group = {group}"));
        LaunchFile::parse(&text, "gather.toml").expect("a launch file")
    };
    let import = |text: &str, group: u32| {
        let launch = launch(group);
        let imported = ptx::import(text, "first.ptx", Some("gather"), &launch.facts()).expect("an entry");
        FileSubject::of_module(imported, launch)
            .workload()
            .expect("a workload")
    };
    let outputs = |workload: &Workload, device: &Simulator| {
        let bound = workload.bind(device).expect("bound");
        bound.run(device, &workload.kernel).expect("it runs").1
    };
    let plain = import(&text, 128);
    let load = tune::search::main_loads(&plain.kernel).pop().expect("a load");
    let plan: prefetch::Plan = format!("{load}=rolling-async:2").parse().expect("a plan");
    let module = tune::planned_module(&text, "first.ptx", Some("gather"), &launch(128), &plan, None)
        .expect("a module");
    assert_eq!(module.drop_in.needs.group, Some([128, 1, 1]));
    assert!(module.text.starts_with("// Headstart"), "a note at the top");
    assert!(
        module.text.contains("work-groups of 128 x 1 x 1"),
        "{}",
        &module.text[..600]
    );
    let device = simulator();
    for group in [128, 64, 96] {
        let (old, new) = (import(&text, group), import(&module.text, group));
        assert!(outputs(&old, &device) == outputs(&new, &device), "{group}");
    }
    // Everything else is untouched.
    let rest = |text: &str| -> Vec<String> {
        let others = text
            .split(".visible .entry")
            .skip(1)
            .filter(|part| !part.starts_with(" gather("));
        others.map(str::to_owned).collect()
    };
    assert_eq!(rest(&module.text), rest(&text));
}

/// A kernel that asks for the size of its dynamic shared memory: `x[i % size]`.
const ASKS_FOR_SIZE: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .entry asks(.param .u64 p, .param .u64 o, .param .u32 n)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<8>;\n\
    .reg .b64 %rd<6>;\nld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [o];\nld.param.u32 %r1, [n];\n\
    cvta.to.global.u64 %rd3, %rd1;\ncvta.to.global.u64 %rd4, %rd2;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\n\
    mov.u32 %r4, %dynamic_smem_size;\nLOOP:\nrem.u32 %r5, %r2, %r4;\nmul.wide.u32 %rd5, %r5, 4;\n\
    add.s64 %rd5, %rd3, %rd5;\nld.global.nc.u32 %r6, [%rd5];\nadd.s32 %r3, %r3, %r6;\nadd.s32 %r2, %r2, 1;\n\
    setp.lt.u32 %p1, %r2, %r1;\n@%p1 bra LOOP;\nst.global.u32 [%rd4], %r3;\nret;\n}\n";

/// A launch with another size of dynamic shared memory takes the old body, and a rewritten module can be rewritten.
#[test]
fn other_shared_memory_takes_the_plain_path() {
    let launch = |bytes: u32| {
        let text = format!(
            "groups = 1\ngroup = 1\nshared_bytes = {bytes}\n[parameters.p]\nlength = 4096\nfill = \"indices\"\n\
             [parameters.o]\nlength = 1\noutput = \"bits\"\n[parameters.n]\nvalue = 300\n"
        );
        LaunchFile::parse(&text, "launch").expect("a launch file")
    };
    let outputs = |text: &str, bytes: u32| {
        let imported = ptx::import(text, "asks.ptx", None, &launch(bytes).facts()).expect("an entry");
        let workload = FileSubject::of_module(imported, launch(bytes))
            .workload()
            .expect("a workload");
        let device = simulator();
        workload
            .bind(&device)
            .expect("bound")
            .run(&device, &workload.kernel)
            .expect("it runs")
            .1
    };
    let plan: prefetch::Plan = "unroll:4".parse().expect("a plan");
    let mut text = ASKS_FOR_SIZE.to_owned();
    for time in 1..=2 {
        let module =
            tune::planned_module(&text, "asks.ptx", None, &launch(64), &plan, None).expect("a module");
        assert_eq!(module.drop_in.needs.dynamic_shared_bytes, Some(64));
        assert!(
            module
                .text
                .contains("launches with 64 bytes of dynamic shared memory")
        );
        for bytes in [64, 400, 16] {
            assert_eq!(
                outputs(&module.text, bytes),
                outputs(ASKS_FOR_SIZE, bytes),
                "{bytes} bytes, {time}"
            );
        }
        if let Some(ptxas) = Ptxas::find() {
            ptxas
                .assemble_module(&module.text)
                .unwrap_or_else(|said| panic!("{said}\n{}", module.text));
        }
        text = module.text;
    }
}

/// A module of ten megabytes: to find its entries and to read one of them takes less than a second; without
/// optimisation, which makes it about ten times slower, less than ten.
#[test]
fn a_large_module_is_read_quickly() {
    let text = fs::read_to_string(corpus().join("wide.ptx")).expect("readable");
    let start = text.find(".visible .entry").expect("an entry");
    let mut module = text[..start].to_owned();
    let mut copies = 0;
    while module.len() < 10_000_000 {
        for part in text[start..].split(".visible .entry ").skip(1) {
            let name = &part[..part.find('(').expect("parameters")];
            module.push_str(".visible .entry ");
            module.push_str(&part.replace(name, &format!("{name}_{copies}")));
        }
        copies += 1;
    }
    let begun = std::time::Instant::now();
    let entries = ptx::entries(&module).expect("a module");
    let last = entries.iter().rev().find(|entry| entry.starts_with("b_tree"));
    let last = last.expect("entries");
    ptx::read(&module, "large.ptx", Some(last), &ptx::Facts::default()).expect("an entry");
    let taken = begun.elapsed();
    println!("{} entries in {} bytes: {taken:?}", entries.len(), module.len());
    let limit = if cfg!(debug_assertions) { 10.0 } else { 1.0 };
    assert!(entries.len() > 1000 && taken.as_secs_f64() < limit, "{taken:?}");
}

/// Loops whose counters compilers wrote in their own ways: numba's stops at zero, clang's is tested by its low bits.
#[test]
fn loops_count_whatever_wrote_them() {
    for (file, entry) in [("numba_spmv.ptx", "numba_spmv"), ("dense.clang.ptx", "n_body")] {
        let text = fs::read_to_string(corpus().join(file)).expect("readable");
        let launch = launch(entry);
        let imported = ptx::import(&text, file, Some(entry), &launch.facts()).expect("an entry");
        let workload = FileSubject::of_module(imported, launch)
            .workload()
            .expect("a workload");
        let loads = tune::search::main_loads(&workload.kernel);
        assert!(!loads.is_empty(), "{file}:{entry}");
        let target = prefetch::PlanTarget::default();
        for strategy in ["rolling-registers:3", "cache:L2:2"] {
            for group in ["", "unroll:2,"] {
                let each: Vec<String> = loads.iter().map(|load| format!("{load}={strategy}")).collect();
                let plan = format!("{group}{}", each.join(","));
                let plan: prefetch::Plan = plan.parse().expect("a plan");
                let applied = prefetch::apply(&workload.kernel, &plan, &target)
                    .unwrap_or_else(|error| panic!("{file}:{entry}, {plan}: {error}"));
                let simulator = simulator();
                let outputs = |kernel| {
                    let bound = workload.bind(&simulator).expect("bound");
                    bound.run(&simulator, kernel).expect("it runs").1
                };
                let planned = std::sync::Arc::new(applied.kernel);
                assert!(
                    outputs(&workload.kernel) == outputs(&planned),
                    "{file}:{entry}, {plan}"
                );
            }
        }
    }
}

/// What PTX does not say and a launch file could: the report names the statement and the loads that it is about.
#[test]
fn statements_that_would_allow_more_are_named() {
    let unlocking = |file: &str, entry: &str, launch: &str| -> Vec<String> {
        let text = fs::read_to_string(corpus().join(file)).expect("readable");
        let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
        let imported = ptx::import(&text, file, Some(entry), &launch.facts()).expect("an entry");
        FileSubject::of_module(imported, launch).unlocking(&|| false)
    };
    let said = unlocking("lookup.ptx", "bfs_step", "no_overflow = true");
    assert!(
        said.iter()
            .any(|said| said.contains("`readonly = [\"param_2\"]`")
                && said.contains("lets loads from `param_2`")),
        "{said:?}"
    );
    assert!(said.iter().all(|said| !said.contains("@L__")), "{said:?}");
    let all = "no_overflow = true\nreadonly = [\"param_2\"]";
    let rest = unlocking("lookup.ptx", "bfs_step", all);
    assert!(rest.iter().all(|said| !said.contains("\"param_2\"")), "{rest:?}");
}

#[test]
fn a_template_of_every_entry_is_a_launch_file_for_it() {
    for case in cases() {
        let read = |launch: &LaunchFile| {
            let imported = ptx::import(&case.text, &case.file, Some(&case.entry), &launch.facts());
            imported.map(|imported| FileSubject::of_module(imported, launch.clone()))
        };
        let nothing = LaunchFile::default();
        let (plain, shared) = match read(&nothing) {
            Ok(plain) => (plain, None),
            Err(_) => {
                let assumed = LaunchFile::parse("shared_bytes = 1024", "launch.toml").expect("a launch file");
                let plain = read(&assumed).unwrap_or_else(|error| panic!("{}: {error}", case.name));
                (plain, Some(1024))
            }
        };
        let kernel = plain
            .workload()
            .unwrap_or_else(|error| panic!("{}: {error}", case.name))
            .kernel;
        let text = tune::launch_template(&kernel, shared);
        let launch = LaunchFile::parse(&text, "launch.toml")
            .unwrap_or_else(|error| panic!("{}: {error}\n{text}", case.name));
        assert_eq!(launch.kernel(), Some(&*case.entry));
        let workload = read(&launch).and_then(|subject| subject.workload());
        workload.unwrap_or_else(|error| panic!("{}: {error}\n{text}", case.name));
    }
}
