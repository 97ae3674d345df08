//! Tensor cores: products of small matrices that lie in the registers of a sub-group, and the moves that bring them there.
//!
//! All 32 lanes take part. The results are those of an H100, to the bit: see [`number`].

mod fragment;
pub(super) mod group;
pub(super) mod instruction;
pub(super) mod moved;
pub(super) mod number;

use instruction::Matrix;

use super::access::Location;
use super::address::from_generic;
use super::fault::{self, Access};
use super::lanes::{Registers, Slot};
use super::work_group::{Runners, WorkGroup};
use crate::error::Result;
use crate::ir::carried::{Reference, RowsForm, Stride};
use crate::ir::{Space, Type};
use crate::violation::Violation;
use fragment::{FRAGMENT_LANES, Fragment, ROW, SIDE};
use number::Kinds;

/// An instruction's operands and who runs it.
pub(in crate::functional) struct Run<'a> {
    /// Where results go.
    pub to: &'a [Slot],
    /// The operands.
    pub values: &'a [(Type, Slot)],
    /// Who runs it.
    pub by: Runners<'a>,
}

impl WorkGroup<'_> {
    /// Runs an instruction of the tensor cores.
    ///
    /// # Errors
    /// A lane is missing, or an address leads nowhere.
    pub(super) fn matrix(&mut self, what: &Matrix, run: &Run<'_>, registers: &mut Registers) -> Result<()> {
        if self.state.is_checking() {
            let name = match what {
                Matrix::Product { .. } => "matrix product",
                Matrix::Rows { .. } | Matrix::Transpose | Matrix::Whole { .. } => "move of a matrix",
            };
            self.all_are_here(name, run.by)?;
            let lanes = run.by.mask.count();
            if !run.by.mask.is_empty() && lanes != FRAGMENT_LANES as u32 {
                let who = self.describe(run.by.sub_group.work_item(0));
                let what = format!(
                    "the sub-group of {who} has {lanes} work-items, and a {name} takes {FRAGMENT_LANES}"
                );
                return Err(fault::error(
                    self.state.kernel,
                    run.by.place,
                    Violation::Misused(what),
                ));
            }
        }
        match *what {
            Matrix::Product { kinds, fragments } => {
                multiply(kinds, &fragments, run, registers);
                Ok(())
            }
            Matrix::Transpose => {
                let values = registers.lanes(run.values[0].1);
                let element = |row: usize, column: usize| half_of(values[row * 4 + column / 2], column % 2);
                let lanes = registers.get_mut(run.to[0]);
                for (lane, bits) in lanes.iter_mut().enumerate() {
                    let (row, column) = (lane / 4, lane % 4 * 2);
                    *bits = element(column, row) | element(column + 1, row) << 16;
                }
                Ok(())
            }
            Matrix::Rows { form, writes: false } => self.load_rows(form, run, registers),
            Matrix::Rows { form, .. } => self.store_rows(form, run, registers),
            Matrix::Whole {
                fragment,
                by_rows,
                stride,
                writes,
                at,
            } => self.whole(fragment, (by_rows, stride, writes), at, run, registers),
        }
    }

    /// Where a lane's address leads.
    fn leads_to(
        &self,
        at: Reference,
        offset: u64,
        lane: usize,
        run: &Run<'_>,
        registers: &Registers,
    ) -> Location {
        let address = registers.get(run.values[at.value].1)[lane];
        let (space, address) = match at.space {
            Space::Generic => from_generic(address),
            space => (space, address),
        };
        let address = match space {
            // Addresses of shared memory have 32 bits.
            Space::Shared => u64::from((address as u32).wrapping_add(at.offset as u32)),
            _ => address.wrapping_add_signed(at.offset),
        };
        Location::new(self.state, space, address.wrapping_add(offset))
    }

    fn load_rows(&mut self, form: RowsForm, run: &Run<'_>, registers: &mut Registers) -> Result<()> {
        let RowsForm {
            count,
            transposed,
            at,
        } = form;
        for number in 0..count as usize {
            let mut elements = [[0; SIDE]; SIDE];
            for (row, elements) in elements.iter_mut().enumerate() {
                let lane = number * SIDE + row;
                let item = run.by.sub_group.work_item(lane);
                let from = self.leads_to(at, 0, lane, run, registers);
                let offset = self.access(Access::Read.of(item, run.by.place), from, ROW)?;
                for (column, element) in (0..).zip(elements.iter_mut()) {
                    *element = self.read(from, offset + column * 2, 2, item);
                }
            }
            let lanes = registers.get_mut(run.to[number]);
            for (lane, bits) in lanes.iter_mut().enumerate() {
                let (row, column) = (lane / 4, lane % 4 * 2);
                *bits = match transposed {
                    false => elements[row][column] | elements[row][column + 1] << 16,
                    true => elements[column][row] | elements[column + 1][row] << 16,
                };
            }
        }
        Ok(())
    }

    fn store_rows(&mut self, form: RowsForm, run: &Run<'_>, registers: &Registers) -> Result<()> {
        let RowsForm {
            count,
            transposed,
            at,
        } = form;
        for number in 0..count as usize {
            let values = registers.get(run.values[1 + number].1);
            for row in 0..SIDE {
                let lane = number * SIDE + row;
                let item = run.by.sub_group.work_item(lane);
                let to = self.leads_to(at, 0, lane, run, registers);
                let offset = self.access(Access::Write.of(item, run.by.place), to, ROW)?;
                for column in 0..SIDE {
                    let (row, from) = match transposed {
                        false => (row, column),
                        true => (column, row),
                    };
                    let bits = half_of(values[row * 4 + from / 2], from % 2);
                    self.write(to, offset + 2 * column as u64, 2, bits, item);
                }
            }
        }
        Ok(())
    }

    /// One operand of `wmma` between memory and registers.
    fn whole(
        &mut self,
        fragment: Fragment,
        (by_rows, stride, writes): (bool, Stride, bool),
        at: Reference,
        run: &Run<'_>,
        registers: &mut Registers,
    ) -> Result<()> {
        let (rows, columns) = fragment.shape.size(fragment.part);
        let (bits, bytes) = (fragment.element.bits(), fragment.element.bits() / 8);
        for lane in 0..FRAGMENT_LANES {
            let stride = match stride {
                Stride::Dense => u64::from(if by_rows { columns } else { rows }),
                Stride::Fixed(stride) => u64::from(stride),
                Stride::Operand(operand) => registers.get(run.values[operand].1)[lane] & 0xffff_ffff,
            };
            let item = run.by.sub_group.work_item(lane);
            for register in 0..fragment.registers {
                let mut loaded = 0;
                for index in 0..fragment.element.per_register() {
                    let (row, column) = fragment.place(lane, register, index);
                    let (row, column) = (u64::from(row), u64::from(column));
                    let element = match by_rows {
                        true => row * stride + column,
                        false => column * stride + row,
                    };
                    let place = self.leads_to(at, element * u64::from(bytes), lane, run, registers);
                    if writes {
                        let value = registers.get(run.values[1 + register as usize].1)[lane];
                        let offset = self.access(Access::Write.of(item, run.by.place), place, bytes)?;
                        self.write(place, offset, bytes, value >> (bits * index) & ones(bits), item);
                    } else {
                        let offset = self.access(Access::Read.of(item, run.by.place), place, bytes)?;
                        loaded |= self.read(place, offset, bytes, item) << (bits * index);
                    }
                }
                if !writes {
                    registers.get_mut(run.to[register as usize])[lane] = loaded;
                }
            }
        }
        Ok(())
    }
}

