//! Scopes: the known names, and those usable at a point.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::lexer::Name;
use crate::ir::kernel::{Label, Value};

/// The names of values and labels seen so far.
#[derive(Default)]
pub(super) struct SymbolTable {
    values: HashMap<Name, Value>,
    /// Values by region, innermost last; the body's own names are in none.
    open: Vec<Vec<Name>>,
    ended: HashSet<Name>,
    labels: HashSet<Name>,
    /// The blocks, `if`s and loops around, innermost last.
    enclosing: Vec<Enclosing>,
}

/// A block, `if` or loop around the operation that is read.
pub(super) struct Enclosing {
    pub label: Label,
    pub name: Option<Name>,
    pub is_loop: bool,
}

/// The meaning of a value's name.
pub(super) enum Lookup {
    Found(Value),
    /// Defined inside a region that has ended.
    Ended,
    Unknown,
}

impl SymbolTable {
    /// Gives a name to a value; false if the name is taken.
    pub(crate) fn define(&mut self, name: Name, value: Value) -> bool {
        if self.ended.contains(&name) {
            return false;
        }
        let Entry::Vacant(entry) = self.values.entry(name) else {
            return false;
        };
        if let Some(names) = self.open.last_mut() {
            names.push(entry.key().clone());
        }
        entry.insert(value);
        true
    }

    pub(crate) fn look_up(&self, name: &Name) -> Lookup {
        match self.values.get(name) {
            Some(&value) => Lookup::Found(value),
            None if self.ended.contains(name) => Lookup::Ended,
            None => Lookup::Unknown,
        }
    }

    /// Names that may be used, in alphabetical order, for suggestions; none where they are too many to search.
    pub(crate) fn visible(&self) -> Vec<&str> {
        const SEARCHED: usize = 1000;
        if self.values.len() > SEARCHED {
            return Vec::new();
        }
        let mut names: Vec<&str> = self
            .values
            .keys()
            .filter_map(|name| name.text.as_deref())
            .collect();
        names.sort_unstable();
        names
    }

    /// Definitions from here on end with the region.
    pub(crate) fn open_region(&mut self) {
        self.open.push(Vec::new());
    }

    pub(crate) fn close_region(&mut self) {
        for name in self.open.pop().unwrap_or_default() {
            self.values.remove(&name);
            self.ended.insert(name);
        }
    }

    /// Enters a block, `if` or loop; false if its label's name is taken.
    pub(crate) fn enter(&mut self, enclosing: Enclosing) -> bool {
        let free = match &enclosing.name {
            Some(name) => self.labels.insert(name.clone()),
            None => true,
        };
        self.enclosing.push(enclosing);
        free
    }

    pub(crate) fn leave(&mut self) {
        self.enclosing.pop();
    }

    /// The blocks, `if`s and loops around, innermost first.
    pub(crate) fn enclosing(&self) -> impl Iterator<Item = &Enclosing> {
        self.enclosing.iter().rev()
    }
}
