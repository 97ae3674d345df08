//! `for` over a range.
//!
//! Before: `for i in a..b { body }`. After:
//! ```text
//! loop (i = a) { if i < b { go on } else { leave }; body; next i + 1 }
//! ```
//! Rust's ranges never run past the end of their type, whatever the step. So the step's addition must not wrap. That is certain
//! for a step of 1; for a larger step or an inclusive end, counters of up to 32 bits count in 64 bits, unless the end is known
//! to leave room. A 64-bit counter only promises it: the functional engine reports a range that ends within one step of the
//! type's largest value.

use super::arithmetic::wrap;
use super::control::{ScopeHandle, go_on_if};
use super::convert::widen;
use super::state::recorder;
use super::tree::Latch;
use super::{At, Recorded, Wishes};
use crate::Error;
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Element, Id, NoWrapOp, Type, Value, Wrap, eval};
use crate::lang::scalar::Integer;

/// A range that a `for` loop runs over.
#[derive(Debug)]
pub struct Range<T> {
    at: At,
    start: Recorded<T>,
    end: Recorded<T>,
    inclusive: bool,
    reversed: bool,
    step: Option<Recorded<usize>>,
}

/// `start..end`, or `start..=end`.
pub fn range<T: Integer>(at: At, start: Recorded<T>, end: Recorded<T>, inclusive: bool) -> Range<T> {
    Range {
        at,
        start,
        end,
        inclusive,
        reversed: false,
        step: None,
    }
}

/// `work_items(count)`: the own ones of the numbers below; the work-group meets first.
pub fn work_items(at: At, count: Recorded<usize>) -> Range<usize> {
    recorder(|recorder| {
        if !recorder.has_just_met() {
            recorder.build(at, |b| b.barrier());
        }
    });
    let [own, all] = recorder(|recorder| {
        recorder.build(at, |b| {
            let [x, y, z] = [0, 1, 2].map(|dimension| b.id(Id::Local(dimension)));
            let [width, height, depth] = [0, 1, 2].map(|dimension| b.id(Id::GroupSize(dimension)));
            let product =
                |b: &mut Builder<'_>, one, other| b.no_wrap(NoWrapOp::Mul, Wrap::NotUnsigned, one, other);
            let sum =
                |b: &mut Builder<'_>, one, other| b.no_wrap(NoWrapOp::Add, Wrap::NotUnsigned, one, other);
            // A work-group has fewer than 2³² work-items.
            let plane = product(b, height, z);
            let rows = sum(b, y, plane);
            let before = product(b, width, rows);
            let own = sum(b, x, before);
            let layer = product(b, width, height);
            let all = product(b, layer, depth);
            [own, all].map(|number| b.convert(ConvertOp::ExtendU, usize::TYPE, number))
        })
    });
    range(at, Recorded::new(own), count, false).step_by(Recorded::new(all))
}

/// The end of a loop over `work_items(count)`: the work-group meets.
pub fn after_work_items(at: At) {
    recorder(|recorder| recorder.build(at, |b| b.barrier()));
}

impl<T: Integer> Range<T> {
    /// `.rev()`
    #[must_use]
    pub fn rev(mut self) -> Range<T> {
        self.reversed = true;
        self
    }

    /// `.step_by(step)`
    #[must_use]
    pub fn step_by(mut self, step: Recorded<usize>) -> Range<T> {
        self.step = Some(step);
        self
    }

    /// The step if it is known now. An error notes a step of 0, which Rust refuses too.
    fn known_step(&self) -> Option<u64> {
        let Some(step) = self.step else { return Some(1) };
        recorder(|recorder| match recorder.kernel.as_constant(step.value) {
            Some(0) => {
                let error = Error::input("the step of a range is 0").accepted("a step is at least 1");
                recorder.fail(self.at, error);
                Some(1)
            }
            known => known,
        })
    }

    /// Whether counting with this step stays inside the type, because the end is known and leaves room.
    fn leaves_room(&self, step: u64) -> bool {
        let Some(end) = recorder(|recorder| recorder.kernel.as_constant(self.end.value)) else {
            return false;
        };
        let (end, greatest) = match T::SIGNED {
            true => (
                i128::from(eval::signed(T::TYPE, end)),
                i128::from(T::TYPE.mask() >> 1),
            ),
            false => (i128::from(end), i128::from(T::TYPE.mask())),
        };
        end + i128::from(self.inclusive) + i128::from(step) - 1 <= greatest && i128::from(step) <= greatest
    }

