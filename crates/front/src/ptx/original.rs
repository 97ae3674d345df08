//! The module that a kernel was read from, as far as it is needed to put a rewritten kernel in the old one's place.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::alone::Whole;
use super::data;
use super::lexer::line_at;
use super::slots::{From, Slots};
use super::tree::{Function, Module, Variable};
use super::{Facts, Imported, LoopInText, References};
use crate::error::{Error, Result};
use crate::ir::{Fused, Kernel};

/// An entry with edges at one of its loops.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The kernel.
    pub kernel: Kernel,
    /// The loop as the text has it.
    pub own: LoopInText,
    header: String,
    facts: Facts,
}

/// Most of them that are kept: plans of one entry change the same few loops.
const KEPT_CUTS: usize = 16;

/// A module and one of its entries.
#[derive(Clone, Debug)]
pub struct Original {
    /// The module's text without entries that this one does not need.
    pub text: Arc<String>,
    /// See [`Original::whole`].
    pub(super) whole: Whole,
    /// What messages call it.
    pub file: String,
    /// The entry's name.
    pub entry: String,
    /// Where the entry's declaration starts in the text.
    pub start: usize,
    /// The position of the entry's body in the text: between its braces.
    pub body: Range<usize>,
    /// Where each of the kernel's parameters comes from.
    pub parameters: Vec<Origin>,
    /// The name of each of them in the source, with the path to a structure's member (`args.inner.scale`), where the module's debug
    /// information has it.
    pub fields: Vec<Option<String>>,
    /// Bytes of all that the launch passes.
    pub parameter_bytes: u64,
    /// Where each of the entry's own parameters starts in that, and its size, in bytes.
    pub layout: Vec<(u64, u64)>,
    /// Variables of the shared and local space that the entry mentions.
    pub arrays: Vec<OriginalArray>,
    /// The source files that the module names, by number.
    pub files: Vec<(u64, String)>,
    /// The work-group size that the entry requires.
    pub required_group: Option<[u32; 3]>,
    /// The PTX version, and where its number stands in the text.
    pub version: Option<((u32, u32), Range<usize>)>,
    /// The GPU that the module is for: `sm_90`.
    pub target: String,
    /// Bytes of dynamic shared memory that the launch asks for.
    pub dynamic_shared_bytes: u32,
    /// The entry reads the number of those bytes (`%dynamic_smem_size`): the result is valid only for launches with as many.
    pub reads_dynamic_shared_size: bool,
    /// Whether the assembler decides about one of the entry's sums, by the code around.
    pub is_open: bool,
    /// What an assembler may make of each sum that the entry leaves to it, in the order in which they stand.
    pub open_sums: Vec<Vec<Fused>>,
    /// An access through a generic address became one of the space that the address begins in.
    pub spaces_inferred: bool,
    /// What it was read with.
    pub facts: Facts,
    /// The last ones that were read.
    cuts: Arc<Mutex<Vec<Arc<Cut>>>>,
    /// See [`Original::variant`].
    variants: Arc<Mutex<Vec<Arc<Variant>>>>,
}

/// An entry in another text that was made of its own.
#[derive(Debug)]
struct Variant {
    key: String,
    facts: Facts,
    read: Arc<Imported>,
}

impl Original {
    /// The statements of the entry, and of what it calls, that name one of these variables.
    ///
    /// # Errors
    /// A body cannot be read.
    pub fn references(&self, variables: &HashSet<&str>) -> Result<References> {
        super::references::references(&self.text, &self.entry, variables)
    }

    /// Whether shared memory may lie behind what is declared at this place of the text. Arrays lie in the order of their
    /// declarations, those of the module anywhere among them, and launches' own memory last (ptxas 13.0).
    pub fn shared_behind(&self, at: usize) -> bool {
        let line = line_at(&self.text, at);
        let is_behind = |array: &OriginalArray| array.is_dynamic || array.is_global || array.line >= line;
        let mut shared = self.arrays.iter().filter(|array| array.is_shared);
        shared.any(is_behind)
    }

