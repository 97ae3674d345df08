//! `micro/products`: products of matrices on tensor cores.
//!
//! The kernel language has no such products, so the kernel is PTX, which is written here and read as a user's is. Factors are
//! zeros: the time does not depend on them.

use std::fmt::Write;

use headstart::front::ptx::{self, Facts};
use headstart::ir::{Kernel, Type};
use headstart::tune::Workload;
use headstart::{Error, Result};

use super::{GROUPS, Micro, STEPS, entry, items, micro};
use crate::data::output;
use crate::settings::{Parameter, Settings, launch};

/// Products of a sub-group in a step.
const PRODUCTS: u32 = 16;

/// Bytes of both factors of the largest product of warp groups, in shared memory.
const FACTORS: u32 = 64 * 16 * 2 + 16 * 256 * 2;

/// An instruction, and the registers of a work-item that it takes.
struct Product {
    /// The shape and the type of its factors, as the setting names them.
    name: &'static str,
    /// The instruction's name in PTX.
    instruction: &'static str,
    /// The type of the sums' registers, and how many there are.
    sums: (&'static str, usize),
    /// The factors; none where they lie in shared memory, as those of warp groups do.
    factors: Option<Factors>,
}

/// Factors in registers.
struct Factors {
    /// The type of a register.
    ty: &'static str,
    /// Registers of the left factor and of the right one.
    registers: [usize; 2],
}

const fn factors(ty: &'static str, left: usize, right: usize) -> Option<Factors> {
    Some(Factors {
        ty,
        registers: [left, right],
    })
}

static OF: [Product; 10] = [
    Product {
        name: "m16n8k16.f16",
        instruction: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        sums: ("f32", 4),
        factors: factors("b32", 4, 2),
    },
    Product {
        name: "m16n8k8.f16",
        instruction: "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
        sums: ("f32", 4),
        factors: factors("b32", 2, 1),
    },
    Product {
        name: "m8n8k16.s8",
        instruction: "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
        sums: ("b32", 2),
        factors: factors("b32", 1, 1),
    },
    Product {
        name: "m16n8k32.s8",
        instruction: "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        sums: ("b32", 4),
        factors: factors("b32", 4, 2),
    },
    Product {
        name: "m8n8k4.f64",
        instruction: "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        sums: ("f64", 2),
        factors: factors("f64", 1, 1),
    },
    Product {
        name: "m16n8k8.f64",
        instruction: "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
        sums: ("f64", 4),
        factors: factors("f64", 4, 2),
    },
    Product {
        name: "m64n8k16.f16",
        instruction: "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
        sums: ("f32", 4),
        factors: None,
    },
    Product {
        name: "m64n64k16.f16",
        instruction: "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
        sums: ("f32", 32),
        factors: None,
    },
    Product {
        name: "m64n128k16.f16",
        instruction: "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16",
        sums: ("f32", 64),
        factors: None,
    },
    Product {
        name: "m64n256k16.f16",
        instruction: "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16",
        sums: ("f32", 128),
        factors: None,
    },
];

/// The names of [`OF`].
static NAMES: [&str; OF.len()] = {
    let mut names = [""; OF.len()];
    let mut at = 0;
    while at < OF.len() {
        names[at] = OF[at].name;
        at += 1;
    }
    names
};

static PARAMETERS: [Parameter; 6] = [
    GROUPS,
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of 32; of products of warp groups (m64), of 128",
        128,
        32..=1024,
    ),
    Parameter::choice(
        "of",
        "the shape of the products, and the type of their factors",
        &NAMES,
    ),
    Parameter::number(
        "sums",
        "sums of a sub-group that its products add to, in turns",
        1,
        1..=4,
    ),
    Parameter::choice(
        "wait",
        "for products of warp groups: for all of a step, or for each",
        &["step", "each"],
    ),
    Parameter::number("steps", STEPS, 1024, 0..=1 << 20),
];

/// The time from one product of a sub-group to its next: with one sum, each waits for the one before.
pub(crate) static PRODUCTS_OF_MATRICES: Micro = micro(
    entry(
        "micro/products",
        "products of matrices on tensor cores: cycles from one of a sub-group to its next",
        &PARAMETERS,
        |settings, _| workload(settings),
    ),
    "cycles a product",
    |_, cycles| cycles / f64::from(PRODUCTS),
);

