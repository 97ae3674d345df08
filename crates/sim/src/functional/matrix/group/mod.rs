//! Products of warp groups: `wgmma`, with factors in shared memory or registers and sums in registers.
//!
//! A warp group is four sub-groups whose numbers follow each other from a multiple of four on. Each computes 16 rows here, for
//! itself, when it starts the product: they depend on its own registers and on shared memory, which no lane may change before the
//! product has ended. What may not be used meanwhile is in [`flights`](crate::functional::flights).

pub(in crate::functional) mod arrays;
mod descriptor;
pub(in crate::functional) mod instruction;

use instruction::{Product, WgmmaInstruction};

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
use crate::violation::Violation;
use descriptor::{Descriptor, Order, PIECE};
use instruction::{Adds, Factor, SUB_GROUPS, Source};

/// Rows of a product that are one sub-group's.
const ROWS: u32 = 16;

impl WorkGroup<'_> {
    /// Runs an instruction of a warp group.
    ///
    /// # Errors
    /// A lane or a sub-group is missing, a factor cannot be read, or something in flight is used.
    pub(in crate::functional) fn group_step(
        &mut self,
        instruction: &WgmmaInstruction,
        run: &Run<'_>,
        registers: &mut Registers,
    ) -> Result<()> {
        if run.by.mask.is_empty() {
            return Ok(());
        }
        if self.state.is_checking() {
            self.all_are_here(
                "step of a warp group",
                run.by.sub_group,
                run.by.mask,
                run.by.place,
            )?;
            self.is_in_a_warp_group(run)?;
        }
        match instruction {
            WgmmaInstruction::Product(product) => self.product(product, run, registers),
            WgmmaInstruction::Fence => {
                self.flight(run.by.sub_group.number(), |flight| flight.has_fenced = true);
                Ok(())
            }
            WgmmaInstruction::Commit => {
                self.flight(run.by.sub_group.number(), |flight| flight.commit());
                Ok(())
            }
            WgmmaInstruction::Wait(left) => {
                self.wait_for_products(run.by.sub_group.number(), *left);
                Ok(())
            }
        }
    }

    fn is_in_a_warp_group(&self, run: &Run<'_>) -> Result<()> {
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

    fn product(&mut self, product: &Product, run: &Run<'_>, registers: &mut Registers) -> Result<()> {
        let Product { kinds, sum, .. } = product;
        let mut pieces = Vec::new();
        let first = run.by.sub_group.number() % SUB_GROUPS * ROWS;
        let columns = sum.shape.size(sum.part).1;
        let left = self.factor(
            product,
            &product.a,
            first..first + ROWS,
            run,
            registers,
            &mut pieces,
        )?;
        let right = self.factor(product, &product.b, 0..columns, run, registers, &mut pieces)?;
        let adds = match product.adds {
            Adds::Known(adds) => adds,
            Adds::If(operand, wanted) => (self.same(product, operand, run, registers)? & 1 == 1) == wanted,
        };
        let start = match adds {
            true => gather(*sum, product.first_summand, false, run, registers),
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

    /// The elements of some rows of A, or columns of B, and where the pieces of shared memory lie that they are in.
    fn factor(
        &mut self,
        product: &Product,
        factor: &Factor,
        lines: std::ops::Range<u32>,
        run: &Run<'_>,
        registers: &Registers,
        pieces: &mut Vec<u64>,
    ) -> Result<Vec<u64>> {
        let is_left = std::ptr::eq(factor, &raw const product.a);
        let element = if is_left { product.kinds.a } else { product.kinds.b };
        let mut elements = match &factor.source {
            Source::Registers(fragment, first) => gather(*fragment, *first, false, run, registers),
            Source::Descriptor(operand, array) => {
                let bits = self.same(product, *operand, run, registers)?;
                let array = array.ok_or_else(|| self.leads_nowhere(product, run))?;
                let inner = product.sum.shape.inner;
                let bits_of_element = element.bits();
                let per_piece = 8 * PIECE / bits_of_element;
                let mut elements = vec![0; (lines.len() as u32 * inner) as usize];
                let first = lines.start;
                for piece in Descriptor::new(bits).pieces(lines, factor.order, per_piece) {
                    let at = Location {
                        space: Space::Shared,
                        address: array_address(array) + u64::from(piece.address),
                    };
                    let item = run.by.sub_group.work_item(0);
                    let offset = self.access(Access::Read, at, PIECE, item, run.by.place)?;
                    self.check_proxy(at.address, offset, PIECE, item, run.by.place)?;
                    let bytes: [u8; PIECE as usize] =
                        std::array::from_fn(|byte| self.shared[offset as usize + byte]);
                    let all = u128::from_le_bytes(bytes);
                    pieces.push(offset);
                    for index in 0..per_piece {
                        let (line, k) = match factor.order {
                            Order::AlongK => (piece.line, piece.inner + index),
                            Order::AcrossK => (piece.line + index, piece.inner),
                        };
                        let value = (all >> (bits_of_element * index)) as u64 & ones(bits_of_element);
                        elements[((line - first) * inner + k) as usize] = value;
                    }
                }
                elements
            }
        };
        if factor.negated {
            elements.iter_mut().for_each(|bits| *bits ^= element.sign());
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
