//! A kernel as text. [`parse`](super::parse()) documents the form and reads it back.
//!
//! Printing never fails, so that a broken kernel can be looked at; a kernel that verifies reads back as
//! the same kernel, up to the numbering of its values, labels and places.

mod constant;
mod names;
mod operation;

pub(super) use constant::canonical_nan;
pub(super) use names::{all_ids, id_name};

use std::fmt::Write;

use super::kernel::{Accuracy, Array, Kernel, Label, LoadId, Param, Place, Races, Value};
use super::op::Op;
use super::types::Space;
use names::{Names, quote, spell};

/// The version of the text form that is written and read.
pub(super) const VERSION: u32 = 1;

/// A kernel as text, in the form that [`parse`](super::parse()) reads.
pub fn print(kernel: &Kernel) -> String {
    let mut printer = Printer::new(kernel);
    printer.kernel();
    printer.out
}

/// One operation as text, without its regions: for messages.
pub(super) fn print_operation(kernel: &Kernel, op: &Op) -> String {
    let mut printer = Printer::new(kernel);
    printer.head(op);
    printer.out
}

pub(super) struct Printer<'k> {
    kernel: &'k Kernel,
    names: Names<'k>,
    out: String,
    indent: usize,
    /// The labels around, outermost first; true for loops.
    enclosing: Vec<(Label, bool)>,
}

impl<'k> Printer<'k> {
    fn new(kernel: &'k Kernel) -> Printer<'k> {
        Printer {
            kernel,
            names: Names::new(kernel),
            out: String::new(),
            indent: 0,
            enclosing: Vec::new(),
        }
    }

    pub(super) fn put(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    fn kernel(&mut self) {
        let kernel = self.kernel;
        self.put(format!("hsir {VERSION}\n\nkernel @{}(", spell(&kernel.name)));
        for param in &kernel.params {
            self.put("\n  ");
            self.param(param);
            self.put(",");
        }
        self.put(if kernel.params.is_empty() { ")" } else { "\n)" });
        if let Some([x, y, z]) = kernel.group_size {
            self.put(format!(" group {x},{y},{z}"));
        }
        if let Some(size) = kernel.sub_group_size {
            self.put(format!(" sub_group {size}"));
        }
        if let Some(registers) = kernel.max_registers {
            self.put(format!(" registers {registers}"));
        }
        if kernel.float_mode.any_nan {
            self.put(" any_nan");
        }
        if kernel.float_mode.accuracy != Accuracy::default() {
            self.put(format!(" accuracy {}", kernel.float_mode.accuracy.name()));
        }
        self.put(" {");
        self.indent = 1;
        if self.declarations() {
            self.out.push('\n');
        }
        self.operations(&kernel.body);
        self.indent = 0;
        self.new_line();
        self.put("}\n");
    }

    fn param(&mut self, param: &Param) {
        let name = self.names.value(param.value);
        let ty = self.kernel.values.get(param.value).map(|data| data.ty);
        let ty = ty.map_or("?", |ty| ty.name());
        self.put(format!("%{name}: {ty}"));
        let Some(facts) = param.facts else { return };
        let length = facts.length.map(|length| self.value_text(length));
        self.put(format!(
            " {}[{}] align {}",
            facts.element,
            length.unwrap_or_default(),
            facts.align
        ));
        if facts.read_only {
            self.put(" readonly");
        }
        if facts.unaliased {
            self.put(" unaliased");
        }
        if facts.is_constant {
            self.put(" constant");
        }
        if facts.races != Races::None {
            self.put(format!(" {}", facts.races.word()));
        }
    }

    /// Arrays, source files and loads; false if there is none of them.
    fn declarations(&mut self) -> bool {
        let kernel = self.kernel;
        for (array, data) in &kernel.arrays {
            let space = match data.space {
                Space::Shared => "shared".to_owned(),
                other => other.to_string(),
            };
            let name = self.names.array(array);
            self.new_line();
            self.put(format!(
                "{space} @{name}: {}[{}] align {}",
                data.element, data.length, data.align
            ));
        }
        for number in 1..=self.names.files.len() {
            let file = quote(self.names.files[number - 1]);
            self.new_line();
            self.put(format!("file #{number} {file}"));
        }
        for (load, data) in &kernel.loads {
            let name = self.names.load(load);
            self.new_line();
            let constant = if data.constant { " constant" } else { "" };
            self.put(format!("load @{name}{constant}"));
            self.place(data.place);
        }
        !kernel.arrays.is_empty() || !kernel.loads.is_empty() || !self.names.files.is_empty()
    }

    /// ` #1:41:18 in #1:60:5`, or nothing where the source is unknown.
    fn place(&mut self, place: Place) {
        if is_nowhere(self.kernel, place) {
            return;
        }
        let mut next = Some(place);
        // The count ends the walk even where places of a broken kernel form a circle.
        for depth in 0..=self.kernel.places.len() {
            let Some(data) = next.and_then(|place| self.kernel.places.get(place)) else {
                return;
            };
            self.put(if depth == 0 { " " } else { " in " });
            let file = self.names.file_number(&data.file);
            self.put(format!("#{file}:{}:{}", data.line, data.column));
            next = data.inlined_at;
        }
    }

    /// A use of a value: its name, or the constant itself.
    pub(super) fn value_text(&self, value: Value) -> String {
        match self.kernel.values.get(value) {
            Some(data) if data.constant.is_some() => {
                constant::constant(data.ty, data.constant.unwrap_or_default())
            }
            _ => format!("%{}", self.names.value(value)),
        }
    }

    pub(super) fn array_text(&self, array: Array) -> String {
        format!("@{}", self.names.array(array))
    }

    pub(super) fn load_text(&self, load: LoadId) -> String {
        format!("@{}", self.names.load(load))
    }

    fn values(&mut self, values: &[Value]) {
        for (index, &value) in values.iter().enumerate() {
            let text = self.value_text(value);
            let _ = write!(self.out, "{}{text}", if index == 0 { " " } else { ", " });
        }
    }
}

/// Says nothing: prints as no place at all.
fn is_nowhere(kernel: &Kernel, place: Place) -> bool {
    kernel.places.get(place).is_none_or(|data| {
        data.file.is_empty() && data.line == 0 && data.column == 0 && data.inlined_at.is_none()
    })
}

/// The same place for a reader, wherever it stands in the table.
fn same_place(kernel: &Kernel, a: Place, b: Place) -> bool {
    a == b
        || kernel.places.get(a).is_some() && kernel.places.get(a) == kernel.places.get(b)
        || is_nowhere(kernel, a) && is_nowhere(kernel, b)
}
