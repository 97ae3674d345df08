//! How a loop parameter changes from one iteration to the next.
//!
//! ```text
//! loop 'j (%i, %p) { …; continue (add %i, 1), (address %p + 0 * 1 + 128) }      steps 1 and 128 bytes
//! loop 'j (%p) { %q = address %p + %s * 4; …; continue (address %q + %s * 4) }   one step of %s × 8 bytes
//! ```
//!
//! Compilers that unroll a loop whose stride only the run tells make the stride several times an iteration. Sums commute,
//! so equal summands are counted together, however many additions lead from a parameter to its next value.

use std::collections::HashMap;

use super::summary::{Inside, Step};
use crate::ir::{BinaryOp, Kernel, NoWrapOp, OpKind, Value, eval};

/// Most additions from a parameter to its next value: more copies than compilers make.
const MOST_ADDITIONS: usize = 256;

/// The step of a parameter that every `continue` agrees on.
pub(super) fn common_step(
    kernel: &Kernel,
    inside: &HashMap<Value, Inside>,
    outside: &impl Fn(Value) -> bool,
    param: Value,
    index: usize,
    continues: &[Vec<Value>],
) -> Step {
    let mut steps = continues
        .iter()
        .map(|args| step_of(kernel, inside, outside, param, args[index]));
    match steps.next() {
        Some(first) if steps.all(|step| step == first) => first,
        _ => Step::Carried,
    }
}

/// How `next` comes from `param`.
pub(super) fn step_of(
    kernel: &Kernel,
    inside: &HashMap<Value, Inside>,
    outside: &impl Fn(Value) -> bool,
    param: Value,
    next: Value,
) -> Step {
    if next == param {
        return Step::Invariant;
    }
    let Some(sum) = sum_of(kernel, inside, outside, param, next) else {
        return Step::Carried;
    };
    let ty = kernel.ty(param);
    match (&sum.terms[..], sum.constant) {
        ([], constant) if ty.is_pointer() => Step::Constant(constant),
        ([], constant) => Step::Constant(eval::signed(ty, constant as u64 & ty.mask())),
        (&[(value, scale)], 0) => Step::Value { value, scale },
        // Different summands: the next value is made from this one, as often as need be.
        _ => Step::Derived(next),
    }
}

/// The amount added to a parameter: loop-invariant summands, each with a factor, and a constant.
struct Sum {
    terms: Vec<(Value, i64)>,
    constant: i64,
}

impl Sum {
    /// Counts a summand: constants together, equal ones once.
    fn add(&mut self, kernel: &Kernel, value: Value, times: i64) {
        if let Some(bits) = kernel.as_constant(value) {
            let constant = eval::signed(kernel.ty(value), bits);
            self.constant = self.constant.wrapping_add(constant.wrapping_mul(times));
            return;
        }
        match self.terms.iter_mut().find(|(known, _)| *known == value) {
            Some((_, known)) => *known = known.wrapping_add(times),
            None => self.terms.push((value, times)),
        }
    }
}

/// The difference between `next` and `param`, where a chain of additions leads from one to the other.
fn sum_of(
    kernel: &Kernel,
    inside: &HashMap<Value, Inside>,
    outside: &impl Fn(Value) -> bool,
    param: Value,
    next: Value,
) -> Option<Sum> {
    let mut sum = Sum {
        terms: Vec::new(),
        constant: 0,
    };
    let invariant = |value: Value| kernel.as_constant(value).is_some() || outside(value);
    let mut at = next;
    for _ in 0..MOST_ADDITIONS {
        if at == param {
            sum.terms.retain(|&(_, times)| times != 0);
            return Some(sum);
        }
        let step = inside.get(&at).filter(|step| !step.in_inner_loop)?;
        at = match step.kind {
            OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) => {
                let (on, summand) = if invariant(b) { (a, b) } else { (b, a) };
                if !invariant(summand) {
                    return None;
                }
                sum.add(kernel, summand, 1);
                on
            }
            OpKind::Binary(BinaryOp::Sub, a, b) | OpKind::NoWrap(NoWrapOp::Sub, _, a, b) if invariant(b) => {
                sum.add(kernel, b, -1);
                a
            }
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } if invariant(index) => {
                sum.add(kernel, index, i64::from(scale));
                sum.constant = sum.constant.wrapping_add(offset);
                base
            }
            _ => return None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::loops::first_loop;

    /// The steps of a pointer and a counter that become these.
    fn steps(pointer: &str, counter: &str) -> (Step, Step) {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global i32[] align 4, %s: i64, %t: i32, %u: i32) {{\n  \
             loop 'j (%at = %p, %i = 0:i32) {{\n    %more = lt.s %i, %u\n    if %more {{ yield }} else {{ break }}\n    \
             {pointer}\n    {counter}\n    continue %q, %j\n  }}\n  return\n}}\n"
        );
        let steps = first_loop(&text).steps;
        (steps[0], steps[1])
    }

    #[test]
    fn equal_steps_are_one() {
        let (pointer, counter) = steps(
            "%a = address %at + %s * 4\n%b = address %a + %s * 4\n%q = address %b + %s * 8",
            "%k = add %t, %i\n%j = add.nsw %k, %t",
        );
        assert!(matches!(pointer, Step::Value { scale: 16, .. }), "{pointer:?}");
        assert!(matches!(counter, Step::Value { scale: 2, .. }), "{counter:?}");
        let (pointer, counter) = steps(
            "%a = address %at + 1:i64 * 4\n%q = address %a + 0:i64 * 1 + 12",
            "%k = sub %i, %t\n%j = sub %k, %t",
        );
        assert_eq!(pointer, Step::Constant(16));
        assert!(matches!(counter, Step::Value { scale: -2, .. }), "{counter:?}");
    }

    #[test]
    fn different_steps_are_made_one_after_the_other() {
        let (pointer, counter) = steps(
            "%q = address %at + %s * 4 + 4",
            "%k = add %i, %t\n%j = add %k, %u",
        );
        assert!(matches!((pointer, counter), (Step::Derived(_), Step::Derived(_))));
        let (_, counter) = steps("%q = address %at + %s * 4", "%k = mul %i, %t\n%j = add %k, %u");
        // A recurrence of arithmetic alone.
        assert!(matches!(counter, Step::Derived(_)));
    }
}
