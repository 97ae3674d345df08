//! Equality of two kernels up to the numbering of values, labels and places.

use std::collections::HashMap;

use super::kernel::{Kernel, Label, LoadData, Param, Place, PointerFacts, Region, Value};
use super::op::{Op, OpKind};
use super::print::print_operation;

/// The first difference between two kernels, as words; none if they are the same up to the numbering and
/// the names of values and the numbering of labels and places.
pub fn first_difference(a: &Kernel, b: &Kernel) -> Option<String> {
    let mut comparison = Comparison {
        a,
        b,
        values: HashMap::new(),
        taken: HashMap::new(),
        labels: HashMap::new(),
    };
    comparison.kernels().err()
}

struct Comparison<'k> {
    a: &'k Kernel,
    b: &'k Kernel,
    /// Values of `a` by their counterparts in `b`, and back.
    values: HashMap<Value, Value>,
    taken: HashMap<Value, Value>,
    labels: HashMap<Label, Label>,
}

/// `Err` holds the difference.
type Same = Result<(), String>;

fn same<T: PartialEq>(what: &str, a: &T, b: &T) -> Same {
    match a == b {
        true => Ok(()),
        false => Err(format!("{what} differ")),
    }
}

impl Comparison<'_> {
    fn kernels(&mut self) -> Same {
        let (a, b) = (self.a, self.b);
        same("the names", &a.name, &b.name)?;
        same("the work-group sizes", &a.group_size, &b.group_size)?;
        same("the sub-group sizes", &a.sub_group_size, &b.sub_group_size)?;
        same("the float modes", &a.float_mode, &b.float_mode)?;
        same("the arrays", &a.arrays, &b.arrays)?;
        same("the numbers of parameters", &a.params.len(), &b.params.len())?;
        for (x, y) in a.params.iter().zip(&b.params) {
            same("the names of parameters", &x.name, &y.name)?;
            self.define(x.value, y.value)?;
        }
        // After all of them: a length may be a later parameter.
        for (x, y) in a.params.iter().zip(&b.params) {
            self.facts(x, y)?;
        }
        same("the numbers of loads", &a.loads.len(), &b.loads.len())?;
        for (x, y) in a.loads.values().zip(b.loads.values()) {
            let LoadData {
                name,
                place,
                constant,
            } = x;
            same("the names of loads", name, &y.name)?;
            same("the memory of loads", constant, &y.constant)?;
            self.places(*place, y.place)?;
        }
        self.regions(&a.body, &b.body)
    }

    fn facts(&self, x: &Param, y: &Param) -> Same {
        let without_length = |facts: Option<PointerFacts>| {
            facts.map(|facts| PointerFacts {
                length: None,
                ..facts
            })
        };
        let what = format!("the facts of parameter `{}`", x.name);
        same(&what, &without_length(x.facts), &without_length(y.facts))?;
        let length = |param: &Param| param.facts.and_then(|facts| facts.length);
        match (length(x), length(y)) {
            (None, None) => Ok(()),
            (Some(x), Some(y)) if self.equal(x, y) => Ok(()),
            _ => Err(format!("{what} differ")),
        }
    }

    fn define(&mut self, x: Value, y: Value) -> Same {
        same("types", &self.a.ty(x), &self.b.ty(y))?;
        let again = self.values.insert(x, y).is_some() || self.taken.insert(y, x).is_some();
        same("definitions", &again, &false)
    }

    /// Two uses are of the same constant or of the same definition.
    fn equal(&self, x: Value, y: Value) -> bool {
        match (self.a.as_constant(x), self.b.as_constant(y)) {
            (None, None) => self.values.get(&x) == Some(&y),
            (x_bits, y_bits) => x_bits == y_bits && self.a.ty(x) == self.b.ty(y),
        }
    }

    fn places(&self, x: Place, y: Place) -> Same {
        let (x, y) = (&self.a.places[x], &self.b.places[y]);
        let plain = (&x.file, x.line, x.column) == (&y.file, y.line, y.column);
        same("the source places", &plain, &true)?;
        match (x.inlined_at, y.inlined_at) {
            (None, None) => Ok(()),
            (Some(x), Some(y)) => self.places(x, y),
            _ => Err("the source places differ".to_owned()),
        }
    }

    fn regions(&mut self, x: &Region, y: &Region) -> Same {
        for (x, y) in x.ops.iter().zip(&y.ops) {
            self.heads(x, y).map_err(|what| {
                let (x, y) = (print_operation(self.a, x), print_operation(self.b, y));
                format!("{what}: `{x}` and `{y}`")
            })?;
            for (x, y) in x.kind.regions().zip(y.kind.regions()) {
                self.regions(x, y)?;
            }
            // A result is not visible inside its own regions.
            for (&x, &y) in x.results.iter().zip(&y.results) {
                self.define(x, y)?;
            }
        }
        same("the lengths of regions", &x.ops.len(), &y.ops.len())
    }

    /// Everything except the regions and the results.
    fn heads(&mut self, x: &Op, y: &Op) -> Same {
        self.places(x.place, y.place)?;
        same("the numbers of results", &x.results.len(), &y.results.len())?;
        self.operands(x, y)?;
        if let (Some(x), Some(y)) = (x.kind.label(), y.kind.label()) {
            same("labels", &self.a.labels[x], &self.b.labels[y])?;
            self.labels.insert(x, y);
        }
        if let (OpKind::Loop { params: x, .. }, OpKind::Loop { params: y, .. }) = (&x.kind, &y.kind) {
            same("the numbers of loop parameters", &x.len(), &y.len())?;
            for (&x, &y) in x.iter().zip(y) {
                self.define(x, y)?;
            }
        }
        self.kinds(&x.kind, &y.kind)
    }

    fn operands(&self, x: &Op, y: &Op) -> Same {
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        x.kind.for_each_operand(|operand| xs.push(operand));
        y.kind.for_each_operand(|operand| ys.push(operand));
        let equal = xs.len() == ys.len() && xs.iter().zip(&ys).all(|(&x, &y)| self.equal(x, y));
        same("operands", &equal, &true)
    }

    /// Everything of the kinds but operands and regions, which are compared apart.
    fn kinds(&self, x: &OpKind, y: &OpKind) -> Same {
        let equal = match (x, y) {
            (OpKind::Block { .. }, OpKind::Block { .. }) | (OpKind::If { .. }, OpKind::If { .. }) => true,
            (OpKind::Loop { wishes: x, .. }, OpKind::Loop { wishes: y, .. }) => x == y,
            (OpKind::Break(x, _), OpKind::Break(y, _)) | (OpKind::Continue(x, _), OpKind::Continue(y, _)) => {
                self.labels.get(x) == Some(y)
            }
            (x, y) => {
                let (mut x, mut y) = (x.clone(), y.clone());
                x.map_operands(|_| Value::from_u32(0));
                y.map_operands(|_| Value::from_u32(0));
                x == y
            }
        };
        same("operations", &equal, &true)
    }
}
