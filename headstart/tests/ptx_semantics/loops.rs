//! Loops whose ends compilers wrote in ways of their own: they count, compute what they did, and the assembler takes what is
//! written again.

use headstart::analysis::definitions::Definitions;
use headstart::analysis::loops::summarize;
use headstart::back::ptx::{Options as Emit, PtxTarget as Gpu, emit};
use headstart::front::ptx::{Facts, read};
use headstart::ir::{Kernel, OpKind};
use headstart_testing::Random;
use headstart_testing::ptxas::Ptxas;

use super::output;

/// A kernel: `%a` is the work-item's word of the output, `%v` its number, `%s` what it leaves there; `%n` and `%l` are scalars.
fn module(body: &str) -> String {
    format!(
        ".version 8.4\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1, .param .u64 k_param_2)\n{{\n\
         .reg .b64 %a, %off, %l, %w<8>; .reg .b32 %v, %n, %s, %t<8>; .reg .pred %p, %q;\n\
         ld.param.u64 %a, [k_param_0];\nld.param.u32 %n, [k_param_1];\nld.param.u64 %l, [k_param_2];\n\
         cvta.to.global.u64 %a, %a;\nmov.u32 %v, %tid.x;\nmul.wide.u32 %off, %v, 4;\nadd.s64 %a, %a, %off;\n\
         mov.u32 %s, %v;\n{body}\nst.global.u32 [%a], %s;\nret;\n}}\n"
    )
}

fn launch(n: u32, l: u64) -> String {
    format!(
        "kernel = \"k\"\ngroups = 1\ngroup = 32\n[parameters.param_0]\nlength = 32\nfill = \"zero\"\noutput = \"bits\"\n\
         [parameters.param_1]\nvalue = {n}\n[parameters.param_2]\nvalue = {l}\n"
    )
}

/// How many loops do not count, even if their counters do not wrap.
fn uncounted(kernel: &Kernel) -> usize {
    let definitions = Definitions::of(kernel);
    let mut found = 0;
    kernel.body.walk(&mut |op| {
        if matches!(op.kind, OpKind::Loop { .. }) {
            let summary = summarize(kernel, &definitions, op);
            found += usize::from(summary.exit.is_err() && summary.unless_wraps.is_none());
        }
    });
    found
}

/// Compares what a kernel leaves with what `expected` does with a work-item's number and the scalars, over chosen and random
/// scalars below `most`; every loop must count.
fn check(body: &str, most: (u32, u64), expected: impl Fn(u32, u32, u64) -> u32) {
    let text = module(body);
    let facts = Facts::default();
    let kernel = read(&text, "k.ptx", Some("k"), &facts).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(uncounted(&kernel), 0, "{}", headstart::ir::print(&kernel));
    if let Some(ptxas) = Ptxas::find() {
        let alone = emit(&kernel, &Emit::new(Gpu::Sm90)).expect("it is emitted").text;
        ptxas
            .assemble_module(&alone)
            .unwrap_or_else(|error| panic!("{error}\n{alone}"));
    }
    let mut random = Random::new(headstart_testing::base_seed());
    let mut scalars = vec![(0, 0), (1, 1), (most.0, most.1)];
    scalars.extend((0..12).map(|_| {
        (
            random.below(u64::from(most.0) + 1) as u32,
            random.below(most.1 + 1),
        )
    }));
    for (n, l) in scalars {
        let found = output(&text, &launch(n, l));
        let wanted: Vec<u32> = (0..32).map(|item| expected(item, n, l)).collect();
        assert_eq!(found, wanted, "n = {n}, l = {l}\n{text}");
    }
}