fn workload(settings: &Settings) -> Result<Workload> {
    let group = settings.small("group");
    let of = &OF[settings.get("of") as usize];
    let multiple = if of.factors.is_some() { 32 } else { 128 };
    if !group.is_multiple_of(multiple) {
        let wrong = format!("`group` must be a multiple of {multiple} for `of={}`", of.name);
        return Err(Error::usage(wrong));
    }
    launch(settings, kernel(settings, of)?).with("result", output(Type::I32, items(settings)))
}

/// The kernel: [`PRODUCTS`] products a step, whose sums are written in the end, or nothing would need them.
fn kernel(settings: &Settings, of: &Product) -> Result<Kernel> {
    let text = match &of.factors {
        Some(factors) => of_sub_groups(settings, of, factors),
        None => of_warp_groups(settings, of),
    };
    let text = text.map_err(|_| Error::bug("a kernel of products cannot be written"))?;
    ptx::read(&text, "micro/products", None, &Facts::default())
}

/// Products of sub-groups (`mma`), with both factors in registers.
fn of_sub_groups(settings: &Settings, of: &Product, factors: &Factors) -> Result<String, std::fmt::Error> {
    let sums = settings.get("sums") as usize;
    let mut text = String::new();
    head(&mut text, settings, of, sums)?;
    let most = factors.registers[0].max(factors.registers[1]);
    writeln!(text, "\t.reg .{} %a<{most}>;", factors.ty)?;
    for register in 0..most {
        let zero = if factors.ty == "f64" {
            "0d0000000000000000"
        } else {
            "0"
        };
        writeln!(text, "\tmov.{} %a{register}, {zero};", factors.ty)?;
    }
    let [left, right] = factors.registers.map(|count| registers("a", 0, count));
    let products = (0..PRODUCTS as usize).map(|at| {
        let sum = registers("s", at % sums * of.sums.1, of.sums.1);
        format!("\t{} {sum}, {left}, {right}, {sum};\n", of.instruction)
    });
    repeat(&mut text, settings, &products.collect::<String>())?;
    tail(&mut text, of, sums)?;
    Ok(text)
}

/// Products of warp groups (`wgmma`), with both factors in shared memory.
fn of_warp_groups(settings: &Settings, of: &Product) -> Result<String, std::fmt::Error> {
    let sums = settings.get("sums") as usize;
    let mut text = String::new();
    head(&mut text, settings, of, sums)?;
    write!(
        text,
        "\t.reg .b32 %w<2>;
	.reg .b64 %f<3>;
	.reg .pred %q<2>;
	.shared .align 1024 .b8 factors[{FACTORS}];
	mov.u32 %w0, %tid.x;
	shl.b32 %w0, %w0, 2;
$fill:
	mov.u32 %w1, factors;
	add.s32 %w1, %w1, %w0;
	st.shared.u32 [%w1], 0;
	add.s32 %w0, %w0, {};
	setp.lt.u32 %q0, %w0, {FACTORS};
	@%q0 bra $fill;
	fence.proxy.async.shared::cta;
	bar.sync 0;
	mov.u32 %w1, factors;
	and.b32 %w1, %w1, 262143;
	shr.u32 %w1, %w1, 4;
	cvt.u64.u32 %f0, %w1;
	or.b64 %f1, %f0, {};
	add.s64 %f2, %f1, {};
	setp.eq.u32 %q1, %w1, %w1;
	wgmma.fence.sync.aligned;
",
        4 * settings.get("group"),
        // Blocks of eight lines of 16 bytes: the next along k is 128 bytes further on, the next across it 256.
        (256u64 / 16) << 32 | (128 / 16) << 16,
        // The right factor lies behind the left one.
        64 * 16 * 2 / 16,
    )?;
    let commit = "\twgmma.commit_group.sync.aligned;\n";
    let wait = |left: u32| format!("\twgmma.wait_group.sync.aligned {left};\n");
    let waits_for_each = settings.word("wait") == "each";
    let mut products = String::new();
    for at in 0..PRODUCTS as usize {
        let sum = registers("s", at % sums * of.sums.1, of.sums.1);
        writeln!(products, "\t{} {sum}, %f1, %f2, %q1, 1, 1, 0, 0;", of.instruction)?;
        if waits_for_each {
            products += commit;
            products += &wait(0);
        }
    }
    if !waits_for_each {
        products += commit;
        products += &wait(1);
    }
    repeat(&mut text, settings, &products)?;
    text += &wait(0);
    tail(&mut text, of, sums)?;
    Ok(text)
}

