//! Generic pointers that lead into one space become pointers into that space.
//!
//! ```text
//! before                                            after
//! %s = array @tile                                  %s = array @tile
//! %g = to_generic %s to ptr.generic
//! %p = address %g + %i * 4                          %p = address %s + %i * 4
//! %x = load f32 %p                                  %x = load f32 %p             (from shared memory)
//! %low = bits %g to i64                             %h = to_generic %s to ptr.generic
//!                                                   %low = bits %h to i64
//! ```
//!
//! A pointer leads into one space if all its definitions do, through additions, selections, loops and regions. As in
//! [`roots`](crate::analysis::roots), an accessed address stays in the object that it begins in, unless an offset is made of
//! other addresses. Pointers that are loaded, passed or made of bits stay generic, and so do those whose bits are seen, by a
//! comparison, a store or anything but an access: a sum is not the same in both forms where it leaves the space. Only the
//! address that it begins with can be had in either. A pointer that goes over an [edge](crate::ir::CutEdge) is in a register of
//! the text, and has the form that it has there.

use std::collections::HashMap;
use std::mem;

use cranelift_entity::{EntitySet, SecondaryMap};

use crate::analysis::definitions::{Definition, Definitions};
use crate::analysis::roots::holds_address;
use crate::ir::{ConvertOp, Kernel, Label, Op, OpKind, Place, Region, Space, Type, Value};

const GENERIC: Type = Type::Ptr(Space::Generic);

/// Finds the space of every generic pointer of the kernel that has one; whether there is such a pointer.
pub fn find_spaces(kernel: &mut Kernel) -> bool {
    let pointers: Vec<Value> = kernel
        .values
        .keys()
        .filter(|&value| kernel.ty(value).is_pointer())
        .collect();
    if pointers.iter().all(|&value| kernel.ty(value) != GENERIC) {
        return false;
    }
    let spaces = spaces(kernel, &pointers);
    let mut retyped = EntitySet::new();
    for &value in &pointers {
        if let (GENERIC, Some(Some(space))) = (kernel.ty(value), spaces[value]) {
            kernel.values[value].ty = Type::Ptr(space);
            retyped.insert(value);
        }
    }
    let found = !retyped.is_empty();
    if found {
        rewrite(kernel, retyped);
    }
    found
}

/// What is known of a pointer's space: nothing yet; that it has one; that it may have any.
type Known = Option<Option<Space>>;

/// The space that each of these pointers leads into.
fn spaces(kernel: &Kernel, pointers: &[Value]) -> SecondaryMap<Value, Known> {
    let definitions = Definitions::of(kernel);
    let sources: Vec<Sources> = pointers
        .iter()
        .map(|&value| sources(kernel, &definitions, value))
        .collect();
    let begins = |value: Value| {
        matches!(
            definitions.op(value),
            Some(OpKind::Convert(ConvertOp::ToGeneric, _))
        )
    };
    let mut known: SecondaryMap<Value, Known> = SecondaryMap::new();
    let mut at_edges = EntitySet::new();
    kernel.body.walk(&mut |op| {
        if op.kind.label().is_some_and(|label| kernel.is_edge(label)) {
            at_edges.extend(op.results.iter().copied());
        }
        for_each_seen(kernel, op, |value| {
            if !begins(value) {
                known[value] = Some(None);
            }
        });
    });
    let mut changed = true;
    while changed {
        changed = false;
        for (&value, sources) in pointers.iter().zip(&sources) {
            let space = match sources {
                Sources::Begins(space) => join(known[value], Some(*space)),
                Sources::Pointers(from) => from.iter().map(|&from| known[from]).fold(known[value], join),
            };
            let space = match kernel.ty(value) == GENERIC && at_edges.contains(value) {
                // A global address is its own generic address.
                true => space.map(|space| space.filter(|&space| space == Space::Global)),
                false => space,
            };
            changed |= space != known[value];
            known[value] = space;
            if let (GENERIC, Some(None), Sources::Pointers(from)) = (kernel.ty(value), space, sources) {
                // What a generic pointer is made of is generic, too.
                for &from in from
                    .iter()
                    .filter(|&&from| kernel.ty(from) == GENERIC && !begins(from))
                {
                    changed |= known[from] != Some(None);
                    known[from] = Some(None);
                }
            }
        }
    }
    known
}