/// D = A · B + C.
fn multiply(kinds: Kinds, fragments: &[Fragment; 4], run: &Run<'_>, registers: &mut Registers) {
    let [a, b, c, d] = fragments;
    let mut operand = 0;
    let mut gathered = |fragment: &Fragment, by_columns: bool| {
        let elements = gather(*fragment, operand, by_columns, run, registers);
        operand += fragment.registers as usize;
        elements
    };
    // The columns of B lie side by side here, as the rows of A do.
    let (left, right, start) = (gathered(a, false), gathered(b, true), gathered(c, false));
    let sums = kinds.multiply(&left, &right, &start, a.shape.inner as usize);
    scatter(*d, &sums, run, registers);
}

/// The elements of an operand in registers, from this operand on: row by row, or column by column.
fn gather(
    fragment: Fragment,
    first: usize,
    by_columns: bool,
    run: &Run<'_>,
    registers: &Registers,
) -> Vec<u64> {
    let (rows, columns) = fragment.shape.size(fragment.part);
    let across = if by_columns { rows } else { columns } as usize;
    let mut elements = vec![0; (rows * columns) as usize];
    let bits = fragment.element.bits();
    fragment.each(|lane, register, index, (row, column)| {
        let value = registers.get(run.values[first + register as usize].1)[lane];
        let (row, column) = (row as usize, column as usize);
        let at = if by_columns {
            column * across + row
        } else {
            row * across + column
        };
        elements[at] = value >> (bits * index) & ones(bits);
    });
    elements
}

/// Puts the elements of a result, row by row, into its registers.
fn scatter(d: Fragment, sums: &[u64], run: &Run<'_>, registers: &mut Registers) {
    let columns = d.shape.size(d.part).1 as usize;
    let bits = d.element.bits();
    for &slot in run.to {
        registers.get_mut(slot).fill(0);
    }
    d.each(|lane, register, index, (row, column)| {
        let sum = sums[row as usize * columns + column as usize];
        registers.get_mut(run.to[register as usize])[lane] |= sum << (bits * index);
    });
}

/// One of the two elements of a register.
fn half_of(bits: u64, index: usize) -> u64 {
    bits >> (16 * index) & 0xffff
}

fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}
