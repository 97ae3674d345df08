//! SPIR-V: the form in which OpenCL devices take kernels, Intel's GPUs and CPUs among them.
//!
//! [`emit`] is a pure function from a kernel to a module of version 1.4. The device's compiler schedules, allocates registers,
//! vectorizes and folds addresses. This module decides the rest: where NaNs are made canonical (`back::nan`), the result of a
//! division by zero (`integer`), how halves are rounded once (`half`), which message a cache hint becomes (`prefetch`), and
//! that loops keep the form that their plan gave them (`control`).
//!
//! # Pointers
//! A pointer is a pointer to bytes in its address space; addresses are counted in bytes, and cast where memory is read
//! or written. Shared arrays are variables of the module, private ones of the function.
//!
//! # Asynchronous copies
//! OpenCL's `async_work_group_copy` is one copy of a whole work-group: every work-item must reach it with the same two
//! pointers. The copies of a ring have an address for each work-item (its own slot, and in a gather its own source), so they
//! cannot be one. Intel's GPUs have no other copy from global to shared memory that bypasses registers. So a copy becomes a
//! load and a store, and a wait becomes nothing (`back::copies`).
//!
//! # What is refused
//! [`emit`] refuses kernels that the device could not run as the IR specifies: see `check`.

mod atomic;
mod block;
mod check;
mod collective;
mod control;
mod controlled;
mod convert;
mod emitter;
mod float;
mod half;
mod identity;
mod integer;
mod memory;
mod messages;
mod module;
mod prefetch;
mod print;
mod side_by_side;

use rspirv::binary::Disassemble;
use rspirv::spirv::Word;

use super::hints::{HintReached, expand_others};
use super::{copies, tables};
use crate::cleanup;
use crate::ir::{Accuracy, CacheUse, Id, Kernel, Op, OpKind, PrefetchScope, Space};
use crate::{Error, Result};
use emitter::Emitter;

pub use block::block_instructions;
pub use messages::{Element, Message, instructions, messages};
pub use prefetch::reached;
pub use side_by_side::BlockAccess;

/// The consumer of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpirvTarget {
    /// Any OpenCL device that takes SPIR-V 1.4: CPUs, and GPUs of which nothing is known.
    Portable,
    /// Intel GPUs with a load/store cache (LSC) that takes prefetches: the Max series (pvc), and those that came with
    /// or after it (dg2, bmg).
    IntelLsc,
    /// Intel GPUs before them (gen11, xe-lp), on which a prefetch is a no-op.
    IntelOlder,
}

impl SpirvTarget {
    /// Every target, for tests and parsers.
    pub const ALL: [SpirvTarget; 3] = [
        SpirvTarget::Portable,
        SpirvTarget::IntelLsc,
        SpirvTarget::IntelOlder,
    ];

    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            SpirvTarget::Portable => "portable",
            SpirvTarget::IntelLsc => "intel-lsc",
            SpirvTarget::IntelOlder => "intel-older",
        }
    }
}

/// How to emit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The consumer.
    pub target: SpirvTarget,
    /// The sub-group size that the kernel is to run with, where it requires none itself and depends on one.
    pub sub_group_size: Option<u32>,
    /// Whether the device's compiler knows SPV_INTEL_subgroup_buffer_prefetch: a sub-group's joint prefetches become
    /// blocks on [`SpirvTarget::IntelLsc`].
    pub block_prefetch: bool,
    /// Which block loads and stores the device's compiler knows.
    pub block_access: BlockAccess,
    /// Whether to say which source line instructions come from.
    pub lines: bool,
}

impl Options {
    /// The defaults for a target: any sub-group size, with source lines.
    pub fn new(target: SpirvTarget) -> Options {
        Options {
            target,
            sub_group_size: None,
            block_prefetch: false,
            block_access: BlockAccess::default(),
            lines: true,
        }
    }
}

/// A kernel in SPIR-V.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spirv {
    /// The module.
    pub words: Vec<u32>,
    /// The module as people read it.
    pub text: String,
    /// The entry's name.
    pub entry: String,
    /// The options that OpenCL has to build the module with.
    pub build_options: &'static str,
    /// The outcome of each cache hint.
    pub hints: Vec<HintReached>,
}

