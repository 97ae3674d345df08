//! Where a pointer comes from: the parameter or array that it was computed from.
//!
//! Address arithmetic stays in the object that it begins in, with one exception: an offset that the kernel makes of other
//! addresses. `p + (q - p)` is `q`, and compilers write it.
//!
//! Integers that the kernel gets or loads are not treated as such offsets, nor are the low bits of an address: otherwise `p[i]`
//! could reach everything, and nothing could move. This is no guess about programs but follows from the facts: memory accessed
//! through `p` is accessed through no other parameter, is not written, or lies below a length. A program in which a loaded
//! distance leads from `p` to `q` violates them; if no fact is known of either, both may alias anyway.

use std::cell::Cell;
use std::collections::HashSet;

use super::definitions::{Definition, Definitions};
use super::ranges::range;
use crate::ir::{Array, BinaryOp, ConvertOp, Kernel, NoWrapOp, OpKind, PointerFacts, Space, Value};

/// Numbers below this are no addresses, whatever they were computed from: for example the low bits of an address, used for
/// alignment. Memory this close to another object is accessed through that object's pointer as well, by the facts of both.
const SMALL: u64 = 4096;
/// The most nested distances between pointers: beyond that, or for a pointer made of its own distance to another, nothing is
/// known.
const MOST_DISTANCES: u32 = 8;
/// Values looked at before nothing is known: distances that share parts would take exponential time.
const VISITS: u32 = 10_000;

/// The object that a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// The memory behind the parameter of this number.
    Param(usize),
    /// A shared or private array.
    Array(Array),
}

/// The root of a pointer, if address arithmetic, loops and regions alone lead to it.
pub fn root(kernel: &Kernel, definitions: &Definitions, pointer: Value) -> Option<Root> {
    definitions.root(pointer, || {
        let search = Search {
            kernel,
            definitions,
            visits: Cell::new(VISITS),
        };
        search.root(pointer, 0)
    })
}

/// Whether an integer may be made of the bits of an address, so that an offset by it may lead anywhere. The distance of
/// two pointers into one object is none.
#[doc(hidden)]
pub fn holds_address(kernel: &Kernel, definitions: &Definitions, value: Value) -> bool {
    let search = Search {
        kernel,
        definitions,
        visits: Cell::new(VISITS),
    };
    search.holds_address(value, 0)
}

/// A search that follows pointers and the distances between them.
struct Search<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    visits: Cell<u32>,
}

impl Search<'_> {
    /// Counts a visit; false if there were too many.
    fn visit(&self) -> bool {
        let left = self.visits.get();
        self.visits.set(left.saturating_sub(1));
        left > 0
    }

    fn root(&self, pointer: Value, depth: u32) -> Option<Root> {
        let (kernel, definitions) = (self.kernel, self.definitions);
        let mut seen = HashSet::new();
        let mut work = vec![pointer];
        let mut found = None;
        // A pointer that comes from several places has a root if all of them have the same.
        while let Some(pointer) = work.pop() {
            if !seen.insert(pointer) {
                continue;
            }
            if !self.visit() {
                return None;
            }
            if let Some(index) = kernel.params.iter().position(|param| param.value == pointer) {
                agree(&mut found, Root::Param(index))?;
                continue;
            }
            match definitions.get(pointer)? {
                Definition::LoopParam { initial, next, .. } => {
                    work.push(*initial);
                    work.extend(next);
                }
                Definition::Result { kind, passed, .. } => match kind {
                    OpKind::ArrayAddress(array) => agree(&mut found, Root::Array(*array))?,
                    OpKind::Address { base, index, .. } if !self.holds_address(*index, depth) => {
                        work.push(*base);
                    }
                    OpKind::Convert(ConvertOp::ToGeneric | ConvertOp::FromGeneric, from) => work.push(*from),
                    OpKind::Select(_, a, b) => work.extend([*a, *b]),
                    OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => work.extend(passed),
                    _ => return None,
                },
            }
        }
        found
    }

    fn holds_address(&self, value: Value, depth: u32) -> bool {
        let (kernel, definitions) = (self.kernel, self.definitions);
        if !definitions.has_bit_casts() {
            return false;
        }
        let mut seen = HashSet::new();
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            // A comparison's result only tells which side. A floating-point number may be the bits of an integer.
            let ty = kernel.ty(value);
            if !seen.insert(value) || !(ty.is_integer() || ty.is_float()) {
                continue;
            }
            if !self.visit() {
                return true;
            }
            match definitions.get(value) {
                None => {}
                Some(Definition::LoopParam { initial, next, .. }) => {
                    work.push(*initial);
                    work.extend(next);
                }
                Some(Definition::Result { kind, passed, .. }) => match kind {
                    OpKind::Convert(ConvertOp::Bits, from) if kernel.ty(*from).is_pointer() => return true,
                    _ if range(kernel, definitions, value).max < SMALL => {}
                    OpKind::Binary(BinaryOp::Sub, a, b) | OpKind::NoWrap(NoWrapOp::Sub, _, a, b)
                        if self.same_object(*a, *b, depth) => {}
                    // A number like those that the kernel is given: see above.
                    OpKind::Load { .. } | OpKind::Atomic { .. } => {}
                    kind => {
                        kind.for_each_operand(|operand| work.push(operand));
                        work.extend(passed);
                    }
                },
            }
        }
        false
    }

    /// Whether two integers are the bits of pointers into one object.
    fn same_object(&self, a: Value, b: Value, depth: u32) -> bool {
        let (kernel, definitions) = (self.kernel, self.definitions);
        let pointer = |value: Value| match definitions.op(value) {
            Some(OpKind::Convert(ConvertOp::Bits, from)) if kernel.ty(*from).is_pointer() => Some(*from),
            _ => None,
        };
        let object = |value: Value| self.root(pointer(value)?, depth + 1);
        depth < MOST_DISTANCES && object(a).is_some_and(|object_a| object(b) == Some(object_a))
    }
}

