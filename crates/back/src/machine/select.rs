//! From operations to instructions, in program order.
//!
//! Before: a cleaned kernel.
//! After: drafts in the order of the code. Operations that are part of another instruction, or that
//! only rename something, are drafts without a class: they carry their operation and cost nothing.

mod control;
mod memory;
mod moves;
mod predicate;

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;

use super::arithmetic::{Cost, Fused, cost};
use super::draft::{Draft, Virtual, VirtualData, Virtuals};
use super::facts::Facts;
use super::program::{Class, Guard, InstructionStep, Share};
use super::recipe::{self, Input, Recipe};
use super::target::Family;
use crate::analysis::definitions::Definitions;
use crate::ir::{BinaryOp, Label, NoWrapOp, Op, OpKind, Place, Space, Type, Value};

/// The drafts of a whole kernel.
pub(super) struct Selected {
    /// The loads of pointers from the constant bank, which are to be placed.
    pub pointers: Vec<Draft>,
    /// Everything else, in order.
    pub drafts: Vec<Draft>,
    /// The registers that both name.
    pub virtuals: Virtuals,
}

/// Selects instructions for a whole kernel.
pub(super) fn select(facts: &Facts<'_>) -> Selected {
    let mut selector = Selector {
        facts,
        fused: Fused::default(),
        virtuals: Virtuals::new(),
        registers: SecondaryMap::new(),
        drafts: Vec::new(),
        pointers: Vec::new(),
        numbers: Vec::new(),
        scopes: Vec::new(),
        wide_constants: HashMap::new(),
        banked_constants: HashMap::new(),
        moved_constants: HashMap::new(),
        jumps: 0,
        definitions: Definitions::of(facts.kernel),
        predicate: None,
        widened: HashMap::new(),
        integers: 0,
    };
    selector.region(&facts.kernel.body);
    let mut drafts = selector.numbers;
    drafts.append(&mut selector.drafts);
    Selected {
        pointers: selector.pointers,
        drafts,
        virtuals: selector.virtuals,
    }
}

struct Selector<'f, 'k> {
    facts: &'f Facts<'k>,
    fused: Fused,
    virtuals: Virtuals,
    /// The registers to wait for to have a value: its own, or those that it stands for.
    registers: SecondaryMap<Value, Vec<Virtual>>,
    drafts: Vec<Draft>,
    /// The loads of pointers from the constant bank.
    pointers: Vec<Draft>,
    /// The loads of other constants from it, once, at the kernel's start.
    numbers: Vec<Draft>,
    /// The blocks, ifs and loops around.
    scopes: Vec<EnclosingScope>,
    /// Double-precision constants that are in registers, up to the region's end, and the number of the
    /// stretch between jumps in which they got there.
    wide_constants: HashMap<Value, (Virtual, u32)>,
    /// Registers of constants from constant memory, by position.
    banked_constants: HashMap<usize, Virtual>,
    /// Registers of constants that were moved there once, by their bits.
    moved_constants: HashMap<u64, Virtual>,
    /// How many jumps there were.
    jumps: u32,
    /// Where the kernel's values come from.
    definitions: Definitions,
    /// The condition of the `if` that is being turned into predicates.
    predicate: Option<(Guard, Vec<Virtual>)>,
    /// Values of 16 bits that are in registers as ones of 32, up to the region's end.
    widened: HashMap<Value, Virtual>,
    /// Instructions on the integer unit since the last jump, less those on the multiplier's.
    integers: i32,
}

/// A block, `if` or loop around.
struct EnclosingScope {
    label: Label,
    results: Vec<Value>,
    params: Vec<Value>,
}

/// Whether it adds two values of 32 bits, neither of them a constant: ptxas has the multiplier do that (`IMAD.IADD`) where
/// the integer unit has more to do.
fn is_sum_of_registers(facts: &Facts<'_>, op: &Op) -> bool {
    let (OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b)) = op.kind else {
        return false;
    };
    facts.target.family == Family::Nvidia
        && facts.kernel.ty(op.results[0]) == Type::I32
        && [a, b]
            .iter()
            .all(|&operand| facts.kernel.as_constant(operand).is_none())
}

impl Selector<'_, '_> {
    /// A new register of this many 32-bit ones.
    fn register(&mut self, width: u8) -> Virtual {
        self.virtuals.push(VirtualData {
            width,
            is_token: false,
        })
    }

    /// A new register for a value, which it is read from now on.
    fn register_of(&mut self, value: Value) -> Virtual {
        let register = self.register(self.facts.width(value));
        self.virtuals[register].is_token = self.facts.kernel.ty(value) == Type::Token;
        self.registers[value] = vec![register];
        register
    }

    fn emit(&mut self, draft: Draft) {
        self.jumps += u32::from(draft.fixed);
        self.integers = match draft.class {
            _ if draft.fixed => 0,
            Class::Int32 if draft.move_.is_none() => self.integers + 1,
            Class::IntMultiply | Class::Fp32 | Class::Fp16 => self.integers - 1,
            _ => self.integers,
        };
        self.drafts.push(draft);
    }

