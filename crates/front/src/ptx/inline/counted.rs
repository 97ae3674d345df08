//! What the calls of a body become, counted before anything is written out.

use std::collections::{HashMap, HashSet};

use super::{Expander, call, callee};
use crate::error::{Error, Result};
use crate::ir::limits;
use crate::ptx::body;
use crate::ptx::tree::{Body, Function};
use crate::suggest::quoted;

/// Most calls inside each other.
pub(super) const DEEPEST_CALL: usize = 32;

/// What a function's body becomes once its calls are written out.
#[derive(Clone, Copy, Default)]
pub(super) struct Expanded {
    statements: u64,
    registers: u64,
    /// Calls inside each other.
    depth: usize,
}

impl Expanded {
    pub(super) fn check(self) -> Result<()> {
        let limits = [
            (self.statements, limits::OPERATIONS, "instructions"),
            (self.registers, body::MOST_REGISTERS, "registers"),
        ];
        for (count, most, what) in limits {
            if count > most as u64 {
                return Err(Error::input(format!(
                    "with the functions that are called, the entry has too many {what}"
                ))
                .accepted(format!("at most {most}")));
            }
        }
        Ok(())
    }
}

impl<'m, 't> Expander<'m, 't> {
    /// What a body becomes, each function counted once. At least: copies of parameters are not counted.
    pub(super) fn count(
        &mut self,
        own: &Body<'t>,
        counted: &mut HashMap<&'t str, Expanded>,
        depth: usize,
    ) -> Result<Expanded> {
        let mut all = Expanded {
            statements: own.statements.len() as u64,
            registers: own.registers.len() as u64,
            depth: 0,
        };
        for call in own.statements.iter().filter_map(call) {
            let Some(function) = callee(call).and_then(|callee| self.function(callee)) else {
                continue;
            };
            let inner = match counted.get(function.name) {
                Some(&known) => known,
                None if depth >= DEEPEST_CALL => Expanded::default(),
                None => {
                    let body = self.body(function)?;
                    let inner = self.count(&body, counted, depth + 1)?;
                    counted.insert(function.name, inner);
                    inner
                }
            };
            if depth + inner.depth >= DEEPEST_CALL {
                let error = Error::input(format!(
                    "the calls of {} are nested too deeply",
                    quoted(function.name)
                ));
                let error = error.accepted(format!("at most {DEEPEST_CALL} calls inside each other"));
                return Err(error.at(format!("line {}", call.line)));
            }
            all.statements = all.statements.saturating_add(inner.statements);
            all.registers = all.registers.saturating_add(inner.registers);
            all.depth = all.depth.max(inner.depth + 1);
        }
        Ok(all)
    }

    /// A function of the module that can be written out.
    pub(super) fn function(&self, name: &str) -> Option<&'m Function<'t>> {
        self.defined(name)
            .filter(|function| !self.recursive.contains(function.name))
    }

    /// A function of the module that can be called and has a body.
    pub(super) fn defined(&self, name: &str) -> Option<&'m Function<'t>> {
        let mut functions = self.module.functions.iter();
        functions.find(|function| function.name == name && !function.is_entry)
    }

    /// The functions below a body that call themselves, and those that cannot be read.
    pub(super) fn in_circles(&mut self, own: &Body<'t>) -> HashSet<&'t str> {
        let mut calls: HashMap<&'t str, Vec<&'t str>> = HashMap::new();
        let mut found = HashSet::new();
        let mut work = self.called(own);
        while let Some(function) = work.pop() {
            if calls.contains_key(function.name) {
                continue;
            }
            let below = match self.body(function) {
                Ok(body) => self.called(&body),
                Err(_) => {
                    found.insert(function.name);
                    Vec::new()
                }
            };
            calls.insert(
                function.name,
                below.iter().map(|function| function.name).collect(),
            );
            work.extend(below);
        }
        for &name in calls.keys() {
            let (mut seen, mut work) = (HashSet::new(), calls[name].clone());
            while let Some(below) = work.pop() {
                if seen.insert(below) {
                    work.extend(&calls[below]);
                }
            }
            if seen.contains(name) {
                found.insert(name);
            }
        }
        found
    }

    fn called(&self, own: &Body<'t>) -> Vec<&'m Function<'t>> {
        let calls = own.statements.iter().filter_map(call);
        calls
            .filter_map(callee)
            .filter_map(|callee| self.defined(callee))
            .collect()
    }
}