/// Notes a root; nothing if another one was found before.
fn agree(found: &mut Option<Root>, root: Root) -> Option<()> {
    match found {
        Some(other) if *other != root => None,
        _ => {
            *found = Some(root);
            Some(())
        }
    }
}

impl Root {
    /// The facts about the memory, if it is a parameter's.
    pub fn facts(self, kernel: &Kernel) -> Option<PointerFacts> {
        match self {
            Root::Param(index) => kernel.params[index].facts,
            Root::Array(_) => None,
        }
    }

    /// The space it lies in.
    pub fn space(self, kernel: &Kernel) -> Option<Space> {
        match self {
            Root::Param(index) => kernel.ty(kernel.params[index].value).space(),
            Root::Array(array) => Some(kernel.arrays[array].space),
        }
    }

    /// Its name in the source.
    pub fn name(self, kernel: &Kernel) -> &str {
        match self {
            Root::Param(index) => &kernel.params[index].name,
            Root::Array(array) => &kernel.arrays[array].name,
        }
    }

    /// Whether writes through one root can change reads through the other.
    #[doc(hidden)]
    pub fn may_alias(self, other: Root, kernel: &Kernel) -> bool {
        // A pointer of which nothing is known may lead anywhere.
        let unaliased = |root: Root| root.facts(kernel).is_some_and(|facts| facts.unaliased);
        match (self, other) {
            _ if self == other => true,
            (Root::Param(_), Root::Param(_)) => !unaliased(self) && !unaliased(other),
            // Arrays are objects of their own.
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The root of `%at`, which these operations define.
    fn root_of(ops: &str) -> Option<Root> {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global i32[] align 4, %n: i64) {{\n{ops}  store %at, 0:i32\n  return\n}}\n"
        );
        let kernel = crate::ir::parse(&text, "k.hsir").expect("the test's kernel is right");
        let stored = kernel.body.ops.iter().find_map(|op| match op.kind {
            OpKind::Store { ptr, .. } => Some(ptr),
            _ => None,
        });
        root(&kernel, &Definitions::of(&kernel), stored.expect("a store"))
    }

    #[test]
    fn a_number_as_a_pointer_has_no_root_whatever_it_is_chosen_against() {
        let number = "  %q = bits %n to ptr.global\n  %less = lt.u %n, 9:i64\n";
        assert_eq!(root_of(&format!("{number}  %at = select %less, %p, %q\n")), None);
        assert_eq!(root_of(&format!("{number}  %at = select %less, %q, %p\n")), None);
        let both = format!("{number}  %at = select %less, %p, %p\n");
        assert_eq!(root_of(&both), Some(Root::Param(0)));
    }

    /// Steps of a pointer, each from the one before.
    fn walked(steps: u32) -> String {
        let mut ops = "  %a0 = address %p + %n * 4\n".to_owned();
        for step in 1..=steps {
            let _ = writeln!(ops, "  %a{step} = address %a{} + 0:i64 * 1 + 4", step - 1);
        }
        ops + &format!("  %at = address %a{steps} + 0:i64 * 1 + 4\n")
    }

    #[test]
    fn a_pointer_that_is_too_far_from_its_object_has_no_root() {
        assert_eq!(root_of(&walked(100)), Some(Root::Param(0)));
        assert_eq!(root_of(&walked(VISITS)), None);
    }

    /// An offset from a number by many steps, beside the bits of a pointer.
    fn summed(steps: u32) -> String {
        let mut ops = "  %bits = bits %p to i64\n  %i0 = add %n, %n\n".to_owned();
        for step in 1..=steps {
            let _ = writeln!(ops, "  %i{step} = add %i{}, %n", step - 1);
        }
        ops + &format!("  %at = address %p + %i{steps} * 4\n")
    }

    #[test]
    fn an_offset_of_too_many_parts_may_be_an_address() {
        assert_eq!(root_of(&summed(100)), Some(Root::Param(0)));
        assert_eq!(root_of(&summed(VISITS)), None);
    }
}
