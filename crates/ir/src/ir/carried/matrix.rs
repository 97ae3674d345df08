//! The instructions of tensor cores: products of matrices, and the moves that bring them into registers.

use super::{Carried, Reference, operands, reference_in, space_of};
use crate::ir::Space;

/// The type of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// Single precision, of which 10 bits of the fraction count.
    Tf32,
    /// 8 bits with 4 of exponent.
    E4m3,
    /// 8 bits with 5 of exponent.
    E5m2,
    /// 6 or 4 bits, one in a byte: with 3 of exponent, with 2, and with 2 and one of fraction.
    Shorter,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 8 bits.
    S8,
    /// An unsigned integer of 8 bits.
    U8,
    /// A signed integer of 4 bits.
    S4,
    /// An unsigned integer of 4 bits.
    U4,
    /// A bit.
    B1,
}

impl Element {
    /// The type with this name in PTX.
    pub(crate) fn named(name: &str) -> Option<Element> {
        Some(match name {
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "tf32" => Element::Tf32,
            "e4m3" => Element::E4m3,
            "e5m2" => Element::E5m2,
            "e3m2" | "e2m3" | "e2m1" => Element::Shorter,
            "f32" => Element::F32,
            "f64" => Element::F64,
            "s32" => Element::I32,
            "s8" => Element::S8,
            "u8" => Element::U8,
            "s4" => Element::S4,
            "u4" => Element::U4,
            "b1" => Element::B1,
            _ => return None,
        })
    }

    /// Bits of an element in a register.
    pub fn bits(self) -> u32 {
        match self {
            Element::B1 => 1,
            Element::S4 | Element::U4 => 4,
            Element::E4m3 | Element::E5m2 | Element::Shorter | Element::S8 | Element::U8 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 | Element::F32 | Element::I32 => 32,
            Element::F64 => 64,
        }
    }

    /// Elements in a register: registers have 32 bits, or 64 for `f64`.
    pub fn per_register(self) -> u32 {
        (32 / self.bits()).max(1)
    }

    /// Whether it is an integer that is multiplied.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1
        )
    }

    /// The bit of the sign of a float.
    pub fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }
}

/// Which operand of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The summand, and the sum.
    C,
}

/// Who multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplier {
    /// A sub-group: `mma`.
    SubGroup,
    /// A sub-group, matrices that it loaded whole: `wmma.mma`.
    Whole,
    /// Four sub-groups: `wgmma.mma_async`.
    WarpGroup,
}

/// A product of matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Who multiplies.
    pub by: Multiplier,
    /// Rows, columns and inner size.
    pub sizes: (u32, u32, u32),
    /// The types that it names: D, A, B and C; `wmma` of halves D and C, `wgmma` D, A and B.
    pub elements: Vec<Element>,
    /// Whether sums of integers saturate at the bounds of 32 bits.
    pub saturates: bool,
    /// Whether its name says nothing more: factors are dense, A by rows and B by columns, and of single bits `and` is summed, by
    /// warp groups.
    pub is_plain: bool,
    /// The operands of a product of warp groups, if they are understood.
    pub operands: Option<GroupOperands>,
}

/// The operands of a product of warp groups. The accumulators stand once, as results; as operands they are the last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOperands {
    /// The left factor.
    pub left: Factor,
    /// The operand that is the right one's descriptor.
    pub right: usize,
    /// Whether the accumulators are added.
    pub adds: Adds,
    /// Whether each element of a factor is negated.
    pub negated: [bool; 2],
    /// Whether elements of one `k` of a factor lie side by side.
    pub turned: [bool; 2],
    /// The operand that is the first accumulator.
    pub first_summand: usize,
}

/// Where a factor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// In registers: the first one's operand, and their number.
    Registers(usize, usize),
    /// In shared memory, where the descriptor that is this operand says.
    Descriptor(usize),
}

/// Whether the accumulators are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// Always, or never.
    Known(bool),
    /// If the predicate that is this operand has this value.
    If(usize, bool),
}

