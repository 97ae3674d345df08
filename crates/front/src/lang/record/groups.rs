//! The variables that groups of asynchronous copies become: [`pipeline`](super::pipeline) says how.

use std::collections::BTreeSet;

use super::tree::{Body, Node, VariableData, VariableId};
use crate::ir::Type;

/// Most groups that a wait may leave on their way.
pub(super) const MOST: u32 = 63;

/// The token of the latest copy.
pub(super) const CURRENT: VariableId = 0;

/// The token of the group that was closed this many groups ago.
pub(super) fn group(ago: u32) -> VariableId {
    1 + ago as usize
}

/// The variables of a kernel's copies: its first ones.
pub(super) fn variables() -> Vec<VariableData> {
    (0..=group(MOST))
        .map(|_| VariableData {
            ty: Type::Token,
            name: None,
        })
        .collect()
}

/// Takes out the groups that no wait asks for.
pub(super) fn prune(body: &mut Body, most: Option<u32>) {
    let first = most.map_or(group(0), |most| group(most) + 1);
    let unasked: BTreeSet<VariableId> = (first..=group(MOST)).collect();
    prune_body(body, &unasked);
}

fn prune_body(body: &mut Body, unasked: &BTreeSet<VariableId>) {
    body.nodes
        .retain(|node| !matches!(node, Node::Write { variable, .. } | Node::Read { variable, .. } if unasked.contains(variable)));
    body.assigned.retain(|variable| !unasked.contains(variable));
    for node in &mut body.nodes {
        match node {
            Node::If { then, otherwise, .. } => {
                prune_body(then, unasked);
                prune_body(otherwise, unasked);
            }
            Node::Block { body, .. } | Node::Loop { body, .. } => prune_body(body, unasked),
            _ => {}
        }
    }
}
