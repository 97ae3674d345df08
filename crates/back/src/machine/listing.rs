//! A program as text, for golden files and for people.

use std::fmt;

use cranelift_entity::EntityRef;

use super::program::{Class, Control, Instruction, InstructionStep, MachineProgram, MatrixUnit, Share};
use crate::ir::{OpClass, OpKind, Space, Value};

impl Class {
    /// The name in listings.
    pub(crate) fn name(self) -> String {
        let space = |space: Space| match space {
            Space::Generic => Space::Global.to_string(),
            space => space.to_string(),
        };
        match self {
            Class::None => "-".into(),
            Class::Int32 => "int32".into(),
            Class::IntMultiply => "int-multiply".into(),
            Class::Int64 => "int64".into(),
            Class::Fp32 => "fp32".into(),
            Class::Fp64 => "fp64".into(),
            Class::Fp16 => "fp16".into(),
            Class::Special => "special".into(),
            Class::Convert => "convert".into(),
            Class::ReadId => "read-id".into(),
            Class::LoadConstant => "load-constant".into(),
            Class::Load { space: from, bytes } => format!("load.{}.{bytes}", space(from)),
            Class::Atomic { space: to, bytes } => format!("atomic.{}.{bytes}", space(to)),
            Class::Shuffle => "shuffle".into(),
            Class::Matrix { bytes, unit } => {
                let name = match unit {
                    MatrixUnit::Short => "matrix",
                    MatrixUnit::Double => "matrix64",
                    MatrixUnit::WarpGroup => "matrix-group",
                };
                format!("{name}.{bytes}")
            }
            Class::Fence => "fence".into(),
            Class::Store { space: to, bytes } => format!("store.{}.{bytes}", space(to)),
            Class::AsyncCopy { bytes } => format!("async-copy.{bytes}"),
            Class::Commit => "commit".into(),
            Class::Wait => "wait".into(),
            Class::Prefetch => "prefetch".into(),
            Class::Barrier => "barrier".into(),
            Class::Branch => "branch".into(),
            Class::Reconverge => "reconverge".into(),
            Class::Exit => "exit".into(),
        }
    }
}

impl fmt::Display for MachineProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let estimate = self.register_estimate;
        writeln!(
            f,
            "machine @{}: {} instructions, {} bytes of code, {} registers, {} bytes spilled, {} slots",
            self.kernel.name,
            self.instruction_count(),
            self.code_bytes,
            estimate.registers,
            estimate.spilled_bytes,
            self.slot_count,
        )?;
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl MachineProgram {
    /// Each instruction as a line, in order.
    pub fn lines(&self) -> Vec<String> {
        let mut depth = 0;
        let mut lines = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            let closes = matches!(
                instruction.control,
                Control::End { .. } | Control::EndLoop { .. } | Control::Else { .. }
            );
            let opens = matches!(
                instruction.control,
                Control::Block { .. } | Control::If { .. } | Control::Loop { .. } | Control::Else { .. }
            );
            depth -= usize::from(closes);
            lines.push(self.line(instruction, depth));
            depth += usize::from(opens);
        }
        lines
    }

    fn line(&self, instruction: &Instruction, depth: usize) -> String {
        let mut text = String::new();
        if instruction.class == Class::None {
            text.push_str("     ");
        } else {
            text.push_str(&format!("{:05x}", instruction.address));
        }
        text.push_str(&"  ".repeat(depth + 1));
        if let Some(guard) = instruction.guard {
            let not = if guard.holds { "" } else { "!" };
            text.push_str(&format!("@{not}{} ", self.value(guard.value)));
        }
        let control = match instruction.control {
            Control::Next => None,
            Control::Block { depth, .. } => Some(format!("block {depth}")),
            Control::If { depth, cond, .. } => Some(format!("if {depth} {}", self.value(cond))),
            Control::Else { depth, .. } => Some(format!("else {depth}")),
            Control::Loop { depth, .. } => Some(format!("loop {depth}")),
            Control::End { depth } | Control::EndLoop { depth, .. } => Some(format!("end {depth}")),
            Control::Break { depth } => Some(format!("break {depth}")),
            Control::Continue { depth } => Some(format!("continue {depth}")),
            Control::Return => Some("return".into()),
        };
        if instruction.class != Class::None {
            text.push_str(&instruction.class.name());
            text.push_str(match instruction.share {
                Share::Whole => "",
                Share::Half => "/half",
                Share::One => "/one",
            });
        }
        if instruction.bytes > 16 {
            text.push_str(&format!(" +{}", instruction.bytes - 16));
        }
        let list = |registers: Vec<String>| registers.join(" ");
        let defines = list(
            instruction
                .defines
                .iter()
                .map(|register| register.to_string())
                .collect(),
        );
        let uses = list(
            instruction
                .uses
                .iter()
                .map(|register| register.to_string())
                .collect(),
        );
        if !(defines.is_empty() && uses.is_empty()) {
            text.push_str(&format!(
                " {defines}{}<- {uses}",
                if defines.is_empty() { "" } else { " " }
            ));
        }
        if let Some(control) = control {
            text.push_str(if instruction.class == Class::None {
                ""
            } else {
                "  "
            });
            text.push_str(&control);
        }
        let steps: Vec<String> = self
            .steps_of(instruction)
            .iter()
            .map(|step| self.step(step))
            .collect();
        if !steps.is_empty() {
            text = format!("{text:<58}; {}", steps.join("; "));
        }
        text.trim_end().to_owned()
    }

    fn step(&self, step: &InstructionStep) -> String {
        match step {
            InstructionStep::Op(op) => {
                let results: Vec<String> = op.results.iter().map(|&result| self.value(result)).collect();
                let name = operation(&op.kind);
                if results.is_empty() {
                    name
                } else {
                    format!("{} = {name}", results.join(", "))
                }
            }
            InstructionStep::Assign(pairs) => {
                let pairs: Vec<String> = pairs
                    .iter()
                    .map(|&(to, from)| format!("{} := {}", self.value(to), self.value(from)))
                    .collect();
                pairs.join(", ")
            }
        }
    }

    /// A value by its name in the source, or its number.
    fn value(&self, value: Value) -> String {
        let data = &self.kernel.values[value];
        match (&data.name, data.constant) {
            (_, Some(bits)) => format!("{bits:#x}"),
            (Some(name), None) => format!("%{name}"),
            (None, None) => format!("%{}", value.index()),
        }
    }
}

fn operation(kind: &OpKind) -> String {
    match kind {
        OpKind::Ruled(rule, plain) => format!("{}{rule}", operation(plain)),
        OpKind::Id(_) => "id".into(),
        OpKind::Unary(op, _) => op.name().into(),
        OpKind::Binary(op, ..) => op.name().into(),
        OpKind::NoWrap(op, ..) => op.name().into(),
        OpKind::Compare(op, ..) => op.name().into(),
        OpKind::Convert(op, _) => op.name().into(),
        OpKind::Atomic { op, .. } => format!("atomic {}", op.name()),
        _ if matches!(kind.class(), OpClass::Structure | OpClass::Terminator) => "structure".into(),
        _ => kind.word().into(),
    }
}
