//! Which operation defines a value.

use std::collections::HashMap;

use crate::ir::{Kernel, Label, OpKind, Place, Region, Value};

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
    },
    /// Parameter number `index` of a loop.
    LoopParam {
        /// The loop.
        label: Label,
        /// Which parameter.
        index: usize,
        /// Its value in the first iteration.
        initial: Value,
    },
}

/// The definitions of every value of a kernel that is neither a parameter nor a constant.
#[derive(Clone, Debug, Default)]
pub struct Definitions(HashMap<Value, Definition>);

impl Definitions {
    /// Those of a whole kernel.
    pub fn of(kernel: &Kernel) -> Definitions {
        Definitions::of_region(&kernel.body)
    }

    /// Those of a region and the regions inside.
    pub fn of_region(region: &Region) -> Definitions {
        let mut map = HashMap::new();
        region.walk(&mut |op| {
            for (index, &result) in op.results.iter().enumerate() {
                let kind = op.kind.without_regions();
                map.insert(
                    result,
                    Definition::Result {
                        kind,
                        index,
                        place: op.place,
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
                    map.insert(
                        param,
                        Definition::LoopParam {
                            label: *label,
                            index,
                            initial,
                        },
                    );
                }
            }
        });
        Definitions(map)
    }

    /// The definition of a value; none for parameters, constants, and values from elsewhere.
    pub fn get(&self, value: Value) -> Option<&Definition> {
        self.0.get(&value)
    }

    /// The operation that defines a value, if one does.
    pub fn op(&self, value: Value) -> Option<&OpKind> {
        match self.get(value) {
            Some(Definition::Result { kind, .. }) => Some(kind),
            _ => None,
        }
    }

    /// Whether the value is defined in here.
    pub fn contains(&self, value: Value) -> bool {
        self.0.contains_key(&value)
    }
}
