//! Instructions that are carried as text, read: what the engine runs of them. [`opaque`](super::opaque) runs them.

use super::lanes::{Registers, Slot};
use super::matrix::group::arrays::array_of;
use super::matrix::group::instruction::WgmmaInstruction;
use super::matrix::instruction::Matrix;
use super::matrix::moved::Piece;
use super::phases::instruction::PhaseStep;
use super::quad::Quad;
use super::short_float::ShortFloat;
use crate::ir::{Kernel, Opaque, Space, Touches, Type, Value};

/// An instruction that its name alone identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Changes nothing that a program computes with; results are 0.
    Nothing,
    /// What the work-item wrote to shared memory becomes known to products of warp groups.
    ProxyFence,
    /// A number that grows.
    Clock,
    /// Whether a generic address leads into this space.
    Leads(Space),
    /// The driver's `vprintf`.
    Print,
    /// The driver's `__assertfail`.
    Assert,
    /// A conversion of short floats.
    Converts(ShortFloat),
}

/// What an instruction does, as far as the engine knows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Does {
    /// An instruction of the tensor cores.
    Matrix(Matrix),
    /// A step of a warp group.
    Group(WgmmaInstruction),
    /// An operation on 16 bytes.
    Quad(Quad),
    /// A step of a barrier with phases.
    Phase(PhaseStep),
    /// One of the others.
    Known(Known),
    /// Nothing that is run here.
    Unknown,
}

/// A carried instruction, with the engine's knowledge of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    pub(super) what: Opaque,
    pub(super) does: Does,
}

impl Carried {
    /// The memory that a move of a matrix touches, and whether it writes there; none of other instructions.
    pub(crate) fn moves(&self) -> Option<(Space, bool)> {
        match &self.does {
            Does::Matrix(matrix) => matrix.moves(),
            _ => None,
        }
    }

    /// The accesses of a move of a matrix, as a sub-group makes them one after the other.
    pub(crate) fn pieces(&self, values: &[(Type, Slot)], registers: &Registers) -> Vec<Piece> {
        match &self.does {
            Does::Matrix(matrix) => matrix.pieces(values, registers),
            _ => Vec::new(),
        }
    }

    /// The operation on 16 bytes that it is.
    pub(crate) fn quad(&self) -> Option<&Quad> {
        match &self.does {
            Does::Quad(quad) => Some(quad),
            _ => None,
        }
    }

    /// The instruction of a warp group that it is.
    pub(super) fn group_step(&self) -> Option<&WgmmaInstruction> {
        match &self.does {
            Does::Group(step) => Some(step),
            _ => None,
        }
    }

    /// How many groups of products it leaves in flight, if it waits for the others.
    pub(crate) fn waits_for_products(&self) -> Option<u32> {
        match self.does {
            Does::Group(WgmmaInstruction::Wait(left)) => u32::try_from(left).ok(),
            _ => None,
        }
    }

    /// Reads an instruction of a kernel that takes these operands.
    pub(crate) fn new(kernel: &Kernel, what: &Opaque, given: &[Value]) -> Carried {
        let (text, results, operands) = (&what.text, what.makes.len(), given.len());
        let array = |operand: usize| array_of(kernel, *given.get(operand)?);
        let does = None
            .or_else(|| Matrix::read(text, results, operands).map(Does::Matrix))
            .or_else(|| WgmmaInstruction::read(text, results, operands, array).map(Does::Group))
            .or_else(|| Quad::read(text, results, operands).map(Does::Quad))
            .or_else(|| PhaseStep::read(text).map(Does::Phase))
            .or_else(|| known(what).map(Does::Known))
            .unwrap_or(Does::Unknown);
        Carried {
            what: what.clone(),
            does,
        }
    }
}

/// Instructions that change nothing that is seen here, by their beginnings.
const NOTHING: &[&str] = &[
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

/// The smallest access of an instruction to shared memory, in bytes; none if it makes none, and `None` if that is unknown.
pub(super) fn smallest_access(what: &Opaque) -> Option<Option<u32>> {
    let name = what.name();
    match name.strip_prefix("wgmma.") {
        Some(step) => Some(step.starts_with("mma_async").then_some(16)),
        None if what.touches == Touches::Nothing => Some(None),
        None => match PhaseStep::read(&what.text) {
            Some(step) => Some(step.smallest_access()),
            None => matches!(known(what), Some(Known::Nothing | Known::ProxyFence)).then_some(None),
        },
    }
}

fn known(what: &Opaque) -> Option<Known> {
    let name = what.name();
    if name.starts_with("fence.proxy.async") && !name.contains(".global") {
        return Some(Known::ProxyFence);
    }
    if NOTHING.iter().any(|start| name.starts_with(start)) {
        return Some(Known::Nothing);
    }
    Some(match name {
        "vprintf" => Known::Print,
        "__assertfail" => Known::Assert,
        "isspacep.global" => Known::Leads(Space::Global),
        "isspacep.shared" | "isspacep.shared::cta" => Known::Leads(Space::Shared),
        "isspacep.local" => Known::Leads(Space::Private),
        _ if ["%clock", "%globaltimer", "%smid"]
            .iter()
            .any(|register| what.text.contains(register)) =>
        {
            Known::Clock
        }
        _ => Known::Converts(ShortFloat::read(name)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_known_by_name() {
        let carried = |text: &str| known(&Opaque::unknown(text.to_owned(), Vec::new()));
        assert_eq!(carried("nanosleep.u32 @0"), Some(Known::Nothing));
        assert_eq!(carried("mov.u64 =0, %clock64"), Some(Known::Clock));
        assert_eq!(
            carried("isspacep.shared =0, @0"),
            Some(Known::Leads(Space::Shared))
        );
        assert_eq!(
            carried("{ .param .b32 r; call (r), vprintf, (a, b); ld.param.b32 =0, [r]; }"),
            Some(Known::Print)
        );
        assert_eq!(carried("fence.proxy.async.shared::cta"), Some(Known::ProxyFence));
        assert_eq!(carried("fence.proxy.alias"), Some(Known::Nothing));
        assert_eq!(carried("mma.sync.aligned.m16n8k8 {=0}, {@0}, {@1}, {@2}"), None);
    }
}
