//! The instructions of warp groups, read from the text that carries them.
//!
//! ```text
//! before    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, @2, 1, 1, 0, 1"
//! after     Product { a: Factor { source: Descriptor(0, …), … }, b: …, adds: Adds::If(2, true), first_summand: 3, … }
//! ```
//!
//! The accumulators stand once, as results; as operands they are the last ones. Sparse factors are not run.

use super::super::fragment::{Fragment, MatrixShape, Part};
use super::super::number::{Element, Kinds, Unit};
use super::descriptor::Order;
use crate::ir::Array;

/// Sub-groups of a warp group.
pub(crate) const SUB_GROUPS: u32 = 4;

/// An instruction of a warp group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WgmmaInstruction {
    /// `wgmma.fence`: registers that were written may be used by products.
    Fence,
    /// `wgmma.mma_async`.
    Product(Box<Product>),
    /// `wgmma.commit_group`: the products so far are a group.
    Commit,
    /// `wgmma.wait_group`: all groups but the last few have ended.
    Wait(usize),
}

/// A product: a sub-group's 16 rows of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Product {
    /// The instruction's name.
    pub name: Box<str>,
    /// The types.
    pub kinds: Kinds,
    /// The left factor.
    pub a: Factor,
    /// The right one.
    pub b: Factor,
    /// The accumulators.
    pub sum: Fragment,
    /// The number of the operand that is the first accumulator.
    pub first_summand: usize,
    /// Whether the accumulators are added.
    pub adds: Adds,
}

/// A factor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Factor {
    /// Where it lies.
    pub source: Source,
    /// How its elements follow each other in shared memory.
    pub order: Order,
    /// Whether each element is negated.
    pub negated: bool,
}

/// Where a factor lies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// In registers, from this operand on.
    Registers(Fragment, usize),
    /// In shared memory, where the descriptor that is this operand says; and in which array.
    Descriptor(usize, Option<Array>),
}

/// Whether the accumulators are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adds {
    /// Always, or never.
    Known(bool),
    /// If the predicate that is this operand has this value.
    If(usize, bool),
}

impl WgmmaInstruction {
    /// The instruction of a text with these numbers of results and operands, and the array that each operand leads into; nothing
    /// if it is none that can be run.
    pub(crate) fn read(
        text: &str,
        results: usize,
        operands: usize,
        array: impl Fn(usize) -> Option<Array>,
    ) -> Option<WgmmaInstruction> {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words: Vec<&str> = name.split('.').collect();
        Some(match words[..] {
            ["wgmma", "fence", "sync", "aligned"] => WgmmaInstruction::Fence,
            ["wgmma", "commit_group", "sync", "aligned"] => WgmmaInstruction::Commit,
            ["wgmma", "wait_group", "sync", "aligned"] => WgmmaInstruction::Wait(rest.trim().parse().ok()?),
            ["wgmma", "mma_async", "sync", "aligned", shape, ref kinds @ ..] => {
                WgmmaInstruction::Product(Box::new(product(
                    name,
                    shape,
                    kinds,
                    &parts(rest),
                    (results, operands),
                    array,
                )?))
            }
            _ => return None,
        })
    }
}

/// The operands of a text: those in braces are one.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found
}

