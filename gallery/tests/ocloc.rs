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

use headstart::back::machine::{self, Class, Control, Instruction, InstructionStep, MachineProgram, Share};
use headstart::back::spirv;
use headstart::device::model;
use headstart::ir::{CacheLevel, Kernel, OpKind, Space};
use headstart::prefetch::{self, Plan};
use headstart::tune::Subject as _;
use headstart::tune::search::main_loads;
use headstart_gallery::kernels;
use headstart_testing::ocloc::Ocloc;
use headstart_testing::spilled;
use headstart_testing::xe::{self, InstructionKind, Message, Profile};
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

/// What a message does, and to how many bytes of a work-item: none are its own where the whole sub-group asks for the same.
fn message(program: &MachineProgram, instruction: &Instruction, kind: InstructionKind) -> Message {
    let hinted = || {
        program.steps_of(instruction).iter().find_map(|step| match step {
            InstructionStep::Op(op) => match op.kind {
                OpKind::Prefetch { bytes, .. } => Some(bytes.min(16)),
                _ => None,
            },
            InstructionStep::Assign(_) => None,
        })
    };
    let (shared, bytes) = match instruction.class {
        Class::Load { space, bytes } | Class::Store { space, bytes } | Class::Atomic { space, bytes } => {
            (space == Space::Shared, u32::from(bytes))
        }
        Class::Prefetch => (false, hinted().unwrap_or(4)),
        _ => (false, 0),
    };
    Message {
        kind,
        shared,
        bytes: if instruction.share == Share::One { 0 } else { bytes },
    }
}

/// Meetings of a work-group are a fence or two and a message to the gateway: one, as are fences behind each other.
fn meetings_as_one(profile: &mut Profile) {
    let is_meeting = |message: &Message| message.kind == InstructionKind::Other && message.bytes == 0;
    for messages in profile.loops.iter_mut().chain([&mut profile.messages]) {
        messages.dedup_by(|next, before| is_meeting(next) && is_meeting(before));
        messages
            .iter_mut()
            .filter(|message| is_meeting(message))
            .for_each(|message| message.shared = false);
    }
    let others = profile
        .messages
        .iter()
        .filter(|message| message.kind == InstructionKind::Other)
        .count();
    profile.counts.insert(InstructionKind::Other, others as u32);
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
                Some(InstructionKind::Integer)
            }
            Class::Fp32 | Class::Fp64 | Class::Fp16 => Some(InstructionKind::Float),
            Class::Special => Some(InstructionKind::Math),
            Class::Branch | Class::Reconverge => Some(InstructionKind::Control),
            Class::Load { .. } => Some(InstructionKind::Load),
            Class::Store { .. } => Some(InstructionKind::Store),
            Class::Prefetch => Some(InstructionKind::Hint),
            Class::AsyncCopy { .. }
            | Class::Atomic { .. }
            | Class::Fence
            | Class::Barrier
            | Class::Matrix { .. } => Some(InstructionKind::Other),
        };
        if let Some(kind) = kind {
            *profile.counts.entry(kind).or_default() += instruction.pieces(sub_group);
        }
        if let Some(kind) = kind.filter(|kind| kind.is_message()) {
            let message = message(program, instruction, kind);
            profile.messages.push(message);
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
    meetings_as_one(&mut profile);
    profile
}

/// A kernel of the gallery with what its author wished for, and its plans that bring its first load's lines to L1.
fn forms(name: &str) -> Vec<(String, Kernel)> {
    let chosen = kernels::find(name)
        .and_then(|kernel| kernel.with(&[], None))
        .expect("there");
    let workload = chosen.workload().expect("the defaults are right");
    let target = prefetch::PlanTarget {
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
        ..spirv::Options::new(spirv::SpirvTarget::IntelLsc)
    };
    let spirv = spirv::emit(kernel, &options).ok()?;
    let assembly = ocloc
        .compile(&spirv, device)
        .unwrap_or_else(|said| panic!("{name}: {said}"));
    let program = machine::lower(kernel, &machine::Target::of(&model, sub_group));
    let mut theirs = xe::profile(&assembly.text);
    meetings_as_one(&mut theirs);
    Some(Compared {
        name: name.to_owned(),
        ours: profile(&program, sub_group),
        theirs,
    })
}

