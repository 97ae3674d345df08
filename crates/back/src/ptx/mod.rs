//! PTX: NVIDIA's assembly language, from which the driver makes machine code.
//!
//! [`emit`] is a pure function from a kernel to text. The driver's compiler schedules instructions, allocates registers and
//! folds operands. This module decides the rest: the path of each load (`memory`), how tokens become counted commit groups
//! (`tokens`), which code runs under a predicate instead of behind a branch and how loops are rotated (`control`,
//! `loop_exits`), where NaNs are made canonical (`float`). Arithmetic (`integer`, `float`, `convert`) keeps the IR's promises
//! to the bit.
//!
//! The text is meant to be read: registers carry the source's names, labels those of the loops, and
//! `.loc` lines let NVIDIA's profiler show the source.

mod atomic;
mod bounds;
mod carried;
mod collective;
mod control;
mod convert;
mod emitter;
mod enclosure;
mod float;
mod integer;
mod joined;
mod loop_exits;
mod memory;
mod prefetch;
mod print;
mod registers;
mod rows;
mod small_ifs;
mod tokens;
mod within;

use std::fmt::Write;

use super::banked::BankedConstants;
pub use super::hints::HintReached;
use super::hints::{Form, expand};
use super::{library, tables};
use crate::cleanup;
use crate::ir::{Array, CacheLevel, Kernel, OpKind, Space, Type, UnaryOp, Value};
use crate::model::{DeviceModel, Vendor};
use crate::{Error, Result};
use emitter::Emitter;
use registers::{Class, identifier};

pub use enclosure::{Around, Handed, Within, given};
pub use prefetch::prefetches;
pub use within::{Block, emit_within};

/// Shared memory that a kernel may declare statically, in bytes; more is dynamic, and asked for at the
/// launch (CUDA C Programming Guide, "Shared Memory").
const MOST_STATIC_SHARED: u64 = 48 << 10;

/// The GPU generation to emit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PtxTarget {
    /// Compute capability 8.0 (A100) and later.
    Sm80,
    /// Compute capability 9.0 (H100, H200) and later.
    Sm90,
}

impl PtxTarget {
    /// The newest that a GPU of this compute capability runs. `None` if it is too old.
    pub fn for_capability(capability: (u32, u32)) -> Option<PtxTarget> {
        match capability {
            (9.., _) => Some(PtxTarget::Sm90),
            (8, _) => Some(PtxTarget::Sm80),
            _ => None,
        }
    }

    /// That of a simulated device. `None` if it does not run PTX.
    pub fn for_model(model: &DeviceModel) -> Option<PtxTarget> {
        match (model.vendor, model.name.as_str()) {
            (Vendor::Intel, _) => None,
            (Vendor::Nvidia, "a100") => Some(PtxTarget::Sm80),
            (Vendor::Nvidia, _) => Some(PtxTarget::Sm90),
        }
    }

    /// As PTX spells it.
    pub fn name(self) -> &'static str {
        match self {
            PtxTarget::Sm80 => "sm_80",
            PtxTarget::Sm90 => "sm_90",
        }
    }
}

/// How to emit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The GPU generation.
    pub target: PtxTarget,
    /// PTX ISA version, 8.0 to 9.0; 8.0 has all that is used.
    pub version: (u32, u32),
    /// The work-group size of the launch, if it is known: the compiler may then use all the registers
    /// that it leaves.
    pub group: Option<[u32; 3]>,
    /// The work-groups that a core will hold at once, if the launch is known. Without it, ptxas reduces registers to 32 per
    /// work-item wherever it can, and moves loads behind arithmetic to do so: `gather` with branch-free roots, unrolled by 8,
    /// takes 32 registers and starts two loads at a time, but 72 and all eight at once if told that only one group will be
    /// resident (ptxas 13.0, sm_90).
    pub groups_per_core: Option<u32>,
    /// Whether to say which source line instructions come from.
    pub lines: bool,
}