/// Where a pointer comes from.
enum Sources {
    /// It begins here: in this space, or anywhere.
    Begins(Option<Space>),
    /// It is one of these, or made of them.
    Pointers(Vec<Value>),
}

fn sources(kernel: &Kernel, definitions: &Definitions, pointer: Value) -> Sources {
    let begins = Sources::Begins(
        kernel
            .ty(pointer)
            .space()
            .filter(|&space| space != Space::Generic),
    );
    match definitions.get(pointer) {
        Some(Definition::LoopParam { initial, next, .. }) => {
            Sources::Pointers(next.iter().copied().chain([*initial]).collect())
        }
        Some(Definition::Result { kind, passed, .. }) => match *kind {
            OpKind::Convert(ConvertOp::ToGeneric, from) => Sources::Pointers(vec![from]),
            OpKind::Address { index, .. } if holds_address(kernel, definitions, index) => {
                Sources::Begins(None)
            }
            OpKind::Address { base, .. } => Sources::Pointers(vec![base]),
            OpKind::Select(_, a, b) => Sources::Pointers(vec![a, b]),
            OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => {
                Sources::Pointers(passed.clone())
            }
            _ => begins,
        },
        None => begins,
    }
}

fn join(a: Known, b: Known) -> Known {
    match (a, b) {
        (None, known) | (known, None) => known,
        (Some(a), Some(b)) => Some(a.filter(|_| a == b)),
    }
}

/// Calls `visit` on each generic pointer whose bits an operation sees.
fn for_each_seen(kernel: &Kernel, op: &Op, mut visit: impl FnMut(Value)) {
    let mut seen = |value: Value| {
        if kernel.ty(value) == GENERIC {
            visit(value);
        }
    };
    match &op.kind {
        OpKind::Load { .. }
        | OpKind::Prefetch { .. }
        | OpKind::Address { .. }
        | OpKind::Select(..)
        | OpKind::Loop { .. }
        | OpKind::Break(..)
        | OpKind::Continue(..) => {}
        OpKind::Store { values, .. } => values.iter().copied().for_each(&mut seen),
        OpKind::Atomic { values, .. } => values.iter().copied().for_each(&mut seen),
        kind => kind.for_each_operand(seen),
    }
}

/// Makes the operations fit the new types of these pointers.
fn rewrite(kernel: &mut Kernel, retyped: EntitySet<Value>) {
    let mut results: HashMap<Label, Vec<Value>> = HashMap::new();
    let mut params: HashMap<Label, Vec<Value>> = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let Some(label) = op.kind.label() {
            results.insert(label, op.results.clone());
        }
        if let OpKind::Loop {
            label, params: own, ..
        } = &op.kind
        {
            params.insert(*label, own.clone());
        }
    });
    for (&label, results) in &results {
        kernel.labels[label].results = results.iter().map(|&result| kernel.ty(result)).collect();
    }
    let mut body = mem::take(&mut kernel.body);
    let mut rewriter = Rewriter {
        kernel,
        params,
        retyped,
        values: HashMap::new(),
    };
    rewriter.region(&mut body);
    kernel.body = body;
}

struct Rewriter<'k> {
    kernel: &'k mut Kernel,
    /// Those of each loop.
    params: HashMap<Label, Vec<Value>>,
    /// The pointers that were generic.
    retyped: EntitySet<Value>,
    /// The value in place of a conversion that is gone.
    values: HashMap<Value, Value>,
}