/// Steps of a warp group beside its products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupStep {
    /// `wgmma.fence`: registers that were written may be used by products.
    Fence,
    /// `wgmma.commit_group`: the products so far are a group.
    Commit,
    /// `wgmma.wait_group`: all groups but the last few have ended.
    Wait(usize),
}

/// A move of matrices between registers and the rows to which lanes have addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Whether they are stored: then their registers are the operands behind the address.
    pub writes: bool,
    /// Where they lie.
    pub space: Space,
    /// Their form, of matrices of 8 × 8 elements of 16 bits. Lane `8 j + i` gives the address of row `i` of matrix `j`.
    pub form: Option<RowsForm>,
}

/// Matrices of 8 × 8 elements of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsForm {
    /// How many: one, two or four.
    pub count: u32,
    /// Whether they are transposed on the way.
    pub transposed: bool,
    /// Where they lie.
    pub at: Reference,
}

/// A move of one operand of a `wmma.mma`. All lanes give the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Rows, columns and inner size of the product.
    pub sizes: (u32, u32, u32),
    /// Which operand of it.
    pub part: Part,
    /// The type of its elements.
    pub element: Element,
    /// Whether elements of a row lie side by side.
    pub by_rows: bool,
    /// Elements from one row to the next, or one column.
    pub stride: Stride,
    /// Whether it is stored: then its registers are the operands behind the address.
    pub writes: bool,
    /// Where it lies.
    pub at: Reference,
}

/// How far rows or columns are from each other, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// As far as they are long.
    Dense,
    /// So far.
    Fixed(u32),
    /// As an operand says.
    Operand(usize),
}

/// The instruction with these words and operands.
pub(super) fn read(words: &[&str], rest: &str) -> Option<Carried> {
    Some(match words {
        ["mma", more @ ..] => Carried::Product(product(Multiplier::SubGroup, more)?),
        ["wmma", "mma", more @ ..] => Carried::Product(product(Multiplier::Whole, more)?),
        ["wgmma", "mma_async", more @ ..] => {
            let read = product(Multiplier::WarpGroup, more)?;
            let operands = match read.elements[..] {
                [_, left, _] => group_operands(left, rest),
                _ => None,
            };
            Carried::Product(Product { operands, ..read })
        }
        ["wgmma", "fence", ..] => Carried::Group(GroupStep::Fence),
        ["wgmma", "commit_group", ..] => Carried::Group(GroupStep::Commit),
        ["wgmma", "wait_group", ..] => Carried::Group(GroupStep::Wait(rest.trim().parse().ok()?)),
        [direction @ ("ldmatrix" | "stmatrix"), more @ ..] => Carried::Rows(Rows {
            writes: *direction == "stmatrix",
            space: space_of(words),
            form: rows_form(more, rest),
        }),
        ["movmatrix", "sync", "aligned", "m8n8", "trans", "b16"] => Carried::Transpose,
        [
            "wmma",
            direction @ ("load" | "store"),
            part,
            "sync",
            "aligned",
            layout,
            shape,
            more @ ..,
        ] => {
            let stride = rest.rsplit(['}', ']']).next()?.trim_matches([',', ' ']);
            Carried::Whole(Whole {
                sizes: product_sizes(shape)?,
                part: match *part {
                    "a" => Part::A,
                    "b" => Part::B,
                    _ => Part::C,
                },
                element: Element::named(more.last()?)?,
                by_rows: match *layout {
                    "row" => true,
                    "col" => false,
                    _ => return None,
                },
                stride: match (stride, stride.strip_prefix('@')) {
                    ("", _) => Stride::Dense,
                    (_, Some(operand)) => Stride::Operand(operand.parse().ok()?),
                    (fixed, None) => Stride::Fixed(fixed.parse().ok()?),
                },
                writes: *direction == "store",
                at: reference_in(rest, space_of(words))?,
            })
        }
        _ => return None,
    })
}

/// Rows, columns and inner size, by the name of a shape: `m16n8k16`.
fn product_sizes(name: &str) -> Option<(u32, u32, u32)> {
    let (m, rest) = name.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let sizes: (u32, u32, u32) = (m.parse().ok()?, n.parse().ok()?, k.parse().ok()?);
    (sizes.0.max(sizes.1).max(sizes.2) <= 512).then_some(sizes)
}