/// The median of some numbers; 0 of none.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// The messages of a kernel, whatever their order.
fn sorted(profile: &Profile) -> Vec<Message> {
    let mut messages = profile.messages.clone();
    messages.sort_unstable();
    messages
}

/// The hints and loads of each loop, in order: those of a kind behind each other are one, for neighbours may be one message of
/// several words.
fn orders(profile: &Profile) -> Vec<Vec<(InstructionKind, bool)>> {
    let of_loop = |messages: &Vec<Message>| {
        let wanted = messages
            .iter()
            .filter(|message| matches!(message.kind, InstructionKind::Hint | InstructionKind::Load));
        let mut order: Vec<(InstructionKind, bool)> =
            wanted.map(|message| (message.kind, message.shared)).collect();
        order.dedup();
        order
    };
    profile.loops.iter().map(of_loop).collect()
}

/// How many of these are in the other list, too, wherever they stand: compilers put loops in different places.
fn in_common<T: PartialEq>(ours: &[T], theirs: &[T]) -> usize {
    let mut left: Vec<&T> = theirs.iter().collect();
    let found = ours.iter().filter(|own| {
        let at = left.iter().position(|other| other == own);
        at.map(|at| left.swap_remove(at)).is_some()
    });
    found.count()
}

/// By how much ours is off.
fn off(ours: u32, theirs: u32) -> f64 {
    (f64::from(ours) - f64::from(theirs)) / f64::from(theirs.max(1))
}

/// What the comparison of many kernels comes to.
#[derive(Debug)]
struct Summary {
    /// By kind: how far off the median kernel is.
    kinds: BTreeMap<InstructionKind, f64>,
    /// Loops whose hints and loads come in the same order, of all.
    loops: (usize, usize),
    /// Loops whose messages are all the same, with their sizes, in the same order.
    same_loops: (usize, usize),
    /// How far off the median kernel's registers are.
    registers: f64,
    /// Kernels with the same messages of the same sizes, of all.
    messages: (usize, usize),
}

impl Summary {
    /// Asks for the bars: instructions of each kind within 15 % in the median kernel, hints and loads in the same order in nine of ten
    /// loops, registers within 20 % in the median kernel.
    fn hold(&self) {
        for (kind, &apart) in &self.kinds {
            assert!(
                apart <= 0.15,
                "{kind:?}: {:.0} % in the median kernel",
                100.0 * apart
            );
        }
        let (same, all) = self.loops;
        assert!(
            10 * same >= 9 * all,
            "hints and loads are in the same order in {same} of {all} loops"
        );
        assert!(
            self.registers <= 0.2,
            "registers: {:.0} % in the median kernel",
            100.0 * self.registers
        );
    }
}

