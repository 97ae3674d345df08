//! Loop parameters that each iteration recomputes from others, as compilers do for a counter computed one iteration early, or
//! from themselves by arithmetic alone: random numbers, a ray's way through a grid.
//!
//! ```text
//! loop 'j (%at = %a, %next = %b) { …; continue (add %next, 3), (add %next, 4) }
//! loop 'j (%seed = %s)           { …; continue (add (mul %seed, 1664525), 1013904223) }
//! ```
//! For any `at`, its value one iteration later is `next + 3`. So its value four iterations ahead is the value of `next + 3`
//! three iterations ahead.

use std::collections::{HashMap, HashSet};

use super::definitions::Definitions;
use super::summary::{Inside, Step};
use crate::ir::{BinaryOp, OpKind, Value};

/// Most values that such a parameter is made of: they are computed again for each early use, or once more in each iteration.
const MOST_VALUES: usize = 64;

/// A loop whose parameters' own steps are known.
pub(super) struct Derived<'a> {
    /// The kernel's definitions.
    pub definitions: &'a Definitions,
    /// The body's definitions.
    pub inside: &'a HashMap<Value, Inside>,
    /// The loop's parameters.
    pub params: &'a [Value],
    /// The new values at each `continue`.
    pub continues: &'a [Vec<Value>],
}

impl Derived<'_> {
    /// The derivation of a parameter without a step of its own, if arithmetic implies it.
    pub(super) fn step(&self, index: usize, steps: &[Step]) -> Option<Step> {
        let next = self.next(index)?;
        self.follows(next, steps).then_some(Step::Derived(next))
    }

    /// What a parameter becomes, if all iterations agree.
    fn next(&self, index: usize) -> Option<Value> {
        let next = *self.continues.first()?.get(index)?;
        let mut all = self.continues.iter();
        all.all(|values| values.get(index) == Some(&next)).then_some(next)
    }

    /// Whether a value is made of parameters alone, and each of those that it is made of steps or is made so, too.
    fn follows(&self, next: Value, steps: &[Step]) -> bool {
        let (mut seen, mut work) = (HashSet::new(), vec![next]);
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            if seen.len() > MOST_VALUES {
                return false;
            }
            if let Some(param) = self.params.iter().position(|&param| param == value) {
                if matches!(steps[param], Step::Derived(_) | Step::Carried) {
                    let Some(next) = self.next(param) else {
                        return false;
                    };
                    work.push(next);
                }
                continue;
            }
            let Some(inside) = self.inside.get(&value) else {
                continue;
            };
            if let Some(yielded) = &inside.yielded {
                yielded.for_each_value(inside.index, &mut |value| work.push(value));
                continue;
            }
            if inside.in_inner_loop || !inside.kind.is_pure() || self.may_be_fused(&inside.kind) {
                return false;
            }
            inside.kind.for_each_operand(|operand| work.push(operand));
        }
        true
    }

    /// Whether an assembler may compute it otherwise in other surroundings: a product that a sum may take, or such a sum.
    fn may_be_fused(&self, kind: &OpKind) -> bool {
        let is_open = |kind: &OpKind| {
            matches!(kind, OpKind::Ruled(rule, plain)
                if rule.contract && matches!(**plain, OpKind::Binary(BinaryOp::FMul, ..)))
        };
        let mut found = is_open(kind);
        kind.for_each_operand(|operand| {
            let outside = || self.definitions.op(operand);
            let made = self
                .inside
                .get(&operand)
                .map(|inside| &inside.kind)
                .or_else(outside);
            found |= made.is_some_and(is_open);
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::loops::first_loop;

    /// The first step of the loop in a kernel where `%at` becomes this.
    fn step(derived: &str) -> Step {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global i32[] align 4, %n: i32) {{\n  load @p\n  %a = id.local.x\n  \
             loop 'j (%at = %a, %next = %n, %i = 0:i32, %sum = 0:i32) {{\n    %more = lt.s %i, %n\n    \
             if %more {{ yield }} else {{ break }}\n    %x = load i32 %p, @p\n    %s = add %sum, %at\n    \
             %then = add %next, 4:i32\n    %i2 = add %i, 1:i32\n    %new = {derived}\n    \
             continue %new, %then, %i2, %s\n  }}\n  return\n}}\n"
        );
        first_loop(&text).steps[0]
    }

    #[test]
    fn what_follows_from_steps_is_known() {
        assert!(matches!(step("add %next, 3:i32"), Step::Derived(_)));
        assert!(matches!(step("mul %next, %i2"), Step::Derived(_)));
        assert!(matches!(step("mul %at, %next"), Step::Derived(_)));
        assert!(matches!(step("add %sum, %next"), Step::Derived(_)));
    }

    #[test]
    fn what_comes_from_memory_is_not() {
        assert_eq!(step("add %x, %next"), Step::Carried);
    }
}
