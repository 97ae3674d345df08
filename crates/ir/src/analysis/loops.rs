//! Loops: how their parameters change from one iteration to the next, and how they end.
//!
//! A counted loop is *recognised*, never declared: a carried value with a constant or invariant step, a
//! test of it against an invariant bound, and a reason why it does not wrap. A kernel that came from a
//! compiler, with strength-reduced pointers and the test at the bottom, is treated like a Rust `for`.

use std::collections::HashMap;

use super::body::Reader;
use super::counted::Tests;
use super::definitions::Definitions;
use super::derived::Derived;
use super::steps::common_step;
pub use super::summary::{CountedExit, Inside, LoadSite, LoopSummary, Relation, Step, UnlessWraps};
use super::trailing::Trailing;
use crate::ir::{Kernel, Label, Op, OpKind, Value};

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
