//! SPIR-V as a way in: what clang, the translator of LLVM, DPC++ or our own back end wrote becomes IR.
//!
//! ```text
//! bytes ─ words ─ module ─►            instructions; where entries, types, constants and variables stand
//!       ─ expand ─ places ─►           calls written out, blocks, registers; variables as registers
//!       ─ translate, with arithmetic, memory, composite, extended, atomics, groups, identity;
//!         and the middle that all such fronts share ─► ir::Kernel
//! ```
//!
//! [`Module::import`] gives one entry of a module as a verified kernel. It reads OpenCL's SPIR-V, of versions 1.0 to 1.6: physical
//! addresses of 64 bits, control flow that need not be structured, `OpenCL.std`, sub-groups and work-groups, atomic operations
//! with scopes and orders, generic pointers, vectors, structures, calls, work-group variables and constants, and Intel's cache
//! extensions. Images and samplers are refused by name. An instruction that the IR cannot express is only an error if the entry
//! needs it.
//!
//! Behaviour that SPIR-V leaves undefined gets the IR's meaning: division by zero, out-of-range conversions. Products and sums
//! are not fused here; if the module lets devices fuse them, the rewritten one does, too. OpenCL's library functions are kept;
//! an entry that could not be written back with its bits is still tuned.

mod accuracy;
mod arithmetic;
mod atomics;
mod body;
mod composite;
mod convert;
mod copies;
mod expand;
mod extended;
mod functions;
mod groups;
mod identity;
mod memory;
mod module;
mod operands;
mod parameters;
mod places;
mod printed;
mod steps;
mod translate;
mod types;
mod vectors;
#[doc(hidden)]
pub mod words;

pub use parameters::{Argument, Origin};

use std::sync::Arc;

use rspirv::spirv::ExecutionMode;

use super::middle::flow::Flow;
use super::middle::regions;
use super::middle::{self, copies as alike};
pub use super::ptx::{Facts, ParameterFacts};
use crate::cleanup;
use crate::error::{Error, Result};
use crate::ir::{Builder, FloatMode, Kernel, verify};
use crate::names;
use crate::suggest::{accepted, quoted};

/// Most bytes of a module.
pub const MODULE_BYTES: u64 = 1 << 30;

/// Most entries that a message lists.
const MOST_LISTED: usize = 16;

/// A module's words.
#[derive(Clone, Debug)]
pub struct Module {
    words: Arc<Vec<u32>>,
    file: String,
    entries: Vec<(u32, String)>,
}

/// An entry of a module as a kernel.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The kernel, verified.
    pub kernel: Kernel,
    /// Where it comes from.
    pub original: Original,
}

/// The module that a kernel was read from, as far as it is needed to put a rewritten kernel in the old one's place.
#[derive(Clone, Debug)]
pub struct Original {
    /// The module's words.
    pub words: Arc<Vec<u32>>,
    /// What messages call it.
    pub file: String,
    /// The entry's name.
    pub entry: String,
    /// The id of its function.
    pub function: u32,
    /// The id of the function whose body a rewritten kernel takes: the entry's own, or the one that it only calls.
    pub body: u32,
    /// Where each of the kernel's parameters comes from.
    pub parameters: Vec<Origin>,
    /// Where its shared arrays come from, by name.
    pub arrays: Vec<(String, Origin)>,
    /// What the host passes as each of its parameters.
    pub arguments: Vec<Argument>,
    /// Devices may compute a product and the sum that takes it as one, in the entry as in what takes its place.
    pub may_fuse: bool,
    /// Why no kernel can be put in the entry's place, if none can.
    pub undecided: Option<Error>,
}

impl Original {
    /// Reads the entry again, with other facts.
    ///
    /// # Errors
    /// The entry cannot be read with these facts.
    pub fn again(&self, facts: &Facts) -> Result<Imported> {
        let module = Module {
            words: Arc::clone(&self.words),
            file: self.file.clone(),
            entries: vec![(self.function, self.entry.clone())],
        };
        module.import(Some(&self.entry), facts)
    }
}

impl Module {
    /// Finds the entries of a module; `file` is what messages and source places call it.
    ///
    /// # Errors
    /// The bytes are no SPIR-V module for OpenCL: what, and at which byte.
    pub fn new(bytes: &[u8], file: &str) -> Result<Module> {
        let words = words::words(bytes)?;
        let read = module::Module::new(&words)?;
        let entries = read.entries.iter();
        let entries = entries
            .map(|entry| (entry.function, entry.name.clone()))
            .collect();
        Ok(Module {
            words: Arc::new(words),
            file: file.to_owned(),
            entries,
        })
    }

    /// The names of the entries, in the module's order.
    pub fn entries(&self) -> Vec<&str> {
        self.entries.iter().map(|(_, name)| name.as_str()).collect()
    }