    /// The registers that an instruction with this operand waits for.
    fn read(&mut self, value: Value, place: Place) -> Vec<Virtual> {
        let kernel = self.facts.kernel;
        if let Some(position) = self.facts.banked_constant(value) {
            return vec![self.banked_constant(position, place)];
        }
        if self.facts.is_moved_constant(value) {
            return vec![self.moved_constant(value, place)];
        }
        if self.facts.is_wide_constant(value) {
            return vec![self.wide_constant(value, place)];
        }
        let is_param = self.facts.kind(value).is_none() && kernel.as_constant(value).is_none();
        let unread = self.registers[value].is_empty() && kernel.param_of(value).is_some();
        if is_param && unread && kernel.ty(value).is_pointer() && self.facts.target.family == Family::Nvidia {
            // An address is computed in registers: the parameter has to be loaded into some.
            let register = self.register_of(value);
            self.pointers.push(Draft {
                defines: vec![register],
                ..Draft::new(Class::LoadConstant, place)
            });
        }
        self.registers[value].clone()
    }

    /// A constant from constant memory: loaded once, into uniform registers where instructions take it from those.
    fn banked_constant(&mut self, position: usize, place: Place) -> Virtual {
        if let Some(&register) = self.banked_constants.get(&position) {
            return register;
        }
        let banked = self.facts.banked.all()[position];
        let width = match banked.ty {
            _ if !banked.takes_registers => 0,
            Type::F64 => 2,
            _ => 1,
        };
        let register = self.register(width);
        self.numbers.push(Draft {
            defines: vec![register],
            ..Draft::new(Class::LoadConstant, place)
        });
        self.banked_constants.insert(position, register);
        register
    }

    /// A constant that an instruction cannot hold: one move for the whole sub-group, at the kernel's start.
    fn moved_constant(&mut self, value: Value, place: Place) -> Virtual {
        let bits = self.facts.kernel.as_constant(value).unwrap_or(0);
        if let Some(&register) = self.moved_constants.get(&bits) {
            return register;
        }
        let register = self.register(0);
        self.numbers.push(Draft {
            defines: vec![register],
            share: Share::One,
            ..Draft::new(Class::Int64, place)
        });
        self.moved_constants.insert(bits, register);
        register
    }

    /// A double-precision constant with bits in both halves: two moves, into uniform registers if it is
    /// used before the next jump only.
    fn wide_constant(&mut self, value: Value, place: Place) -> Virtual {
        if let Some(&(register, jumps)) = self.wide_constants.get(&value) {
            if jumps != self.jumps {
                self.virtuals[register].width = 2;
            }
            return register;
        }
        let lower = self.register(0);
        let whole = self.register(0);
        self.emit(Draft {
            defines: vec![lower],
            ..Draft::new(Class::Int32, place)
        });
        self.emit(Draft {
            defines: vec![whole],
            uses: vec![lower],
            ..Draft::new(Class::Int32, place)
        });
        self.wide_constants.insert(value, (whole, self.jumps));
        whole
    }

    /// All the registers that an operation's operands are read from.
    fn read_operands(&mut self, op: &Op) -> Vec<Vec<Virtual>> {
        let mut operands = Vec::new();
        op.kind.for_each_operand(|operand| operands.push(operand));
        let second = self.facts.second_constant(op);
        operands
            .into_iter()
            .map(|operand| match second == Some(operand) {
                true => vec![self.wide_constant(operand, op.place)],
                false => self.read(operand, op.place),
            })
            .collect()
    }

    /// A pure operation.
    fn pure(&mut self, op: &Op) {
        let result = op.results[0];
        let facts = self.facts;
        let cost = if self.fused.joins(facts, op) {
            Cost::Free
        } else {
            cost(facts, &self.fused, op)
        };
        let operands = self.read_operands(op);
        self.pure_at(op, cost, operands);
        if self.facts.nans.after(result) {
            self.registers[result] = self.canonical(result, op.place);
        }
    }

    /// A value in a register of its own, its NaN made canonical: a comparison with itself, a choice.
    fn canonical(&mut self, value: Value, place: Place) -> Vec<Virtual> {
        let is_double = self.facts.kernel.ty(value) == Type::F64;
        let uses = self.read(value, place);
        let (is_nan, canonical) = (self.register(0), self.register(self.facts.width(value)));
        self.emit(Draft {
            defines: vec![is_nan],
            uses: uses.clone(),
            ..Draft::new(if is_double { Class::Fp64 } else { Class::Fp32 }, place)
        });
        self.emit(Draft {
            defines: vec![canonical],
            uses: uses.into_iter().chain([is_nan]).collect(),
            ..Draft::new(if is_double { Class::Int64 } else { Class::Int32 }, place)
        });
        vec![canonical]
    }

