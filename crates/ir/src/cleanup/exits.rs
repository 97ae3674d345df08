//! A loop whose exits all jump to the same place ends normally, and the jump follows it.
//!
//! ```text
//! before                                        after
//! loop 'l (%i = 0:i32) {                        %r = loop 'l (%i = 0:i32) -> i32 {
//!   …                                             …
//!   if %done { break 'outer %x } else { yield }   if %done { break 'l %x } else { yield }
//!   continue %n                                   continue %n
//! }                                             }
//! return                  (never run)           break 'outer %r
//! ```
//!
//! Flow graphs that become regions have the first form wherever a loop is the last thing on a path. Analyses and back
//! ends know loops that end at their own end: as counted, as one with its test at the bottom.

use crate::ir::{Kernel, Label, Op, OpKind, Region, Value};

/// Gives every such loop of the kernel an end of its own.
pub fn own_exits(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    in_region(kernel, &mut body);
    kernel.body = body;
}

fn in_region(kernel: &mut Kernel, region: &mut Region) {
    for op in &mut region.ops {
        for inner in op.kind.regions_mut() {
            in_region(kernel, inner);
        }
    }
    // An operation that never ends by itself is followed by a terminator, which is never reached.
    let [.., looped, terminator] = &mut region.ops[..] else {
        return;
    };
    let OpKind::Loop { label: own, body, .. } = &mut looped.kind else {
        return;
    };
    let own = *own;
    let mut found = Exits::default();
    found.of_region(body, &mut vec![own]);
    let Some(target) = found.target(own) else {
        return;
    };
    body.walk_mut(&mut |op| {
        if let OpKind::Break(label, _) = &mut op.kind
            && *label == target
        {
            *label = own;
        }
    });
    let types = kernel.labels[target].results.clone();
    kernel.labels[own].results = types.clone();
    let results: Vec<Value> = types.into_iter().map(|ty| kernel.value(ty)).collect();
    looped.results = results.clone();
    *terminator = Op::new(OpKind::Break(target, results), Vec::new(), terminator.place);
}

/// Where the jumps out of a loop go.
#[derive(Default)]
struct Exits {
    breaks: Vec<Label>,
    /// Continues of loops outside, and returns.
    others: bool,
}

impl Exits {
    fn of_region(&mut self, region: &Region, inside: &mut Vec<Label>) {
        for op in &region.ops {
            match &op.kind {
                // A jump to the loop's own end counts: it has one then.
                OpKind::Break(label, _) if *label == inside[0] || !inside.contains(label) => {
                    self.breaks.push(*label);
                }
                OpKind::Continue(label, _) if !inside.contains(label) => self.others = true,
                OpKind::Return | OpKind::Trap => self.others = true,
                kind => {
                    let label = kind.label();
                    inside.extend(label);
                    for inner in kind.regions() {
                        self.of_region(inner, inside);
                    }
                    inside.truncate(inside.len() - usize::from(label.is_some()));
                }
            }
        }
    }

    /// The one label outside that the loop leaves for.
    fn target(&self, own: Label) -> Option<Label> {
        let first = *self.breaks.first()?;
        let one = self.breaks.iter().all(|&label| label == first);
        (one && !self.others && first != own).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print, verify};

    #[test]
    fn a_loop_that_leaves_for_one_place_ends_by_itself() {
        let text = "hsir 1\nkernel @k(%out: ptr.global i32[16:i64] align 4 unaliased, %n: i32) {\n  %c = eq %n, 0:i32\n  \
                    %x = if 'outer %c -> i32 { yield 7:i32 } else {\n    loop 'l (%i = 0:i32) {\n      \
                    %next = add %i, 1:i32\n      %done = eq %next, %n\n      \
                    if %done { break 'outer %i } else { yield }\n      continue %next\n    }\n    return\n  }\n  \
                    store %out, %x\n  return\n}\n";
        let mut kernel = parse(text, "test").expect("it parses");
        own_exits(&mut kernel);
        verify(&kernel).expect("it stays right");
        let printed = print(&kernel);
        assert!(printed.contains("loop 'l (%i = 0:i32) -> i32"), "{printed}");
        assert!(!printed.contains("    return"), "{printed}");
    }

    #[test]
    fn loops_with_several_ways_out_stay() {
        let text = "hsir 1\nkernel @k(%out: ptr.global i32[16:i64] align 4 unaliased, %n: i32) {\n  %c = eq %n, 0:i32\n  \
                    %x = if 'outer %c -> i32 { yield 7:i32 } else {\n    loop 'l (%i = 0:i32) {\n      \
                    %next = add %i, 1:i32\n      %done = eq %next, %n\n      \
                    if %done { break 'outer %i } else { yield }\n      %odd = eq %next, 5:i32\n      \
                    if %odd { return } else { yield }\n      continue %next\n    }\n    return\n  }\n  \
                    store %out, %x\n  return\n}\n";
        let mut kernel = parse(text, "test").expect("it parses");
        let before = print(&kernel);
        own_exits(&mut kernel);
        assert_eq!(print(&kernel), before);
    }
}
