//! Loop parameters that each iteration recomputes from others, as compilers do for a counter computed one iteration early.
//!
//! ```text
//! loop 'j (%at = %a, %next = %b) { …; continue (add %next, 3), (add %next, 4) }
//! ```
//! For any `at`, its value one iteration later is `next + 3`. So its value four iterations ahead is the value of `next + 3`
//! three iterations ahead.

use std::collections::{HashMap, HashSet};

use super::loops::{Inside, Step};
use crate::ir::Value;

/// Most values that such a parameter is made of: they are computed again for each early use.
const MOST_VALUES: usize = 16;

/// A loop whose parameters' own steps are known.
pub(super) struct Derived<'a> {
    /// The body's definitions.
    pub inside: &'a HashMap<Value, Inside>,
    /// The loop's parameters.
    pub params: &'a [Value],
    /// The new values at each `continue`.
    pub continues: &'a [Vec<Value>],
}

impl Derived<'_> {
    /// The derivation of a parameter without a step of its own, if the others' steps imply it.
    pub fn step(&self, index: usize, steps: &[Step]) -> Option<Step> {
        let next = *self.continues.first()?.get(index)?;
        let agree = self
            .continues
            .iter()
            .all(|values| values.get(index) == Some(&next));
        (agree && self.follows_from_steps(next, steps)).then_some(Step::Derived(next))
    }

    fn follows_from_steps(&self, next: Value, steps: &[Step]) -> bool {
        let (mut seen, mut work) = (HashSet::new(), vec![next]);
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            if seen.len() > MOST_VALUES {
                return false;
            }
            if let Some(param) = self.params.iter().position(|&param| param == value) {
                if !matches!(
                    steps[param],
                    Step::Invariant | Step::Constant(_) | Step::Value { .. }
                ) {
                    return false;
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
            if inside.in_inner_loop || !inside.kind.is_pure() {
                return false;
            }
            inside.kind.for_each_operand(|operand| work.push(operand));
        }
        true
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
    }

    #[test]
    fn what_comes_from_itself_or_from_memory_is_not() {
        assert_eq!(step("mul %at, %next"), Step::Carried);
        assert_eq!(step("add %sum, %next"), Step::Carried);
        assert_eq!(step("add %x, %next"), Step::Carried);
    }
}
