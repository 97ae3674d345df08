//! Instructions that are carried as text: what the engine runs of them. [`opaque`](super::opaque) runs them.

use super::lanes::{LANES, Lanes, Registers, Slot};
use super::matrix::group::arrays::array_of;
use super::matrix::group::instruction::Product;
use super::matrix::instruction::Matrix;
use super::matrix::moved::Piece;
use crate::ir::carried::{Carried as Said, GroupStep, Quad};
use crate::ir::{Kernel, Opaque, Space, Touches, Type, Value};

/// What of an instruction is prepared for the engine.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Prepared {
    /// An instruction of the tensor cores.
    Matrix(Matrix),
    /// A product of a warp group.
    Product(Box<Product>),
    /// Nothing: it is run as it says, if it is run.
    Nothing,
}

/// A carried instruction, as the engine runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    pub(super) what: Opaque,
    pub(super) prepared: Prepared,
}

impl Carried {
    /// The memory that a move of a matrix touches, and whether it writes there; none of other instructions.
    pub(crate) fn moves(&self) -> Option<(Space, bool)> {
        match &self.prepared {
            Prepared::Matrix(matrix) => matrix.moves(),
            _ => None,
        }
    }

    /// The accesses of a move of a matrix, as a sub-group makes them one after the other.
    pub(crate) fn pieces(&self, values: &[(Type, Slot)], registers: &Registers) -> Vec<Piece> {
        match &self.prepared {
            Prepared::Matrix(matrix) => matrix.pieces(values, registers),
            _ => Vec::new(),
        }
    }

    /// The operation on 16 bytes that it is.
    pub(crate) fn quad(&self) -> Option<&Quad> {
        match &*self.what.does {
            Said::Quad(quad) => Some(quad),
            _ => None,
        }
    }

    /// The address of each work-item in an operation on 16 bytes, whose register is the first of these operands.
    pub(crate) fn addresses(&self, values: &[(Type, Slot)], registers: &Registers) -> Option<Lanes> {
        let offset = self.quad()?.offset;
        let first = values.first();
        let addresses = first.map_or([0; LANES], |&(_, slot)| registers.lanes(slot));
        Some(addresses.map(|address| address.wrapping_add_signed(offset)))
    }

    /// The product of a warp group that it is.
    pub(super) fn group_product(&self) -> Option<&Product> {
        match &self.prepared {
            Prepared::Product(product) => Some(product),
            _ => None,
        }
    }

    /// How many groups of products it leaves in flight, if it waits for the others.
    pub(crate) fn waits_for_products(&self) -> Option<u32> {
        match *self.what.does {
            Said::Group(GroupStep::Wait(left)) => u32::try_from(left).ok(),
            _ => None,
        }
    }

    /// An instruction of a kernel that takes these operands.
    pub(crate) fn new(kernel: &Kernel, what: &Opaque, given: &[Value]) -> Carried {
        let array = |operand: usize| array_of(kernel, *given.get(operand)?);
        let product =
            Product::of(what, given.len(), array).map(|product| Prepared::Product(Box::new(product)));
        let matrix = || Matrix::of(&what.does, what.makes.len(), given.len()).map(Prepared::Matrix);
        Carried {
            what: what.clone(),
            prepared: product.or_else(matrix).unwrap_or(Prepared::Nothing),
        }
    }
}

/// The smallest access of an instruction to shared memory, in bytes; none if it makes none, and `None` if that is unknown.
pub(super) fn smallest_access(what: &Opaque) -> Option<Option<u32>> {
    match &*what.does {
        said if said.is_of_warp_group() => Some(Some(16)),
        Said::Group(_) | Said::Nothing | Said::ProxyFence => Some(None),
        _ if what.touches == Touches::Nothing => Some(None),
        Said::Phase(step) => Some(step.smallest_access()),
        _ => None,
    }
}