/// A product, from the words behind its name: `sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`.
fn product(by: Multiplier, words: &[&str]) -> Option<Product> {
    let elements: Vec<Element> = words.iter().filter_map(|word| Element::named(word)).collect();
    let kinds = match (by, words) {
        (Multiplier::SubGroup, ["sync", "aligned", _, "row", "col", kinds @ ..])
        | (Multiplier::Whole, ["sync", "aligned", _, _, _, kinds @ ..])
        | (Multiplier::WarpGroup, ["sync", "aligned", _, kinds @ ..]) => Some(kinds),
        _ => None,
    };
    let is_plain = kinds.is_some_and(|kinds| {
        let of_bits = by == Multiplier::WarpGroup && elements.get(1) == Some(&Element::B1);
        let kinds = match of_bits {
            true => kinds.strip_suffix(&["and", "popc"]),
            false => Some(kinds),
        };
        let is_known = |word: &&str| *word == "satfinite" || Element::named(word).is_some();
        kinds.is_some_and(|kinds| kinds.iter().all(is_known))
    });
    Some(Product {
        by,
        sizes: words.iter().find_map(|word| product_sizes(word))?,
        elements,
        saturates: words.contains(&"satfinite"),
        is_plain,
        operands: None,
    })
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

fn group_operands(element: Element, rest: &str) -> Option<GroupOperands> {
    let operand = |text: &str| text.trim().strip_prefix('@')?.parse::<usize>().ok();
    let parts = parts(rest);
    let [_, left, right, scale, constants @ ..] = &parts[..] else {
        return None;
    };
    let in_registers = left.starts_with('{');
    let may_turn = element.bits() == 16;
    let constants: Vec<i32> = constants
        .iter()
        .map(|text| text.parse().ok())
        .collect::<Option<_>>()?;
    let (negated, turned): ([bool; 2], [bool; 2]) = match constants[..] {
        [] if element.is_integer() => ([false; 2], [false; 2]),
        [left, right] if !element.is_integer() && !may_turn => ([left < 0, right < 0], [false; 2]),
        [left, right, of_right] if may_turn && in_registers => {
            ([left < 0, right < 0], [false, of_right != 0])
        }
        [left, right, of_left, of_right] if may_turn && !in_registers => {
            ([left < 0, right < 0], [of_left != 0, of_right != 0])
        }
        _ => return None,
    };
    let left = match in_registers {
        true => {
            let registers = left.trim_matches(['{', '}']).split(',').map(operand);
            let given: Vec<usize> = registers.collect::<Option<_>>()?;
            let (first, count) = (*given.first()?, given.len());
            let follow_each_other = given.iter().copied().eq(first..first.saturating_add(count));
            follow_each_other.then_some(Factor::Registers(first, count))?
        }
        false => Factor::Descriptor(operand(left)?),
    };
    let adds = match (scale.strip_prefix('!'), operand(scale)) {
        (Some(inverse), _) => Adds::If(operand(inverse)?, false),
        (None, Some(predicate)) => Adds::If(predicate, true),
        (None, None) => Adds::Known(scale.parse::<i64>().ok()? != 0),
    };
    Some(GroupOperands {
        left,
        right: operand(right)?,
        adds,
        negated,
        turned,
        first_summand: operands(rest),
    })
}

/// The form of `ldmatrix` and `stmatrix` behind the name.
fn rows_form(words: &[&str], rest: &str) -> Option<RowsForm> {
    let ["sync", "aligned", "m8n8", count, more @ ..] = words else {
        return None;
    };
    let (transposed, more) = match more {
        ["trans", more @ ..] => (true, more),
        more => (false, more),
    };
    let &["shared" | "shared::cta", "b16"] = more else {
        return None;
    };
    Some(RowsForm {
        count: match *count {
            "x1" => 1,
            "x2" => 2,
            "x4" => 4,
            _ => return None,
        },
        transposed,
        at: reference_in(rest, Space::Shared)?,
    })
}