fn product(
    name: &str,
    shape: &str,
    words: &[&str],
    parts: &[&str],
    (results, operands): (usize, usize),
    array: impl Fn(usize) -> Option<Array>,
) -> Option<Product> {
    let is_bits = words.ends_with(&["and", "popc"]);
    let saturates = words.contains(&"satfinite");
    let types: Vec<Element> = words[..words.len() - if is_bits { 2 } else { 0 }]
        .iter()
        .filter(|word| **word != "satfinite")
        .map(|word| Element::named(word))
        .collect::<Option<_>>()?;
    let &[sum, a, b] = &types[..] else { return None };
    let kinds = Kinds {
        a,
        b,
        sum,
        saturates,
        unit: Unit::WarpGroup,
    };
    let shape = MatrixShape::of_wgmma(shape)?;
    // The `k` of a product take 32 bytes.
    if !kinds.are_known() || is_bits != (a == Element::B1) || shape.inner * a.bits() != 256 {
        return None;
    }
    let operand = |text: &str| text.strip_prefix('@')?.parse::<usize>().ok();
    let [_, left, right, scale, constants @ ..] = parts else {
        return None;
    };
    let in_registers = left.starts_with('{');
    let may_turn = a.bits() == 16;
    let constants: Vec<i32> = constants
        .iter()
        .map(|text| text.parse().ok())
        .collect::<Option<_>>()?;
    let (negated, turned): ([bool; 2], [bool; 2]) = match constants[..] {
        [] if a.is_integer() => ([false; 2], [false; 2]),
        [left, right] if !a.is_integer() && !may_turn => ([left < 0, right < 0], [false; 2]),
        [left, right, of_right] if may_turn && in_registers => {
            ([left < 0, right < 0], [false, of_right != 0])
        }
        [left, right, of_left, of_right] if may_turn && !in_registers => {
            ([left < 0, right < 0], [of_left != 0, of_right != 0])
        }
        _ => return None,
    };
    let order = |turned: bool| if turned { Order::AcrossK } else { Order::AlongK };
    let source = match in_registers {
        true => {
            let fragment = Fragment::new(shape, Part::A, a);
            let given: Vec<usize> = left
                .trim_matches(['{', '}'])
                .split(',')
                .map(|text| operand(text.trim()))
                .collect::<Option<_>>()?;
            let first = *given.first()?;
            let follow_each_other = given
                .iter()
                .copied()
                .eq(first..first + fragment.registers as usize);
            follow_each_other.then_some(Source::Registers(fragment, first))?
        }
        false => Source::Descriptor(operand(left)?, array(operand(left)?)),
    };
    let adds = match (scale.strip_prefix('!'), operand(scale)) {
        (Some(inverse), _) => Adds::If(operand(inverse)?, false),
        (None, Some(predicate)) => Adds::If(predicate, true),
        (None, None) => Adds::Known(scale.parse::<i64>().ok()? != 0),
    };
    let fragment = Fragment::new(shape, Part::C, sum);
    let first_summand = operands.checked_sub(results)?;
    // The accumulators come behind all others.
    let last = [
        match &source {
            Source::Registers(fragment, first) => first + fragment.registers as usize - 1,
            Source::Descriptor(operand, _) => *operand,
        },
        operand(right)?,
        match adds {
            Adds::If(operand, _) => operand,
            Adds::Known(_) => 0,
        },
    ];
    if results != fragment.registers as usize || last.iter().any(|&operand| operand >= first_summand) {
        return None;
    }
    Some(Product {
        name: name.into(),
        kinds,
        a: Factor {
            source,
            order: order(turned[0]),
            negated: negated[0],
        },
        b: Factor {
            source: Source::Descriptor(operand(right)?, array(operand(right)?)),
            order: order(turned[1]),
            negated: negated[1],
        },
        sum: fragment,
        first_summand,
        adds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, results: usize, operands: usize) -> Option<WgmmaInstruction> {
        WgmmaInstruction::read(text, results, operands, |_| None)
    }

    fn product(text: &str, results: usize, operands: usize) -> Product {
        match read(text, results, operands) {
            Some(WgmmaInstruction::Product(product)) => *product,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn factors_lie_in_memory_or_registers() {
        let both = product(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, !@2, 1, -1, 0, 1",
            4,
            7,
        );
        assert_eq!(both.a.source, Source::Descriptor(0, None));
        assert_eq!(both.b.source, Source::Descriptor(1, None));
        assert_eq!((both.adds, both.first_summand), (Adds::If(2, false), 3));
        assert_eq!((both.a.negated, both.b.negated), (false, true));
        assert_eq!((both.a.order, both.b.order), (Order::AlongK, Order::AcrossK));
        let one = product(
            "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {=0, =1, =2, =3}, {@0, @1, @2, @3}, @4, 0, -1, 1, 1",
            4,
            9,
        );
        assert!(matches!(one.a.source, Source::Registers(_, 0)));
        assert_eq!((one.adds, one.b.order), (Adds::Known(false), Order::AcrossK));
        let bytes = product(
            "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.s32.s8.s8 {=0, =1, =2, =3}, @0, @1, 1",
            4,
            6,
        );
        assert!(bytes.kinds.saturates);
        let bits = product(
            "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {=0, =1, =2, =3}, {@0, @1, @2, @3}, @4, @5",
            4,
            10,
        );
        assert_eq!(bits.kinds.a, Element::B1);
        let short = product(
            "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e5m2 {=0, =1}, @0, @1, @2, 1, 1",
            2,
            5,
        );
        assert_eq!(short.sum.registers, 2);
    }

    #[test]
    fn the_others_of_a_warp_group_are_known() {
        assert_eq!(
            read("wgmma.fence.sync.aligned", 0, 0),
            Some(WgmmaInstruction::Fence)
        );
        assert_eq!(
            read("wgmma.commit_group.sync.aligned", 0, 0),
            Some(WgmmaInstruction::Commit)
        );
        assert_eq!(
            read("wgmma.wait_group.sync.aligned 3", 0, 0),
            Some(WgmmaInstruction::Wait(3))
        );
    }

    #[test]
    fn what_is_not_known_to_the_bit_is_not_read() {
        for (text, results, operands) in [
            (
                "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, @2, 0, 1, 1, 1, 0, 0",
                4,
                7,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, 1, 1, 1",
                4,
                6,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k32.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, 1, 1, 1, 0, 0",
                4,
                6,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, @2, 1, 1, 0, 0",
                4,
                6,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k64.s32.s4.s4 {=0, =1, =2, =3}, @0, @1, 1",
                4,
                6,
            ),
        ] {
            assert_eq!(read(text, results, operands), None, "{text}");
        }
    }
}