impl Spirv {
    /// The module's binary form, little-endian, as files hold it.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// The options that OpenCL has to build a kernel's module with, so that division and square root are as accurate as it says.
pub fn build_options(kernel: &Kernel) -> &'static str {
    match kernel.float_mode.accuracy {
        Accuracy::Rounded => "-cl-fp32-correctly-rounded-divide-sqrt",
        Accuracy::OpenCl | Accuracy::Fast => "",
    }
}

/// Emits a verified kernel.
///
/// # Errors
/// The kernel means something that OpenCL devices do not do: see `check`.
pub fn emit(kernel: &Kernel, options: &Options) -> Result<Spirv> {
    let Parts { module, hints, .. } = parts(kernel, options)?;
    let words = module::assemble(&module);
    if words.len() > MOST_WORDS {
        return Err(Error::device(format!(
            "`{}` is too large for a SPIR-V module",
            kernel.name
        )));
    }
    Ok(Spirv {
        words,
        text: module.disassemble(),
        entry: identifier(&kernel.name),
        build_options: build_options(kernel),
        hints,
    })
}

/// A kernel in SPIR-V before it is words, for who puts it into another module.
#[doc(hidden)]
pub struct Parts {
    /// The module.
    pub module: rspirv::dr::Module,
    /// The variable of each shared array, and the array's name.
    pub arrays: Vec<(String, Word)>,
    /// The outcome of each cache hint.
    pub(crate) hints: Vec<HintReached>,
}

/// Emits a verified kernel, as instructions.
///
/// # Errors
/// As for [`emit`].
#[doc(hidden)]
pub fn parts(kernel: &Kernel, options: &Options) -> Result<Parts> {
    let form = prefetch::form(kernel, options);
    let blocks = block::Blocks::of(kernel, options);
    let hints = prefetch::report(kernel, options.target, &form, blocks.as_ref());
    let mut kernel = kernel.clone();
    if let Some(blocks) = &blocks {
        blocks.split(&mut kernel);
    }
    let is_block = |op: &Op| blocks.as_ref().is_some_and(|blocks| blocks.is_whole(op));
    expand_others(&mut kernel, &form, &is_block);
    copies::expand(&mut kernel);
    tables::expand(&mut kernel);
    let kernel = &cleanup::clean(&kernel);
    check::check(kernel, options)?;
    side_by_side::check(kernel, options)?;
    let (module, arrays) = Emitter::new(kernel, options).write(&identifier(&kernel.name))?;
    let shared = arrays
        .into_iter()
        .filter(|(array, _)| kernel.arrays[*array].space == Space::Shared)
        .map(|(array, variable)| (kernel.arrays[array].name.clone(), variable));
    Ok(Parts {
        module,
        arrays: shared.collect(),
        hints,
    })
}

/// Words of a module that a compiler is asked to read: 256 MiB.
const MOST_WORDS: usize = 64 << 20;

/// The name with everything replaced that is not in a C identifier. Prefixed, so that it is none of OpenCL's functions.
fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("kernel_{}", name.chars().map(plain).collect::<String>())
}

/// Whether a kernel has prefetches that a sub-group makes together.
#[doc(hidden)]
pub fn prefetches_together(kernel: &Kernel) -> bool {
    let mut together = false;
    kernel.body.walk(&mut |op| {
        let scope = PrefetchScope::SubGroup;
        together |= matches!(&op.kind, OpKind::Prefetch { scope: of, .. } if *of == scope);
    });
    together
}

/// Whether a kernel's results depend on the sub-group size: it reads its id there, or exchanges values.
#[doc(hidden)]
pub fn uses_sub_groups(kernel: &Kernel) -> bool {
    let mut uses = false;
    kernel.body.walk(&mut |op| {
        uses |= match &op.kind {
            OpKind::Shuffle { .. } | OpKind::Vote(..) | OpKind::Reduce(..) => true,
            OpKind::Load { cache, .. } | OpKind::Store { cache, .. } => *cache == CacheUse::Block,
            OpKind::Id(id) => !matches!(
                id,
                Id::Local(_) | Id::Group(_) | Id::GroupSize(_) | Id::GroupCount(_)
            ),
            _ => false,
        };
    });
    uses
}
