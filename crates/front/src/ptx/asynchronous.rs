//! Asynchronous copies: groups that are counted become tokens that are named.
//!
//! ```text
//! before                                      after
//! cp.async.cg.shared.global [a], [b], 16;     cp.async… current, [a], [b], 16;
//! cp.async.commit_group;                      group1 = group0; group0 = current;
//! cp.async.wait_group 1;                      wait group1;
//! cp.async.wait_all;                          wait current;
//! ```
//!
//! A PTX wait allows a number of the latest groups to be in flight. On every path, the last group that must be complete is the
//! one closed that many groups ago: registers pass it on, and become IR values like all others.

use super::translator::{At, Translator};
use super::tree::{Body, Instruction, Operand, Register, RegisterData, Statement, TOKEN};
use super::values::{only, refused};
use crate::error::{Error, Result};
use crate::ir::{Builder, CacheUse, CompareOp, LoadData, OpKind, Space, Type};
use crate::middle::Values;

/// Most groups that a wait may leave in flight: each has a register, which every commit moves on.
const MOST_IN_FLIGHT: u64 = 256;

/// Gives a body's copies, groups and waits the registers of their tokens.
///
/// # Errors
/// A wait leaves more groups in flight than are followed, or a number that only the run tells.
pub(super) fn name_groups(body: &mut Body<'_>) -> Result<()> {
    let mut most = 0;
    let mut any = false;
    for statement in &body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        any |= is_copy(instruction);
        if let Some(left) = groups_left(instruction)? {
            most = most.max(left);
        }
    }
    if !any {
        // There is nothing to group or to wait for.
        body.statements.retain(
            |statement| !matches!(statement, Statement::Instruction(instruction) if is_about_groups(instruction)),
        );
        return Ok(());
    }
    let first = body.registers.len() as Register;
    for _ in 0..most + 2 {
        body.registers.push(RegisterData {
            name: "%token",
            ty: TOKEN,
        });
    }
    let current = first;
    let group = |number: u64| first + 1 + number as Register;
    let mut statements = Vec::with_capacity(body.statements.len());
    for statement in std::mem::take(&mut body.statements) {
        let Statement::Instruction(mut instruction) = statement else {
            statements.push(statement);
            continue;
        };
        if is_copy(&instruction) {
            // The token before is read, too: it stays the latest where nothing is copied.
            instruction.operands.insert(0, Operand::Register(current));
            instruction.operands.push(Operand::Register(current));
            statements.push(Statement::Instruction(instruction));
        } else if instruction.opcode == "cp" && instruction.has("commit_group") {
            for number in (0..=most).rev() {
                let from = if number == 0 { current } else { group(number - 1) };
                statements.push(Statement::Instruction(Instruction {
                    opcode: TOKEN,
                    modifiers: Vec::new(),
                    operands: vec![Operand::Register(group(number)), Operand::Register(from)],
                    ..instruction.clone()
                }));
            }
        } else if let Some(left) = groups_left(&instruction)? {
            let token = match instruction.has("wait_all") {
                true => current,
                false => group(left),
            };
            instruction.opcode = "wait";
            instruction.operands = vec![Operand::Register(token)];
            statements.push(Statement::Instruction(instruction));
        } else {
            statements.push(Statement::Instruction(instruction));
        }
    }
    body.statements = statements;
    Ok(())
}

fn is_copy(instruction: &Instruction<'_>) -> bool {
    instruction.opcode == "cp" && matches!(instruction.modifiers[..], ["async", "ca" | "cg", ..])
}

/// Whether an instruction closes a group of copies or waits for some.
fn is_about_groups(instruction: &Instruction<'_>) -> bool {
    let about = ["commit_group", "wait_group", "wait_all"];
    instruction.opcode == "cp"
        && instruction.modifiers.first() == Some(&"async")
        && about.iter().any(|modifier| instruction.has(modifier))
}

/// How many groups a wait leaves in flight, if it is one.
fn groups_left(instruction: &Instruction<'_>) -> Result<Option<u64>> {
    if instruction.opcode != "cp" || instruction.modifiers.first() != Some(&"async") {
        return Ok(None);
    }
    match (instruction.modifiers.get(1).copied(), &instruction.operands[..]) {
        (Some("wait_all"), _) => Ok(Some(0)),
        (Some("wait_group"), [Operand::Integer(left)]) if *left <= MOST_IN_FLIGHT => Ok(Some(*left)),
        (Some("wait_group"), _) => Err(Error::input(format!(
            "`{}` leaves an odd number of groups in flight",
            instruction.spelling()
        ))
        .accepted(format!("a constant of at most {MOST_IN_FLIGHT}"))
        .at(format!("line {}", instruction.line))),
        _ => Ok(None),
    }
}

