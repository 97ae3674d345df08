//! Products of warp groups: `wgmma`, with factors in shared memory or registers and sums in registers.
//!
//! A warp group is four sub-groups whose numbers follow each other from a multiple of four on. Each computes 16 rows here, for
//! itself, when it starts the product: they depend on its own registers and on shared memory, which no lane may change before the
//! product has ended. What may not be used meanwhile is in [`flights`](crate::functional::flights).

pub(in crate::functional) mod arrays;
mod descriptor;
pub(in crate::functional) mod instruction;

use super::super::access::Location;
use super::super::address::array_address;
use super::super::fault::{self, Access};
use super::super::lanes::{Mask, Registers};
use super::super::work_group::WorkGroup;
use super::fragment::FRAGMENT_LANES;
use super::{Run, gather, ones, scatter};
use crate::Error;
use crate::error::Result;
use crate::ir::Space;
use crate::ir::carried::{Adds, Element, Factor, GroupStep};
use crate::violation::Violation;
use descriptor::{Descriptor, Order, PIECE};
use instruction::{Product, SUB_GROUPS};

/// Rows of a product that are one sub-group's.
const ROWS: u32 = 16;

impl WorkGroup<'_> {
    /// Runs a step between products of a warp group.
    ///
    /// # Errors
    /// A lane or a sub-group is missing.
    pub(in crate::functional) fn group_step(&mut self, step: GroupStep, run: &Run<'_>) -> Result<()> {
        if run.by.mask.is_empty() {
            return Ok(());
        }
        self.is_in_a_warp_group(run)?;
        let sub_group = run.by.sub_group.number();
        match step {
            GroupStep::Fence => self.flight(sub_group, |flight| flight.has_fenced = true),
            GroupStep::Commit => self.flight(sub_group, |flight| flight.commit()),
            GroupStep::Wait(left) => self.wait_for_products(sub_group, left),
        }
        Ok(())
    }

    fn is_in_a_warp_group(&self, run: &Run<'_>) -> Result<()> {
        if !self.state.is_checking() {
            return Ok(());
        }
        self.all_are_here("step of a warp group", run.by)?;
        let items = self.state.launch.group_items();
        let first = run.by.sub_group.number() / SUB_GROUPS * SUB_GROUPS;
        let end = u64::from(first + SUB_GROUPS) * FRAGMENT_LANES as u64;
        if run.by.sub_group.mask() == Mask::first(FRAGMENT_LANES as u32) && end <= items {
            return Ok(());
        }
        let what = format!(
            "the sub-group of {} is in no warp group: one has {SUB_GROUPS} sub-groups of {FRAGMENT_LANES} work-items, and the work-group has {items} work-items",
            self.describe(run.by.sub_group.work_item(0))
        );
        Err(fault::error(
            self.state.kernel,
            run.by.place,
            Violation::Misused(what),
        ))
    }

    /// Runs a product of a warp group.
    ///
    /// # Errors
    /// A lane or a sub-group is missing, a factor cannot be read, or something in flight is used.
    pub(in crate::functional) fn group_product(
        &mut self,
        product: &Product,
        run: &Run<'_>,
        registers: &mut Registers,
    ) -> Result<()> {
        if run.by.mask.is_empty() {
            return Ok(());
        }
        self.is_in_a_warp_group(run)?;
        let Product {
            kinds, sum, given, ..
        } = product;
        let mut pieces = Vec::new();
        let first = run.by.sub_group.number() % SUB_GROUPS * ROWS;
        let columns = sum.shape.size(sum.part).1;
        let left = match given.left {
            Factor::Registers(first, _) => gather(product.left, first, false, run, registers),
            Factor::Descriptor(operand) => {
                let rows = first..first + ROWS;
                self.factor(product, (0, operand), rows, run, registers, &mut pieces)?
            }
        };
        let right = self.factor(product, (1, given.right), 0..columns, run, registers, &mut pieces)?;
        let [left, right] = [(left, kinds.a), (right, kinds.b)];
        let signs = |(mut elements, element): (Vec<u64>, Element), negated: bool| {
            if negated {
                elements.iter_mut().for_each(|bits| *bits ^= element.sign());
            }
            elements
        };
        let (left, right) = (signs(left, given.negated[0]), signs(right, given.negated[1]));
        let adds = match given.adds {
            Adds::Known(adds) => adds,
            Adds::If(operand, wanted) => (self.same(product, operand, run, registers)? & 1 == 1) == wanted,
        };
        let start = match adds {
            true => gather(*sum, given.first_summand, false, run, registers),
            false => vec![0; (ROWS * columns) as usize],
        };
        let sums = kinds.multiply(&left, &right, &start, sum.shape.inner as usize);
        scatter(*sum, &sums, run, registers);
        self.start_product(product, run, pieces)
    }

    /// An operand of which all lanes must have the same.
    fn same(&self, product: &Product, operand: usize, run: &Run<'_>, registers: &Registers) -> Result<u64> {
        let lanes = registers.get(run.values[operand].1);
        let first = run.by.mask.lanes().next().unwrap_or(0);
        match run.by.mask.lanes().find(|&lane| lanes[lane] != lanes[first]) {
            Some(other) if self.state.is_checking() => {
                let what = format!(
                    "{} and work-item {} give `{}` different descriptors or predicates",
                    self.describe(run.by.sub_group.work_item(first)),
                    run.by.sub_group.work_item(other),
                    product.name
                );
                Err(fault::error(
                    self.state.kernel,
                    run.by.place,
                    Violation::Misused(what),
                ))
            }
            _ => Ok(lanes[first]),
        }
    }

    /// The elements of some rows of A, or columns of B, in shared memory, where the descriptor that is an operand says; and where
    /// the pieces lie that they are in.
    fn factor(
        &mut self,
        product: &Product,
        (which, operand): (usize, usize),
        lines: std::ops::Range<u32>,
        run: &Run<'_>,
        registers: &Registers,
        pieces: &mut Vec<u64>,
    ) -> Result<Vec<u64>> {
        let bits = self.same(product, operand, run, registers)?;
        let array = product.arrays[which].ok_or_else(|| self.leads_nowhere(product, run))?;
        let inner = product.sum.shape.inner;
        let bits_of_element = [product.kinds.a, product.kinds.b][which].bits();
        let order = match product.given.turned[which] {
            true => Order::AcrossK,
            false => Order::AlongK,
        };
        let per_piece = 8 * PIECE / bits_of_element;
        let mut elements = vec![0; (lines.len() as u32 * inner) as usize];
        let first = lines.start;
        for piece in Descriptor::new(bits).pieces(lines, order, per_piece) {
            let at = Location {
                space: Space::Shared,
                address: array_address(array) + u64::from(piece.address),
            };
            let item = run.by.sub_group.work_item(0);
            let offset = self.access(Access::Read.of(item, run.by.place), at, PIECE)?;
            self.check_proxy(at.address, offset, PIECE, item, run.by.place)?;
            let bytes: [u8; PIECE as usize] = std::array::from_fn(|byte| self.shared[offset as usize + byte]);
            let all = u128::from_le_bytes(bytes);
            pieces.push(offset);
            for index in 0..per_piece {
                let (line, k) = match order {
                    Order::AlongK => (piece.line, piece.inner + index),
                    Order::AcrossK => (piece.line + index, piece.inner),
                };
                let value = (all >> (bits_of_element * index)) as u64 & ones(bits_of_element);
                elements[((line - first) * inner + k) as usize] = value;
            }
        }
        Ok(elements)
    }

    fn leads_nowhere(&self, product: &Product, run: &Run<'_>) -> Error {
        let what = format!(
            "a descriptor of `{}` follows from the address of no array of shared memory, or of several",
            product.name
        );
        Error::device(what)
            .at(self.state.kernel.describe_place(run.by.place))
            .accepted("one that is computed from the address of one array")
    }
}