fn summary(compared: &[Compared]) -> Summary {
    let count = |profile: &Profile, kind| profile.counts.get(&kind).copied().unwrap_or(0);
    let (mut ordered, mut same, mut all) = (0, 0, 0);
    for Compared { name, ours, theirs } in compared {
        let counts: Vec<String> = InstructionKind::ALL
            .into_iter()
            .map(|kind| format!("{:?} {}/{}", kind, count(ours, kind), count(theirs, kind)))
            .collect();
        let pairs = ours.loops.len().max(theirs.loops.len());
        let equal = in_common(&ours.loops, &theirs.loops);
        same += equal;
        ordered += in_common(&orders(ours), &orders(theirs));
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
    let kinds = InstructionKind::ALL.into_iter().map(|kind| {
        let present = compared.iter().filter(|one| count(&one.theirs, kind) > 0);
        let apart = present.map(|one| off(count(&one.ours, kind), count(&one.theirs, kind)).abs());
        (kind, median(apart.collect()))
    });
    let registers = compared
        .iter()
        .map(|one| off(one.ours.registers, one.theirs.registers).abs());
    let summary = Summary {
        kinds: kinds.collect(),
        loops: (ordered, all),
        same_loops: (same, all),
        registers: median(registers.collect()),
        messages: (
            compared
                .iter()
                .filter(|one| sorted(&one.ours) == sorted(&one.theirs))
                .count(),
            compared.len(),
        ),
    };
    let of = |(same, all): (usize, usize)| format!("{same} of {all}");
    println!(
        "{} kernels: off in the median {:?}, registers {:.2}; hints and loads in order in {} loops, all messages the same in {}; \
         messages as many and as large in {} kernels",
        compared.len(),
        summary.kinds,
        summary.registers,
        of(summary.loops),
        of(summary.same_loops),
        of(summary.messages)
    );
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
    summary(&compared).hold();
}

#[test]
#[ignore = "nightly: a minute"]
fn all_kernels_are_near_what_ocloc_makes_of_them() {
    let names: Vec<&str> = kernels::all().map(|kernel| kernel.name).collect();
    let Some(compared) = compare_all("pvc", &names) else {
        return;
    };
    summary(&compared).hold();
}

/// The bars are for pvc, for which there is a model: this shows how far its programs are from those for bmg.
#[test]
#[ignore = "nightly: a minute"]
fn what_ocloc_makes_of_them_for_bmg_is_shown() {
    let names: Vec<&str> = kernels::all().map(|kernel| kernel.name).collect();
    let Some(compared) = compare_all("bmg", &names) else {
        return;
    };
    let Summary {
        loops: (same, all), ..
    } = summary(&compared);
    assert!(10 * same >= 8 * all, "{same} of {all} loops");
}

/// Where the compiler finds room for all values, so do we; where it stores many, so do we.
#[test]
fn values_are_spilled_where_the_compiler_spills_them() {
    let Some(ocloc) = Ocloc::newest() else { return };
    let model = model::built_in("pvc-1550", &[]).expect("the model is there");
    let mut complaints = Vec::new();
    for (name, plan, sub_group) in [
        ("article", "unroll:8", 32),
        ("article", "unroll:16", 32),
        ("article", "unroll:16", 16),
        ("article", "arr=rolling-registers:16", 32),
        ("article", "arr=rolling-registers:32", 32),
        ("triad", "b=rolling-registers:4,c=rolling-registers:4", 32),
        ("triad", "b=rolling-registers:16,c=rolling-registers:16", 16),
        ("triad", "b=rolling-registers:16,c=rolling-registers:16", 32),
    ] {
        let chosen = kernels::find(name)
            .and_then(|kernel| kernel.with(&[], None))
            .expect("there");
        let workload = chosen.workload().expect("the defaults are right");
        let target = prefetch::PlanTarget {
            group_size: Some(workload.group),
            line: 64,
        };
        let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes can be carried out");
        let plan: Plan = plan.parse().expect("a plan");
        let mut kernel = prefetch::apply(&plain, &plan, &target).expect("legal").kernel;
        kernel.sub_group_size = Some(sub_group);
        let options = spirv::Options {
            lines: false,
            ..spirv::Options::new(spirv::SpirvTarget::IntelLsc)
        };
        let spirv = spirv::emit(&kernel, &options).expect("it is emitted");
        let assembly = ocloc.compile(&spirv, "pvc");
        let theirs = assembly.unwrap_or_else(|said| panic!("{plan}: {said}")).spills;
        let program = machine::lower(&kernel, &machine::Target::of(&model, sub_group));
        let ours = spilled(&program);
        println!(
            "{name} {plan} in sub-groups of {sub_group}: {ours} bytes of a work-item stored, {} beyond the registers; ocloc says \
             {theirs}",
            program.register_estimate.spilled_bytes
        );
        if (theirs == 0) != (ours == 0) {
            complaints.push(format!(
                "{name} {plan} in sub-groups of {sub_group}: {ours} bytes, {theirs} by ocloc"
            ));
        }
    }
    // Where all but fits, either may find room and the other not.
    assert!(complaints.len() <= 1, "{}", complaints.join("\n"));
}
