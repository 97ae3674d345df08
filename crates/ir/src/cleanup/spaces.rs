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
//! [`roots`](crate::analysis::roots), an address stays in the object that it begins in, unless an offset is made of other
//! addresses. Pointers that are loaded, passed or made of bits stay generic. Everything that sees the bits of a pointer sees
//! those of the generic one.

use std::collections::HashMap;
use std::mem;

use cranelift_entity::{EntitySet, SecondaryMap};

use crate::analysis::definitions::{Definition, Definitions};
use crate::analysis::roots::holds_address;
use crate::ir::{ConvertOp, Kernel, Label, Op, OpKind, Place, Region, Space, Type, Value};

const GENERIC: Type = Type::Ptr(Space::Generic);

/// Finds the space of every generic pointer of the kernel that has one; whether there is such a pointer.
pub fn find_spaces(kernel: &mut Kernel) -> bool {
    let generic: Vec<Value> = kernel
        .values
        .keys()
        .filter(|&value| kernel.ty(value) == GENERIC)
        .collect();
    if generic.is_empty() {
        return false;
    }
    let spaces = spaces(kernel, &generic);
    let mut found = false;
    for &value in &generic {
        if let Some(Some(space)) = spaces[value] {
            kernel.values[value].ty = Type::Ptr(space);
            found = true;
        }
    }
    if found {
        rewrite(kernel, &generic);
    }
    found
}

/// What is known of a pointer's space: nothing yet; that it has one; that it has none.
type Known = Option<Option<Space>>;

/// The space of each of these pointers.
fn spaces(kernel: &Kernel, generic: &[Value]) -> SecondaryMap<Value, Known> {
    let definitions = Definitions::of(kernel);
    let sources: Vec<Vec<Value>> = generic
        .iter()
        .map(|&value| sources(kernel, &definitions, value))
        .collect();
    let mut known: SecondaryMap<Value, Known> = SecondaryMap::new();
    let mut changed = true;
    while changed {
        changed = false;
        for (&value, sources) in generic.iter().zip(&sources) {
            let of = |&from: &Value| match kernel.ty(from) {
                GENERIC => known[from],
                ty => Some(ty.space()),
            };
            let space = match &sources[..] {
                [] => Some(None),
                sources => sources.iter().map(of).fold(known[value], join),
            };
            changed |= space != known[value];
            known[value] = space;
        }
    }
    known
}

/// The pointers that a generic pointer is made of; none if it may lead anywhere.
fn sources(kernel: &Kernel, definitions: &Definitions, pointer: Value) -> Vec<Value> {
    match definitions.get(pointer) {
        Some(Definition::LoopParam { initial, next, .. }) => next.iter().copied().chain([*initial]).collect(),
        Some(Definition::Result { kind, passed, .. }) => match *kind {
            OpKind::Convert(ConvertOp::ToGeneric, from) => vec![from],
            OpKind::Address { base, index, .. } if !holds_address(kernel, definitions, index) => vec![base],
            OpKind::Select(_, a, b) => vec![a, b],
            OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => passed.clone(),
            _ => Vec::new(),
        },
        None => Vec::new(),
    }
}

fn join(a: Known, b: Known) -> Known {
    match (a, b) {
        (None, known) | (known, None) => known,
        (Some(a), Some(b)) => Some(a.filter(|_| a == b)),
    }
}

/// Makes the operations fit the new types of these pointers.
fn rewrite(kernel: &mut Kernel, generic: &[Value]) {
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
    let mut retyped = EntitySet::new();
    for &value in generic.iter().filter(|&&value| kernel.ty(value) != GENERIC) {
        retyped.insert(value);
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
            // Generic addresses of one space have the order of the addresses there.
            OpKind::Compare(_, a, b) if ty(a) == ty(b) => vec![None; 2],
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
    use crate::ir::{parse, print, verify};

    /// The body of a kernel with a global parameter, a shared array and a number, as the pass leaves it.
    fn found(ops: &str) -> String {
        let text = format!(
            "hsir 1\nkernel @k(%v: ptr.global i32[] align 4, %n: i64, %c: bool, %q: ptr.generic) {{\n\
             shared @tile: i32[64] align 4\nload @v\n%s = array @tile\n{ops}\nreturn\n}}\n"
        );
        let mut kernel = parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(&kernel).expect("the test's kernel is right");
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
    fn pointers_are_compared_in_one_form() {
        let same = found(&format!(
            "{SHARED}%p = address %g + %n * 4\n%e = eq %p, %g\n%t = select %e, 1:i32, 2:i32\nstore %v, %t"
        ));
        assert!(!same.contains("to_generic"), "{same}");
        let other = found(&format!(
            "{SHARED}{GLOBAL}%e = eq %g, %h\n%t = select %e, 1:i32, 2:i32\nstore %v, %t"
        ));
        assert_eq!(other.matches("to_generic").count(), 2, "{other}");
    }

    #[test]
    fn loops_and_regions_pass_the_space_on() {
        let walk = |next: &str| {
            found(&format!(
                "{SHARED}%end = loop 'l (%p = %g) -> ptr.generic {{\nstore %p, 1:i32\n%m = eq %n, 0:i64\n\
                 if %m {{ yield }} else {{ break 'l %p }}\n{next}continue 'l %next\n}}\n%b = bits %end to i64\nstore %v, %b"
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
