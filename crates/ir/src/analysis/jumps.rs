//! How control leaves a region, and with which values: all its jumps, not only the last.
//!
//! ```text
//! if %a ->'at {                                %at is  select %a, (select %b, %x, 0), 0
//!   if %b { break 'at %x } else { yield }
//!   break 'at 0
//! } else { break 'at 0 }
//! ```
//! C's `&&` and `||` and inlined functions with several returns have this shape. All queries about a region's results, or
//! whether it leaves a loop, go through here.

use std::collections::HashMap;
use std::rc::Rc;

use crate::ir::{Label, Op, OpKind, Region, Value};

/// Most decisions that one operation's results may depend on: they are repeated for each early use.
const MAX_DECISIONS: usize = 64;

/// The value of a result of an `if` or block, as the conditions on the way choose it.
#[derive(Clone, Debug, PartialEq)]
pub enum Yielded {
    /// This value of each result.
    Values(Vec<Value>),
    /// One of two, by a `Bool`.
    Chosen {
        /// The condition.
        cond: Value,
        /// Where it is true.
        then: Rc<Yielded>,
        /// Where it is false.
        otherwise: Rc<Yielded>,
    },
}

impl Yielded {
    /// Calls `visit` on every value that decides or is chosen for result number `index`.
    pub fn for_each_value(&self, index: usize, visit: &mut impl FnMut(Value)) {
        match self {
            Yielded::Values(values) => visit(values[index]),
            Yielded::Chosen {
                cond,
                then,
                otherwise,
            } => {
                visit(*cond);
                then.for_each_value(index, visit);
                otherwise.for_each_value(index, visit);
            }
        }
    }
}

/// The results of an `if` or block, if conditions alone choose them. Paths that go elsewhere do not count: they do not see
/// the results.
///
/// Nothing if a loop inside decides, if no path arrives, or if too many conditions do.
pub(super) fn yielded(op: &Op) -> Option<Rc<Yielded>> {
    let label = match &op.kind {
        OpKind::If { label, .. } | OpKind::Block { label, .. } => *label,
        _ => return None,
    };
    let mut paths = Paths {
        wanted: label,
        behind: HashMap::new(),
        decisions: 0,
    };
    match paths.through(op)? {
        Path::Arrives(yielded) => Some(yielded),
        Path::GoesElsewhere => None,
    }
}

/// Where the rest of a region leads.
#[derive(Clone)]
enum Path {
    Arrives(Rc<Yielded>),
    GoesElsewhere,
}

impl Path {
    fn is(&self, other: &Path) -> bool {
        match (self, other) {
            (Path::Arrives(a), Path::Arrives(b)) => Rc::ptr_eq(a, b) || a == b,
            (Path::GoesElsewhere, Path::GoesElsewhere) => true,
            _ => false,
        }
    }
}

/// Follows the jumps to one label.
struct Paths {
    wanted: Label,
    /// The operation behind each open label.
    behind: HashMap<Label, Path>,
    decisions: usize,
}

impl Paths {
    /// Where control goes that enters these operations; nothing if that cannot be said.
    fn from(&mut self, ops: &[Op]) -> Option<Path> {
        let (op, rest) = ops.split_first()?;
        match &op.kind {
            OpKind::Break(label, values) if *label == self.wanted => {
                Some(Path::Arrives(Rc::new(Yielded::Values(values.clone()))))
            }
            OpKind::Break(label, _) => Some(match self.behind.get(label) {
                Some(path) => path.clone(),
                None => Path::GoesElsewhere,
            }),
            OpKind::Continue(..) | OpKind::Return | OpKind::Trap => Some(Path::GoesElsewhere),
            OpKind::If { label, .. } | OpKind::Block { label, .. } => {
                let behind = self.from(rest)?;
                self.behind.insert(*label, behind);
                let path = self.through(op);
                self.behind.remove(label);
                path
            }
            OpKind::Loop { label, body, .. } => {
                // A loop that jumps to a label around it decides by its iterations.
                let decides = jumps_out(body).into_iter().any(|jump| match &jump.kind {
                    OpKind::Break(to, _) => {
                        to != label && (*to == self.wanted || self.behind.contains_key(to))
                    }
                    _ => false,
                });
                if decides { None } else { self.from(rest) }
            }
            _ => self.from(rest),
        }
    }

    /// Where control goes that enters an `if` or block.
    fn through(&mut self, op: &Op) -> Option<Path> {
        match &op.kind {
            OpKind::Block { body, .. } => self.from(&body.ops),
            OpKind::If {
                cond,
                then,
                otherwise,
                ..
            } => {
                let (yes, no) = (self.from(&then.ops)?, self.from(&otherwise.ops)?);
                match (yes, no) {
                    (yes, no) if yes.is(&no) => Some(yes),
                    (Path::GoesElsewhere, path) | (path, Path::GoesElsewhere) => Some(path),
                    (Path::Arrives(yes), Path::Arrives(no)) => {
                        self.decisions += 1;
                        (self.decisions <= MAX_DECISIONS).then(|| {
                            Path::Arrives(Rc::new(Yielded::Chosen {
                                cond: *cond,
                                then: yes,
                                otherwise: no,
                            }))
                        })
                    }
                }
            }
            _ => None,
        }
    }
}

/// The jumps that leave a region: breaks and continues to labels around it, returns and traps.
pub(super) fn jumps_out(region: &Region) -> Vec<&Op> {
    let mut inside = Vec::new();
    region.walk(&mut |op| inside.extend(op.kind.label()));
    let mut jumps = Vec::new();
    collect_jumps(region, &inside, &mut jumps);
    jumps
}

fn collect_jumps<'r>(region: &'r Region, inside: &[Label], jumps: &mut Vec<&'r Op>) {
    for op in &region.ops {
        match &op.kind {
            OpKind::Break(label, _) | OpKind::Continue(label, _) if inside.contains(label) => {}
            kind if kind.is_terminator() => jumps.push(op),
            kind => kind
                .regions()
                .for_each(|inner| collect_jumps(inner, inside, jumps)),
        }
    }
}

/// Whether a side of an `if` that lies right in a loop's body leaves the loop on every path.
pub fn leaves(side: &Region, own: Label, looped: Label) -> bool {
    jumps_out(side).iter().all(|jump| match &jump.kind {
        OpKind::Break(label, _) => *label != own,
        OpKind::Continue(label, _) => *label != looped,
        _ => true,
    })
}

/// Whether an operation of a loop's body may start the loop's next iteration.
pub(super) fn may_continue(op: &Op, looped: Label) -> bool {
    match &op.kind {
        OpKind::Continue(label, _) => *label == looped,
        kind => kind
            .regions()
            .any(|region| region.ops.iter().any(|inner| may_continue(inner, looped))),
    }
}
