//! What is known of a loop: [`loops`](super::loops) finds it.

use std::collections::HashMap;
use std::rc::Rc;

use super::effects::Effect;
use super::jumps::Yielded;
use crate::ir::{Label, LoadId, OpKind, Place, Value};

/// The behaviour of a loop.
#[derive(Clone, Debug)]
pub struct LoopSummary {
    /// Its label.
    pub label: Label,
    /// Its parameters.
    pub params: Vec<Value>,
    /// The behaviour of each parameter.
    pub steps: Vec<Step>,
    /// Everything that the body defines.
    pub inside: HashMap<Value, Inside>,
    /// The test that counts, or why there is none.
    pub exit: Result<CountedExit, String>,
    /// Where `exit` is none only because the counter may wrap, or jump over its bound: the test, and what it takes.
    pub unless_wraps: Option<UnlessWraps>,
    /// Where else the loop can be left.
    pub other_exits: Vec<Place>,
    /// The loads that lie directly in this loop, not in one inside it, in order.
    pub loads: Vec<LoadSite>,
    /// Writes, barriers and the like, anywhere inside.
    pub effects: Vec<Effect>,
}

impl LoopSummary {
    /// The test that counts iterations, whether or not its counter may wrap.
    pub fn counting(&self) -> Option<CountedExit> {
        let unless = self.unless_wraps.as_ref().map(|unless| unless.exit);
        self.exit.as_ref().ok().copied().or(unless)
    }
}

/// The change of a loop's parameter from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It keeps its value.
    Invariant,
    /// It grows by this much, read as signed: in units for an integer, in bytes for a pointer.
    Constant(i64),
    /// It grows by `value × scale`; the value does not change in the loop. Pointers: in bytes.
    Value {
        /// Of the parameter's type, or `I64` for a pointer.
        value: Value,
        /// How often it is added, down if negative; for a pointer in bytes.
        scale: i64,
    },
    /// Each iteration makes it anew for the next: this value, which follows from parameters by arithmetic, and from no load.
    Derived(Value),
    /// Something else.
    Carried,
}

/// A value defined in a loop's body.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The operation, with its regions emptied.
    pub kind: OpKind,
    /// Which of its results this is.
    pub index: usize,
    /// Where it is written.
    pub place: Place,
    /// For an `if` or block: the results, as conditions choose them.
    pub yielded: Option<Rc<Yielded>>,
    /// Defined in a loop inside this one.
    pub in_inner_loop: bool,
    /// Some iterations may skip it and yet go on: it is under a condition, or a jump may lead past it.
    pub conditional: bool,
}

/// A load in a loop's body.
#[derive(Clone, Debug)]
pub struct LoadSite {
    /// Which load of the source.
    pub id: LoadId,
    /// Its results: 1, 2 or 4 values.
    pub results: Vec<Value>,
    /// Its address.
    pub pointer: Value,
    /// Whether it may be fetched early at all (a volatile one may not).
    pub volatile: bool,
    /// Where it is written.
    pub place: Place,
    /// The conditions it is under inside the body, outermost first, and the side it is on.
    pub conditions: Vec<(Value, bool)>,
    /// It runs after the counting test of its iteration.
    pub after_exit: bool,
    /// A jump before it may skip it in iterations that its conditions do not tell.
    pub skippable: bool,
    /// How many of the loop's effects stand in front of it.
    pub behind: usize,
}

/// How a counting test compares; the loop goes on while `tested relation bound`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Below, growing.
    Less {
        /// Signed or unsigned.
        signed: bool,
        /// Or equal.
        or_equal: bool,
    },
    /// Above, shrinking.
    Greater {
        /// Signed or unsigned.
        signed: bool,
        /// Or equal.
        or_equal: bool,
    },
    /// Not equal; the step is a power of two, up or down, that divides the way to the bound.
    NotEqual,
}

/// The test that counts iterations.
#[derive(Clone, Copy, Debug)]
pub struct CountedExit {
    /// The parameter that counts.
    pub param: usize,
    /// The loop goes on while `param + steps_ahead × step relation bound`.
    pub relation: Relation,
    /// Defined outside the loop. Where its type is narrower than the parameter's (only with [`Relation::NotEqual`]), the
    /// parameter's low bits are compared.
    pub bound: Value,
    /// 0: the value of this iteration is tested; 1: that of the next.
    pub steps_ahead: i64,
    /// The test is operation number `position` of the body.
    pub position: usize,
    /// The condition of that `if` is this where the loop goes on.
    pub continues_on: bool,
    /// Nothing but pure operations comes before the test.
    pub leading: bool,
    /// The counter's first value plus one step does not wrap. Matters if the next value is tested: if the sum may wrap,
    /// counting starts from the sum.
    pub first_step_fits: bool,
}

/// A test that counts if the counter does not wrap, or does not jump over its bound, which shows when the loop is entered.
#[derive(Clone, Debug)]
pub struct UnlessWraps {
    /// The test.
    pub exit: CountedExit,
    /// The sums that lead from the counter to its next value.
    pub sums: Vec<Value>,
    /// One of them stands before the test, and so is made of the counter's first value whether the loop goes on or not.
    pub adds_first: bool,
}
