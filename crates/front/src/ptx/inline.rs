//! Calls of device functions become their bodies.
//!
//! ```text
//! before                                        after
//! st.param.b32 [param0], %r1;                   mov.b32 param0, %r1;
//! call (retval0), square, (param0);             mov.b32 square_param_0, param0;  …the body of `square`…
//!                                               RETURN:  mov.b32 retval0, func_retval0;
//! ld.param.b32 %r2, [retval0];                  mov.b32 %r2, retval0;
//! ```
//!
//! Parameters of calls become registers, structures one for each member that is written. What the calls become is counted before
//! anything is written out: thirty functions that each call the next one twice are a billion calls. Calls through a pointer, under a
//! predicate, and of functions that call themselves stay: nothing is known of what they do.

mod counted;

use std::collections::{HashMap, HashSet};

use super::body;
use super::kinds::type_of;
use super::tree::{
    Body, Function, Instruction, LabelData, Module, Operand, Param, Register, RegisterData, Statement,
};
use crate::error::{Error, Result};
use crate::ir::limits;
use crate::suggest::quoted;

/// The body of an entry, with the bodies of what it calls.
///
/// # Errors
/// A call that cannot be written out: whose, and in which line.
pub(super) fn expanded<'t>(text: &'t str, module: &Module<'t>, entry: &Function<'t>) -> Result<Body<'t>> {
    let own = body::body(text, entry)?;
    if own.statements.iter().all(|statement| call(statement).is_none()) {
        return Ok(own);
    }
    let mut expander = Expander {
        text,
        module,
        bodies: HashMap::new(),
        recursive: HashSet::new(),
        result: Body::default(),
    };
    expander.recursive = expander.in_circles(&own);
    expander.count(&own, &mut HashMap::new(), 0)?.check()?;
    expander.append(entry, own, &mut Frame::default(), 0)?;
    Ok(expander.result)
}

/// The call that a statement is.
fn call<'s, 't>(statement: &'s Statement<'t>) -> Option<&'s Instruction<'t>> {
    match statement {
        Statement::Instruction(instruction) if instruction.opcode == "call" => Some(instruction),
        Statement::Instruction(_) | Statement::Label(_) | Statement::KeepLoop => None,
    }
}

/// The function that is called, unless it is called through a pointer.
pub(super) fn callee<'t>(call: &Instruction<'t>) -> Option<&'t str> {
    match &call.operands[..] {
        [Operand::List(_), Operand::Symbol(callee), ..] | [Operand::Symbol(callee), ..] => Some(callee),
        _ => None,
    }
}

/// The variables that take a call's results.
fn results_of<'s, 't>(call: &'s Instruction<'t>) -> impl Iterator<Item = &'t str> + 's {
    let results = match &call.operands[..] {
        [Operand::List(results), ..] => &results[..],
        _ => &[],
    };
    results.iter().filter_map(|result| match result {
        Operand::Symbol(name) => Some(*name),
        _ => None,
    })
}

struct Expander<'m, 't> {
    text: &'t str,
    module: &'m Module<'t>,
    bodies: HashMap<&'t str, Body<'t>>,
    /// Functions that call themselves, through others or not.
    recursive: HashSet<&'t str>,
    result: Body<'t>,
}

/// A function that is being written out.
#[derive(Default)]
struct Frame<'t> {
    /// Registers in place of parameters and their members, by name, offset and bits.
    parameters: HashMap<(&'t str, i64, u32), Register>,
    /// Where its `ret` leads to, for a function that was called.
    end: Option<u32>,
    /// The number of the entry's statement that calls it, at any depth.
    number: Option<u32>,
    /// What calls give of which nothing is known.
    given: HashSet<&'t str>,
}

