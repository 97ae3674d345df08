//! Names in the text form: their spelling, and their uniqueness.
//!
//! A name is a word, or any text in double quotes; a number after it distinguishes equal names and belongs to the text only:
//! `%acc`, `%acc.2`, `%"a b".3`. Unnamed items are plain numbers: `%0`, `%1`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::ir::kernel::{Array, Kernel, Label, LoadId, PlaceData, Region, Value};
use crate::ir::op::{Id, Op, OpKind};

/// The spelling of everything in a kernel that the text names.
pub(super) struct Names<'k> {
    values: SecondaryMap<Value, String>,
    labels: SecondaryMap<Label, String>,
    arrays: SecondaryMap<Array, String>,
    loads: SecondaryMap<LoadId, String>,
    /// Source files, in order of appearance.
    pub files: Vec<&'k str>,
    file_numbers: HashMap<&'k str, usize>,
}

/// Gives each of several names a spelling of its own, in the order they are asked for.
#[derive(Default)]
struct Spelling {
    used: HashMap<String, usize>,
    nameless: usize,
}

impl Spelling {
    fn of(&mut self, name: Option<&str>) -> String {
        let Some(name) = name else {
            self.nameless += 1;
            return (self.nameless - 1).to_string();
        };
        let spelled = spell(name);
        let count = self.used.entry(spelled.clone()).or_insert(0);
        *count += 1;
        match *count {
            1 => spelled,
            number => format!("{spelled}.{number}"),
        }
    }
}

/// A name as a word if it is one, else in quotes.
pub(super) fn spell(name: &str) -> String {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    if starts
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
    {
        name.to_owned()
    } else {
        quote(name)
    }
}

/// Text in double quotes, on one line.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\'' => quoted.push('\''),
            other => quoted.extend(other.escape_debug()),
        }
    }
    quoted.push('"');
    quoted
}

impl<'k> Names<'k> {
    /// Names everything, in the order of the text.
    pub(crate) fn new(kernel: &'k Kernel) -> Names<'k> {
        let mut arrays = Spelling::default();
        let mut loads = Spelling::default();
        let mut names = Names {
            values: SecondaryMap::new(),
            labels: SecondaryMap::new(),
            arrays: SecondaryMap::new(),
            loads: SecondaryMap::new(),
            files: Vec::new(),
            file_numbers: HashMap::new(),
        };
        for (array, data) in &kernel.arrays {
            names.arrays[array] = arrays.of(Some(&data.name));
        }
        for (load, data) in &kernel.loads {
            names.loads[load] = loads.of(Some(&data.name));
        }

        let mut writer = Writer {
            kernel,
            needed: SecondaryMap::new(),
            values: Spelling::default(),
            labels: Spelling::default(),
        };
        for param in &kernel.params {
            names.values[param.value] = writer.values.of(Some(&param.name));
        }
        writer.find_needed(&kernel.body, &mut Vec::new());
        for data in kernel.loads.values() {
            names.add_files(kernel, kernel.places.get(data.place));
        }
        writer.region(&kernel.body, &mut names);
        names
    }

    /// The source file of this place and of the calls around it get their numbers.
    fn add_files(&mut self, kernel: &'k Kernel, place: Option<&'k PlaceData>) {
        let mut next = place;
        // The count ends the walk even where places of a broken kernel form a circle.
        for _ in 0..=kernel.places.len() {
            let Some(data) = next else { break };
            if !data.file.is_empty()
                && let Entry::Vacant(entry) = self.file_numbers.entry(&data.file)
            {
                self.files.push(&data.file);
                entry.insert(self.files.len());
            }
            next = data.inlined_at.and_then(|call| kernel.places.get(call));
        }
    }

    /// The number of a source file; 0 for the unknown one.
    pub(crate) fn file_number(&self, file: &str) -> usize {
        self.file_numbers.get(file).copied().unwrap_or(0)
    }

    /// A value's spelling, without sigil. An undefined value is spelled so that it cannot be read back.
    pub(crate) fn value(&self, value: Value) -> String {
        or_undefined(&self.values[value], value)
    }

    /// A label's spelling, without sigil; empty if the text needs none.
    pub(crate) fn label(&self, label: Label) -> &str {
        &self.labels[label]
    }

    /// An array's spelling, without sigil.
    pub(crate) fn array(&self, array: Array) -> String {
        or_undefined(&self.arrays[array], array)
    }

    /// A load's spelling, without sigil.
    pub(crate) fn load(&self, load: LoadId) -> String {
        or_undefined(&self.loads[load], load)
    }
}

fn or_undefined(name: &str, entity: impl EntityRef) -> String {
    if name.is_empty() {
        format!("?{}", entity.index())
    } else {
        name.to_owned()
    }
}

/// Walks the body twice: for the labels that must be spelled, then for the names.
struct Writer<'k> {
    kernel: &'k Kernel,
    needed: SecondaryMap<Label, bool>,
    values: Spelling,
    labels: Spelling,
}