    fn pure_at(&mut self, op: &Op, cost: Cost, operands: Vec<Vec<Virtual>>) {
        let result = op.results[0];
        let facts = self.facts;
        match cost {
            Cost::Free => {
                let mut registers: Vec<Virtual> = operands.into_iter().flatten().collect();
                registers.sort_unstable();
                registers.dedup();
                let free = Draft {
                    steps: vec![InstructionStep::Op(op.clone())],
                    ..Draft::new(Class::None, op.place)
                };
                if registers.len() > 3 && facts.kernel.ty(result) == Type::Bool {
                    // More conditions than a comparison can take in: a predicate of their own.
                    let register = self.register_of(result);
                    let class = Class::Int32;
                    self.emit(Draft {
                        class,
                        defines: vec![register],
                        uses: registers,
                        ..free
                    });
                    return;
                }
                self.registers[result] = registers;
                self.emit(free);
            }
            Cost::Narrow => self.narrow(op),
            Cost::Recipe(recipe) => {
                let register = self.register_of(result);
                let recipe = match self.integers > 0 && is_sum_of_registers(facts, op) {
                    true => recipe::single(Class::IntMultiply),
                    false => recipe,
                };
                let step = InstructionStep::Op(op.clone());
                self.recipe(&recipe, &operands, register, (result, step), op.place);
            }
        }
    }

    /// Arithmetic in 16 bits, by that in 32: operands are widened, the result is narrowed.
    fn narrow(&mut self, op: &Op) {
        let mut operands = Vec::new();
        op.kind.for_each_operand(|operand| operands.push(operand));
        let mut uses = Vec::new();
        for operand in operands {
            if self.facts.kernel.as_constant(operand).is_some() {
                continue;
            }
            let wide = match self.widened.get(&operand) {
                Some(&wide) => wide,
                None => {
                    let wide = self.register(1);
                    let from = self.read(operand, op.place);
                    self.emit(Draft {
                        defines: vec![wide],
                        uses: from,
                        ..Draft::new(Class::Fp16, op.place)
                    });
                    self.widened.insert(operand, wide);
                    wide
                }
            };
            uses.push(wide);
        }
        uses.sort_unstable();
        uses.dedup();
        let sum = self.register(1);
        self.emit(Draft {
            defines: vec![sum],
            uses,
            ..Draft::new(Class::Fp32, op.place)
        });
        let register = self.register_of(op.results[0]);
        self.emit(Draft {
            steps: vec![InstructionStep::Op(op.clone())],
            defines: vec![register],
            uses: vec![sum],
            ..Draft::new(Class::Int32, op.place)
        });
    }

    /// The instructions of a recipe; the step goes with the one that has the value.
    fn recipe(
        &mut self,
        recipe: &Recipe,
        operands: &[Vec<Virtual>],
        result: Virtual,
        (value, step): (Value, InstructionStep),
        place: Place,
    ) {
        let sub_group = self.facts.target.sub_group;
        let is_scalar = self.facts.is_scalar(value);
        let at_a_time = recipe.at_a_time.filter(|_| !is_scalar);
        let pieces = at_a_time.map_or(1, |at_a_time| sub_group.div_ceil(at_a_time).max(1));
        let whole = match pieces {
            _ if is_scalar => Share::One,
            1 => Share::Whole,
            _ => Share::Half,
        };
        let mut step = Some(step);
        for piece in (0..pieces).rev() {
            let is_last_piece = piece == 0;
            let result = match is_last_piece {
                true => result,
                false => self.register(self.virtuals[result].width),
            };
            let mut results: Vec<Option<Virtual>> = Vec::with_capacity(recipe.steps.len());
            for (index, inner) in recipe.steps.iter().enumerate() {
                let defines = match inner.class {
                    _ if index == recipe.result => Some(result),
                    Class::Branch | Class::Reconverge => None,
                    _ if inner.is_scalar => Some(self.register(0)),
                    Class::Fp64 => Some(self.register(2)),
                    _ => Some(self.register(1)),
                };
                let mut uses: Vec<Virtual> = Vec::new();
                for input in inner.inputs {
                    match *input {
                        Input::Operand(at) => uses.extend(operands.get(at).into_iter().flatten()),
                        Input::Step(at) => uses.extend(results[at]),
                    }
                }
                uses.sort_unstable();
                uses.dedup();
                let meets_again = inner.class == Class::Reconverge
                    && !recipe.steps[index + 1..]
                        .iter()
                        .any(|later| later.class == Class::Reconverge);
                let is_end = index == recipe.result && is_last_piece;
                self.emit(Draft {
                    steps: if is_end {
                        step.take().into_iter().collect()
                    } else {
                        Vec::new()
                    },
                    defines: defines.into_iter().collect(),
                    uses,
                    share: if inner.is_scalar { Share::One } else { whole },
                    // Code does not move across a jump, nor to before the lanes have met again.
                    fixed: inner.class == Class::Branch || meets_again,
                    never_taken: inner.never_taken,
                    ..Draft::new(inner.class, place)
                });
                results.push(defines);
            }
        }
    }

    fn space(&self, pointer: Value) -> Space {
        self.facts.kernel.ty(pointer).space().unwrap_or(Space::Generic)
    }
}