impl<'m, 't> Expander<'m, 't> {
    /// A function's body, as it is written.
    fn body(&mut self, function: &Function<'t>) -> Result<Body<'t>> {
        if let Some(own) = self.bodies.get(function.name) {
            return Ok(own.clone());
        }
        let own = body::body(self.text, function)?;
        self.bodies.insert(function.name, own.clone());
        Ok(own)
    }

    /// Appends a function's statements, with registers and labels of their own.
    fn append(
        &mut self,
        function: &Function<'t>,
        own: Body<'t>,
        frame: &mut Frame<'t>,
        depth: usize,
    ) -> Result<()> {
        let registers = self.result.registers.len() as Register;
        let labels = self.result.labels.len() as u32;
        self.result.registers.extend(own.registers);
        let own_labels = own.labels.into_iter().map(|label| LabelData {
            number: label.number.filter(|_| frame.number.is_none()),
            ..label
        });
        self.result.labels.extend(own_labels);
        for mut variable in own.variables {
            variable.is_inner |= depth > 0;
            let known = self
                .result
                .variables
                .iter()
                .any(|other| other.name == variable.name);
            if !known {
                self.result.variables.push(variable);
            }
        }
        for statement in own.statements {
            if self.result.statements.len() > limits::OPERATIONS {
                return Err(
                    Error::input("the functions that are called have too many instructions")
                        .accepted(format!("at most {}", limits::OPERATIONS)),
                );
            }
            match statement {
                Statement::Label(label) => self.result.statements.push(Statement::Label(label + labels)),
                Statement::KeepLoop => self.result.statements.push(Statement::KeepLoop),
                Statement::Instruction(mut instruction) => {
                    for operand in &mut instruction.operands {
                        shift(operand, registers, labels);
                    }
                    if let Some((predicate, _)) = &mut instruction.guard {
                        *predicate += registers;
                    }
                    instruction.number = frame.number.unwrap_or(instruction.number);
                    let line = instruction.line;
                    self.instruction(function, instruction, frame, depth)
                        .map_err(|error| error.at(format!("line {line}")))?;
                }
            }
        }
        Ok(())
    }

    fn instruction(
        &mut self,
        function: &Function<'t>,
        mut instruction: Instruction<'t>,
        frame: &mut Frame<'t>,
        depth: usize,
    ) -> Result<()> {
        match instruction.opcode {
            "call" => return self.call(&instruction, frame, depth),
            "ret" => {
                if let Some(end) = frame.end {
                    instruction.opcode = "bra";
                    instruction.operands = vec![Operand::Label(end)];
                }
            }
            "ld" | "st" if instruction.has("param") => {
                let at = usize::from(instruction.opcode == "ld");
                if let Some((name, offset)) = instruction.operands.get(at).and_then(parameter)
                    && !(at == 1 && frame.given.contains(name))
                    && !(function.is_entry && function.params.iter().any(|param| param.name == name))
                {
                    return self.moved(frame, &instruction, (name, offset), at);
                }
            }
            _ => {}
        }
        self.result.statements.push(Statement::Instruction(instruction));
        Ok(())
    }

    /// `ld.param` and `st.param` of a call as moves of as many low bits; operand `at` is the parameter.
    fn moved(
        &mut self,
        frame: &mut Frame<'t>,
        instruction: &Instruction<'t>,
        (name, offset): (&'t str, i64),
        at: usize,
    ) -> Result<()> {
        let ty = instruction.modifiers.last().copied().unwrap_or_default();
        let bytes = type_of(ty).map_or(0, |ty| i64::from(ty.bytes()));
        let [_, _] = &instruction.operands[..] else {
            return Err(Error::input(format!(
                "`{}` has not two operands",
                instruction.spelling()
            )));
        };
        let other = &instruction.operands[1 - at];
        let parts = match other {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        for (position, part) in parts.iter().enumerate() {
            let offset = offset.wrapping_add(bytes * position as i64);
            let register = Operand::Register(match at {
                1 => self.written(frame, instruction, (name, offset), ty)?,
                _ => self.parameter(frame, name, offset, ty)?,
            });
            let operands = match at {
                1 => vec![part.clone(), register],
                _ => vec![register, part.clone()],
            };
            self.result.statements.push(Statement::Instruction(Instruction {
                opcode: "mov",
                modifiers: vec![ty],
                operands,
                ..instruction.clone()
            }));
        }
        Ok(())
    }

    /// The register that a part of a parameter was written to. Small numbers are passed in wider parameters, of which the low
    /// part is read.
    fn written(
        &self,
        frame: &Frame<'t>,
        instruction: &Instruction<'t>,
        (name, offset): (&'t str, i64),
        ty: &'t str,
    ) -> Result<Register> {
        let bits = type_of(ty).map_or(0, |ty| ty.bits());
        let widths = [8, 16, 32, 64].into_iter().filter(|&width| width >= bits);
        let mut registers = widths.filter_map(|width| frame.parameters.get(&(name, offset, width)));
        registers.next().copied().ok_or_else(|| {
            Error::input(format!(
                "`{}` reads another part of {} than was written",
                instruction.spelling(),
                quoted(name)
            ))
        })
    }

    /// The register in place of a parameter, or of a member of it.
    fn parameter(
        &mut self,
        frame: &mut Frame<'t>,
        name: &'t str,
        offset: i64,
        ty: &'t str,
    ) -> Result<Register> {
        let bits = type_of(ty).map(|ty| ty.bits());
        let bits =
            bits.ok_or_else(|| Error::input(format!("parameters of type `.{ty}` are not supported")))?;
        if let Some(&register) = frame.parameters.get(&(name, offset, bits)) {
            return Ok(register);
        }
        let ty = match bits {
            8 => "b8",
            16 => "b16",
            32 => "b32",
            _ => "b64",
        };
        let register = self.result.registers.len() as Register;
        self.result.registers.push(RegisterData { name, ty });
        frame.parameters.insert((name, offset, bits), register);
        Ok(register)
    }

    fn call(&mut self, call: &Instruction<'t>, frame: &mut Frame<'t>, depth: usize) -> Result<()> {
        let (results, callee, arguments) = match &call.operands[..] {
            [
                Operand::List(results),
                Operand::Symbol(callee),
                Operand::List(arguments),
                ..,
            ] => (&results[..], *callee, &arguments[..]),
            [Operand::List(results), Operand::Symbol(callee)] => (&results[..], *callee, &[][..]),
            [Operand::Symbol(callee), Operand::List(arguments), ..] => (&[][..], *callee, &arguments[..]),
            [Operand::Symbol(callee)] => (&[][..], *callee, &[][..]),
            _ => {
                self.unknown(call, frame);
                return Ok(());
            }
        };
        if call.guard.is_some() || self.recursive.contains(callee) {
            self.unknown(call, frame);
            return Ok(());
        }
        results_of(call).for_each(|name| {
            frame.given.remove(name);
        });
        let Some(function) = self.function(callee) else {
            return self.outside(call, frame, (results, callee, arguments));
        };
        let own = self.body(function)?;
        if function.params.len() != arguments.len() || function.results.len() != results.len() {
            return Err(Error::input(format!(
                "{} is called with other parameters than it has",
                quoted(callee)
            )));
        }
        let end = self.result.labels.len() as u32;
        self.result.labels.push(LabelData {
            name: function.name,
            number: None,
        });
        let mut inner = Frame {
            end: Some(end),
            number: Some(call.number),
            ..Frame::default()
        };
        let mut passed = Vec::new();
        for (param, operand) in function
            .params
            .iter()
            .chain(&function.results)
            .zip(arguments.iter().chain(results))
        {
            match (param.array, operand) {
                (None, _) => passed.push(self.passed(frame, operand, param.ty)?),
                // Structures go member by member, as they were written.
                (Some(_), Operand::Symbol(_)) => {}
                (Some(_), _) => {
                    return Err(Error::input("a structure in a register is passed to a function"));
                }
            }
        }
        // A signature's own registers come first in the body, which comes behind the parameters' registers.
        let in_registers = |name: &str| name.starts_with('%');
        let scalar = |param: &&Param<'t>| param.array.is_none();
        let mut own_places = Vec::new();
        for param in function.params.iter().chain(&function.results).filter(scalar) {
            own_places.push(match in_registers(param.name) {
                true => None,
                false => Some(self.parameter(&mut inner, param.name, 0, param.ty)?),
            });
        }
        for (param, operand) in function.params.iter().zip(arguments) {
            if param.array.is_some()
                && let Operand::Symbol(name) = operand
            {
                self.copy_members(call, (frame, name), (&mut inner, param.name))?;
            }
        }
        let mut next = self.result.registers.len() as Register;
        let mut own_place = |place: Option<Register>| {
            place.unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        };
        let own_places: Vec<Register> = own_places.into_iter().map(&mut own_place).collect();
        let inputs = function.params.iter().filter(scalar).count();
        let taken = passed.split_off(inputs);
        let (inputs, outputs) = own_places.split_at(inputs);
        for ((param, &to), from) in function.params.iter().filter(scalar).zip(inputs).zip(passed) {
            self.copy(call, param.ty, to, from);
        }
        self.append(function, own, &mut inner, depth + 1)?;
        self.result.statements.push(Statement::Label(end));
        for (param, operand) in function.results.iter().zip(results) {
            if param.array.is_some()
                && let Operand::Symbol(name) = operand
            {
                self.copy_members(call, (&mut inner, param.name), (frame, name))?;
            }
        }
        for ((param, &from), to) in function.results.iter().filter(scalar).zip(outputs).zip(taken) {
            if let Operand::Register(to) = to {
                self.copy(call, param.ty, to, Operand::Register(from));
            }
        }
        Ok(())
    }

    /// A call of which nothing is known stays, and what it gives is loaded as it is written.
    fn unknown(&mut self, call: &Instruction<'t>, frame: &mut Frame<'t>) {
        frame.given.extend(results_of(call));
        self.result.statements.push(Statement::Instruction(call.clone()));
    }

    /// A call of a function that is only declared stays, with registers in place of its parameters.
    fn outside(
        &mut self,
        call: &Instruction<'t>,
        frame: &mut Frame<'t>,
        (results, callee, arguments): (&[Operand<'t>], &'t str, &[Operand<'t>]),
    ) -> Result<()> {
        let declared = &self.module.declared;
        let Some(function) = declared.iter().find(|function| function.name == callee) else {
            return Err(
                Error::input(format!("the module has no function {}", quoted(callee)))
                    .accepted("calls of functions that the module has or declares"),
            );
        };
        let scalars = |params: &[Param<'t>]| params.iter().all(|param| param.array.is_none());
        let fits = function.params.len() == arguments.len() && function.results.len() == results.len();
        if !fits || !scalars(&function.params) || !scalars(&function.results) {
            self.unknown(call, frame);
            return Ok(());
        }
        let mut lists = Vec::new();
        for (params, operands) in [(&function.results, results), (&function.params, arguments)] {
            let mut list = Vec::new();
            for (param, operand) in params.iter().zip(operands) {
                list.push(self.passed(frame, operand, param.ty)?);
            }
            lists.push(list);
        }
        let given = lists.pop().unwrap_or_default();
        let made = lists.pop().unwrap_or_default();
        let mut operands = vec![Operand::Symbol(callee), Operand::List(given)];
        if !made.is_empty() {
            operands.insert(0, Operand::List(made));
        }
        self.result.statements.push(Statement::Instruction(Instruction {
            operands,
            ..call.clone()
        }));
        Ok(())
    }

    /// The argument for a parameter of this type: the register that replaces a parameter of the call, or the operand itself.
    fn passed(&mut self, frame: &mut Frame<'t>, operand: &Operand<'t>, ty: &'t str) -> Result<Operand<'t>> {
        match operand {
            Operand::Symbol(name) => self.parameter(frame, name, 0, ty).map(Operand::Register),
            other => Ok(other.clone()),
        }
    }

    /// Copies every member of a structure that was written so far.
    fn copy_members(
        &mut self,
        call: &Instruction<'t>,
        (from, name): (&mut Frame<'t>, &'t str),
        (to, own): (&mut Frame<'t>, &'t str),
    ) -> Result<()> {
        let members = from.parameters.iter().filter(|((other, ..), _)| *other == name);
        let mut members: Vec<(i64, u32, Register)> = members
            .map(|(&(_, offset, bits), &register)| (offset, bits, register))
            .collect();
        members.sort_unstable();
        for (offset, _, register) in members {
            let ty = self.result.registers[register as usize].ty;
            let place = self.parameter(to, own, offset, ty)?;
            self.copy(call, ty, place, Operand::Register(register));
        }
        Ok(())
    }

    fn copy(&mut self, call: &Instruction<'t>, ty: &'t str, to: Register, from: Operand<'t>) {
        self.result.statements.push(Statement::Instruction(Instruction {
            opcode: "mov",
            modifiers: vec![ty],
            guard: None,
            operands: vec![Operand::Register(to), from],
            line: call.line,
            number: call.number,
            location: call.location,
        }));
    }
}

/// The parameter that an address names, and the offset in it.
fn parameter<'t>(operand: &Operand<'t>) -> Option<(&'t str, i64)> {
    match operand {
        Operand::Address(base, offset) => match &**base {
            Operand::Symbol(name) => Some((name, *offset)),
            _ => None,
        },
        _ => None,
    }
}

/// Moves registers and labels behind those that are there already.
fn shift(operand: &mut Operand<'_>, registers: Register, labels: u32) {
    match operand {
        Operand::Register(register) | Operand::Not(register) => *register += registers,
        Operand::Label(label) => *label += labels,
        Operand::Vector(parts) | Operand::List(parts) | Operand::Bracket(parts) => {
            parts.iter_mut().for_each(|part| shift(part, registers, labels));
        }
        Operand::Address(base, _) => shift(base, registers, labels),
        Operand::Pair(a, b) => {
            shift(a, registers, labels);
            shift(b, registers, labels);
        }
        Operand::Special(..)
        | Operand::Symbol(_)
        | Operand::Integer(_)
        | Operand::Single(_)
        | Operand::Double(_)
        | Operand::Sink => {}
    }
}

#[cfg(test)]
mod tests;
