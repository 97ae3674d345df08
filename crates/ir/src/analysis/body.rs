//! The contents of a loop's body: definitions, loads with their conditions, effects, exits.

use std::collections::{HashMap, HashSet};

use super::effects::{self, Effect};
use super::jumps::yielded;
use super::summary::{Inside, LoadSite};
use crate::ir::{CacheUse, Kernel, Label, Op, OpKind, Place, Region, Value};

/// Something at operation number `at` of the body, or inside that operation.
pub(super) struct Exit {
    pub at: usize,
    pub place: Place,
}

/// A load, and the operation of the body that it is or is in.
pub(super) struct FoundLoad {
    pub at: usize,
    pub site: LoadSite,
}

/// Collects the contents of a body.
pub(super) struct Reader<'k> {
    kernel: &'k Kernel,
    /// Everything that the body defines.
    pub inside: HashMap<Value, Inside>,
    /// The loads that lie directly in the loop.
    pub loads: Vec<FoundLoad>,
    /// Writes, barriers and the like.
    pub effects: Vec<Effect>,
    /// The values that each `continue` of the loop passes on.
    pub continues: Vec<Vec<Value>>,
    /// Where the loop can be left.
    pub exits: Vec<Exit>,
    inner_labels: Vec<Label>,
    label: Label,
    /// Every operand in the body.
    used: HashSet<Value>,
    /// A jump that skips operations after it was seen.
    diverted: bool,
}

impl<'k> Reader<'k> {
    /// Reads the body of the loop with this label.
    pub(crate) fn read(kernel: &'k Kernel, label: Label, body: &Region) -> Reader<'k> {
        let used = effects::operands(body);
        let mut reader = Reader {
            kernel,
            inside: HashMap::new(),
            loads: Vec::new(),
            effects: Vec::new(),
            continues: Vec::new(),
            exits: Vec::new(),
            inner_labels: Vec::new(),
            label,
            used,
            diverted: false,
        };
        reader.region(body, &mut Vec::new(), false, None);
        reader
    }

    fn region(
        &mut self,
        region: &Region,
        conditions: &mut Vec<(Value, bool)>,
        in_inner_loop: bool,
        top: Option<usize>,
    ) {
        for (number, op) in region.ops.iter().enumerate() {
            let at = top.unwrap_or(number);
            self.record(op, in_inner_loop, !conditions.is_empty() || self.diverted);
            effects::add(
                self.kernel,
                op,
                |value| self.used.contains(&value),
                &mut self.effects,
            );
            match &op.kind {
                OpKind::Load { ptr, id, cache } if !in_inner_loop => {
                    let site = LoadSite {
                        id: *id,
                        results: op.results.clone(),
                        pointer: *ptr,
                        volatile: *cache == CacheUse::Volatile,
                        place: op.place,
                        conditions: conditions.clone(),
                        after_exit: false,
                        skippable: self.diverted,
                        behind: self.effects.len(),
                    };
                    self.loads.push(FoundLoad { at, site });
                }
                OpKind::Break(label, _) if !self.inner_labels.contains(label) => {
                    self.exits.push(Exit { at, place: op.place });
                }
                OpKind::Continue(label, args) if *label == self.label => {
                    self.continues.push(args.clone());
                    self.diverted = true;
                }
                OpKind::Break(label, _) if self.inner_labels.last() != Some(label) => self.diverted = true,
                OpKind::Continue(label, _) if !self.inner_labels.contains(label) => {
                    self.exits.push(Exit { at, place: op.place });
                }
                kind if kind.effects().ends => self.exits.push(Exit { at, place: op.place }),
                OpKind::Block { label, body } => {
                    self.inner_labels.push(*label);
                    self.region(body, conditions, in_inner_loop, Some(at));
                    self.inner_labels.pop();
                }
                OpKind::If {
                    label,
                    cond,
                    then,
                    otherwise,
                } => {
                    self.inner_labels.push(*label);
                    for (side, region) in [(true, then), (false, otherwise)] {
                        conditions.push((*cond, side));
                        self.region(region, conditions, in_inner_loop, Some(at));
                        conditions.pop();
                    }
                    self.inner_labels.pop();
                }
                OpKind::Loop { label, body, .. } => {
                    self.inner_labels.push(*label);
                    self.region(body, conditions, true, Some(at));
                    self.inner_labels.pop();
                }
                _ => {}
            }
        }
    }

    fn record(&mut self, op: &Op, in_inner_loop: bool, conditional: bool) {
        let yielded = if op.results.is_empty() { None } else { yielded(op) };
        let mut insert = |value: Value, index: usize, in_inner_loop: bool| {
            let kind = op.kind.without_regions();
            self.inside.insert(
                value,
                Inside {
                    kind,
                    index,
                    place: op.place,
                    yielded: yielded.clone(),
                    in_inner_loop,
                    conditional,
                },
            );
        };
        for (index, &result) in op.results.iter().enumerate() {
            insert(result, index, in_inner_loop);
        }
        if let OpKind::Loop { params, .. } = &op.kind {
            for &param in params {
                let kind = op.kind.without_regions();
                let inside = Inside {
                    kind,
                    index: 0,
                    place: op.place,
                    yielded: None,
                    in_inner_loop: true,
                    conditional,
                };
                self.inside.insert(param, inside);
            }
        }
        debug_assert!(
            op.results
                .iter()
                .all(|&result| self.kernel.values.is_valid(result))
        );
    }
}
