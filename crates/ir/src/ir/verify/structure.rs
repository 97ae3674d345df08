//! Rules about the body: definitions, uses, labels, terminators, results.

use cranelift_entity::SecondaryMap;

use super::types::results_of;
use super::violation::{Check, Rule, Violation};
use crate::ir::kernel::{Kernel, Label, Region, Value};
use crate::ir::limits;
use crate::ir::op::{Op, OpKind, UnrollWish};
use crate::ir::print::print_operation;
use crate::ir::types::Type;

/// How far a value's definition is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Definition {
    #[default]
    Missing,
    /// May be used now.
    Visible,
    /// In a region that has ended.
    Ended,
}

/// How far a label is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Introduction {
    #[default]
    Missing,
    /// Around the operation that is looked at; true for loops.
    Around(bool),
    Ended,
}

/// Walks the body once, in order.
pub(super) struct Walk<'k> {
    kernel: &'k Kernel,
    values: SecondaryMap<Value, Definition>,
    labels: SecondaryMap<Label, Introduction>,
    /// The params of the loops around.
    loop_params: SecondaryMap<Label, &'k [Value]>,
    /// The definitions of the open regions; they end with them.
    defined: Vec<Value>,
    operations: usize,
    nesting: usize,
}

impl<'k> Walk<'k> {
    /// Checks the body of a kernel whose tables are right.
    pub(crate) fn check(kernel: &'k Kernel) -> Check {
        let mut walk = Walk {
            kernel,
            values: SecondaryMap::new(),
            labels: SecondaryMap::new(),
            loop_params: SecondaryMap::with_default(&[]),
            defined: Vec::new(),
            operations: 0,
            nesting: 0,
        };
        for param in &kernel.params {
            walk.values[param.value] = Definition::Visible;
        }
        walk.region(&kernel.body)
    }

    fn region(&mut self, region: &'k Region) -> Check {
        Rule::Size.check(self.nesting <= limits::NESTING, || {
            format!("more than {} regions are inside each other", limits::NESTING)
        })?;
        let Some((last, before)) = region.ops.split_last() else {
            return Err(Rule::Terminators.broken("a region is empty; it ends with a terminator"));
        };
        let outer = self.defined.len();
        for op in before {
            self.located(op, |walk| {
                let what = || "a terminator comes before a region's end".to_owned();
                Rule::Terminators.check(!op.kind.is_terminator(), what)?;
                walk.op(op)
            })?;
        }
        self.located(last, |walk| {
            let what = || "a region does not end with a terminator".to_owned();
            Rule::Terminators.check(last.kind.is_terminator(), what)?;
            walk.op(last)
        })?;
        for value in self.defined.drain(outer..) {
            self.values[value] = Definition::Ended;
        }
        Ok(())
    }