    /// The entry with edges at the loop that has this label (without `$`): read again, unless it is one of the last ones. Edges at
    /// two loops at once would make what the inner one only reads a value of the outer one's iterations.
    ///
    /// # Errors
    /// The loop is not there, or its text cannot be copied.
    pub fn cut(&self, header: &str) -> Result<Arc<Cut>> {
        let kept = || self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |cut: &&Arc<Cut>| cut.header == header && cut.facts == self.facts;
        if let Some(known) = kept().iter().find(is_same) {
            return Ok(Arc::clone(known));
        }
        let module = super::Module::shared(&self.text, &self.file)?;
        let headers = [header.to_owned()];
        let (imported, mut loops) = super::translate_cut(&module, &self.entry, &self.facts, &headers)?;
        let [header] = headers;
        let cut = Arc::new(Cut {
            kernel: imported.kernel,
            own: loops
                .pop()
                .ok_or_else(|| Error::bug("a loop that was cut is lost"))?,
            header,
            facts: self.facts.clone(),
        });
        let mut kept = kept();
        if kept.len() == KEPT_CUTS {
            kept.remove(0);
        }
        kept.push(Arc::clone(&cut));
        Ok(cut)
    }

    /// The entry in a text that `make` makes of this one, read once for each key and these facts. Errors are not kept.
    ///
    /// # Errors
    /// Those of `make`, or the text cannot be read.
    pub fn variant(
        &self,
        key: &str,
        facts: Facts,
        make: impl FnOnce(&str) -> Result<String>,
    ) -> Result<Arc<Imported>> {
        let kept = || self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |own: &&Arc<Variant>| own.key == key && own.facts == facts;
        if let Some(known) = kept().iter().find(is_same) {
            return Ok(Arc::clone(&known.read));
        }
        let text = Arc::new(make(&self.text)?);
        let read = super::Module::shared(&text, &self.file)?.import_alone(&self.entry, &facts)?;
        let variant = Variant {
            key: key.to_owned(),
            facts,
            read: Arc::new(read),
        };
        let read = Arc::clone(&variant.read);
        let mut kept = kept();
        if kept.len() == KEPT_CUTS {
            kept.remove(0);
        }
        kept.push(Arc::new(variant));
        Ok(read)
    }

    /// Reads the entry again, with other facts.
    ///
    /// # Errors
    /// The entry cannot be read with these facts.
    pub fn again(&self, facts: &Facts) -> Result<Imported> {
        let mut imported = super::Module::shared(&self.text, &self.file)?.import_alone(&self.entry, facts)?;
        imported.original.whole = self.whole.clone();
        imported.original.cuts = Arc::clone(&self.cuts);
        imported.original.variants = Arc::clone(&self.variants);
        Ok(imported)
    }

    /// The whole module's text.
    pub fn whole(&self) -> &str {
        self.whole.text()
    }

    /// Where a byte of the text stands in the whole module.
    pub fn place_in_whole(&self, at: usize) -> usize {
        self.whole.place(at)
    }
}

/// Where a parameter of a kernel comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A parameter of the entry, or a member of it.
    Parameter {
        /// Its name in the text.
        name: String,
        /// Where the member starts in it, in bytes.
        offset: u64,
        /// Where the member starts in all that the launch passes, in bytes.
        position: u64,
    },
    /// The address of a structure that is passed by value.
    Structure {
        /// Its name in the text.
        name: String,
        /// Where it starts in all that the launch passes, in bytes.
        position: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The address of a variable of the module.
    Variable {
        /// Its name in the text.
        name: String,
        /// Whether it lies in constant memory.
        is_constant: bool,
        /// Its initial contents; none if the text has none.
        bytes: Option<Arc<[u8]>>,
        /// Its size as it is declared here, in bytes; nothing for `[]`.
        declared: Option<u64>,
    },
    /// The address of a cooperative launch's workspace, of [`WORKSPACE_BYTES`] zeros before the first meeting.
    Workspace,
}

/// Bytes of a cooperative launch's workspace that are followed here: its size, and who has come to a meeting.
pub const WORKSPACE_BYTES: u64 = 8;

/// A variable of the shared or local space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalArray {
    /// Its name.
    pub name: String,
    /// Whether the whole module sees it.
    pub(crate) is_global: bool,
    /// Whether it can be named at the end of the entry's body.
    pub is_visible: bool,
    /// Whether its size comes from the launch.
    pub is_dynamic: bool,
    /// Whether it lies in the shared space.
    pub is_shared: bool,
    /// The line that declares it.
    pub line: usize,
}

/// What an entry is read from.
pub(super) struct Pieces<'p, 't> {
    pub text: &'t str,
    /// The same, if it can be shared.
    pub shared: Option<&'p Arc<String>>,
    pub file: &'p str,
    pub module: &'p Module<'t>,
    pub function: &'p Function<'t>,
    pub variables: &'p HashMap<&'t str, &'p Variable<'t>>,
    pub slots: &'p Slots<'t>,
    pub dynamic_shared_bytes: u32,
    /// Whether the entry asks for their number.
    pub reads_dynamic_shared_size: bool,
    /// Whether one of the entry's sums is left to the assembler.
    pub is_open: bool,
    /// What may become of each sum that is left to the assembler.
    pub open_sums: Vec<Vec<Fused>>,
    /// Whether an access through a generic address became one of a space.
    pub spaces_inferred: bool,
    /// The names in the source of the kernel's parameters.
    pub fields: Vec<Option<String>>,
    /// What the caller knows.
    pub facts: &'p Facts,
}