impl<'k> Writer<'k> {
    fn find_needed(&mut self, region: &Region, enclosing: &mut Vec<(Label, bool)>) {
        for op in &region.ops {
            if let OpKind::Break(label, _) | OpKind::Continue(label, _) = &op.kind
                && exit(&op.kind, enclosing) == Exit::Labelled
            {
                self.needed[*label] = true;
            }
            let Some(label) = op.kind.label() else { continue };
            enclosing.push((label, matches!(op.kind, OpKind::Loop { .. })));
            for inner in op.kind.regions() {
                self.find_needed(inner, enclosing);
            }
            enclosing.pop();
        }
    }

    fn region(&mut self, region: &'k Region, names: &mut Names<'k>) {
        for op in &region.ops {
            self.op(op, names);
        }
    }

    fn op(&mut self, op: &'k Op, names: &mut Names<'k>) {
        names.add_files(self.kernel, self.kernel.places.get(op.place));
        for &result in &op.results {
            self.value(result, names);
        }
        if let Some(label) = op.kind.label() {
            let name = self
                .kernel
                .labels
                .get(label)
                .and_then(|data| data.name.as_deref());
            if name.is_some() || self.needed[label] {
                names.labels[label] = self.labels.of(name);
            }
        }
        if let OpKind::Loop { params, .. } = &op.kind {
            for &param in params {
                self.value(param, names);
            }
        }
        for inner in op.kind.regions() {
            self.region(inner, names);
        }
    }

    fn value(&mut self, value: Value, names: &mut Names<'_>) {
        let name = self
            .kernel
            .values
            .get(value)
            .and_then(|data| data.name.as_deref());
        names.values[value] = self.values.of(name);
    }
}

/// How a `Break` or `Continue` is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// `yield`: to the end of the block or `if` that directly contains it.
    Yield,
    /// Without a label: of the innermost loop.
    Innermost,
    /// With the label.
    Labelled,
}

/// How this `Break` or `Continue` is written inside these labels (true for loops), outermost first.
pub(super) fn exit(kind: &OpKind, enclosing: &[(Label, bool)]) -> Exit {
    let innermost_loop = enclosing.iter().rev().find(|(_, is_loop)| *is_loop);
    match kind {
        OpKind::Break(label, _) if enclosing.last() == Some(&(*label, false)) => Exit::Yield,
        OpKind::Break(label, _) | OpKind::Continue(label, _) if innermost_loop == Some(&(*label, true)) => {
            Exit::Innermost
        }
        _ => Exit::Labelled,
    }
}

/// The spelling of a question about the work-item.
pub(in crate::ir) fn id_name(id: Id) -> String {
    let axis = |dimension: u8| match dimension {
        0 => "x".to_owned(),
        1 => "y".to_owned(),
        2 => "z".to_owned(),
        other => other.to_string(),
    };
    match id {
        Id::Local(dimension) => format!("id.local.{}", axis(dimension)),
        Id::Group(dimension) => format!("id.group.{}", axis(dimension)),
        Id::GroupSize(dimension) => format!("id.group_size.{}", axis(dimension)),
        Id::GroupCount(dimension) => format!("id.group_count.{}", axis(dimension)),
        Id::Lane => "id.lane".to_owned(),
        Id::SubGroup => "id.sub_group".to_owned(),
        Id::SubGroupSize => "id.sub_group_size".to_owned(),
        Id::MaxSubGroupSize => "id.max_sub_group_size".to_owned(),
        Id::SubGroupCount => "id.sub_group_count".to_owned(),
    }
}

/// Every question about the work-item.
pub(in crate::ir) fn all_ids() -> impl Iterator<Item = Id> {
    let by_axis = [Id::Local, Id::Group, Id::GroupSize, Id::GroupCount];
    let positions = by_axis.into_iter().flat_map(|id| (0..3).map(id));
    positions.chain([
        Id::Lane,
        Id::SubGroup,
        Id::SubGroupSize,
        Id::MaxSubGroupSize,
        Id::SubGroupCount,
    ])
}