impl Rewriter<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut ops = Vec::with_capacity(region.ops.len());
        for mut op in mem::take(&mut region.ops) {
            if let OpKind::Convert(ConvertOp::ToGeneric | ConvertOp::FromGeneric, from) = op.kind
                && self.kernel.ty(op.results[0]) == self.kernel.ty(from)
            {
                self.values.insert(op.results[0], self.now(from));
                continue;
            }
            let wanted = self.wanted(&op);
            let mut operands = Vec::new();
            op.kind.for_each_operand(|operand| operands.push(operand));
            for (operand, wanted) in operands.iter_mut().zip(wanted) {
                *operand = match self.retyped.contains(*operand) && wanted == Some(GENERIC) {
                    true => self.generic(self.now(*operand), op.place, &mut ops),
                    false => self.now(*operand),
                };
            }
            let mut operands = operands.into_iter();
            op.kind.map_operands(|operand| operands.next().unwrap_or(operand));
            for inner in op.kind.regions_mut() {
                self.region(inner);
            }
            ops.push(op);
        }
        region.ops = ops;
    }

    fn now(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    fn generic(&mut self, pointer: Value, place: Place, ops: &mut Vec<Op>) -> Value {
        let generic = self.kernel.value(GENERIC);
        ops.push(Op {
            kind: OpKind::Convert(ConvertOp::ToGeneric, pointer),
            results: vec![generic],
            place,
        });
        generic
    }

    /// The pointer type that an operation needs for each operand; none where any will do.
    fn wanted(&self, op: &Op) -> Vec<Option<Type>> {
        let ty = |value: &Value| Some(self.kernel.ty(*value));
        let result = op.results.first().and_then(ty);
        let types = |defined: &[Value]| defined.iter().map(ty).collect();
        match &op.kind {
            OpKind::Load { .. } | OpKind::Prefetch { .. } => vec![None; 2],
            OpKind::Store { values, .. } => {
                let values = values.iter().map(|_| Some(GENERIC));
                [None].into_iter().chain(values).collect()
            }
            OpKind::Atomic { ptr, values, .. } => {
                // Private memory has no atomic operations: the device decides what becomes of one.
                let is_private = self.kernel.ty(*ptr) == Type::Ptr(Space::Private);
                let values = values.iter().map(|_| Some(GENERIC));
                [is_private.then_some(GENERIC)]
                    .into_iter()
                    .chain(values)
                    .collect()
            }
            OpKind::Address { .. } => vec![result, None],
            OpKind::Select(..) => vec![None, result, result],
            OpKind::Loop { params, .. } => types(params),
            OpKind::Break(label, _) => self.kernel.labels[*label]
                .results
                .iter()
                .copied()
                .map(Some)
                .collect(),
            OpKind::Continue(label, _) => self.params.get(label).map_or(Vec::new(), |params| types(params)),
            kind => {
                let mut wanted = Vec::new();
                kind.for_each_operand(|_| wanted.push(Some(GENERIC)));
                wanted
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{CutEdge, parse, print, verify};

    /// The body of a kernel with a global parameter, a shared array and a number, as the pass leaves it.
    fn found(ops: &str) -> String {
        let text = format!(
            "hsir 1\nkernel @k(%v: ptr.global i32[] align 4, %n: i64, %c: bool, %q: ptr.generic) {{\n\
             shared @tile: i32[64] align 4\nload @v\n%s = array @tile\n{ops}\nreturn\n}}\n"
        );
        let mut kernel = parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(&kernel).expect("the test's kernel is right");
        for label in kernel.labels.values_mut() {
            let is_edge = label.name.as_deref() == Some("edge");
            label.edge = is_edge.then_some(CutEdge::Enter(0));
        }
        find_spaces(&mut kernel);
        let text = print(&kernel);
        verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
        text
    }

    const SHARED: &str = "%g = to_generic %s to ptr.generic\n";
    const GLOBAL: &str = "%h = to_generic %v to ptr.generic\n";

    #[test]
    fn a_pointer_of_one_space_is_of_that_space() {
        let text = found(&format!(
            "{SHARED}%p = address %g + %n * 4\n%x = load i32 %p, @v\nstore %p, %x"
        ));
        assert!(
            !text.contains("generic %s") && text.contains("address %s + %n"),
            "{text}"
        );
    }

    #[test]
    fn a_pointer_of_two_spaces_stays_generic() {
        let text = found(&format!(
            "{SHARED}{GLOBAL}%p = select %c, %g, %h\nstore %p, 1:i32"
        ));
        assert!(
            text.contains("select %c, %g1, %h1") || text.matches("to_generic").count() == 2,
            "{text}"
        );
    }

    #[test]
    fn what_sees_the_bits_sees_those_of_the_generic_address() {
        let text = found(&format!(
            "{SHARED}%b = bits %g to i64\nstore %g, %b\nstore %v, %g"
        ));
        assert_eq!(text.matches("to_generic %s").count(), 2, "{text}");
        assert!(text.contains("store %s, %b"), "{text}");
    }

    #[test]
    fn pointers_are_compared_in_their_generic_form() {
        let compared = |a: &str, b: &str| {
            found(&format!(
                "{SHARED}{GLOBAL}%p = address %g + %n * 4\nstore %p, 3:i32\n%e = eq {a}, {b}\n%t = select %e, 1:i32, 2:i32\nstore %v, %t"
            ))
        };
        // A sum stays generic where it is compared; what it begins with is made generic for it.
        let sum = compared("%p", "%g");
        assert!(sum.contains("store %p, 3:i32") && sum.contains("eq %p"), "{sum}");
        assert!(
            !sum.contains("address %s") && !sum.contains("to_generic %p"),
            "{sum}"
        );
        let other = compared("%g", "%h");
        assert!(other.contains("address %s + %n"), "{other}");
        assert_eq!(other.matches("to_generic").count(), 2, "{other}");
    }

    #[test]
    fn loops_and_regions_pass_the_space_on() {
        let walk = |next: &str| {
            found(&format!(
                "{SHARED}%end = loop 'l (%p = %g) -> ptr.generic {{\nstore %p, 1:i32\n%m = eq %n, 0:i64\n\
                 if %m {{ yield }} else {{ break 'l %p }}\n{next}continue 'l %next\n}}\nstore %end, 2:i32"
            ))
        };
        let text = walk("%next = address %p + 0:i64 * 0 + 4\n");
        assert!(
            text.contains("(%p = %s)") && text.contains("-> ptr.shared"),
            "{text}"
        );
        // The next pointer comes from the host.
        let text = walk("%next = address %q + 0:i64 * 0 + 4\n");
        assert!(
            text.contains("-> ptr.generic") && text.contains("to_generic %s"),
            "{text}"
        );
    }

    #[test]
    fn a_pointer_keeps_its_form_over_an_edge() {
        let over = |pointer: &str, ops: &str| {
            found(&format!(
                "{ops}%e = block 'edge -> ptr.generic {{\nbreak 'edge {pointer}\n}}\nstore %e, 1:i32"
            ))
        };
        let shared = over("%g", SHARED);
        assert!(shared.contains("'edge -> ptr.generic"), "{shared}");
        // Those are the same bits.
        let global = over("%h", GLOBAL);
        assert!(global.contains("'edge -> ptr.global"), "{global}");
    }

    #[test]
    fn an_address_that_leaves_its_space_is_of_none() {
        // What leads from the global pointer to the shared one.
        let text = found(&format!(
            "{SHARED}{GLOBAL}%a = bits %h to i64\n%b = bits %g to i64\n%d = sub %b, %a\n%p = address %v + %d * 1\n\
             %z = to_generic %p to ptr.generic\nstore %z, 1:i32"
        ));
        assert!(
            text.contains("to_generic %p") && text.contains("store %z"),
            "{text}"
        );
    }

    #[test]
    fn an_offset_that_is_made_of_addresses_leads_anywhere() {
        let text = found(&format!(
            "{SHARED}{GLOBAL}%a = bits %h to i64\n%b = bits %g to i64\n%d = sub %a, %b\n%p = address %g + %d * 1\nstore %p, 1:i32"
        ));
        assert!(
            text.contains("address %g + %d") || text.matches("to_generic %s").count() == 2,
            "{text}"
        );
        assert!(!text.contains("address %s"), "{text}");
    }
}