impl Options {
    /// The defaults for a GPU generation: PTX 8.0, with source lines.
    pub fn new(target: PtxTarget) -> Options {
        Options {
            target,
            version: (8, 0),
            group: None,
            groups_per_core: None,
            lines: true,
        }
    }

    fn shared_is_dynamic(&self, kernel: &Kernel) -> bool {
        kernel.shared_bytes() > MOST_STATIC_SHARED
    }
}

/// A kernel in PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    /// The module's text.
    pub text: String,
    /// The entry's name.
    pub entry: String,
    /// Shared memory that the launch must ask for, in bytes.
    pub dynamic_shared_bytes: u32,
    /// Shared memory that the entry declares, in bytes.
    pub static_shared_bytes: u32,
    /// The outcome of each cache hint.
    pub hints: Vec<HintReached>,
}

/// The best level that a hint for this level reaches, and its instruction: L1 needs memory with known bounds; see
/// [`Ptx::hints`] for the outcome of each hint.
pub fn reached(asked: CacheLevel) -> (CacheLevel, &'static str) {
    match asked {
        CacheLevel::L1 => (CacheLevel::L1, "cp.async"),
        _ => (CacheLevel::L2, "prefetch.global.L2"),
    }
}

/// A kernel in operations that its target has.
fn expanded(kernel: &Kernel, options: &Options) -> Kernel {
    let mut kernel = kernel.clone();
    expand(&mut kernel, &Form::nvidia(options.target == PtxTarget::Sm90));
    library::expand(&mut kernel);
    if options.target < PtxTarget::Sm90 {
        tables::expand(&mut kernel);
    }
    cleanup::clean(&kernel)
}

/// Emits a verified kernel.
///
/// # Errors
/// The kernel needs features that NVIDIA GPUs lack: a sub-group size other than 32, or a work-group of more than 1024
/// work-items. Or the PTX version is unknown, or the kernel carries instructions of the module that it was read from.
pub fn emit(kernel: &Kernel, options: &Options) -> Result<Ptx> {
    check(kernel, options)?;
    let hints = prefetch::prefetches(kernel, options);
    let kernel = &expanded(kernel, options);
    let mut emitter = Emitter::new(kernel, options);
    let entry = identifier(&kernel.name);
    for (index, param) in kernel.params.iter().enumerate() {
        emitter.parameter(param.value, &parameter_name(kernel, index));
    }
    emitter.prepare_prefetches();
    emitter.region(&kernel.body, control::Next::Nothing)?;
    let written = emitter.finish();

    let (major, minor) = options.version;
    let target = options.target.name();
    let mut text = format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n\n");
    let items = group_items(kernel, options);
    let scratch_bytes = if written.uses_scratch { 4 * items } else { 0 };
    let dynamic = options.shared_is_dynamic(kernel);
    if dynamic {
        let _ = writeln!(text, ".extern .shared .align 16 .b8 {}[];\n", memory::DYNAMIC);
    }
    text.push_str(&written.declarations);
    declare_constants(&mut text, kernel, &written.banked);
    let _ = writeln!(text, ".visible .entry {entry}(");
    for (index, param) in kernel.params.iter().enumerate() {
        let separator = if index + 1 < kernel.params.len() { "," } else { "" };
        let name = parameter_name(kernel, index);
        let _ = writeln!(
            text,
            "\t.param {} {name}{separator}",
            parameter_type(kernel, param)
        );
    }
    text.push_str(")\n");
    match (kernel.group_size, options.group) {
        (Some([x, y, z]), _) => {
            let _ = writeln!(text, ".reqntid {x}, {y}, {z}");
        }
        (None, Some([x, y, z])) => {
            let _ = writeln!(text, ".maxntid {x}, {y}, {z}");
        }
        (None, None) => {}
    }
    // ptxas takes the number of work-groups only together with a size.
    let has_size = kernel.group_size.or(options.group).is_some();
    match (kernel.max_registers, options.groups_per_core) {
        (Some(registers), _) => {
            let _ = writeln!(text, ".maxnreg {registers}");
        }
        (None, Some(groups)) if has_size => {
            let _ = writeln!(text, ".minnctapersm {groups}");
        }
        (None, _) => {}
    }
    text.push_str("{\n");
    text.push_str(&written.registers.declarations());
    declare_arrays(&mut text, kernel, &|array| {
        dynamic && kernel.arrays[array].space == Space::Shared
    });
    if written.line_bytes > 0 {
        let _ = writeln!(
            text,
            "\t.local .align 8 .b8 {}[{}];",
            print::VALUES,
            written.line_bytes
        );
    }
    if scratch_bytes > 0 {
        let _ = writeln!(
            text,
            "\t.shared .align 4 .b8 {}[{scratch_bytes}];",
            prefetch::SCRATCH
        );
    }
    text.push('\n');
    text.push_str(&written.instructions);
    text.push_str("}\n");
    for (index, file) in written.files.iter().enumerate() {
        let file: String = file
            .chars()
            .filter(|c| !c.is_control() && *c != '"' && *c != '\\')
            .collect();
        let _ = writeln!(text, ".file {} \"{file}\"", index + 1);
    }
    let declared = if dynamic { 0 } else { kernel.shared_bytes() };
    Ok(Ptx {
        text,
        entry,
        dynamic_shared_bytes: if dynamic { kernel.shared_bytes() as u32 } else { 0 },
        static_shared_bytes: (declared.next_multiple_of(4)) as u32 + scratch_bytes,
        hints,
    })
}

