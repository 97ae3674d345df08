//! Prefetches in the machine code of Intel's GPUs: the number of messages follows the formula, and each has the requested cache
//! control. `scripts/tools` sets up the compiler of Debian 12 and, if available, that of the testing release; without one its
//! tests are skipped, and say so.

use std::collections::BTreeMap;

use headstart::back::machine::{self, Class, Share, Target};
use headstart::back::spirv::{self, Options, Spirv, SpirvTarget, block_instructions, instructions};
use headstart::device::model;
use headstart::ir::{self, CacheHint, CacheLevel, Kernel};
use headstart_testing::ocloc::Ocloc;
use headstart_testing::spirv_val::SpirvVal;

/// A kernel in which each work-item prefetches `bytes` of its own, at a multiple of `align`, then writes something.
fn kernel(bytes: u32, align: u32, hint: &str, sub_group: u32) -> Kernel {
    // Apart by a multiple of the alignment, and by no more than is needed: `stride` bytes from one to the next.
    let stride = bytes.next_multiple_of(align);
    let text = format!(
        "hsir 1
kernel @prefetches(
  %a: ptr.global i8[%n] align {align} readonly unaliased,
  %n: i64,
  %out: ptr.global i32[%m] align 4 unaliased,
  %m: i64,
) group 64,1,1 sub_group {sub_group} {{
  %group = id.group.x
  %local = id.local.x
  %start = mul %group, 64:i32
  %item32 = add %start, %local
  %item = extend.u %item32 to i64
  %at = address %a + %item * {stride}
  {hint}
  %to = address %out + %item * 4
  store %to, %item32
  return
}}
"
    );
    let kernel = ir::parse(&text, "prefetches.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

fn prefetch(bytes: u32, align: u32, hint: CacheHint, sub_group: u32) -> Kernel {
    let nontemporal = if hint.nontemporal { " nontemporal" } else { "" };
    let text = format!("prefetch {}{nontemporal} {bytes} at %at", hint.level.name());
    kernel(bytes, align, &text, sub_group)
}

fn emit(kernel: &Kernel, target: SpirvTarget) -> Spirv {
    spirv::emit(kernel, &Options::new(target)).unwrap_or_else(|error| panic!("{error}"))
}

/// The cache control in the name of a message that a hint becomes.
fn suffix(hint: CacheHint) -> &'static str {
    match (hint.level, hint.nontemporal) {
        (CacheLevel::L1, false) => "ca.ca",
        (CacheLevel::L1, true) => "st.ca",
        _ => "uc.ca",
    }
}

/// Sizes and alignments: each element that the builtins have, ranges of several calls, ranges that are not aligned.
const RANGES: [(u32, u32); 16] = [
    (1, 1),
    (2, 2),
    (2, 1),
    (4, 4),
    (8, 4),
    (8, 8),
    (12, 4),
    (16, 4),
    (16, 16),
    (20, 4),
    (28, 4),
    (32, 4),
    (32, 32),
    (64, 4),
    (100, 4),
    (256, 1),
];

const HINTS: [CacheHint; 6] = {
    const fn to(level: CacheLevel, nontemporal: bool) -> CacheHint {
        CacheHint { level, nontemporal }
    }
    [
        to(CacheLevel::L1, false),
        to(CacheLevel::L1, true),
        to(CacheLevel::L2, false),
        to(CacheLevel::L3, false),
        to(CacheLevel::L3, true),
        to(CacheLevel::L4, false),
    ]
};

/// Compiles every prefetch of the table and compares the messages with what the formula says.
fn check(ocloc: &Ocloc, device: &str, sub_groups: &[u32]) {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for &sub_group in sub_groups {
        // Every size to one level, and every level at one size.
        let sizes = RANGES.iter().map(|&range| (range, HINTS[0]));
        let levels = HINTS.iter().map(|&hint| ((16, 16), hint));
        for ((bytes, align), hint) in sizes.chain(levels) {
            let spirv = emit(&prefetch(bytes, align, hint, sub_group), SpirvTarget::IntelLsc);
            let found = match ocloc.compile(&spirv, device) {
                Ok(assembly) => assembly.prefetches(),
                Err(said) => panic!("{bytes} bytes: {said}"),
            };
            tried += 1;
            let suffix = suffix(hint);
            let asked: u32 = found
                .iter()
                .filter(|(kind, _)| kind.contains(suffix))
                .map(|(_, count)| count)
                .sum();
            let all: u32 = found.values().sum();
            let expected = instructions(bytes, align, sub_group);
            if asked != expected || all != expected {
                wrong.push(format!(
                    "{device}, sub-groups of {sub_group}, {bytes} bytes at a multiple of {align}, {hint:?}: \
                     {expected} messages {suffix} expected, found {found:?}"
                ));
            }
        }
    }
    println!("{tried} kernels for {device}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A kernel with a quotient and a root of singles.
fn quotient_and_root(accuracy: &str) -> Kernel {
    let text = format!(
        "hsir 1
kernel @both(
  %x: ptr.global f32[%n] align 4 readonly unaliased,
  %n: i64,
  %to: ptr.global f32[%m] align 4 unaliased,
  %m: i64,
) group 32,1,1 sub_group 32 {accuracy}{{
  load @x
  %i32 = id.local.x
  %i = extend.u %i32 to i64
  %p = address %x + %i * 4
  %a = load f32 %p, @x
  %quotient = fdiv 3.0:f32, %a
  %root = sqrt %a
  %sum = fadd %quotient, %root
  %q = address %to + %i * 4
  store %q, %sum
  return
}}
"
    );
    ir::read(&text, "both.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What the compiler makes of quotients and roots at each accuracy, and that the timer runs as many instructions.
#[test]
fn quotients_and_roots_are_as_accurate_as_the_kernel_says() {
    let Some(ocloc) = Ocloc::newest() else { return };
    let target = Target::of(&model::find("pvc-1550", &[]).expect("a model"), 32);
    for (accuracy, has, has_not) in [
        ("", ["math.rsqtm ", "math.invm "], "math.sqt "),
        ("accuracy opencl ", ["math.sqt ", "math.inv "], "madm "),
        ("accuracy fast ", ["math.sqt ", "math.inv "], "madm "),
    ] {
        let kernel = quotient_and_root(accuracy);
        let assembly = ocloc.compile(&emit(&kernel, SpirvTarget::IntelLsc), "pvc");
        let text = assembly.unwrap_or_else(|said| panic!("{said}")).text;
        assert!(
            has.iter().all(|name| text.contains(name)) && !text.contains(has_not),
            "{accuracy}: {text}"
        );
        if accuracy.is_empty() {
            continue;
        }
        // Those of all 32 work-items at once: 64-bit addresses are for 16 each, and so are the macros above.
        let is_whole =
            |line: &&str| line.contains(" (32|M0) ") && !line.contains("send") && !line.contains("goto");
        let (made, timed) = (
            text.lines().filter(is_whole).count(),
            machine::lower(&kernel, &target),
        );
        let is_arithmetic = |class| matches!(class, Class::Fp32 | Class::Int32 | Class::Special);
        let timed = timed
            .instructions
            .iter()
            .filter(|own| is_arithmetic(own.class) && own.share == Share::Whole);
        assert_eq!(made, timed.count(), "{accuracy}: {text}");
    }
}

#[test]
fn the_compiler_of_debian_12_sends_what_is_asked_to_pvc() {
    let Some(ocloc) = Ocloc::find() else { return };
    check(&ocloc, "pvc", &[16, 32]);
}

#[test]
fn the_newest_compiler_sends_what_is_asked() {
    let Some(ocloc) = Ocloc::newest() else { return };
    check(&ocloc, "pvc", &[16, 32]);
    check(&ocloc, "bmg", &[16]);
}

/// What shows that the tests above can fail: no prefetch gives no message, and OpenCL's own `prefetch`, which the module
/// for other devices calls, is not what was asked.
#[test]
fn what_is_not_asked_is_not_there() {
    let Some(ocloc) = Ocloc::find() else { return };
    let plain = emit(&kernel(4, 4, "", 16), SpirvTarget::IntelLsc);
    let found = ocloc
        .compile(&plain, "pvc")
        .unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(found.prefetches(), BTreeMap::new());

    let to_l1 = prefetch(4, 4, HINTS[0], 16);
    let portable = emit(&to_l1, SpirvTarget::Portable);
    let found = ocloc
        .compile(&portable, "pvc")
        .unwrap_or_else(|said| panic!("{said}"));
    assert!(
        !found
            .prefetches()
            .keys()
            .any(|kind| kind.contains(suffix(HINTS[0])))
    );

    let older = emit(&to_l1, SpirvTarget::IntelOlder);
    let found = ocloc
        .compile(&older, "pvc")
        .unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(found.prefetches(), BTreeMap::new());
    assert_eq!(
        older.hints[0].reached, None,
        "the report says that nothing happens"
    );
}

/// Prefetches that a plan derives arrive as well, at the level that the plan names.
#[test]
fn derived_prefetches_arrive() {
    let Some(ocloc) = Ocloc::find() else { return };
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/in/gather.hsir"))
        .expect("the kernel is there");
    let plain = ir::parse(&text, "gather.hsir").expect("it is a kernel");
    let target = headstart::prefetch::PlanTarget {
        group_size: Some([128, 1, 1]),
        line: 64,
    };
    for (plan, suffix) in [
        ("values=cache:L1:4", "ca.ca"),
        ("values=cache:L3:4", "uc.ca"),
        ("values=cache:L1:4/nt", "st.ca"),
    ] {
        let plan = plan.parse().expect("a plan");
        let derived = headstart::prefetch::apply(&plain, &plan, &target).expect("it is legal");
        let spirv = emit(&derived.kernel, SpirvTarget::IntelLsc);
        let found = ocloc
            .compile(&spirv, "pvc")
            .unwrap_or_else(|said| panic!("{said}"));
        let found = found.prefetches();
        assert!(!found.is_empty(), "{plan}: no prefetch");
        assert!(
            found.keys().all(|kind| kind.contains(suffix)),
            "{plan}: {found:?}"
        );
    }
}

/// A kernel in which each work-item loads an element with this control, or none, and writes it elsewhere.
fn loading(ty: &str, bytes: u32, control: &str) -> Kernel {
    let text = format!(
        "hsir 1
kernel @loads(
  %a: ptr.global {ty}[%n] align {bytes} readonly unaliased,
  %n: i64,
  %out: ptr.global {ty}[%n] align {bytes} unaliased,
) group 64,1,1 sub_group 16 {{
  load @a
  %group = id.group.x
  %local = id.local.x
  %start = mul %group, 64:i32
  %item32 = add %start, %local
  %item = extend.u %item32 to i64
  %at = address %a + %item * {bytes}
  %x = load {ty} %at, @a {control}
  %to = address %out + %item * {bytes}
  store %to, %x
  return
}}
"
    );
    let kernel = ir::parse(&text, "loads.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

/// Loads with a cache control carry it, and those without have none. One to each of the sizes that the builtins have.
#[test]
fn loads_carry_their_cache_controls() {
    let Some(ocloc) = Ocloc::find() else { return };
    let loads = |ty: &str, bytes: u32, control: &str| {
        let spirv = emit(&loading(ty, bytes, control), SpirvTarget::IntelLsc);
        let assembly = ocloc.compile(&spirv, "pvc");
        assembly
            .unwrap_or_else(|said| panic!("{ty} {control}: {said}"))
            .loads()
    };
    let mut wrong = Vec::new();
    let mut check = |ty: &str, bytes: u32, control: &str, suffix: &str| {
        let found = loads(ty, bytes, control);
        // One work-item's element; what else is loaded are the arguments, a block for the sub-group.
        let own = format!("d{}.a64", bytes * 8);
        let of_items = found.iter().filter(|(kind, _)| kind.starts_with(&own));
        let of_items: Vec<_> = of_items.collect();
        if !matches!(of_items[..], [(kind, 1)] if kind.ends_with(suffix)) {
            wrong.push(format!("{ty} {control}: {own}{suffix} expected, found {found:?}"));
        }
    };
    for (control, suffix) in [
        ("L1UC_L3UC", ".uc.uc"),
        ("L1UC_L3C", ".uc.ca"),
        ("L1C_L3UC", ".ca.uc"),
        ("L1C_L3C", ".ca.ca"),
        ("L1S_L3UC", ".st.uc"),
        ("L1S_L3C", ".st.ca"),
        ("L1IAR_L3C", ".ri.ca"),
        ("", ".a64"),
    ] {
        check("i32", 4, control, suffix);
        check("f64", 8, control, suffix);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A kernel whose sub-groups prefetch `bytes` together, at an address that is theirs.
fn joint(bytes: u32, align: u32, hint: &str, sub_group: u32) -> Kernel {
    let text = format!(
        "hsir 1
kernel @joint(
  %a: ptr.global i8[%n] align {align} readonly unaliased,
  %n: i64,
  %out: ptr.global i32[%m] align 4 unaliased,
  %m: i64,
) group 64,1,1 sub_group {sub_group} {{
  %group = id.group.x
  %local = id.local.x
  %own = id.group.x
  %start = mul %group, 64:i32
  %item32 = add %start, %local
  %item = extend.u %item32 to i64
  %mine = extend.u %own to i64
  %at = address %a + %mine * 4096
  prefetch {hint} {bytes} at %at by sub_group
  %to = address %out + %item * 4
  store %to, %item32
  return
}}
"
    );
    let kernel = ir::parse(&text, "joint.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

fn emit_blocks(kernel: &Kernel) -> Spirv {
    let options = Options {
        block_prefetch: true,
        ..Options::new(SpirvTarget::IntelLsc)
    };
    spirv::emit(kernel, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// The messages of joint prefetches: blocks, which end in `t`, and others.
fn check_joint(ocloc: &Ocloc, device: &str, sub_groups: &[u32]) {
    let mut wrong = Vec::new();
    for &sub_group in sub_groups {
        let block = 4 * sub_group;
        let sizes = [1, 2, 3, 8, 11, 24].map(|blocks| (blocks * block, HINTS[0]));
        for (bytes, hint) in sizes.into_iter().chain(HINTS.map(|hint| (4 * block, hint))) {
            for rest in [0, 36] {
                let nontemporal = if hint.nontemporal { " nontemporal" } else { "" };
                let asked = format!("{}{nontemporal}", hint.level.name());
                let spirv = emit_blocks(&joint(bytes + rest, 4, &asked, sub_group));
                let found = ocloc
                    .compile(&spirv, device)
                    .unwrap_or_else(|said| panic!("{said}"))
                    .prefetches();
                let is_block = |kind: &str| kind.split('.').next().is_some_and(|data| data.ends_with('t'));
                let count = |wanted: bool| -> u32 {
                    let some = found.iter().filter(|(kind, _)| is_block(kind) == wanted);
                    some.map(|(_, count)| count).sum()
                };
                let as_asked = found.keys().all(|kind| kind.contains(suffix(hint)));
                let expected = block_instructions(bytes, sub_group);
                if count(true) != expected || count(false) != u32::from(rest > 0) || !as_asked {
                    wrong.push(format!(
                        "{device}, sub-groups of {sub_group}, {bytes} bytes and {rest}, {asked}: {expected} blocks \
                         expected, found {found:?}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Only the newest compiler knows blocks.
#[test]
fn joint_prefetches_arrive_as_blocks() {
    let Some(ocloc) = Ocloc::newest() else { return };
    check_joint(&ocloc, "pvc", &[16, 32]);
    check_joint(&ocloc, "bmg", &[16]);
}

/// What is not aligned, or has no whole block, stays with the lines of each work-item.
#[test]
fn what_is_no_block_is_not_one() {
    for (bytes, align) in [(60, 4), (256, 1), (256, 2)] {
        let text = emit_blocks(&joint(bytes, align, "L1", 16)).text;
        assert!(
            !text.contains("SubgroupBlockPrefetchINTEL"),
            "{bytes} {align}: {text}"
        );
    }
    let text = emit(&joint(256, 4, "L1", 16), SpirvTarget::IntelLsc).text;
    assert!(
        !text.contains("SubgroupBlockPrefetchINTEL"),
        "nobody asked for blocks: {text}"
    );
    let older = Options {
        block_prefetch: true,
        ..Options::new(SpirvTarget::Portable)
    };
    let text = spirv::emit(&joint(256, 4, "L1", 16), &older)
        .expect("a module")
        .text;
    assert!(!text.contains("SubgroupBlockPrefetchINTEL"), "{text}");
}

/// A module without the decorations that say what the cache that Intel calls L3 is to do.
fn without_l3(spirv: Spirv) -> Spirv {
    const HEADER: usize = 5;
    const DECORATE: u32 = 71;
    const CACHE_CONTROL_LOAD: u32 = 6442;
    let mut words = spirv.words[..HEADER].to_vec();
    let mut rest = &spirv.words[HEADER..];
    while let [first, ..] = rest {
        let (op, after) = rest.split_at((first >> 16) as usize);
        if !(first & 0xffff == DECORATE && op[2] == CACHE_CONTROL_LOAD && op[3] == 1) {
            words.extend(op);
        }
        rest = after;
    }
    assert!(words.len() < spirv.words.len(), "there is one");
    Spirv { words, ..spirv }
}

/// The validator of Debian's testing release takes the modules with blocks, but for the one thing that it is known to be
/// wrong about: it rejects controls of two cache levels on one pointer, which SPV_INTEL_cache_controls allows. Without one
/// of them they are valid.
#[test]
fn blocks_are_valid() {
    let Some(validator) = SpirvVal::newest() else {
        return;
    };
    for (hint, bytes) in [("L1", 64), ("L3", 100), ("L1 nontemporal", 1024)] {
        let spirv = emit_blocks(&joint(bytes, 4, hint, 16));
        if let Err(said) = validator.check(&spirv) {
            assert!(
                said.contains("decorated with CacheControlLoadINTEL multiple times"),
                "{hint}: {said}"
            );
        }
        let checked = validator.check(&without_l3(spirv));
        checked.unwrap_or_else(|said| panic!("{hint}: {said}"));
    }
}