/// Keeps what is needed of a module.
///
/// # Errors
/// A variable holds what a kernel cannot be given.
pub(super) fn original(pieces: &Pieces<'_, '_>) -> Result<Original> {
    let Pieces {
        text,
        file,
        module,
        function,
        variables,
        slots,
        ..
    } = pieces;
    let mut parameters = Vec::with_capacity(slots.all.len());
    let (positions, layout) = positions(function);
    let parameter_bytes = layout
        .last()
        .map_or(0, |(start, bytes)| start.saturating_add(*bytes));
    for slot in &slots.all {
        parameters.push(match slot.from {
            From::Parameter(name, offset) => Origin::Parameter {
                name: name.to_owned(),
                offset,
                position: positions.get(name).copied().unwrap_or(0) + offset,
            },
            From::Structure(name, length) => Origin::Structure {
                name: name.to_owned(),
                position: positions.get(name).copied().unwrap_or(0),
                bytes: length,
            },
            From::Workspace => Origin::Workspace,
            From::Variable(name) => {
                let variable = variables.get(name);
                let bytes = variable
                    .map(|variable| data::bytes(text, variable))
                    .transpose()?
                    .flatten();
                Origin::Variable {
                    name: name.to_owned(),
                    is_constant: variable.is_some_and(|variable| variable.space == "const"),
                    bytes: bytes.map(Arc::from),
                    declared: variable.and_then(|variable| {
                        let element =
                            super::kinds::type_of(variable.ty).map_or(1, |ty| u64::from(ty.bytes()));
                        Some(variable.length?.saturating_mul(element))
                    }),
                }
            }
        });
    }
    let mut arrays: Vec<OriginalArray> = variables
        .values()
        .filter(|variable| matches!(variable.space, "shared" | "local"))
        .map(|variable| {
            let is_global = module.variables.iter().any(|other| other.name == variable.name);
            OriginalArray {
                name: variable.name.to_owned(),
                is_global,
                is_visible: is_global || !variable.is_inner,
                is_dynamic: variable.length.is_none(),
                is_shared: variable.space == "shared",
                line: variable.line as usize,
            }
        })
        .collect();
    arrays.sort_by(|a, b| a.name.cmp(&b.name));
    let text = pieces
        .shared
        .map_or_else(|| Arc::new((*text).to_owned()), Arc::clone);
    Ok(Original {
        whole: Whole::of(Arc::clone(&text)),
        text,
        file: (*file).to_owned(),
        entry: function.name.to_owned(),
        start: function.start,
        body: function.body.0..function.body_end,
        parameters,
        fields: pieces.fields.clone(),
        parameter_bytes,
        layout,
        arrays,
        files: module
            .files
            .iter()
            .map(|&(number, path)| (number, path.to_owned()))
            .collect(),
        required_group: function.required_group,
        version: module
            .version
            .map(|(version, (start, end))| (version, start..end)),
        target: module.target.to_owned(),
        dynamic_shared_bytes: pieces.dynamic_shared_bytes,
        reads_dynamic_shared_size: pieces.reads_dynamic_shared_size,
        is_open: pieces.is_open,
        open_sums: pieces.open_sums.clone(),
        spaces_inferred: pieces.spaces_inferred,
        facts: pieces.facts.clone(),
        cuts: Arc::default(),
        variants: Arc::default(),
    })
}

/// The offset of each parameter in the launch's argument buffer, by name, and its size: each at its alignment, one after the
/// other.
fn positions<'t>(function: &Function<'t>) -> (HashMap<&'t str, u64>, Vec<(u64, u64)>) {
    let mut end = 0u64;
    let mut positions = HashMap::new();
    let mut layout = Vec::with_capacity(function.params.len());
    for param in &function.params {
        let element = super::kinds::type_of(param.ty).map_or(8, |ty| u64::from(ty.bytes()));
        let align = param.align.max(element).max(1);
        let start = end.next_multiple_of(align);
        let bytes = param.array.unwrap_or(1).saturating_mul(element);
        positions.insert(param.name, start);
        layout.push((start, bytes));
        end = start.saturating_add(bytes);
    }
    (positions, layout)
}
