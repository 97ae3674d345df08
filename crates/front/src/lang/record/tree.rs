//! A recorded body before it is SSA: operations and structure in order, with variables that are read and
//! written.

use std::collections::BTreeSet;

use crate::ir::{LoopWishes, Op, Place, Type, Value, Wrap};

/// A variable, by number in the order of declaration.
pub type VariableId = usize;

/// A loop, block or function body that can be left, by number.
pub type TargetId = usize;

/// The state of a variable.
pub struct VariableData {
    /// The type of its values.
    pub ty: Type,
    /// Its name in the source.
    pub name: Option<String>,
}

/// How the next iteration of a counting loop starts: the counter plus the step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latch {
    /// The counter.
    pub counter: VariableId,
    /// The summand.
    pub step: Value,
    /// In which reading that cannot wrap.
    pub wrap: Wrap,
}

/// One step of a body.
pub enum Node {
    /// An operation of the IR; its operands may be results of [`Node::Read`].
    Op(Op),
    /// Gives a variable's value of now a name.
    Read { variable: VariableId, result: Value },
    /// Assigns to a variable.
    Write { variable: VariableId, value: Value },
    /// One of two bodies.
    If {
        cond: Value,
        then: Body,
        otherwise: Body,
        place: Place,
    },
    /// A body that [`Node::Leave`] leaves and that ends at its end.
    Block {
        target: TargetId,
        body: Body,
        place: Place,
    },
    /// A body that starts again at its end.
    Loop {
        target: TargetId,
        body: Body,
        place: Place,
        name: Option<String>,
        wishes: LoopWishes,
    },
    /// Leaves a block or loop.
    Leave { target: TargetId, place: Place },
    /// Starts a loop's next iteration.
    Next { target: TargetId, place: Place },
    /// Ends the work-item.
    Return { place: Place },
}

/// A list of steps, and which of the variables declared before it are assigned in it.
#[derive(Default)]
pub struct Body {
    /// The steps.
    pub nodes: Vec<Node>,
    /// The variables.
    pub(crate) assigned: BTreeSet<VariableId>,
}

impl Body {
    /// A body whose variables of its own have the numbers from `first_own` on.
    pub fn new(nodes: Vec<Node>, first_own: VariableId) -> Body {
        let mut assigned = BTreeSet::new();
        for node in &nodes {
            match node {
                Node::Write { variable, .. } => {
                    assigned.insert(*variable);
                }
                Node::If { then, otherwise, .. } => assigned.extend(then.assigned.union(&otherwise.assigned)),
                Node::Block { body, .. } | Node::Loop { body, .. } => assigned.extend(&body.assigned),
                Node::Op(_)
                | Node::Read { .. }
                | Node::Leave { .. }
                | Node::Next { .. }
                | Node::Return { .. } => {}
            }
        }
        assigned.retain(|&variable| variable < first_own);
        Body { nodes, assigned }
    }
}
