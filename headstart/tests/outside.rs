//! What a plan does not touch is assembled as it was: the floating-point and memory instructions of a plain entry and of its edited
//! text, but for the planned loops and what is inserted, are the same in NVIDIA's machine code.
//!
//! It takes `ptxas` and `nvdisasm` of `scripts/tools ptxas`, and is skipped where they are not.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use headstart::front::ptx::{Imported, Module};
use headstart::prefetch::{Plan, PlanTarget, apply};
use headstart::tune::drop_in::placed;
use headstart::tune::{LaunchFile, search};
use headstart_testing::tools;

/// Entries with a plan that are looked at: the first, from a random one on.
const ENTRIES: usize = 30;

/// Instructions, each with how often it is there.
type Counts = BTreeMap<String, usize>;

struct Tools {
    ptxas: PathBuf,
    nvdisasm: PathBuf,
}

impl Tools {
    fn run(program: &Path, arguments: &[&str]) -> String {
        let output = Command::new(program).args(arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} {arguments:?}: {said}",
            program.display()
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The floating-point and memory instructions of a text for a GPU that come from lines that are `wanted`, counted from 1.
    fn counts(&self, text: &str, target: &str, wanted: impl Fn(usize) -> bool) -> Counts {
        let folder = tempfile::tempdir().expect("a folder");
        let [source, code] = ["k.ptx", "k.cubin"].map(|name| folder.path().join(name).display().to_string());
        fs::write(&source, text).expect("writable");
        // What is for one kind of GPU alone is assembled for that.
        let arch = format!("-arch={}", if target.ends_with('a') { target } else { "sm_90" });
        Tools::run(&self.ptxas, &[&arch, "-lineinfo", "-o", &code, &source]);
        let listing = Tools::run(&self.nvdisasm, &["-c", "-gp", &code]);
        let (mut counts, mut line) = (Counts::new(), 0);
        for said in listing.lines().map(str::trim) {
            if let Some((_, number)) = said.split_once(".nv_debug_ptx_txt\", line ") {
                let digits = number.split(|c: char| !c.is_ascii_digit()).next();
                line = digits.and_then(|digits| digits.parse().ok()).expect("a number");
            } else if wanted(line)
                && let Some(opcode) = looked_at(said)
            {
                *counts.entry(opcode.to_owned()).or_default() += 1;
            }
        }
        counts
    }
}

/// The opcode of `/*0120*/ @P0 LDG.E R9, desc[UR4][R4.64] ;`, if it is one of these. Spilled registers are the assembler's, and so are
/// constants that it makes by a product of zeros.
fn looked_at(line: &str) -> Option<&str> {
    let (_, instruction) = line.strip_prefix("/*")?.split_once("*/")?;
    let opcode = instruction
        .split_whitespace()
        .find(|word| !word.starts_with('@'))?;
    let memory = ["LDG", "LDS", "LD.", "STG", "STS", "ST.", "ATOM", "RED"];
    let float = [
        "FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "HADD", "HMUL", "HFMA", "MUFU", "HMMA",
    ];
    let is_constant = instruction.contains("-RZ, RZ,");
    let mut all = memory.iter().chain(&float);
    (all.any(|own| opcode.starts_with(own)) && !is_constant).then_some(opcode)
}

/// Of each line of an edited text, the line of the plain one, from 1; none for what is inserted.
fn plain_lines(edited: &str) -> Vec<Option<usize>> {
    let (mut number, mut is_inserted) = (0, false);
    let lines = edited.lines().map(|line| {
        is_inserted |= line == "// Headstart begins";
        let own = (!is_inserted).then(|| {
            number += 1;
            number
        });
        is_inserted &= line != "// Headstart ends";
        own
    });
    lines.collect()
}

/// The lines of the planned loops in the plain text.
fn planned_lines(imported: &Imported, added: &str) -> HashSet<usize> {
    let text = &imported.original.text;
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let labels = added
        .lines()
        .filter_map(|line| line.strip_prefix("// Loop ")?.split(',').next());
    let spans = labels.map(|label| {
        let cut = imported.original.cut(label.trim_start_matches('$'));
        cut.expect("it was planned").own.span.clone()
    });
    spans.flat_map(|span| line(span.start)..=line(span.end)).collect()
}

/// The first plan of these kinds that an entry can have: its text, and what was added.
fn planned(imported: &Imported, launch: &LaunchFile) -> Option<(String, String)> {
    let subject = headstart::tune::FileSubject::of_module(imported.clone(), launch.clone());
    let workload = headstart::tune::Subject::workload(&subject).expect("it has arguments");
    let target = PlanTarget {
        group_size: Some(workload.group),
        ..PlanTarget::default()
    };
    let loads = search::main_loads(&imported.kernel);
    let registers = loads.iter().map(|load| format!("{load}=rolling-registers:4"));
    let plans = registers.chain(["unroll:4".to_owned()]);
    let mut written = plans.filter_map(|plan| {
        let plan: Plan = plan.parse().expect("a plan");
        let applied = apply(&imported.kernel, &plan, &target).ok()?;
        let placed = placed(&imported.original, &imported.kernel, &applied.kernel).ok()?;
        (!placed.added.is_empty()).then_some((placed.text, placed.added))
    });
    written.next()
}

#[test]
fn what_is_not_planned_is_assembled_as_it_was() {
    let (Some(ptxas), Some(nvdisasm)) = (tools::program("ptxas"), tools::program("nvdisasm")) else {
        return;
    };
    let tools = Tools { ptxas, nvdisasm };
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let files = fs::read_dir(&corpus).expect("the corpus is there");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    let mut all = Vec::new();
    for path in &files {
        let text = fs::read_to_string(path).expect("readable");
        let module = Module::new(&text, "corpus").expect("a module");
        for entry in module.entries() {
            let launch =
                LaunchFile::read(&corpus.join("launch").join(format!("{entry}.toml"))).expect("a launch");
            let imported = module
                .import_alone(entry, &launch.facts())
                .expect("it can be read");
            all.push((imported, launch));
        }
    }
    let first = (headstart_testing::base_seed() % all.len() as u64) as usize;
    all.rotate_left(first);
    let (mut seen, mut others) = (0, Vec::new());
    for (imported, launch) in &all {
        if seen == ENTRIES {
            break;
        }
        let Some((text, added)) = planned(imported, launch) else {
            continue;
        };
        seen += 1;
        let loops = planned_lines(imported, &added);
        let plain = tools.counts(&imported.original.text, &imported.original.target, |line| {
            !loops.contains(&line)
        });
        let lines = plain_lines(&text);
        let edited = tools.counts(&text, &imported.original.target, |line| {
            let own = line
                .checked_sub(1)
                .and_then(|line| lines.get(line).copied().flatten());
            own.is_some_and(|line| !loops.contains(&line))
        });
        if plain != edited {
            others.push(format!("{}: {plain:?}\n    {edited:?}", imported.original.entry));
        }
    }
    assert!(seen >= ENTRIES, "{seen} entries have plans");
    assert!(
        others.is_empty(),
        "{} of {seen}:\n{}",
        others.len(),
        others.join("\n")
    );
}
