//! Values that are only moved to each other share a register.
//!
//! ```text
//! %r = if %c { yield 0 } else {                 mov r, 0 …
//!   %s = loop (%p = …) {                        r = …
//!     … if %more { yield } else { break %n }    next: … mov r, n; @more bra next
//!     continue %n                               (nothing: %s, %p and %r are r)
//!   }
//!   yield %s
//! }
//! ```
//!
//! A loop whose exit has to move a value is nested by the driver's compiler: it reconverges the lanes behind the loop, and
//! again behind the `if`. One kernel of the corpus took 1.23 of its original's time for that.

use std::collections::HashSet;

use super::emitter::Emitter;
use super::loop_exits::{leading_test, trailing_test};
use super::registers::Class;
use crate::ir::{Label, Op, OpKind, Region, Value};

impl<'k> Emitter<'k> {
    /// Registers that an `if` or block and the loops right inside it have in common: a loop whose result goes on as the
    /// construct's writes that register itself.
    pub(super) fn join_results(&mut self, op: &'k Op) {
        let Some(label) = op.kind.label() else { return };
        for region in op.kind.regions() {
            let Some(OpKind::Break(to, values)) = region.ops.last().map(|op| &op.kind) else {
                continue;
            };
            if *to != label {
                continue;
            }
            let of_loops: HashSet<Value> = region
                .ops
                .iter()
                .filter(|inner| matches!(inner.kind, OpKind::Loop { .. }))
                .flat_map(|inner| inner.results.iter().copied())
                .collect();
            for (&result, &value) in op.results.iter().zip(values) {
                let is_first = values.iter().filter(|&&other| other == value).count() == 1;
                if is_first && of_loops.contains(&value) && Class::of(self.ty(result)).is_some() {
                    let register = self.register(result);
                    self.share(value, register);
                }
            }
        }
    }

    /// Registers that a loop's parameters and results share: the values passed to the next iteration and out of the loop are
    /// the same, so the exit needs no moves. The driver's compiler would nest it otherwise.
    pub(super) fn join_params(&mut self, body: &'k Region, label: Label, op: &Op, params: &[Value]) {
        let (left, continued) = match (leading_test(self.kernel, body, label), trailing_test(body, label)) {
            (_, Some(test)) => (test.left, test.continued),
            (Some(test), None) => (test.values, params),
            (None, None) => return,
        };
        let mut joined = HashSet::new();
        for (&result, left) in op.results.iter().zip(left) {
            let param = continued.iter().position(|value| value == left);
            if let Some(param) = param
                && Class::of(self.ty(result)).is_some()
                && joined.insert(param)
            {
                // One of them may have a register already; else the parameter's name is the better one.
                if self.has_register(result) {
                    let register = self.register(result);
                    self.share(params[param], register);
                } else {
                    let register = self.register(params[param]);
                    self.share(result, register);
                }
            }
        }
    }
}
