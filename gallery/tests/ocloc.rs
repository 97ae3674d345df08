//! The machine programs that the simulator times on Intel's GPUs, held to what `ocloc` makes of the same kernels: how many
//! instructions of each kind, the order of hints, loads and stores in loops, registers, messages and their sizes.
//!
//! `scripts/tools` sets the compiler up (that of Debian's testing release, which has the newest IGC); without it the tests are
//! skipped, and say so. CI compares some kernels, each plain and with hints; all of them take a minute:
//!
//! ```text
//! cargo test --release -p headstart-gallery --test ocloc -- --ignored --nocapture
//! ```

use std::collections::BTreeMap;

use headstart::back::machine::{self, Class, Control, MachineProgram};
use headstart::back::spirv;
use headstart::device::model;
use headstart::ir::{CacheLevel, Kernel, Space};
use headstart::prefetch::{self, Plan};
use headstart::testing::ocloc::Ocloc;
use headstart::testing::xe::{self, Kind, Message, Profile};
use headstart::tune::Subject as _;
use headstart::tune::search::main_loads;
use headstart_gallery::kernels;
use rayon::prelude::*;

/// Kernels that CI compares.
const SOME: [&str; 6] = [
    "gather-pointer",
    "gather-hint-l3",
    "gather-hint-l1",
    "triad",
    "spmv",
    "hash-probe",
];

/// A kernel with a plan, and what both compilers make of it.
struct Compared {
    name: String,
    ours: Profile,
    theirs: Profile,
}

/// The profile of one of our programs, for sub-groups of a size.
fn profile(program: &MachineProgram, sub_group: u32) -> Profile {
    let mut profile = Profile::default();
    // The loops around, each with its messages and whether it holds another loop.
    let mut open: Vec<(Vec<Message>, bool, bool)> = Vec::new();
    for instruction in &program.instructions {
        let kind = match instruction.class {
            Class::None | Class::ReadId | Class::LoadConstant | Class::Exit | Class::Commit | Class::Wait => {
                None
            }
            Class::Int32 | Class::Int64 | Class::IntMultiply | Class::Convert | Class::Shuffle => {
                Some(Kind::Integer)
            }
            Class::Fp32 | Class::Fp64 | Class::Fp16 => Some(Kind::Float),
            Class::Special => Some(Kind::Math),
            Class::Branch | Class::Reconverge => Some(Kind::Control),
            Class::Load { .. } => Some(Kind::Load),
            Class::Store { .. } => Some(Kind::Store),
            Class::Prefetch => Some(Kind::Hint),
            Class::AsyncCopy { .. } | Class::Atomic { .. } | Class::Fence | Class::Barrier => {
                Some(Kind::Other)
            }
        };
        if let Some(kind) = kind {
            *profile.counts.entry(kind).or_default() += instruction.pieces(sub_group);
        }
        let (shared, bytes) = match instruction.class {
            Class::Load { space, bytes } | Class::Store { space, bytes } => {
                (space == Space::Shared, u32::from(bytes))
            }
            Class::Prefetch => (false, 4),
            _ => (false, 0),
        };
        if let Some(kind) = kind.filter(|kind| kind.is_message()) {
            let message = Message { kind, shared, bytes };
            *profile.messages.entry(message).or_default() += 1;
            open.iter_mut().for_each(|(messages, ..)| messages.push(message));
        }
        match instruction.control {
            Control::Loop { .. } => {
                open.iter_mut().for_each(|(_, _, holds)| *holds = true);
                open.push((Vec::new(), true, false));
            }
            Control::EndLoop { .. } => {
                if let Some((messages, _, false)) = open.pop() {
                    profile.loops.push(messages);
                }
            }
            _ => {}
        }
    }
    let bytes = program.register_estimate.registers * sub_group * 4;
    profile.registers = bytes.div_ceil(64);
    profile
}

/// A kernel of the gallery with what its author wished for, and its plans that bring its first load's lines to L1.
fn forms(name: &str) -> Vec<(String, Kernel)> {
    let chosen = kernels::find(name)
        .and_then(|kernel| kernel.with(&[], None))
        .expect("there");
    let workload = chosen.workload().expect("the defaults are right");
    let target = prefetch::Target {
        group_size: Some(workload.group),
        line: 64,
    };
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes can be carried out");
    let mut forms = vec![(name.to_owned(), plain.clone())];
    for load in main_loads(&plain) {
        let plan: Plan = format!("{load}=cache:{}:1", CacheLevel::L1.name())
            .parse()
            .expect("a plan");
        if let Ok(applied) = prefetch::apply(&plain, &plan, &target) {
            forms.push((format!("{name} {plan}"), applied.kernel));
        }
    }
    forms
}