/// The entry up to its sums, which are zeros.
fn head(text: &mut String, settings: &Settings, of: &Product, sums: usize) -> std::fmt::Result {
    let group = settings.get("group");
    let target = if of.factors.is_some() { "sm_80" } else { "sm_90a" };
    let (ty, count) = (of.sums.0, sums * of.sums.1);
    write!(
        text,
        ".version 8.0
.target {target}
.address_size 64
.visible .entry products(.param .u64 result)
.maxntid {group}, 1, 1
{{
	.reg .pred %p;
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	.reg .{ty} %s<{count}>;
"
    )?;
    let zero = match ty {
        "f64" => "0d0000000000000000",
        "f32" => "0f00000000",
        _ => "0",
    };
    for register in 0..count {
        writeln!(text, "\tmov.{ty} %s{register}, {zero};")?;
    }
    Ok(())
}

/// A loop of `steps` steps; no loop for none.
fn repeat(text: &mut String, settings: &Settings, body: &str) -> std::fmt::Result {
    let steps = settings.get("steps");
    if steps == 0 {
        return Ok(());
    }
    write!(
        text,
        "\tmov.u32 %r0, 0;
$step:
	.pragma \"nounroll\";
{body}	add.s32 %r0, %r0, 1;
	setp.lt.u32 %p, %r0, {steps};
	@%p bra $step;
"
    )
}

/// The sum of all sums, at the work-item's place.
fn tail(text: &mut String, of: &Product, sums: usize) -> std::fmt::Result {
    let (ty, count) = (of.sums.0, sums * of.sums.1);
    let (add, as_bits) = match ty {
        "f64" => ("add.rn.f64", "cvt.rn.f32.f64 %f, %s0;\n\tmov.b32 %r0, %f;"),
        "f32" => ("add.rn.f32", "mov.b32 %r0, %s0;"),
        _ => ("add.s32", "mov.b32 %r0, %s0;"),
    };
    for register in 1..count {
        writeln!(text, "\t{add} %s0, %s0, %s{register};")?;
    }
    if ty == "f64" {
        writeln!(text, "\t.reg .f32 %f;")?;
    }
    write!(
        text,
        "\t{as_bits}
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.s32 %r1, %r1, %r2, %r3;
	ld.param.u64 %rd0, [result];
	cvta.to.global.u64 %rd0, %rd0;
	mul.wide.u32 %rd1, %r1, 4;
	add.s64 %rd2, %rd0, %rd1;
	st.global.b32 [%rd2], %r0;
	ret;
}}
"
    )
}

/// A tuple of registers: `{%s4, %s5}`.
fn registers(name: &str, first: usize, count: usize) -> String {
    let all: Vec<String> = (first..first + count).map(|at| format!("%{name}{at}")).collect();
    format!("{{{}}}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::testing::run;

    #[test]
    fn every_product_of_zeros_is_zero() {
        for of in NAMES {
            for (sums, wait) in [(1, "step"), (3, "each")] {
                let (of, sums, wait) = (format!("of={of}"), format!("sums={sums}"), format!("wait={wait}"));
                let ran = run("micro/products", &["steps=2", &of, &sums, &wait]);
                assert_eq!(ran.u32s("result"), vec![0; 128], "{of}");
            }
        }
    }

    #[test]
    fn a_warp_group_is_not_smaller_than_its_products_want() {
        let (found, settings) =
            super::super::with("micro/products", &["of=m64n8k16.f16".into(), "group=96".into()])
                .expect("in range");
        let said = found.workload(&settings).expect_err("96 work-items").to_string();
        assert!(said.contains("`group` must be a multiple of 128"), "{said}");
    }
}
