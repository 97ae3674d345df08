//! Whether a loop folds what it reads into results that parts of it can make apart: sums, maxima, bits, and sums that are scaled
//! down where a maximum grows, as in attention. Such parts are combined afterwards, but for rounding.
//!
//! This is for advice: no plan rests on it.

use std::collections::HashSet;

use super::definitions::{Definition, Definitions};
use super::loops::{LoopSummary, Step};
use crate::ir::{BinaryOp, ConvertOp, Kernel, NoWrapOp, OpKind, Value};

/// Values looked at before nothing is known.
const VISITS: usize = 1 << 10;

/// How a loop's parts are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folds {
    /// Each result by one operation.
    Alone,
    /// Sums after they are scaled by what a maximum became.
    Rescaled,
}

/// The change of one parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    Unchanged,
    /// It is multiplied by something and something is added, of which neither depends on it.
    Linear {
        is_scaled: bool,
    },
    /// One operation, again and again.
    By(BinaryOp),
    /// The larger or the smaller of two.
    Chosen,
}

impl Fold {
    fn and(self, other: Fold) -> Option<Fold> {
        match (self, other) {
            (Fold::Unchanged, fold) | (fold, Fold::Unchanged) => Some(fold),
            (Fold::Linear { is_scaled: one }, Fold::Linear { is_scaled: two }) => Some(Fold::Linear {
                is_scaled: one || two,
            }),
            (one, two) => (one == two).then_some(one),
        }
    }

    fn is_extreme(self) -> bool {
        use BinaryOp::{FMax, FMaximum, FMin, FMinimum, MaxS, MaxU, MinS, MinU};
        matches!(
            self,
            Fold::Chosen | Fold::By(FMax | FMaximum | FMin | FMinimum | MaxS | MaxU | MinS | MinU)
        )
    }
}

/// How the parts of a loop would be combined; nothing where that is not known, or where it does more than fold.
pub fn folds(kernel: &Kernel, definitions: &Definitions, looped: &LoopSummary) -> Option<Folds> {
    if !looped.effects.is_empty() || !looped.other_exits.is_empty() || looped.counting().is_none() {
        return None;
    }
    let carried = |index: &usize| looped.steps[*index] == Step::Carried;
    let results: Vec<usize> = (0..looped.params.len()).filter(carried).collect();
    let mut search = Search {
        kernel,
        definitions,
        barred: results.iter().map(|&index| looped.params[index]).collect(),
    };
    let of = |search: &Search<'_>, index: usize| search.of_param(looped.params[index]);
    // A sum may be scaled by what depends on a maximum, and not the other way round.
    let (extremes, sums): (Vec<usize>, Vec<usize>) = results
        .iter()
        .partition(|&&index| of(&search, index).is_some_and(Fold::is_extreme));
    let alone = !results.is_empty() && sums.iter().all(|&index| of(&search, index).is_some());
    if alone {
        return Some(Folds::Alone);
    }
    search
        .barred
        .retain(|param| !extremes.iter().any(|&index| looped.params[index] == *param));
    let rescaled = |index: &usize| of(&search, *index) == Some(Fold::Linear { is_scaled: true });
    (!extremes.is_empty() && sums.iter().all(rescaled)).then_some(Folds::Rescaled)
}

struct Search<'a> {
    kernel: &'a Kernel,
    definitions: &'a Definitions,
    /// The loop's parameters that nothing else may depend on.
    barred: HashSet<Value>,
}