    /// Reads an entry, which may be left out where the module has only one.
    ///
    /// # Errors
    /// The module has no such entry, or the entry needs an instruction that the IR lacks: which one, at which byte.
    pub fn import(&self, entry: Option<&str>, facts: &Facts) -> Result<Imported> {
        let names = self.entries();
        let name = match (entry, &names[..]) {
            (_, []) => {
                return Err(Error::input("the module has no entry").accepted("a module with `OpEntryPoint`"));
            }
            (Some(name), _) => names::find(&names, name)?.ok_or_else(|| {
                let shown: Vec<_> = names.iter().map(|name| names::shown(name)).collect();
                Error::usage(format!("the module has no entry {}", quoted(name))).accepted(accepted(
                    name,
                    "entries",
                    shown.iter().map(|name| &**name),
                ))
            })?,
            (None, [only]) => *only,
            (None, _) => {
                let shown = names
                    .iter()
                    .take(MOST_LISTED)
                    .map(|name| quoted(&names::shown(name)));
                let shown: Vec<String> = shown.collect();
                let more = if names.len() > MOST_LISTED { ", …" } else { "" };
                return Err(Error::usage(format!("the module has {} entries", names.len()))
                    .accepted(format!("one of {}{more}", shown.join(", "))));
            }
        };
        let (function, name) = self
            .entries
            .iter()
            .find(|(_, own)| own == name)
            .ok_or_else(|| Error::bug("an entry that was found is lost"))?;
        self.translate(*function, name, facts)
            .map_err(|error| error.about(format!("entry {}", quoted(name))))
    }

    fn translate(&self, function: u32, name: &str, facts: &Facts) -> Result<Imported> {
        let module = module::Module::new(&self.words)?;
        let mut body = expand::body(&module, function)?;
        printed::take_texts(&module, &mut body);
        let structures = places::to_registers(&module, &mut body)?;
        let (accuracy, inaccurate) = accuracy::of_entry(&module, &body)?;
        let flow = Flow::new(std::mem::take(&mut body.blocks), "byte")?;
        body.blocks = flow.blocks.clone();
        let mut kernel = Kernel::new(plain(name));
        kernel.float_mode = FloatMode {
            any_nan: true,
            accuracy,
        };
        modes(&module, function, &mut kernel)?;
        let mut translator = translate::Translator::new(&module, &body, &self.file, facts);
        let mut builder = Builder::new(&mut kernel, Kernel::NOWHERE);
        let given = translator.declare(&mut builder, &structures)?;
        regions::write(&mut translator, &flow, body.registers.len(), &mut builder)?;
        let region = builder.finish();
        let undecided = translator.undecided.take().or(inaccurate);
        let contraction_off = module.modes.iter().any(|(own, words)| {
            *own == function && words.first() == Some(&(ExecutionMode::ContractionOff as u32))
        });
        let may_fuse = !contraction_off && !translator.is_exact;
        kernel.body = region;
        let arguments = parameters::arguments(&translator, &given, &kernel)?;
        parameters::learn(&mut kernel);
        cleanup::own_exits(&mut kernel);
        cleanup::tidy(&mut kernel);
        cleanup::find_spaces(&mut kernel);
        middle::shape_loops(&mut kernel, facts.no_overflow);
        alike::merge(&mut kernel, &self.file);
        verify(&kernel)?;
        Ok(Imported {
            kernel,
            original: Original {
                words: Arc::clone(&self.words),
                file: self.file.clone(),
                entry: name.to_owned(),
                function,
                body: module.wrapped(function, name)?.unwrap_or(function),
                parameters: given.parameters,
                arrays: given.arrays,
                arguments,
                may_fuse,
                undecided,
            },
        })
    }
}

/// An entry's launch requirements.
fn modes(module: &module::Module<'_>, function: u32, kernel: &mut Kernel) -> Result<()> {
    for (own, words) in &module.modes {
        let (true, Some((&mode, rest))) = (*own == function, words.split_first()) else {
            continue;
        };
        let three = |numbers: &[u32]| match numbers {
            &[x, y, z] => Ok([x, y, z]),
            _ => Err(Error::input("a work-group's size is three numbers")),
        };
        match ExecutionMode::from_u32(mode) {
            Some(ExecutionMode::LocalSize) => kernel.group_size = Some(three(rest)?),
            Some(ExecutionMode::LocalSizeId) => {
                let mut numbers = Vec::with_capacity(3);
                for &id in rest {
                    numbers.push(module.number(id)? as u32);
                }
                kernel.group_size = Some(three(&numbers)?);
            }
            Some(ExecutionMode::SubgroupSize) => kernel.sub_group_size = rest.first().copied(),
            Some(ExecutionMode::RoundingModeRTZ) => {
                return Err(Error::input("the entry rounds towards zero")
                    .accepted("rounding to nearest, which is OpenCL's"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A name with everything replaced that is not in a C identifier.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut text: String = name.chars().map(plain).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.is_empty() {
        text.insert(0, '_');
    }
    text.truncate(crate::ir::limits::NAME_BYTES);
    text
}
