//! Which operation defines a value.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::OnceLock;

use cranelift_entity::{EntityRef, SecondaryMap};

use super::effects::{self, Effect};
use super::roots::Root;
use crate::ir::{ConvertOp, Kernel, Label, OpKind, Place, Value};

/// How a value comes about.
#[derive(Clone, Debug)]
pub enum Definition {
    /// Result number `index` of an operation; its regions are emptied.
    Result {
        /// The operation.
        kind: OpKind,
        /// Which of its results.
        index: usize,
        /// Where it is written.
        place: Place,
        /// For a block, an `if` or a loop: every value that a break passes for this result.
        passed: Vec<Value>,
    },
    /// Parameter number `index` of a loop.
    LoopParam {
        /// The loop.
        label: Label,
        /// Which parameter.
        index: usize,
        /// Its value in the first iteration.
        initial: Value,
        /// The new value at each `continue`.
        next: Vec<Value>,
    },
}

/// The definitions of every value of a kernel that is neither a parameter nor a constant, and the effects of all its operations.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    all: Vec<Definition>,
    /// By value: the number of its definition, from 1; 0 where there is none.
    numbers: SecondaryMap<Value, u32>,
    /// Values that come over the edge of a loop, each with its value in front of the edge.
    over_edges: HashMap<Value, Value>,
    bit_casts: bool,
    effects: Vec<Effect>,
    /// The roots of pointers that were asked for, by value: a plan asks for those of a loop's accesses once for each copy of it.
    roots: Vec<OnceLock<Option<Root>>>,
}

impl Definitions {
    /// Those of a whole kernel.
    pub fn of(kernel: &Kernel) -> Definitions {
        let region = &kernel.body;
        let mut breaks: HashMap<Label, Vec<&[Value]>> = HashMap::new();
        let mut continues: HashMap<Label, Vec<&[Value]>> = HashMap::new();
        region.walk(&mut |op| match &op.kind {
            OpKind::Break(label, values) => breaks.entry(*label).or_default().push(values),
            OpKind::Continue(label, values) => continues.entry(*label).or_default().push(values),
            _ => {}
        });
        let of_index = |lists: Option<&Vec<&[Value]>>, index: usize| {
            let lists = lists.into_iter().flatten();
            lists
                .filter_map(|values| values.get(index).copied())
                .collect::<Vec<Value>>()
        };
        let mut all = Vec::new();
        let mut numbers = SecondaryMap::new();
        let mut define = |value: Value, definition: Definition| {
            all.push(definition);
            // A kernel's values are numbered in 32 bits, and so are their definitions.
            numbers[value] = all.len() as u32;
        };
        let mut same = Vec::new();
        let mut bit_casts = false;
        // Most kernels have no atomic operation, and need no list of it.
        let used = LazyCell::new(|| effects::operands(region));
        let mut effects = Vec::new();
        region.walk(&mut |op| {
            effects::add(kernel, op, |value| used.contains(&value), &mut effects);
            bit_casts |= matches!(op.kind, OpKind::Convert(ConvertOp::Bits, _));
            let passed = op.kind.label().and_then(|label| breaks.get(&label));
            let is_edge = op.kind.label().is_some_and(|label| kernel.is_edge(label));
            for (index, &result) in op.results.iter().enumerate() {
                let kind = op.kind.without_regions();
                let passed = of_index(passed, index);
                if is_edge && let [value] = passed[..] {
                    same.push((result, value));
                }
                define(
                    result,
                    Definition::Result {
                        kind,
                        index,
                        place: op.place,
                        passed,
                    },
                );
            }
            if let OpKind::Loop {
                label,
                params,
                initial,
                ..
            } = &op.kind
            {
                for (index, (&param, &initial)) in params.iter().zip(initial).enumerate() {
                    define(
                        param,
                        Definition::LoopParam {
                            label: *label,
                            index,
                            initial,
                            next: of_index(continues.get(label), index),
                        },
                    );
                }
            }
        });
        // What comes over the edge of a loop is what it was in front of it.
        let mut over_edges = HashMap::new();
        for (result, value) in same {
            let value = over_edges.get(&value).copied().unwrap_or(value);
            over_edges.insert(result, value);
            if numbers[value] != 0 {
                numbers[result] = numbers[value];
            }
        }
        Definitions {
            all,
            numbers,
            over_edges,
            bit_casts,
            effects,
            roots: vec![OnceLock::new(); kernel.values.len()],
        }
    }

    /// Marks of all values: those of their definitions, where `own` gives one, or else the greatest of those that they are made of,
    /// over branches and the edges of loops.
    pub fn spread<M: Copy + Default + Ord>(
        &self,
        kernel: &Kernel,
        own: impl Fn(&Definition, Value) -> Option<M>,
    ) -> SecondaryMap<Value, M> {
        let mut marks = SecondaryMap::<Value, M>::new();
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for value in kernel.values.keys() {
                let Some(definition) = self.get(value) else {
                    continue;
                };
                let mark = own(definition, value).unwrap_or_else(|| {
                    let mut mark = M::default();
                    let mut take = |from: Value| mark = mark.max(marks[from]);
                    match definition {
                        Definition::LoopParam { initial, next, .. } => {
                            take(*initial);
                            next.iter().copied().for_each(take);
                        }
                        Definition::Result { kind, passed, .. } => {
                            kind.for_each_operand(&mut take);
                            passed.iter().copied().for_each(take);
                        }
                    }
                    mark
                });
                is_changed |= mark > marks[value];
                marks[value] = mark;
            }
        }
        marks
    }

    /// The root of a pointer, which `search` finds the first time.
    pub(super) fn root(&self, pointer: Value, search: impl FnOnce() -> Option<Root>) -> Option<Root> {
        match self.roots.get(pointer.index()) {
            Some(root) => *root.get_or_init(search),
            None => search(),
        }
    }

    /// Every operation in the kernel that a load may not be moved across without a reason.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The definition of a value; none for parameters, constants, and values from elsewhere.
    pub fn get(&self, value: Value) -> Option<&Definition> {
        let before = self.numbers[value].checked_sub(1)?;
        self.all.get(before as usize)
    }

    /// The operation that defines a value, if one does.
    pub fn op(&self, value: Value) -> Option<&OpKind> {
        match self.get(value) {
            Some(Definition::Result { kind, .. }) => Some(kind),
            _ => None,
        }
    }

    /// Whether a value comes over the edge of a loop that is to be [cut out](crate::cut): code inside cannot use the operands of
    /// its definition.
    pub fn comes_over_edge(&self, value: Value) -> bool {
        self.over_edges.contains_key(&value)
    }

    /// A value as it is in front of all edges that it has come over.
    pub fn in_front_of_edges(&self, value: Value) -> Value {
        self.over_edges.get(&value).copied().unwrap_or(value)
    }

    /// Whether some operation takes the bits of a value for another type: integers may then hold addresses.
    pub fn has_bit_casts(&self) -> bool {
        self.bit_casts
    }
}
