//! Loops: how their parameters change from one iteration to the next, and how they end.
//!
//! A counted loop is *recognised*, never declared: a carried value with a constant or invariant step, a
//! test of it against an invariant bound, and a reason why it does not wrap. A kernel that came from a
//! compiler, with strength-reduced pointers and the test at the bottom, is treated like a Rust `for`.

use std::collections::HashMap;
use std::rc::Rc;

use super::body::Reader;
use super::counted::Tests;
use super::definitions::Definitions;
use super::derived::Derived;
use super::effects::Effect;
use super::jumps::Yielded;
use super::steps::common_step;
use super::trailing::Trailing;
use crate::ir::{Kernel, Label, LoadId, Op, OpKind, Place, Value};

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

/// Summarises the loop operation `op` of a kernel.
///
/// `definitions` are those of the whole kernel. An operation that is no loop has no parameters, no
/// loads, and an exit that says so.
pub fn summarize(kernel: &Kernel, definitions: &Definitions, op: &Op) -> LoopSummary {
    let OpKind::Loop {
        label,
        params,
        initial,
        body,
        ..
    } = &op.kind
    else {
        return LoopSummary {
            label: Label::from_u32(0),
            params: Vec::new(),
            steps: Vec::new(),
            inside: HashMap::new(),
            exit: Err("this is not a loop".to_owned()),
            unless_wraps: None,
            other_exits: Vec::new(),
            loads: Vec::new(),
            effects: Vec::new(),
        };
    };
    let Reader {
        inside,
        mut loads,
        effects,
        continues,
        exits,
        ..
    } = Reader::read(kernel, *label, body);
    let outside = |value: Value| !inside.contains_key(&value) && !params.contains(&value);
    let mut steps: Vec<Step> = (0..params.len())
        .map(|index| common_step(kernel, &inside, &outside, params[index], index, &continues))
        .collect();
    let trailing = Trailing {
        kernel,
        definitions,
        params,
        initial,
        continues: &continues,
    };
    for index in 0..params.len() {
        if steps[index] == Step::Carried
            && let Some(step) = trailing.step(index, &steps)
        {
            steps[index] = step;
        }
    }
    let derived = Derived {
        definitions,
        inside: &inside,
        params,
        continues: &continues,
    };
    for index in 0..params.len() {
        if steps[index] == Step::Carried
            && let Some(step) = derived.step(index, &steps)
        {
            steps[index] = step;
        }
    }
    let tests = Tests {
        kernel,
        label: *label,
        definitions,
        params,
        initial,
        steps: &steps,
        inside: &inside,
        outside: &outside,
        continues: &continues,
        body,
    };
    let (exit, unless_wraps) = match tests.find() {
        Ok(exit) => (Ok(exit), None),
        Err((why, unless_wraps)) => (Err(why), unless_wraps),
    };
    let position = exit.as_ref().ok().map(|exit| exit.position);
    // The counting test is one way out; a second way out inside the same `if` is another.
    let counting = exits.iter().position(|exit| Some(exit.at) == position);
    let others = exits
        .iter()
        .enumerate()
        .filter(|(number, _)| Some(*number) != counting);
    let other_exits = others.map(|(_, exit)| exit.place).collect();
    for load in &mut loads {
        load.site.after_exit = position.is_some_and(|position| load.at > position);
    }
    let loads = loads.into_iter().map(|load| load.site).collect();
    LoopSummary {
        label: *label,
        params: params.clone(),
        steps,
        inside,
        exit,
        unless_wraps,
        other_exits,
        loads,
        effects,
    }
}

/// The summary of the first loop of a kernel in the IR's text form, for tests.
#[cfg(test)]
pub(super) fn first_loop(text: &str) -> LoopSummary {
    let kernel = crate::ir::parse(text, "k.hsir").expect("the test's kernel is right");
    let definitions = Definitions::of(&kernel);
    let mut ops = kernel.body.ops.iter();
    let looped = ops.find(|op| matches!(op.kind, OpKind::Loop { .. }));
    summarize(&kernel, &definitions, looped.expect("there is a loop"))
}