/// Declares the contents of constant memory.
fn declare_constants(text: &mut String, kernel: &Kernel, banked: &BankedConstants) {
    for (position, one) in banked.all().iter().enumerate() {
        let class = Class::of(one.ty).expect("constants are numbers");
        let name = constant_name(kernel, position);
        let value = emitter::literal(one.ty, one.bits).expect("floats have literals");
        let _ = writeln!(text, ".const .{} {name} = {value};", class.ptx());
    }
    if !banked.all().is_empty() {
        text.push('\n');
    }
}

/// One of a kernel's constants. No name in a source has this sign.
fn constant_name(kernel: &Kernel, position: usize) -> String {
    format!("{}$constant_{position}", identifier(&kernel.name))
}

/// Declares arrays, all but those that `is_elsewhere`.
fn declare_arrays(text: &mut String, kernel: &Kernel, is_elsewhere: &dyn Fn(Array) -> bool) {
    for (array, data) in kernel.arrays.iter().filter(|(array, _)| !is_elsewhere(*array)) {
        let space = match data.space {
            Space::Shared => "shared",
            _ => "local",
        };
        let name = array_name(kernel, array);
        let _ = writeln!(
            text,
            "\t.{space} .align {} .b8 {name}[{}];",
            data.align.max(1),
            data.bytes().max(1)
        );
    }
}

fn check(kernel: &Kernel, options: &Options) -> Result<()> {
    if !((8, 0)..=(9, 0)).contains(&options.version) {
        let (major, minor) = options.version;
        return Err(Error::usage(format!("PTX version {major}.{minor} is not known")).accepted("8.0 to 9.0"));
    }
    if let Some(size) = kernel.sub_group_size.filter(|&size| size != 32) {
        return Err(Error::device(format!(
            "`{}` requires sub-groups of {size} work-items",
            kernel.name
        ))
        .accepted("NVIDIA GPUs have sub-groups of 32"));
    }
    if let Some(size) = kernel.group_size {
        let items = size.iter().map(|&size| u64::from(size)).product::<u64>();
        if items > 1024 || items == 0 {
            return Err(Error::device(format!(
                "`{}` requires work-groups of {items} work-items",
                kernel.name
            ))
            .accepted("NVIDIA GPUs have at most 1024"));
        }
    }
    let mut overlaps = false;
    kernel
        .body
        .walk(&mut |op| overlaps |= matches!(op.kind, OpKind::Depend(_)));
    if overlaps && options.target != PtxTarget::Sm90 {
        return Err(Error::device(format!(
            "`{}` overlaps with other launches (`griddepcontrol`)",
            kernel.name
        ))
        .accepted("a GPU of sm_90 or later"));
    }
    let mut newer = None;
    kernel.body.walk(&mut |op| {
        if let OpKind::Unary(function @ (UnaryOp::ApproximateExp2 | UnaryOp::ApproximateTanh), a) =
            op.kind.plain()
            && kernel.ty(*a) == Type::Bf16
        {
            newer = newer.or(Some((function.name(), op.place)));
        }
    });
    if let (Some((name, place)), true) = (newer, options.target != PtxTarget::Sm90) {
        return Err(Error::device(format!("`{}` has a `{name}` of bf16", kernel.name))
            .at(kernel.describe_place(place))
            .accepted("a GPU of sm_90 or later"));
    }
    if kernel.shared_bytes() > u64::from(u32::MAX) || kernel.private_bytes() > 512 << 10 {
        return Err(Error::device(format!(
            "the arrays of `{}` are too large for any NVIDIA GPU",
            kernel.name
        )));
    }
    Ok(())
}