impl<'t> Translator<'_, 't> {
    /// A copy, a wait, or the copy of a token.
    pub(crate) fn asynchronous(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        match (instruction.opcode, &instruction.operands[..]) {
            (TOKEN, [Operand::Register(to), Operand::Register(from)]) => {
                let token = self.get(b, values, *from)?;
                values[*to as usize] = Some(token);
                Ok(())
            }
            ("wait", [Operand::Register(token)]) => {
                let token = self.get(b, values, *token)?;
                b.wait(token);
                Ok(())
            }
            (
                "cp",
                [
                    Operand::Register(token),
                    to,
                    from,
                    Operand::Integer(bytes),
                    rest @ ..,
                    _,
                ],
            ) => {
                let register = *token;
                let before = self.get(b, values, register)?;
                let token = self.copy(b, values, (instruction, before), (to, from), *bytes, rest)?;
                values[register as usize] = Some(token);
                Ok(())
            }
            // A hint for a range of a length that only the run tells: it changes no result, and is left out.
            ("cp", _) if instruction.has("bulk") && instruction.has("prefetch") => Ok(()),
            _ => Err(refused(instruction)),
        }
    }

    /// `cp.async.ca.shared.global [to], [from], 16`, also with how much of it is copied: all or nothing.
    fn copy(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        (instruction, before): (&Instruction<'t>, crate::ir::Value),
        (to, from): (&Operand<'t>, &Operand<'t>),
        bytes: u64,
        rest: &[Operand<'t>],
    ) -> Result<crate::ir::Value> {
        only(
            instruction,
            &[
                "async",
                "ca",
                "cg",
                "shared",
                "shared::cta",
                "global",
                "L2::64B",
                "L2::128B",
                "L2::256B",
            ],
        )?;
        if !matches!(bytes, 4 | 8 | 16) {
            return Err(refused(instruction));
        }
        let size = match rest {
            [] => None,
            [Operand::Integer(size)] if *size == bytes => None,
            [size] if self.is_all_or_nothing(size, bytes) => Some(size),
            [size] => {
                let place = (to, from);
                return self.copy_part(b, values, (instruction, before), place, bytes, size);
            }
            _ => return Err(refused(instruction)),
        };
        let to = self.address_in(b, values, to, Space::Shared)?;
        let from_pointer = self.address_in(b, values, from, Space::Global)?;
        let name = self.memory_name(from);
        let place = b.place();
        let id = b.kernel.loads.push(LoadData::new(name, place));
        let Some(size) = size else {
            return Ok(b.copy(to, from_pointer, bytes as u32, id));
        };
        // Bytes that are not copied are zero.
        let size = self.value(b, values, size, Type::I32)?;
        let whole = b.i32(bytes as i32);
        let all = b.compare(crate::ir::CompareOp::Eq, size, whole);
        let zero = b.i32(0);
        let token = b.if_(
            all,
            &[Type::Token],
            |b| vec![b.copy(to, from_pointer, bytes as u32, id)],
            |b| {
                b.push(
                    OpKind::store(to, vec![zero; bytes as usize / 4], crate::ir::CacheUse::Default),
                    &[],
                );
                vec![before]
            },
        );
        Ok(token[0])
    }

    /// A copy of which only the run tells how much: all of it as a copy, a part of it byte by byte, with zeros behind.
    fn copy_part(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        (_, before): (&Instruction<'t>, crate::ir::Value),
        (to, from): (&Operand<'t>, &Operand<'t>),
        bytes: u64,
        size: &Operand<'t>,
    ) -> Result<crate::ir::Value> {
        let name = self.memory_name(from);
        let to = self.address_in(b, values, to, Space::Shared)?;
        let from = self.address_in(b, values, from, Space::Global)?;
        let size = self.value(b, values, size, Type::I32)?;
        let place = b.place();
        let id = b.kernel.loads.push(LoadData::new(name, place));
        let whole = b.i32(bytes as i32);
        // More than all of it is all of it.
        let all = b.compare(CompareOp::LeU, whole, size);
        let none = b.constant(Type::I8, 0);
        let index = b.i64(0);
        let token = b.if_(
            all,
            &[Type::Token],
            |b| vec![b.copy(to, from, bytes as u32, id)],
            |b| {
                for byte in 0..bytes {
                    let number = b.i32(byte as i32);
                    let is_copied = b.compare(CompareOp::LtU, number, size);
                    let copied = b.if_(
                        is_copied,
                        &[Type::I8],
                        |b| {
                            let ptr = b.address(from, index, 1, byte as i64);
                            let kind = OpKind::load(ptr, id, CacheUse::Default);
                            b.push(kind, &[Type::I8])
                        },
                        |_| vec![none],
                    );
                    let ptr = b.address(to, index, 1, byte as i64);
                    let kind = OpKind::store(ptr, copied, CacheUse::Default);
                    b.push(kind, &[]);
                }
                vec![before]
            },
        );
        Ok(token[0])
    }

    fn address_in(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        operand: &Operand<'t>,
        space: Space,
    ) -> Result<crate::ir::Value> {
        let Operand::Address(base, offset) = operand else {
            return Err(Error::input("an asynchronous copy takes two addresses"));
        };
        let pointer = match &**base {
            Operand::Register(register) => self.get(b, values, *register)?,
            _ => self.symbol(b, base)?,
        };
        let pointer = self.retyped(b, pointer, Type::Ptr(space))?;
        Ok(self.offset(b, pointer, *offset))
    }

    /// Whether an operand is this number or zero wherever it is written.
    fn is_all_or_nothing(&self, operand: &Operand<'t>, whole: u64) -> bool {
        let Operand::Register(register) = operand else {
            return false;
        };
        let fits = |operand: &Operand<'t>| matches!(operand, Operand::Integer(number) if *number == 0 || *number == whole);
        let mut writers = self
            .source
            .body
            .statements
            .iter()
            .filter_map(|statement| match statement {
                Statement::Instruction(instruction) => Some(instruction),
                Statement::Label(_) | Statement::KeepLoop => None,
            })
            .filter(|instruction| instruction.operands.first() == Some(&Operand::Register(*register)))
            .filter(|instruction| !instruction.written().is_empty());
        writers.all(
            |instruction| match (instruction.opcode, &instruction.operands[..]) {
                ("selp", [_, a, b, _]) => fits(a) && fits(b),
                ("mov", [_, a]) => fits(a),
                _ => false,
            },
        )
    }
}