    /// Runs a check; its violations get this operation and its place, unless one inside has them already.
    fn located(&mut self, op: &'k Op, check: impl FnOnce(&mut Walk<'k>) -> Check) -> Check {
        check(self).map_err(|violation| match violation.place {
            Some(_) => violation,
            None => Violation {
                place: Some(op.place).filter(|&place| self.kernel.places.is_valid(place)),
                // A kernel that is too large is not for printing.
                operation: (violation.rule != Rule::Size).then(|| print_operation(self.kernel, op)),
                ..violation
            },
        })
    }

    fn op(&mut self, op: &'k Op) -> Check {
        self.operations += 1;
        Rule::Size.check(self.operations <= limits::OPERATIONS, || {
            format!("the kernel has more than {} operations", limits::OPERATIONS)
        })?;
        let kernel = self.kernel;
        let missing = |what: &str| format!("{what} does not exist");
        Rule::Tables.check(kernel.places.is_valid(op.place), || {
            missing("the place of an operation")
        })?;
        for &result in &op.results {
            Rule::Tables.check(kernel.values.is_valid(result), || {
                missing("the value of a result")
            })?;
        }
        self.uses(op)?;
        match &op.kind {
            OpKind::ArrayAddress(array) => {
                Rule::Tables.check(kernel.arrays.is_valid(*array), || missing("the array"))?;
            }
            OpKind::Load { id, .. } | OpKind::Copy { id, .. } | OpKind::Prefetch { id: Some(id), .. } => {
                Rule::Tables.check(kernel.loads.is_valid(*id), || missing("the load's identity"))?;
            }
            _ => {}
        }
        match &op.kind {
            OpKind::Block { label, .. } | OpKind::If { label, .. } | OpKind::Loop { label, .. } => {
                self.structure(op, *label)?;
            }
            OpKind::Break(label, values) => {
                let around = self.labels.get(*label).copied().unwrap_or_default();
                Rule::Break.check(matches!(around, Introduction::Around(_)), || {
                    "`break` names a label that is not around it".to_owned()
                })?;
                let wanted = &kernel.labels[*label].results;
                self.passed(Rule::Break, "a break", values, wanted)?;
                self.results(op, &[])?;
            }
            OpKind::Continue(label, values) => {
                let around = self.labels.get(*label).copied().unwrap_or_default();
                Rule::Continue.check(around == Introduction::Around(true), || {
                    "`continue` names no loop around it".to_owned()
                })?;
                let wanted: Vec<Type> = self.loop_params[*label]
                    .iter()
                    .map(|&param| kernel.ty(param))
                    .collect();
                self.passed(Rule::Continue, "a continue", values, &wanted)?;
                self.results(op, &[])?;
            }
            kind => {
                let named = op.results.first().map(|&result| kernel.ty(result));
                let types = results_of(kernel, kind, op.results.len(), named)?;
                self.results(op, &types)?;
            }
        }
        op.results.iter().try_for_each(|&result| self.define(result))
    }

    /// A block, `if` or loop with its regions.
    fn structure(&mut self, op: &'k Op, label: Label) -> Check {
        let kernel = self.kernel;
        Rule::Tables.check(kernel.labels.is_valid(label), || {
            "a label does not exist".to_owned()
        })?;
        Rule::Labels.check(self.labels[label] == Introduction::Missing, || {
            "two operations introduce the same label".to_owned()
        })?;
        self.results(op, &kernel.labels[label].results)?;
        self.labels[label] = Introduction::Around(matches!(op.kind, OpKind::Loop { .. }));
        let outer = self.defined.len();
        if let OpKind::If { cond, .. } = &op.kind {
            let ty = kernel.ty(*cond);
            Rule::Condition.check(ty == Type::Bool, || {
                format!("the condition is a {ty}, not a bool")
            })?;
        }
        if let OpKind::Loop {
            params,
            initial,
            wishes,
            ..
        } = &op.kind
        {
            for &param in params {
                let what = || "the value of a loop's parameter does not exist".to_owned();
                Rule::Tables.check(kernel.values.is_valid(param), what)?;
            }
            let wanted: Vec<Type> = params.iter().map(|&param| kernel.ty(param)).collect();
            self.passed(Rule::Loops, "a loop", initial, &wanted)?;
            Rule::Loops.check(wishes.unroll != Some(UnrollWish::By(0)), || {
                "a loop cannot be unrolled by 0".to_owned()
            })?;
            Rule::Size.check(
                wishes
                    .plan
                    .as_ref()
                    .is_none_or(|plan| plan.len() <= limits::NAME_BYTES),
                || format!("a loop's plan is longer than {} bytes", limits::NAME_BYTES),
            )?;
            self.loop_params[label] = params;
            params.iter().try_for_each(|&param| self.define(param))?;
        }
        self.nesting += 1;
        for region in op.kind.regions() {
            self.region(region)?;
        }
        self.nesting -= 1;
        for value in self.defined.drain(outer..) {
            self.values[value] = Definition::Ended;
        }
        self.labels[label] = Introduction::Ended;
        Ok(())
    }

    /// Every operand is a constant or defined before, here or in an enclosing region.
    fn uses(&self, op: &Op) -> Check {
        let mut check = Ok(());
        op.kind.for_each_operand(|operand| {
            if check.is_ok() {
                check = self.used(operand);
            }
        });
        check
    }

    fn used(&self, value: Value) -> Check {
        Rule::Tables.check(self.kernel.values.is_valid(value), || {
            "the value of an operand does not exist".to_owned()
        })?;
        if self.kernel.as_constant(value).is_some() {
            return Ok(());
        }
        match self.values[value] {
            Definition::Visible => Ok(()),
            Definition::Missing => Err(Rule::Uses.broken("an operand is not defined before its use")),
            Definition::Ended => Err(Rule::Uses.broken("an operand is defined in a region that has ended")),
        }
    }

    fn define(&mut self, value: Value) -> Check {
        Rule::Definitions.check(self.kernel.as_constant(value).is_none(), || {
            "a result or loop parameter is a constant".to_owned()
        })?;
        Rule::Definitions.check(self.values[value] == Definition::Missing, || {
            "a value is defined twice".to_owned()
        })?;
        self.values[value] = Definition::Visible;
        self.defined.push(value);
        Ok(())
    }

    /// The results are of these types.
    fn results(&self, op: &Op, wanted: &[Type]) -> Check {
        let found = op.results.iter().map(|&result| self.kernel.ty(result));
        Rule::Results.check(found.clone().eq(wanted.iter().copied()), || {
            format!(
                "the results are {}, not {}",
                list(wanted.iter().copied()),
                list(found)
            )
        })
    }

    /// Values are passed where these types are wanted.
    fn passed(&self, rule: Rule, what: &str, values: &[Value], wanted: &[Type]) -> Check {
        let found = values.iter().map(|&value| self.kernel.ty(value));
        rule.check(found.clone().eq(wanted.iter().copied()), || {
            let (wanted, found) = (list(wanted.iter().copied()), list(found));
            format!("{what} passes {wanted} here, not {found}")
        })
    }
}

/// Types as a message shows them.
fn list(types: impl Iterator<Item = Type>) -> String {
    let names: Vec<&str> = types.map(Type::name).collect();
    match names.is_empty() {
        true => "nothing".to_owned(),
        false => names.join(", "),
    }
}