    /// The counter's type.
    fn counting(&self) -> Counting {
        let at = self.at;
        let step = self.known_step();
        let simple = step == Some(1) && !self.inclusive;
        let wide = T::TYPE.bits() <= 32 && !simple && !step.is_some_and(|step| self.leaves_room(step));
        let (start, end) = match wide {
            true => (widen(at, self.start).value, widen(at, self.end).value),
            false => (self.start.value, self.end.value),
        };
        let ty = if wide { Type::I64 } else { T::TYPE };
        let (signed, wrap) = if wide {
            (true, Wrap::NotSigned)
        } else {
            (T::SIGNED, wrap::<T>())
        };
        recorder(|recorder| {
            recorder.build(at, |b| {
                let one = b.constant(ty, 1);
                let end = if self.inclusive {
                    b.no_wrap(NoWrapOp::Add, wrap, end, one)
                } else {
                    end
                };
                let step = match (self.step, step) {
                    (None, _) => one,
                    // A step past the end of 32 bits is as good as one of 2³².
                    (_, Some(step)) if wide => b.constant(ty, step.min(1 << 32)),
                    (_, Some(step)) => b.constant(ty, step),
                    (Some(step), None) if wide => {
                        let most = b.constant(ty, 1 << 32);
                        b.binary(BinaryOp::MinU, step.value, most)
                    }
                    (Some(step), None) => step.value,
                };
                Counting {
                    ty,
                    wide,
                    signed,
                    wrap,
                    start,
                    end,
                    step,
                    reversed_from: None,
                }
            })
        })
    }
}

/// A counter's type, bounds and step.
struct Counting {
    ty: Type,
    /// 64 bits, although the range has fewer.
    wide: bool,
    signed: bool,
    wrap: Wrap,
    start: Value,
    end: Value,
    step: Value,
    /// The counter counts the distance from this end downwards.
    reversed_from: Option<Value>,
}

impl Counting {
    /// Counts the distance from the end instead: from 0 up to the length.
    fn reverse(self, at: At) -> Counting {
        let compare = if self.signed {
            CompareOp::LtS
        } else {
            CompareOp::LtU
        };
        let length = recorder(|recorder| {
            recorder.build(at, |b| {
                let nothing = b.constant(self.ty, 0);
                if b.kernel.as_constant(self.start) == Some(0) && !self.signed {
                    return self.end;
                }
                let any = b.compare(compare, self.start, self.end);
                let length = b.sub(self.end, self.start);
                b.select(any, length, nothing)
            })
        });
        let start = recorder(|recorder| recorder.kernel.constant(self.ty, 0));
        // The length of a signed range fits as an unsigned number.
        let (signed, wrap) = if self.wide {
            (true, Wrap::NotSigned)
        } else {
            (false, Wrap::NotUnsigned)
        };
        Counting {
            start,
            end: length,
            reversed_from: Some(self.end),
            signed,
            wrap,
            ..self
        }
    }
}

/// Begins `for name in range {`.
pub fn begin_for<T: Integer>(
    at: At,
    name: &str,
    wishes: Wishes,
    range: Range<T>,
) -> ScopeHandle<(), Recorded<T>> {
    let mut counting = range.counting();
    if range.reversed {
        counting = counting.reverse(range.at);
    }
    let Counting {
        ty,
        wide,
        signed,
        wrap,
        start,
        end,
        step,
        reversed_from,
    } = counting;
    let counter = recorder(|recorder| {
        let counter = recorder.variable(ty, Some(name));
        recorder.write(counter, start);
        counter
    });
    let mut scope: ScopeHandle<(), Recorded<T>> = ScopeHandle::begin(at);
    let now = recorder(|recorder| {
        recorder.note_loop(scope.target, name, wishes.into_loop_wishes());
        recorder
            .latches
            .insert(scope.target, Latch { counter, step, wrap });
        recorder.read(counter)
    });
    let compare = if signed { CompareOp::LtS } else { CompareOp::LtU };
    let more = recorder(|recorder| recorder.build(at, |b| b.compare(compare, now, end)));
    go_on_if(at, scope, Recorded::new(more));
    scope.counter = Some(recorder(|recorder| {
        let number = match reversed_from {
            None => now,
            Some(from) => recorder.build(at, |b| {
                let one = b.constant(ty, 1);
                if T::SIGNED && !wide {
                    // The distance may not fit as a signed number; the difference is right all the same.
                    let after = b.sub(from, now);
                    return b.sub(after, one);
                }
                let after = b.no_wrap(NoWrapOp::Sub, wrap, from, now);
                b.no_wrap(NoWrapOp::Sub, wrap, after, one)
            }),
        };
        let restore = if T::SIGNED {
            ConvertOp::ExtendS
        } else {
            ConvertOp::ExtendU
        };
        Recorded::new(if wide {
            recorder.cut(at, T::TYPE, number, restore)
        } else {
            number
        })
    }));
    scope
}

/// The counter's value in this iteration.
pub fn counter<T: Integer>(scope: ScopeHandle<(), Recorded<T>>) -> Recorded<T> {
    scope
        .counter
        .expect("a loop over a range has a counter from its beginning on")
}