/// A grid's loop whose last tile is less than `n - 8`, which each iteration computes.
#[test]
fn a_bound_is_computed_in_the_loop() {
    check(
        "mov.u32 %t0, 0;\nsetp.lt.u32 %p, %n, 8;\n@%p bra END;\nAGAIN:\nadd.s32 %t0, %t0, 4;\nadd.s32 %s, %s, %t0;\n\
         add.s32 %t1, %n, -8;\nsetp.ge.u32 %p, %t1, %t0;\n@%p bra AGAIN;\nEND:",
        (1000, 1),
        |item, n, _| {
            let (mut s, mut i) = (item, 0u32);
            if n >= 8 {
                loop {
                    i = i.wrapping_add(4);
                    s = s.wrapping_add(i);
                    if n.wrapping_sub(8) < i {
                        break;
                    }
                }
            }
            s
        },
    );
}

/// A predicate that is true once: two iterations.
#[test]
fn a_predicate_counts_to_two() {
    check(
        "mov.pred %p, -1;\nmov.u32 %t0, 3;\nAGAIN:\nmad.lo.s32 %s, %s, %t0, %n;\nmov.u32 %t0, 5;\nmov.pred %q, %p;\n\
         mov.pred %p, 0;\n@%q bra AGAIN;",
        (1 << 31, 1),
        |item, n, _| {
            let once = item.wrapping_mul(3).wrapping_add(n);
            once.wrapping_mul(5).wrapping_add(n)
        },
    );
}

/// A counter of 64 bits that is compared by its low half.
#[test]
fn low_halves_are_compared() {
    check(
        "and.b64 %w0, %l, -4294967041;\nAGAIN:\ncvt.u32.u64 %t1, %w0;\nadd.s32 %s, %s, %t1;\nadd.s64 %w0, %w0, 3;\ncvt.u32.u64 %t0, %w0;\n\
         setp.lt.s32 %p, %t0, %n;\n@%p bra AGAIN;\nshr.u64 %w1, %w0, 32;\ncvt.u32.u64 %t2, %w1;\nadd.s32 %s, %s, %t2;",
        (500, 1 << 60),
        |item, n, l| {
            // The low half begins below 256.
            let (mut s, mut i) = (item, l & 0xffff_ffff_0000_00ff);
            loop {
                s = s.wrapping_add(i as u32);
                i = i.wrapping_add(3);
                if i as u32 as i32 >= n as i32 {
                    break;
                }
            }
            s.wrapping_add((i >> 32) as u32)
        },
    );
}

/// A counter of 32 bits against a bound of 64 that fits.
#[test]
fn extensions_are_compared() {
    check(
        "and.b64 %w0, %l, 63;\nmov.u32 %t0, 0;\nAGAIN:\nmad.lo.s32 %s, %s, 3, %t0;\nadd.s32 %t0, %t0, 1;\ncvt.u64.u32 %w1, %t0;\n\
         setp.gt.u64 %p, %w0, %w1;\n@%p bra AGAIN;",
        (1, 1 << 40),
        |item, _, l| {
            let (mut s, mut i) = (item, 0u32);
            loop {
                s = s.wrapping_mul(3).wrapping_add(i);
                i += 1;
                if u64::from(i) >= l & 63 {
                    break;
                }
            }
            s
        },
    );
}

/// A loop that a compiler unrolled in parts: the outer counter goes down in the inner loop.
#[test]
fn a_counter_goes_through_an_inner_loop() {
    check(
        "setp.lt.u32 %p, %n, 40;\n@%p bra END;\nmov.u32 %t0, %n;\nOUTER:\nmov.u32 %t1, 0;\nINNER:\nadd.s32 %s, %s, %t0;\nadd.s32 %t0, %t0, -8;\nadd.s32 %t1, %t1, 1;\n\
         setp.ne.s32 %p, %t1, 5;\n@%p bra INNER;\nsetp.gt.u32 %p, %t0, 39;\n@%p bra OUTER;\nadd.s32 %s, %s, %t0;\nEND:",
        (5000, 1),
        |item, n, _| {
            if n < 40 {
                return item;
            }
            let (mut s, mut left) = (item, n);
            loop {
                for _ in 0..5 {
                    s = s.wrapping_add(left);
                    left -= 8;
                }
                if left <= 39 {
                    break;
                }
            }
            s.wrapping_add(left)
        },
    );
}
