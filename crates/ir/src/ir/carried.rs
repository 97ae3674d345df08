//! Instructions that are carried as text, as values. A text is read once, where an [`Opaque`](super::Opaque) is made: engines
//! and lowering look at this, not at the text.
//!
//! ```text
//! before    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {=0, =1}, [@0+32]"
//! after     Rows { writes: false, space: Shared, form: Some(RowsForm { count: 2, transposed: false, at: @0 + 32 }) }
//! ```
//!
//! Results and operands are numbered in the order of the text, so that registers need not be read from it.

mod matrix;
mod phase;
mod quad;
mod short_float;
#[cfg(test)]
mod tests;

use super::types::Space;
pub use matrix::{
    Adds, Element, Factor, GroupOperands, GroupStep, Multiplier, Part, Product, Rows, RowsForm, Stride, Whole,
};
pub use phase::{BARRIER_BYTES, PhaseOperation, PhaseStep};
pub use quad::{Change, QUAD_BYTES, Quad};
pub(crate) use short_float::ShortFloat;
pub use short_float::half_of_e4m3;

/// What an instruction does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carried {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// No instruction: a copy of the piece of a program's text that has this number.
    Copy(usize),
    /// `mma`, `wmma.mma`, `wgmma.mma_async`.
    Product(Product),
    /// `ldmatrix`, `stmatrix`.
    Rows(Rows),
    /// `movmatrix`: the transpose of 8 × 8 elements of 16 bits. One operand, one result.
    Transpose,
    /// `wmma.load`, `wmma.store`.
    Whole(Whole),
    /// `wgmma.fence` and the marks of groups of products.
    Group(GroupStep),
    /// An operation on 16 bytes.
    Quad(Quad),
    /// A step of a barrier with phases.
    Phase(PhaseStep),
    /// A conversion of short floats.
    Converts(ShortFloat),
    /// Changes nothing that a program computes with; results are 0.
    Nothing,
    /// What the work-item wrote to shared memory becomes known to products of warp groups.
    ProxyFence,
    /// A number that grows.
    Clock,
    /// How much shared memory a work-group has, static memory included.
    SharedSize,
    /// Whether a generic address leads into this space.
    Leads(Space),
    /// The driver's `vprintf`.
    Print,
    /// The driver's `__assertfail`.
    Assert,
}

/// An operand: one of the instruction's values, or a number in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The value of this number.
    Value(usize),
    /// A number.
    Number(u64),
}

/// An address: one of the instruction's values, and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The number of the value.
    pub value: usize,
    /// Bytes.
    pub offset: i64,
    /// Where it leads.
    pub space: Space,
}

/// Instructions that change nothing that is seen here, by their beginnings.
const NOTHING: [&str; 10] = [
    "nanosleep",
    "setmaxnreg",
    "fence.proxy",
    "fence.mbarrier_init",
    "createpolicy",
    "prefetchu",
    "discard",
    "applypriority",
    "pmevent",
    "cp.async.bulk.prefetch",
];

impl Carried {
    /// Whether it is a product of warp groups.
    pub fn is_of_warp_group(&self) -> bool {
        matches!(self, Carried::Product(product) if product.by == Multiplier::WarpGroup)
    }

    /// Reads the text of an instruction of the operation `name` with this number of results.
    pub(super) fn read(text: &str, name: &str, results: usize) -> Carried {
        let (own, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words: Vec<&str> = own.split('.').collect();
        None.or_else(|| matrix::read(&words, rest))
            .or_else(|| Quad::read(&words, rest, results).map(Carried::Quad))
            .or_else(|| PhaseStep::read(&words, rest).map(Carried::Phase))
            .or_else(|| known(text, name))
            .unwrap_or_default()
    }
}

fn known(text: &str, name: &str) -> Option<Carried> {
    if name.starts_with("fence.proxy.async") && !name.contains(".global") {
        return Some(Carried::ProxyFence);
    }
    if NOTHING.iter().any(|start| name.starts_with(start)) {
        return Some(Carried::Nothing);
    }
    let has = |registers: &[&str]| registers.iter().any(|register| text.contains(register));
    Some(match name {
        "vprintf" => Carried::Print,
        "__assertfail" => Carried::Assert,
        "isspacep.global" => Carried::Leads(Space::Global),
        "isspacep.shared" | "isspacep.shared::cta" => Carried::Leads(Space::Shared),
        "isspacep.local" => Carried::Leads(Space::Private),
        _ if has(&["%clock", "%globaltimer", "%smid"]) => Carried::Clock,
        _ if has(&["%total_smem_size", "%aggr_smem_size"]) => Carried::SharedSize,
        _ => Carried::Converts(ShortFloat::read(name)?),
    })
}

/// How many operands a text names.
pub(super) fn operands(text: &str) -> usize {
    let number = |rest: &str| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()
    };
    let numbers = text.split('@').skip(1).filter_map(number);
    numbers.max().map_or(0, |last| last.saturating_add(1))
}

impl Operand {
    fn read(text: &str) -> Option<Operand> {
        Some(match text.strip_prefix('@') {
            Some(number) => Operand::Value(number.parse().ok()?),
            None => Operand::Number(match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => text.parse().ok()?,
            }),
        })
    }
}

/// The address that a text is, with its brackets.
fn reference(text: &str, space: Space) -> Option<Reference> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let (base, offset) = match inside.split_once('+') {
        Some((base, offset)) => (base, offset.parse().ok()?),
        None => (inside, 0),
    };
    let value = base.trim().strip_prefix('@')?.parse().ok()?;
    Some(Reference { value, offset, space })
}

/// The first address in a text.
fn reference_in(text: &str, space: Space) -> Option<Reference> {
    let (start, end) = (text.find('[')?, text.find(']')?);
    reference(text.get(start..=end)?, space)
}

/// The space that an instruction's words name.
fn space_of(words: &[&str]) -> Space {
    let has = |word: &str| words.contains(&word);
    match (has("global"), has("shared") || has("shared::cta")) {
        (true, _) => Space::Global,
        (_, true) => Space::Shared,
        _ => Space::Generic,
    }
}
