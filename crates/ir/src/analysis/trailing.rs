//! Loop parameters that trail another one by a step, as hand-written prefetches and compilers leave them.
//!
//! ```text
//! loop 'j (%current = %first, %next = %first + 32) { …; continue %next, %next + 32 }
//! ```
//! `current` has the value that `next` had one iteration before. It starts one step behind `next`, so it stays there, and grows
//! by the same step.

use super::definitions::Definitions;
use super::summary::Step;
use crate::ir::{BinaryOp, Kernel, NoWrapOp, OpKind, Value, eval};

/// A loop whose parameters' own steps are known.
pub(super) struct Trailing<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its definitions.
    pub definitions: &'a Definitions,
    /// The loop's parameters.
    pub params: &'a [Value],
    /// Their first values.
    pub initial: &'a [Value],
    /// The new values at each `continue`.
    pub continues: &'a [Vec<Value>],
}

impl Trailing<'_> {
    /// The step of a parameter that trails another one, from the others' steps.
    pub(crate) fn step(&self, index: usize, steps: &[Step]) -> Option<Step> {
        let next = self.continues.first()?.get(index)?;
        let leader = self.params.iter().position(|param| param == next)?;
        let follows = self
            .continues
            .iter()
            .all(|values| values.get(index) == Some(next));
        (follows && leader != index && self.starts_behind(index, leader, steps[leader]))
            .then_some(steps[leader])
    }

    /// Whether the leader's first value is that of the other parameter and one step.
    fn starts_behind(&self, index: usize, leader: usize, step: Step) -> bool {
        let (behind, ahead) = (self.initial[index], self.initial[leader]);
        let ty = self.kernel.ty(behind);
        let is_step = |value: Value| match (step, self.kernel.as_constant(value)) {
            (Step::Constant(step), Some(bits)) => eval::signed(ty, bits) == step,
            (
                Step::Value {
                    value: step,
                    scale: 1,
                },
                _,
            ) => step == value,
            _ => false,
        };
        if let (Some(from), Some(to), Step::Constant(step)) = (
            self.kernel.as_constant(behind),
            self.kernel.as_constant(ahead),
            step,
        ) {
            return to == from.wrapping_add(step as u64) & ty.mask();
        }
        match self.definitions.op(ahead) {
            Some(&(OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b))) => {
                (a == behind && is_step(b)) || (b == behind && is_step(a))
            }
            Some(&OpKind::Address {
                base,
                index,
                scale,
                offset,
            }) => {
                let bytes = self
                    .kernel
                    .as_constant(index)
                    .map(|bits| (bits as i64).wrapping_mul(i64::from(scale)).wrapping_add(offset));
                base == behind && bytes.is_some_and(|bytes| step == Step::Constant(bytes))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::loops::first_loop;

    /// The steps of the loop in a kernel with these first values.
    fn steps(second: &str) -> Vec<Step> {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global i32[] align 4, %n: i32) {{\n  load @p\n  %a = id.local.x\n  \
             %b = {second}\n  loop 'j (%current = %a, %next = %b, %i = 0:i32) {{\n    %more = lt.s %i, %n\n    \
             if %more {{ yield }} else {{ break }}\n    %then = add %next, 32:i32\n    %i2 = add %i, 1:i32\n    \
             continue %next, %then, %i2\n  }}\n  return\n}}\n"
        );
        first_loop(&text).steps
    }

    #[test]
    fn one_step_behind_is_a_step_of_its_own() {
        assert_eq!(
            steps("add.nuw %a, 32:i32")[..2],
            [Step::Constant(32), Step::Constant(32)]
        );
        assert_eq!(
            steps("add 32:i32, %a")[..2],
            [Step::Constant(32), Step::Constant(32)]
        );
    }

    #[test]
    fn another_distance_is_not() {
        for start in ["add %a, 31:i32", "mul %a, 32:i32"] {
            let steps = steps(start);
            assert!(matches!(steps[0], Step::Derived(_)), "{steps:?}");
            assert_eq!(steps[1], Step::Constant(32));
        }
    }
}
