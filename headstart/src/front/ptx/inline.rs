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
//! Parameters of calls become registers. A function that calls itself, or takes a structure, is refused; so is one
//! that the module only declares.

use std::collections::HashMap;

use super::body;
use super::kinds::type_of;
use super::tree::{Body, Function, Instruction, Module, Operand, Register, RegisterData, Statement};
use crate::error::{Error, Result};
use crate::ir::limits;
use crate::suggest::quoted;

/// Most calls inside each other.
const DEEPEST_CALL: usize = 32;

/// The body of an entry, with the bodies of what it calls.
///
/// # Errors
/// A call that cannot be written out: whose, and in which line.
pub(super) fn expanded<'t>(text: &'t str, module: &Module<'t>, entry: &Function<'t>) -> Result<Body<'t>> {
    let own = body::body(text, entry)?;
    let calls = own.statements.iter().any(|statement| match statement {
        Statement::Instruction(instruction) => instruction.opcode == "call",
        Statement::Label(_) => false,
    });
    if !calls {
        return Ok(own);
    }
    let mut expander = Expander {
        text,
        module,
        bodies: HashMap::new(),
        result: Body::default(),
    };
    expander.append(entry, own, &mut Frame::default(), 0)?;
    Ok(expander.result)
}

struct Expander<'m, 't> {
    text: &'t str,
    module: &'m Module<'t>,
    bodies: HashMap<&'t str, Body<'t>>,
    result: Body<'t>,
}

/// A function that is being written out.
#[derive(Default)]
struct Frame<'t> {
    /// Registers in place of parameters, by name and bits.
    parameters: HashMap<(&'t str, u32), Register>,
    /// Where its `ret` leads to, for a function that was called.
    end: Option<u32>,
}

impl<'t> Expander<'_, 't> {
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
        self.result.labels.extend(own.labels);
        for variable in own.variables {
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
                Statement::Instruction(mut instruction) => {
                    for operand in &mut instruction.operands {
                        shift(operand, registers, labels);
                    }
                    if let Some((predicate, _)) = &mut instruction.guard {
                        *predicate += registers;
                    }
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
                    && !(function.is_entry && function.params.iter().any(|param| param.name == name))
                {
                    let ty = instruction.modifiers.last().copied().unwrap_or_default();
                    let register = self.parameter(frame, name, ty)?;
                    let whole = offset == 0 && instruction.operands.len() == 2;
                    let vector = instruction
                        .operands
                        .iter()
                        .any(|operand| matches!(operand, Operand::Vector(_)));
                    if !whole || vector {
                        return Err(Error::input(
                            "structures that are passed to functions are not supported",
                        ));
                    }
                    instruction.opcode = "mov";
                    instruction.modifiers = vec![ty];
                    instruction.operands[at] = Operand::Register(register);
                }
            }
            _ => {}
        }
        self.result.statements.push(Statement::Instruction(instruction));
        Ok(())
    }

    /// The register in place of a parameter.
    fn parameter(&mut self, frame: &mut Frame<'t>, name: &'t str, ty: &'t str) -> Result<Register> {
        let bits = type_of(ty).map(|ty| ty.bits());
        let bits =
            bits.ok_or_else(|| Error::input(format!("parameters of type `.{ty}` are not supported")))?;
        if let Some(&register) = frame.parameters.get(&(name, bits)) {
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
        frame.parameters.insert((name, bits), register);
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
                return Err(Error::input("a call through a pointer is not supported")
                    .accepted("calls of functions of the module"));
            }
        };
        if call.guard.is_some() {
            return Err(Error::input("a predicated call is not supported"));
        }
        let functions = &self.module.functions;
        let Some(function) = functions
            .iter()
            .find(|function| function.name == callee && !function.is_entry)
        else {
            return Err(
                Error::input(format!("the module has no body of function {}", quoted(callee)))
                    .accepted("calls of functions of the module"),
            );
        };
        if depth >= DEEPEST_CALL {
            return Err(Error::input(format!(
                "calls are nested too deeply, or {} calls itself",
                quoted(callee)
            )));
        }
        let own = match self.bodies.get(callee) {
            Some(own) => own.clone(),
            None => {
                let own = body::body(self.text, function)?;
                self.bodies.insert(function.name, own.clone());
                own
            }
        };
        if function.params.len() != arguments.len() || function.results.len() != results.len() {
            return Err(Error::input(format!(
                "{} is called with other parameters than it has",
                quoted(callee)
            )));
        }
        let end = self.result.labels.len() as u32;
        self.result.labels.push(function.name);
        let mut inner = Frame {
            end: Some(end),
            ..Frame::default()
        };
        let mut passed = Vec::new();
        for (param, operand) in function
            .params
            .iter()
            .chain(&function.results)
            .zip(arguments.iter().chain(results))
        {
            passed.push(self.passed(frame, operand, param.ty, param.array)?);
        }
        // A signature's own registers come first in the body, which comes behind the parameters' registers.
        let in_registers = |name: &str| name.starts_with('%');
        let mut own_places = Vec::new();
        for param in function.params.iter().chain(&function.results) {
            own_places.push(match in_registers(param.name) {
                true => None,
                false => Some(self.parameter(&mut inner, param.name, param.ty)?),
            });
        }
        let mut next = self.result.registers.len() as Register;
        let mut own_place = |place: Option<Register>| {
            place.unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        };
        let own_places: Vec<Register> = own_places.into_iter().map(&mut own_place).collect();
        let (inputs, outputs) = own_places.split_at(function.params.len());
        let taken = passed.split_off(function.params.len());
        for ((param, &to), from) in function.params.iter().zip(inputs).zip(passed) {
            self.copy(call, param.ty, to, from);
        }
        self.append(function, own, &mut inner, depth + 1)?;
        self.result.statements.push(Statement::Label(end));
        for ((param, &from), to) in function.results.iter().zip(outputs).zip(taken) {
            if let Operand::Register(to) = to {
                self.copy(call, param.ty, to, Operand::Register(from));
            }
        }
        Ok(())
    }

    /// What is passed for a parameter of this type: the register in place of a parameter of the call, or the operand
    /// itself.
    fn passed(
        &mut self,
        frame: &mut Frame<'t>,
        operand: &Operand<'t>,
        ty: &'t str,
        array: Option<u64>,
    ) -> Result<Operand<'t>> {
        if array.is_some() {
            return Err(Error::input(
                "structures that are passed to functions are not supported",
            ));
        }
        match operand {
            Operand::Symbol(name) => self.parameter(frame, name, ty).map(Operand::Register),
            other => Ok(other.clone()),
        }
    }

    fn copy(&mut self, call: &Instruction<'t>, ty: &'t str, to: Register, from: Operand<'t>) {
        self.result.statements.push(Statement::Instruction(Instruction {
            opcode: "mov",
            modifiers: vec![ty],
            guard: None,
            operands: vec![Operand::Register(to), from],
            line: call.line,
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
        Operand::Vector(parts) | Operand::List(parts) => {
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
