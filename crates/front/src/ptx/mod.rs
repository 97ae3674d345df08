//! PTX as a way in: what nvcc, clang, Triton, Numba or Rust wrote becomes IR.
//!
//! ```text
//! text ─ lexer ─ parse, body ─► tree        words, nothing interpreted
//!      ─ inline ─ flow ─ kinds ─►           calls written out; blocks, what registers hold
//!      ─ structure, with values, arithmetic, compare, convert, bits, memory, together;
//!        and the middle that all such fronts share ─► ir::Kernel
//! ```
//!
//! [`read`] gives one entry of a module as a verified kernel. Any flow graph becomes nested regions without
//! flag variables; blocks of an irreducible one are copied first. Registers become SSA values; pointers are followed from parameters, variables and `cvta` through additions, so that an access is
//! a root and an index wherever the text lets one see it. An instruction that is not understood is carried: it may
//! do anything.
//!
//! Facts that PTX does not state come from the caller, as [`Facts`]: the lengths of buffers, which of them nothing writes,
//! which overlap no others. `ld.global.nc` itself states that its source is not written.
//!
//! Behaviour that PTX leaves undefined gets the IR's meaning: division by zero. Approximations of `f32` (`ex2.approx`,
//! `div.full`, …) are kept; those of other types become the correctly rounded operation or one of [`math`](crate::math). NaN
//! bits are left to the device.

mod alone;
mod arithmetic;
mod asynchronous;
mod bits;
mod body;
mod bytes;
mod carry;
mod compare;
mod contract;
mod convert;
mod cuts;
mod data;
mod fields;
mod float;
mod flow;
#[cfg(test)]
mod graphs;
mod inline;
mod kinds;
mod lexer;
mod library;
mod live;
mod loop_text;
mod memory;
mod opaque;
mod original;
mod parameters;
mod parse;
mod quads;
mod quotient;
mod references;
mod scratch;
mod slots;
mod structure;
mod switches;
mod taken;
mod together;
mod translator;
mod tree;
mod values;
mod workspace;

pub use super::middle::facts::{Assembler, Facts, ParameterFacts};
pub use contract::Undecided;
pub use fields::{is_member, parameter_names};
pub use lexer::{NEXT_LINE, line_at};
pub use live::never_written;
pub use loop_text::{CutRegister, LoopInText, Target};
pub use original::{Cut, Origin, Original, OriginalArray, WORKSPACE_BYTES};
pub(crate) use references::References;
pub use references::{Reference, VariableUse};

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ir::{Kernel, verify};
use crate::names;
use crate::suggest::{accepted, quoted};
use tree::{Body, Function, Operand, Statement, Variable};

/// Most other entries that are tried to say which of them could be read, and most bytes of text that they may have together.
const MOST_TRIED: usize = 16;
const MOST_BYTES_TRIED: usize = 1 << 20;

/// A module of which only the entries are known: the text between their braces is skipped, and parsed when an entry is
/// requested.
#[derive(Debug)]
pub struct Module<'t> {
    text: &'t str,
    shared: Option<&'t Arc<String>>,
    file: &'t str,
    tree: tree::Module<'t>,
}