impl Search<'_> {
    fn of_param(&self, param: Value) -> Option<Fold> {
        let Some(Definition::LoopParam { next, .. }) = self.definitions.get(param) else {
            return None;
        };
        self.joined(param, next)
    }

    fn joined(&self, param: Value, values: &[Value]) -> Option<Fold> {
        let mut values = values.iter();
        values.try_fold(Fold::Unchanged, |fold, &value| fold.and(self.of(param, value)?))
    }

    /// How a value follows from the parameter.
    fn of(&self, param: Value, value: Value) -> Option<Fold> {
        if value == param {
            return Some(Fold::Unchanged);
        }
        match self.definitions.get(value)? {
            Definition::Result { kind, passed, .. } if !passed.is_empty() => {
                let mut is_free = !matches!(kind, OpKind::Loop { .. });
                kind.for_each_operand(|operand| is_free &= self.is_free(operand));
                is_free.then(|| self.joined(param, passed))?
            }
            Definition::Result { kind, .. } => self.by(param, kind),
            Definition::LoopParam { .. } => None,
        }
    }

    fn by(&self, param: Value, kind: &OpKind) -> Option<Fold> {
        // The fold of `from`, if the others do not depend on it, and this operation of it.
        let step = |from: Value, others: &[Value], step: Fold| {
            let fold = self.of(param, from)?.and(step)?;
            others.iter().all(|&other| self.is_free(other)).then_some(fold)
        };
        let either = |a: Value, b: Value, fold: Fold| step(a, &[b], fold).or_else(|| step(b, &[a], fold));
        let (sum, product) = (
            Fold::Linear { is_scaled: false },
            Fold::Linear { is_scaled: true },
        );
        match *kind {
            OpKind::Ruled(_, ref plain) => self.by(param, plain),
            OpKind::Convert(ConvertOp::Bits, a) => self.of(param, a),
            OpKind::NoWrap(NoWrapOp::Add, _, a, b) => either(a, b, sum),
            OpKind::NoWrap(NoWrapOp::Sub, _, a, b) => step(a, &[b], sum),
            OpKind::NoWrap(NoWrapOp::Mul, _, a, b) => either(a, b, product),
            OpKind::Fma(a, b, c) => step(c, &[a, b], sum)
                .or_else(|| step(a, &[b, c], product))
                .or_else(|| step(b, &[a, c], product)),
            OpKind::Binary(op, a, b) => match op {
                BinaryOp::Add | BinaryOp::FAdd => either(a, b, sum),
                BinaryOp::Sub | BinaryOp::FSub => step(a, &[b], sum),
                BinaryOp::Mul | BinaryOp::FMul => either(a, b, product),
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => either(a, b, Fold::By(op)),
                _ if Fold::By(op).is_extreme() => either(a, b, Fold::By(op)),
                _ => None,
            },
            OpKind::Select(cond, a, b) => {
                let compared = match self.definitions.op(cond) {
                    Some(&OpKind::Compare(_, x, y)) => (x, y) == (a, b) || (x, y) == (b, a),
                    _ => false,
                };
                match compared {
                    true => either(a, b, Fold::Chosen),
                    false => self.is_free(cond).then(|| self.joined(param, &[a, b]))?,
                }
            }
            _ => None,
        }
    }

    /// Whether a value depends on no parameter that is folded.
    fn is_free(&self, value: Value) -> bool {
        self.kernel.as_constant(value).is_some()
            || !follows(self.definitions, value, |value, _| self.barred.contains(&value))
    }
}

/// Whether a value depends on what a load read.
pub fn is_loaded(definitions: &Definitions, value: Value) -> bool {
    follows(definitions, value, |_, kind| {
        matches!(kind, Some(OpKind::Load { .. }))
    })
}

/// Whether a value is such a one or is made of one, or of too many to tell.
fn follows(definitions: &Definitions, value: Value, is_it: impl Fn(Value, Option<&OpKind>) -> bool) -> bool {
    let (mut seen, mut left) = (HashSet::new(), vec![value]);
    while let Some(value) = left.pop() {
        if !seen.insert(value) {
            continue;
        }
        if is_it(value, definitions.op(value)) || seen.len() > VISITS {
            return true;
        }
        match definitions.get(value) {
            Some(Definition::LoopParam { initial, next, .. }) => {
                left.push(*initial);
                left.extend(next.iter().copied());
            }
            Some(Definition::Result { kind, passed, .. }) => {
                left.extend(passed.iter().copied());
                kind.for_each_operand(|operand| left.push(operand));
            }
            None => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::loops::summarize;

    /// A loop that carries `sum` and `most`, with these next values.
    fn of(next: &str, values: &str) -> Option<Folds> {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global f32[] align 4, %n: i32) {{\n  load @p\n  \
             loop 'j (%i = 0:i32, %sum = 0:f32, %most = 0:f32) {{\n    %more = lt.s %i, %n\n    \
             if %more {{ yield }} else {{ break }}\n    %x = load f32 %p, @p\n    %i2 = add %i, 1:i32\n    \
             {next}\n    continue %i2, {values}\n  }}\n  return\n}}\n"
        );
        let kernel = crate::ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        let definitions = Definitions::of(&kernel);
        let mut ops = kernel.body.ops.iter();
        let looped = ops.find(|op| matches!(op.kind, OpKind::Loop { .. }));
        let summary = summarize(&kernel, &definitions, looped.expect("there is a loop"));
        folds(&kernel, &definitions, &summary)
    }

    #[test]
    fn sums_and_maxima_fold_and_what_feeds_on_them_does_not() {
        let maximum = "%m = fmax %most, %x";
        assert_eq!(of("%s = fadd %x, %sum", "%s, %most"), Some(Folds::Alone));
        assert_eq!(
            of(&format!("{maximum}\n%s = fma %x, %x, %sum"), "%s, %m"),
            Some(Folds::Alone)
        );
        let softmax = "%d = fsub %most, %m\n%w = fmul %x, %m\n%s = fma %sum, %d, %w";
        assert_eq!(
            of(&format!("{maximum}\n{softmax}"), "%s, %m"),
            Some(Folds::Rescaled)
        );
        // A running maximum that is added, a maximum of sums, a sum and a maximum in turn, and a product with itself.
        assert_eq!(of(&format!("{maximum}\n%s = fadd %m, %sum"), "%s, %m"), None);
        assert_eq!(of("%s = fadd %x, %sum\n%m = fmax %most, %s", "%s, %m"), None);
        assert_eq!(of("%t = fadd %x, %sum\n%s = fmax %t, %x", "%s, %most"), None);
        assert_eq!(of("%s = fmul %sum, %sum", "%s, %most"), None);
        assert_eq!(of("store %p, %x\n%s = fadd %x, %sum", "%s, %most"), None);
    }
}
