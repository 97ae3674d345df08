//! The names and labels that are visible at a point of the body.

use std::collections::HashMap;

use proc_macro2::{Ident, Span};

/// The meaning of a local name in the recorded copy of the body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// A value that never changes.
    Value,
    /// A variable: reading and assigning are calls.
    Variable,
    /// A `&mut` parameter of a scalar type: a variable of the caller, used through `*`.
    Reference,
    /// A slice: it can be indexed and handed on, and nothing else.
    Memory,
    /// A local array: as memory, and as a value of this many parts.
    Array,
    /// A view: as memory, by a position along each dimension.
    View,
}

impl Binding {
    /// Whether it can be indexed and handed on, and nothing else.
    pub fn is_memory(self) -> bool {
        matches!(self, Binding::Memory | Binding::Array | Binding::View)
    }
}

/// The names in scope, innermost last.
#[derive(Default)]
pub struct Scopes(Vec<HashMap<String, Binding>>);

impl Scopes {
    /// Opens a block.
    pub fn enter(&mut self) {
        self.0.push(HashMap::new());
    }

    /// Closes the innermost block.
    pub fn leave(&mut self) {
        self.0.pop();
    }

    /// Declares a name in the innermost block, hiding an earlier one.
    pub fn declare(&mut self, name: &Ident, binding: Binding) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name.to_string(), binding);
        }
    }

    /// The meaning of a name; none if it is not a local name (a constant, then).
    pub fn find(&self, name: &Ident) -> Option<Binding> {
        let name = name.to_string();
        self.0.iter().rev().find_map(|scope| scope.get(&name)).copied()
    }
}

/// A loop or block that `break` and `continue` can name.
pub struct BreakTarget {
    /// The label in the source, without its apostrophe.
    pub label: Option<String>,
    /// The variable that holds its handle in the recorded copy.
    pub handle: Ident,
    /// Whether it is a loop; `break` without a label means the innermost loop.
    pub is_loop: bool,
}

/// The enclosing loops and labelled blocks, innermost last.
#[derive(Default)]
pub struct Targets {
    open: Vec<BreakTarget>,
    made: usize,
}

impl Targets {
    /// Opens a loop or labelled block and gives its handle's name.
    pub fn enter(&mut self, label: Option<&syn::Label>, is_loop: bool) -> Ident {
        self.made += 1;
        let handle = Ident::new(&format!("scope_{}", self.made), Span::mixed_site());
        self.open.push(BreakTarget {
            label: label.map(|label| label.name.ident.to_string()),
            handle: handle.clone(),
            is_loop,
        });
        handle
    }

    /// Closes the innermost one.
    pub fn leave(&mut self) {
        self.open.pop();
    }

    /// The target of `break` or `continue` with this label (or none).
    pub fn find(&self, label: Option<&syn::Lifetime>) -> Option<&BreakTarget> {
        let mut inner_first = self.open.iter().rev();
        match label {
            Some(label) => {
                inner_first.find(|target| target.label.as_deref() == Some(&label.ident.to_string()))
            }
            None => inner_first.find(|target| target.is_loop),
        }
    }
}