impl<'t> Module<'t> {
    /// Finds the entries of a module; `file` is what messages and source places call the text.
    ///
    /// # Errors
    /// The text is no PTX module: what, and in which line.
    pub fn new(text: &'t str, file: &'t str) -> Result<Module<'t>> {
        let tree = parse::module(text).map_err(|error| match text.contains(".version") {
            true => error,
            false => error.accepted("PTX as text, which begins with `.version`: `nvcc -ptx` writes it"),
        })?;
        Ok(Module {
            text,
            shared: None,
            file,
            tree,
        })
    }

    /// The same of a text that what is imported keeps, without a copy.
    ///
    /// # Errors
    /// As for [`Module::new`].
    pub fn shared(text: &'t Arc<String>, file: &'t str) -> Result<Module<'t>> {
        let module = Module::new(text, file)?;
        Ok(Module {
            shared: Some(text),
            ..module
        })
    }

    /// The names of the entries, in the order of the text.
    pub fn entries(&self) -> Vec<&'t str> {
        entries_of(&self.tree).map(|entry| entry.name).collect()
    }

    /// Reads an entry, as [`import`] does.
    ///
    /// # Errors
    /// As for [`import`].
    pub fn import(&self, entry: Option<&str>, facts: &Facts) -> Result<Imported> {
        let names = self.entries();
        let chosen = match (entry, &names[..]) {
            (_, []) => return Err(Error::input("the module has no entry").accepted("a module with `.entry`")),
            (Some(name), _) => names::find(&names, name)?.ok_or_else(|| {
                let shown: Vec<_> = names.iter().map(|name| names::shown(name)).collect();
                Error::usage(format!("the module has no entry {}", quoted(name))).accepted(accepted(
                    name,
                    "entries",
                    shown.iter().map(|name| &**name),
                ))
            })?,
            (None, [only]) => only,
            (None, _) => {
                return Err(Error::usage(format!("the module has {} entries", names.len()))
                    .accepted(format!("one of {}", listed(&names))));
            }
        };
        translate(self, chosen, facts).map_err(|error| {
            let readable = self.readable(chosen, facts);
            match readable.is_empty() {
                true => error,
                false => error.or_accepted(format!("entries that can be read: {}", listed(&readable))),
            }
        })
    }

    /// Reads an entry, as [`import`] does, and tries no other one if it cannot be read.
    ///
    /// # Errors
    /// There is no such entry, or it needs an instruction that the IR lacks: which one, in which line.
    pub fn import_alone(&self, entry: &str, facts: &Facts) -> Result<Imported> {
        match entries_of(&self.tree).any(|other| other.name == entry) {
            true => translate(self, entry, facts),
            false => self.import(Some(entry), facts),
        }
    }

    /// The text between the braces of an entry; none if there is no entry of this name.
    pub fn body_of(&self, entry: &str) -> Option<&'t str> {
        let entry = entries_of(&self.tree).find(|other| other.name == entry)?;
        self.text.get(entry.body.0..entry.body_end)
    }

    /// The text without the other entries: what a compiler needs for this one. Those that something else names stay, and all
    /// do where debug information may lead into them.
    pub fn alone(&self, entry: &str) -> String {
        Arc::unwrap_or_clone(alone::alone(&self.shared_text(), &self.tree, entry).0)
    }

    fn shared_text(&self) -> Arc<String> {
        self.shared
            .map_or_else(|| Arc::new(self.text.to_owned()), Arc::clone)
    }

    /// Some other entries that can be read, for a message.
    fn readable(&self, chosen: &str, facts: &Facts) -> Vec<&'t str> {
        let mut bytes = 0;
        let few = entries_of(&self.tree)
            .filter(|entry| entry.name != chosen)
            .take(MOST_TRIED)
            .take_while(|entry| {
                bytes += entry.body_end - entry.body.0;
                bytes <= MOST_BYTES_TRIED
            });
        few.filter(|entry| translate(self, entry.name, facts).is_ok())
            .map(|entry| entry.name)
            .collect()
    }
}

/// The names of a module's entries, in the order of the text.
///
/// # Errors
/// The text is no PTX module: what, and in which line.
pub fn entries(text: &str) -> Result<Vec<String>> {
    let module = Module::new(text, "module")?;
    Ok(module.entries().into_iter().map(str::to_owned).collect())
}

/// Reads an entry of a PTX module. `file` is the name of the text in messages and source places; `entry` may be omitted if the
/// module has only one.
///
/// # Errors
/// The text is no PTX module, has no such entry, or the entry needs an instruction that the IR lacks: which one, in which line,
/// and which other entries could be read.
pub fn read(text: &str, file: &str, entry: Option<&str>, facts: &Facts) -> Result<Kernel> {
    import(text, file, entry, facts).map(|imported| imported.kernel)
}

/// An entry of a module as a kernel.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The kernel, verified.
    pub kernel: Kernel,
    /// Where it comes from.
    pub original: Original,
}

/// Reads an entry like [`read`], and keeps what is needed to put a rewritten kernel in its place. To read several
/// entries of a long module makes a [`Module`] of it once.
///
/// # Errors
/// As for [`read`].
pub fn import(text: &str, file: &str, entry: Option<&str>, facts: &Facts) -> Result<Imported> {
    Module::new(text, file)?.import(entry, facts)
}