/// Both compilers' programs of a kernel; none where ours has no SPIR-V for it.
fn compare(ocloc: &Ocloc, device: &str, name: &str, kernel: &Kernel) -> Option<Compared> {
    let model = model::built_in("pvc-1550", &[]).expect("the model is there");
    let sub_group = kernel.sub_group_size.unwrap_or(32);
    let options = spirv::Options {
        sub_group_size: Some(sub_group),
        lines: false,
        ..spirv::Options::new(spirv::Target::IntelLsc)
    };
    let spirv = spirv::emit(kernel, &options).ok()?;
    let assembly = ocloc
        .compile(&spirv, device)
        .unwrap_or_else(|said| panic!("{name}: {said}"));
    let program = machine::lower(kernel, &machine::Target::of(&model, sub_group));
    Some(Compared {
        name: name.to_owned(),
        ours: profile(&program, sub_group),
        theirs: xe::profile(&assembly.text),
    })
}

/// The median of some numbers; 0 of none.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// By how much ours is off.
fn off(ours: u32, theirs: u32) -> f64 {
    (f64::from(ours) - f64::from(theirs)) / f64::from(theirs.max(1))
}

/// What the comparison of many kernels comes to.
#[derive(Debug)]
struct Summary {
    /// By kind: how far off the median kernel is.
    kinds: BTreeMap<Kind, f64>,
    /// Loops whose messages come in the same order, of all.
    loops: (usize, usize),
    /// How far off the median kernel's registers are.
    registers: f64,
}

fn summary(compared: &[Compared]) -> Summary {
    let count = |profile: &Profile, kind| profile.counts.get(&kind).copied().unwrap_or(0);
    let (mut same, mut all) = (0, 0);
    for Compared { name, ours, theirs } in compared {
        let counts: Vec<String> = Kind::ALL
            .into_iter()
            .map(|kind| format!("{:?} {}/{}", kind, count(ours, kind), count(theirs, kind)))
            .collect();
        let pairs = ours.loops.len().max(theirs.loops.len());
        let equal = ours
            .loops
            .iter()
            .zip(&theirs.loops)
            .filter(|(a, b)| a == b)
            .count();
        same += equal;
        all += pairs;
        println!(
            "{name}: {}, registers {}/{}, loops {equal}/{pairs}",
            counts.join(", "),
            ours.registers,
            theirs.registers
        );
        if equal < pairs {
            let text = |loops: &[Vec<Message>]| -> String {
                let word = |message: &Message| {
                    format!(
                        "{:?}{}{}",
                        message.kind,
                        if message.shared { "-shared" } else { "" },
                        message.bytes
                    )
                };
                let words = |messages: &Vec<Message>| messages.iter().map(word).collect::<Vec<_>>().join(" ");
                loops.iter().map(words).collect::<Vec<_>>().join(" | ")
            };
            println!(
                "    ours   {}\n    theirs {}",
                text(&ours.loops),
                text(&theirs.loops)
            );
        }
    }
    let kinds = Kind::ALL.into_iter().map(|kind| {
        let present = compared.iter().filter(|one| count(&one.theirs, kind) > 0);
        let apart = present.map(|one| off(count(&one.ours, kind), count(&one.theirs, kind)).abs());
        (kind, median(apart.collect()))
    });
    let registers = compared
        .iter()
        .map(|one| off(one.ours.registers, one.theirs.registers).abs());
    let summary = Summary {
        kinds: kinds.collect(),
        loops: (same, all),
        registers: median(registers.collect()),
    };
    println!("{} kernels: {summary:?}", compared.len());
    summary
}

fn compare_all(device: &str, names: &[&str]) -> Option<Vec<Compared>> {
    let ocloc = Ocloc::newest()?;
    let forms: Vec<(String, Kernel)> = names.iter().flat_map(|name| forms(name)).collect();
    let compared = forms
        .par_iter()
        .filter_map(|(name, kernel)| compare(&ocloc, device, name, kernel));
    Some(compared.collect())
}

#[test]
fn some_kernels_are_near_what_ocloc_makes_of_them() {
    let Some(compared) = compare_all("pvc", &SOME) else {
        return;
    };
    summary(&compared);
}

#[test]
#[ignore = "a minute: see above"]
fn all_kernels_are_near_what_ocloc_makes_of_them() {
    let names: Vec<&str> = kernels::all().map(|kernel| kernel.name).collect();
    let Some(compared) = compare_all("pvc", &names) else {
        return;
    };
    summary(&compared);
}