/// The most work-items that a work-group of this kernel can have.
fn group_items(kernel: &Kernel, options: &Options) -> u32 {
    let size = kernel.group_size.or(options.group);
    size.map_or(1024, |size| size.iter().product::<u32>())
        .clamp(1, 1024)
}

/// The name of a parameter: after the kernel's, so that it cannot be one of PTX's own words.
fn parameter_name(kernel: &Kernel, index: usize) -> String {
    let name = identifier(&kernel.params[index].name);
    let same = |other: usize| identifier(&kernel.params[other].name) == name;
    let number = if (0..kernel.params.len()).any(|other| other != index && same(other)) {
        format!("_{index}")
    } else {
        String::new()
    };
    format!("{}_{name}{number}", identifier(&kernel.name))
}

fn parameter_type(kernel: &Kernel, param: &crate::ir::Param) -> String {
    match (kernel.ty(param.value), param.facts) {
        (Type::Ptr(Space::Global), Some(facts)) => {
            format!(
                ".u64 .ptr .global .align {}",
                facts.align.max(1).next_power_of_two()
            )
        }
        (Type::Ptr(_) | Type::I64, _) => ".u64".to_owned(),
        (Type::Bool | Type::I8, _) => ".u8".to_owned(),
        (Type::I16, _) => ".u16".to_owned(),
        (Type::F16 | Type::Bf16, _) => ".b16".to_owned(),
        (Type::F32, _) => ".f32".to_owned(),
        (Type::F64, _) => ".f64".to_owned(),
        _ => ".u32".to_owned(),
    }
}

/// The name of a static array.
fn array_name(kernel: &Kernel, array: Array) -> String {
    format!("{}_{}", identifier(&kernel.arrays[array].name), array.as_u32())
}

impl Emitter<'_> {
    /// Writes the code that loads a parameter into its register.
    fn parameter(&mut self, value: Value, name: &str) {
        if !self.uses.contains_key(&value) {
            return;
        }
        let ty = self.ty(value);
        let r = self.register(value);
        match ty {
            Type::Bool => {
                let byte = self.temporary(Class::B32);
                self.ins(format!("ld.param.u8 {byte}, [{name}]"));
                self.ins(format!("setp.ne.u32 {r}, {byte}, 0"));
            }
            Type::Ptr(Space::Global) => {
                self.ins(format!("ld.param.u64 {r}, [{name}]"));
                self.ins(format!("cvta.to.global.u64 {r}, {r}"));
            }
            Type::Ptr(Space::Shared | Space::Private) => {
                let wide = self.temporary(Class::B64);
                self.ins(format!("ld.param.u64 {wide}, [{name}]"));
                self.ins(format!("cvt.u32.u64 {r}, {wide}"));
            }
            _ => {
                let kind = match ty {
                    Type::I8 => "u8",
                    Type::I16 => "u16",
                    Type::I64 | Type::Ptr(_) => "u64",
                    Type::F16 | Type::Bf16 => "b16",
                    Type::F32 => "f32",
                    Type::F64 => "f64",
                    _ => "u32",
                };
                self.ins(format!("ld.param.{kind} {r}, [{name}]"));
            }
        }
    }
}