fn listed(names: &[&str]) -> String {
    let shown = names
        .iter()
        .take(MOST_TRIED)
        .map(|name| quoted(&names::shown(name)));
    let shown: Vec<String> = shown.collect();
    let more = if names.len() > MOST_TRIED { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn entries_of<'m, 't>(module: &'m tree::Module<'t>) -> impl Iterator<Item = &'m Function<'t>> {
    module.functions.iter().filter(|function| function.is_entry)
}

/// The entry of this name.
fn entry_of<'m, 't>(module: &'m tree::Module<'t>, name: &str) -> Result<&'m Function<'t>> {
    let entry = entries_of(module).find(|own| own.name == name);
    entry.ok_or_else(|| Error::input(format!("there is no entry {}", quoted(name))))
}

/// Turns one entry into a verified kernel. It is read from a text without the others.
fn translate(of: &Module<'_>, name: &str, facts: &Facts) -> Result<Imported> {
    let (text, whole) = alone::alone(&of.shared_text(), &of.tree, name);
    let (mut imported, _) = translate_cut(&Module::shared(&text, of.file)?, name, facts, &[])?;
    imported.original.whole = whole;
    Ok(imported)
}

/// Turns one entry into a verified kernel in which the loops with these headers have edges; with it what the text has there.
fn translate_cut(
    of: &Module<'_>,
    name: &str,
    facts: &Facts,
    headers: &[String],
) -> Result<(Imported, Vec<LoopInText>)> {
    let Module {
        text,
        shared,
        file,
        tree: ref module,
    } = *of;
    let about = |error: Error| error.about(format!("entry {}", quoted(&names::shown(name))));
    let function = entries_of(module)
        .find(|entry| entry.name == name)
        .ok_or_else(|| Error::bug("an entry that was found is lost"))?;
    let mut body = inline::expanded(text, module, function).map_err(about)?;
    switches::written_out(&mut body);
    let arrays: HashSet<&str> = used_variables(module, &body)
        .values()
        .filter(|variable| variable.space == "shared" && variable.length.is_some())
        .map(|variable| variable.name)
        .collect();
    scratch::copies_to_hints(&mut body, &arrays);
    asynchronous::name_groups(&mut body).map_err(about)?;
    carry::name_flag(&mut body);
    quads::halve(&mut body);
    taken::name_places(&mut body, function);
    workspace::name(&mut body);
    let variables = used_variables(module, &body);
    let mut flow = flow::flow(&body).map_err(about)?;
    let own = match headers {
        [] => tree::Body::default(),
        _ => body::body(text, function)?,
    };
    let cuts = cuts::find(&own, &flow, headers).map_err(about)?;
    let edges = cuts::edges(&cuts);
    if !cuts.is_empty() {
        flow = cuts::with_edges(flow, &cuts, &edges).map_err(about)?;
    }
    let mut slots = slots::slots(function, &body, &variables).map_err(about)?;
    let fields = match &facts.source {
        // Another module: its names hold for this one, and its code does not.
        Some(source) => fields::in_source(source, function, &mut slots.clone()),
        None => fields::in_source(text, function, &mut slots),
    };
    let fields = fields::renamed(function, &mut slots, fields, &facts.names)?;
    let facts = &fields::facts_of_slots(function.name, facts, &slots, &fields)?;
    let kinds = kinds::kinds(&slots, &body, &variables);
    let structure::Structured {
        kernel,
        is_open,
        open_sums,
        spaces_inferred,
        cuts_undecided,
        rounded,
        entered,
        places,
    } = structure::kernel(translator::Source {
        text,
        file,
        files: &module.files,
        function,
        body: &body,
        variables: &variables,
        slots: &slots,
        flow: &flow,
        own: &own,
        cuts: cuts.len(),
        kinds: &kinds,
        declared: &module.declared,
        facts,
    })
    .map_err(about)?;
    verify(&kernel).map_err(about)?;
    let original = original::original(&original::Pieces {
        text,
        shared,
        file,
        module,
        function,
        variables: &variables,
        slots: &slots,
        dynamic_shared_bytes: facts.dynamic_shared_bytes.unwrap_or(0),
        is_open,
        open_sums,
        spaces_inferred,
        reads_dynamic_shared_size: reads_special(&body, "dynamic_smem_size"),
        fields,
        facts,
    })
    .map_err(about)?;
    let known = loop_text::InKernel {
        places: &places,
        rounded: &rounded,
    };
    let all = cuts.iter().zip(&entered).zip(cuts_undecided);
    let loops = all.map(|((cut, entered), undecided)| {
        loop_text::in_text(text, &own, cut, entered, &known, undecided).map_err(about)
    });
    Ok((Imported { kernel, original }, loops.collect::<Result<_>>()?))
}

/// Whether a body reads a special register.
fn reads_special(body: &Body<'_>, wanted: &str) -> bool {
    body.statements.iter().any(|statement| match statement {
        Statement::Instruction(instruction) => instruction
            .operands
            .iter()
            .any(|operand| matches!(operand, Operand::Special(name, _) if *name == wanted)),
        _ => false,
    })
}

/// The variables that a body mentions, its own and the module's, by name.
fn used_variables<'m, 't>(
    module: &'m tree::Module<'t>,
    body: &'m Body<'t>,
) -> HashMap<&'t str, &'m Variable<'t>> {
    let mut mentioned = HashSet::new();
    for operand in body.instructions().flat_map(|instruction| &instruction.operands) {
        operand.for_each_symbol(&mut |name| {
            mentioned.insert(name);
        });
    }
    // A variable of the body hides one of the module.
    let all = module.variables.iter().chain(&body.variables);
    all.filter(|variable| mentioned.contains(variable.name))
        .map(|variable| (variable.name, variable))
        .collect()
}
