//! Instructions that the IR cannot express: carried as text, with their known properties.
//!
//! ```text
//! before    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f5, …}, {%r1, …}, {%r5, %r6}, {%f1, …};
//! after     %a, … = opaque "mma.sync… {=0, …}, {@0, …}, …" nothing unordered settled (f32, …) (%r1, …)
//! ```
//!
//! Unknown properties are assumed to be the worst. An instruction that is not understood is carried, too: all of its registers may be
//! read and written.

use super::quads::is_whole;
use super::translator::{At, Translator};
use super::tree::{Instruction, Operand, Register};
use super::values::refused;
use crate::error::{Error, Result};
use crate::ir::{Builder, ConvertOp, OpKind, Opaque, OpaqueOperands, PRINTING, Space, Touches, Type, Value};
use crate::middle::Values;

/// What is known of an instruction that is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Knowledge {
    touches: Touches,
    orders: bool,
    convergent: bool,
    speculatable: bool,
    asynchronous: bool,
    ends: bool,
}

const WORST: Knowledge = Knowledge {
    touches: Touches::Anything,
    orders: true,
    convergent: true,
    speculatable: false,
    asynchronous: true,
    ends: false,
};

/// An instruction that is not known, and a call.
const UNKNOWN: Knowledge = Knowledge { ends: true, ..WORST };

/// Computes with registers alone, all lanes together.
const TOGETHER: Knowledge = Knowledge {
    touches: Touches::Nothing,
    orders: false,
    convergent: true,
    speculatable: false,
    asynchronous: false,
    ends: false,
};

/// Computes with registers alone, each lane for itself.
const ALONE: Knowledge = Knowledge {
    convergent: false,
    ..TOGETHER
};

/// Prints, or ends the program with a message, each lane for itself.
const PRINTS: Knowledge = Knowledge {
    touches: Touches::Reads,
    ..ALONE
};

/// What is known of an instruction; nothing of one that the IR expresses, or that is not known at all.
fn knowledge(instruction: &Instruction<'_>) -> Option<Knowledge> {
    let has = |word: &str| instruction.has(word);
    let first = instruction.modifiers.first().copied().unwrap_or_default();
    Some(match instruction.opcode {
        "mma" | "movmatrix" => TOGETHER,
        "wmma" if first == "mma" => TOGETHER,
        "wmma" if first == "load" => Knowledge {
            touches: Touches::Reads,
            ..TOGETHER
        },
        "wmma" => Knowledge {
            touches: match has("shared") {
                true => Touches::Shared,
                false => Touches::Anything,
            },
            ..TOGETHER
        },
        "ldmatrix" => Knowledge {
            touches: Touches::Reads,
            ..TOGETHER
        },
        "stmatrix" => Knowledge {
            touches: Touches::Shared,
            ..TOGETHER
        },
        // Its accumulators are not there before a `wait_group`; it reads shared memory meanwhile.
        "wgmma" if first == "mma_async" => Knowledge {
            touches: Touches::Shared,
            asynchronous: true,
            ..TOGETHER
        },
        "wgmma" => Knowledge {
            touches: Touches::Shared,
            orders: true,
            asynchronous: true,
            ..TOGETHER
        },
        "setmaxnreg" => TOGETHER,
        // Between floats and those of 8 bits, or those that tensor cores shorten.
        "cvt" if instruction.modifiers.iter().any(|word| is_short_float(word)) => Knowledge {
            speculatable: true,
            ..ALONE
        },
        "txq" | "suq" | "istypep" | "isspacep" | "mapa" | "getctarank" | "createpolicy" => ALONE,
        // Surfaces are written by others, but by no load or store that is seen here.
        "tex" | "tld4" | "suld" => Knowledge {
            touches: Touches::Reads,
            ..ALONE
        },
        "nanosleep" | "prefetchu" | "discard" | "applypriority" | "pmevent" | "brkpt" => ALONE,
        "cp" if has("bulk") && has("prefetch") => ALONE,
        "call" if calls_any_of(instruction, &PRINTING) => PRINTS,
        "sust"
        | "sured"
        | "mbarrier"
        | "barrier"
        | "bar"
        | "fence"
        | "tensormap"
        | "multimem"
        | "tcgen05"
        | "clusterlaunchcontrol" => WORST,
        "call" => UNKNOWN,
        "cp" if has("bulk") || has("mbarrier") || has("reduce") => WORST,
        "red" | "st" if has("async") => WORST,
        // One operation of 16 bytes: each lane for itself.
        "atom" | "ld" | "st" if is_whole(instruction) => Knowledge {
            touches: Touches::Anything,
            orders: ["acquire", "release", "acq_rel"].iter().any(|word| has(word)),
            ..ALONE
        },
        _ => return None,
    })
}

/// Whether a type is of floats that no register holds alone.
fn is_short_float(word: &str) -> bool {
    let is_pair = ["e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "ue8m0"]
        .iter()
        .any(|start| {
            word.strip_prefix(start)
                .is_some_and(|rest| matches!(rest, "" | "x2" | "x4"))
        });
    is_pair || word == "tf32"
}

/// Whether a call names one of these functions.
fn calls_any_of(call: &Instruction<'_>, names: &[&str]) -> bool {
    let is_name = |operand: &&Operand<'_>| matches!(operand, Operand::Symbol(name) if names.contains(name));
    // The operand before it, if there is one, is the list of results; a list of parameters follows.
    call.read()
        .iter()
        .find(|operand| !matches!(operand, Operand::List(_)))
        .filter(is_name)
        .is_some()
}

/// Whether an instruction is carried although it is known.
pub(super) fn is_carried(instruction: &Instruction<'_>) -> bool {
    knowledge(instruction).is_some()
}

/// Special registers that are read as they are, with the type of their values.
pub(super) fn special_type(name: &str) -> Option<Type> {
    Some(match name {
        "clock64" | "globaltimer" | "gridid" | "current_graph_exec" => Type::I64,
        "clock" | "clock_hi" | "globaltimer_lo" | "globaltimer_hi" | "smid" | "nsmid" | "clusterid"
        | "nclusterid" | "cluster_ctaid" | "cluster_nctaid" | "cluster_ctarank" | "cluster_nctarank"
        | "total_smem_size" | "aggr_smem_size" => Type::I32,
        "is_explicit_cluster" => Type::Bool,
        _ if name.starts_with("envreg") || name.starts_with("pm") => Type::I32,
        _ => return None,
    })
}

/// A special register's value, asked for where it is read.
pub(super) fn special(b: &mut Builder<'_>, name: &str, part: &str, ty: Type) -> Value {
    let moved = match ty {
        Type::I64 => "mov.u64",
        Type::Bool => "mov.pred",
        _ => "mov.u32",
    };
    let dot = if part.is_empty() { "" } else { "." };
    let what = Opaque {
        touches: Touches::Nothing,
        orders: false,
        convergent: false,
        asynchronous: false,
        ..Opaque::unknown(format!("{moved} =0, %{name}{dot}{part}"), vec![ty])
    };
    b.push(OpKind::Opaque(what, OpaqueOperands::default()), &[ty])[0]
}

/// What a carried instruction is made of so far.
#[derive(Default)]
struct Carried {
    makes: Vec<(Register, Type)>,
    given: Vec<Value>,
    /// What is written may be read before.
    reads_results: bool,
}

impl<'t> Translator<'_, 't> {
    /// Carries an instruction.
    ///
    /// # Errors
    /// It is a jump, or has operands of a form that has no text.
    pub(crate) fn carry(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        if matches!(instruction.opcode, "bra" | "brx" | "ret" | "exit" | "trap") {
            return Err(refused(instruction));
        }
        let known = knowledge(instruction);
        let mut carried = Carried {
            reads_results: known.is_none(),
            ..Carried::default()
        };
        let known = known.unwrap_or(UNKNOWN);
        let written = instruction.written().len();
        let mut operands = Vec::with_capacity(instruction.operands.len());
        for (position, operand) in instruction.operands.iter().enumerate() {
            operands.push(self.operand_text(b, values, operand, position < written, &mut carried)?);
        }
        let declared = match instruction.opcode {
            "call" => call_text(instruction, &operands, self.source.declared),
            _ => None,
        };
        let text = match declared {
            Some(call) => call,
            None => {
                // Accumulators are read and written: they were given once more as the last operand.
                if instruction.opcode == "wgmma" && instruction.has("mma_async") {
                    operands.pop();
                }
                let text = format!("{} {}", instruction.spelling(), operands.join(", "));
                text.trim_end().to_owned()
            }
        };
        let makes: Vec<Type> = carried.makes.iter().map(|&(_, ty)| ty).collect();
        let what = Opaque {
            touches: known.touches,
            orders: known.orders,
            convergent: known.convergent,
            speculatable: known.speculatable,
            asynchronous: known.asynchronous,
            ends: known.ends,
            ..Opaque::unknown(text, makes.clone())
        };
        let results = b.push(OpKind::Opaque(what, OpaqueOperands(carried.given)), &makes);
        for ((register, _), result) in carried.makes.into_iter().zip(results) {
            let width = self.width(register)?;
            let result = match b.kernel.ty(result) {
                Type::F16 if width == 16 => b.convert(ConvertOp::Bits, Type::I16, result),
                _ => result,
            };
            self.set(b, values, &Operand::Register(register), result, false)?;
        }
        Ok(())
    }

    /// The text of an operand, with places for its registers.
    fn operand_text(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        operand: &Operand<'t>,
        is_written: bool,
        carried: &mut Carried,
    ) -> Result<String> {
        let mut several =
            |this: &mut Self, parts: &[Operand<'t>], open: &str, close: &str| -> Result<String> {
                let mut texts = Vec::with_capacity(parts.len());
                for part in parts {
                    texts.push(this.operand_text(b, values, part, is_written, carried)?);
                }
                Ok(format!("{open}{}{close}", texts.join(", ")))
            };
        Ok(match operand {
            Operand::Vector(parts) => several(self, parts, "{", "}")?,
            Operand::List(parts) => several(self, parts, "(", ")")?,
            Operand::Bracket(parts) => several(self, parts, "[", "]")?,
            Operand::Pair(first, second) => {
                let [first, second] =
                    [first, second].map(|part| self.operand_text(b, values, part, is_written, carried));
                format!("{}|{}", first?, second?)
            }
            Operand::Register(register) if is_written => {
                let ty = self.carried_type(*register)?;
                if carried.reads_results
                    && let Ok(value) = self.get(b, values, *register)
                {
                    carried.given.push(self.retyped(b, value, ty)?);
                }
                carried.makes.push((*register, ty));
                format!("={}", carried.makes.len() - 1)
            }
            Operand::Register(register) => {
                let ty = self.carried_type(*register)?;
                let value = self.get(b, values, *register)?;
                let is_narrow_pointer =
                    matches!(b.kernel.ty(value), Type::Ptr(Space::Shared | Space::Private));
                let value = match (self.width(*register)?, b.kernel.ty(value).is_pointer()) {
                    (32, true) if is_narrow_pointer => value,
                    (64, true) if !is_narrow_pointer => value,
                    _ => self.retyped(b, value, ty)?,
                };
                carried.given.push(value);
                format!("@{}", carried.given.len() - 1)
            }
            Operand::Not(register) => {
                let value = self.get(b, values, *register)?;
                carried.given.push(self.retyped(b, value, Type::Bool)?);
                format!("!@{}", carried.given.len() - 1)
            }
            Operand::Address(base, offset) => {
                let base = self.operand_text(b, values, base, false, carried)?;
                match offset {
                    0 => format!("[{base}]"),
                    _ => format!("[{base}+{offset}]"),
                }
            }
            Operand::Special(name, "") => format!("%{name}"),
            Operand::Special(name, part) => format!("%{name}.{part}"),
            Operand::Symbol(name)
                if self.arrays.contains_key(name) || self.source.slots.variable(name).is_some() =>
            {
                let pointer = self.symbol(b, operand)?;
                carried.given.push(pointer);
                format!("@{}", carried.given.len() - 1)
            }
            Operand::Symbol(name) => (*name).to_owned(),
            Operand::Integer(number) => (*number as i64).to_string(),
            Operand::Single(bits) => format!("0f{bits:08X}"),
            Operand::Double(number) => format!("0d{:016X}", number.to_bits()),
            Operand::Sink => "_".to_owned(),
            Operand::Label(_) => return Err(Error::input("this instruction takes no label operand")),
        })
    }

    /// The type in which a register goes into a carried instruction: as PTX declares it.
    fn carried_type(&self, register: Register) -> Result<Type> {
        let declared = self.source.body.registers[register as usize].ty;
        Ok(match (self.width(register)?, declared) {
            (1, _) => Type::Bool,
            // A register of 16 bits holds half precision in the IR; integers of 16 bits lie in wider ones.
            (16, _) => Type::F16,
            (32, "f32") => Type::F32,
            (32, _) => Type::I32,
            (64, "f64") => Type::F64,
            (64, _) => Type::I64,
            _ => {
                return Err(Error::input(
                    "a register of this width goes into no carried instruction",
                ));
            }
        })
    }
}

/// A call of a function that the module only declares: its parameters are declared around it.
fn call_text(
    instruction: &Instruction<'_>,
    operands: &[String],
    declared: &[super::tree::Function<'_>],
) -> Option<String> {
    let name = instruction.operands.iter().find_map(|operand| match operand {
        Operand::Symbol(name) => Some(*name),
        _ => None,
    })?;
    let function = declared.iter().find(|function| function.name == name)?;
    let inside = |list: Option<&String>| -> Vec<String> {
        let list = list.map_or("", |list| list.trim_matches(['(', ')']));
        list.split(", ")
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (results, arguments) = match (&instruction.operands[..], operands) {
        ([Operand::List(_), ..], [results, _, rest @ ..]) => (inside(Some(results)), inside(rest.first())),
        (_, [_, rest @ ..]) => (Vec::new(), inside(rest.first())),
        _ => return None,
    };
    let mut text = String::from("{ ");
    let mut passed = Vec::new();
    for (number, (param, argument)) in function.params.iter().zip(&arguments).enumerate() {
        let ty = bits(param.ty);
        text.push_str(&format!(
            ".param .{ty} given{number}; st.param.{ty} [given{number}], {argument}; "
        ));
        passed.push(format!("given{number}"));
    }
    let mut made = Vec::new();
    for (number, param) in function.results.iter().enumerate() {
        text.push_str(&format!(".param .{} made{number}; ", bits(param.ty)));
        made.push(format!("made{number}"));
    }
    let made = if made.is_empty() {
        String::new()
    } else {
        format!("({}), ", made.join(", "))
    };
    text.push_str(&format!("call {made}{name}, ({}); ", passed.join(", ")));
    for (number, (param, result)) in function.results.iter().zip(&results).enumerate() {
        text.push_str(&format!("ld.param.{} {result}, [made{number}]; ", bits(param.ty)));
    }
    Some(text + "}")
}

/// The untyped bits of a parameter's type.
fn bits(ty: &str) -> &'static str {
    match super::kinds::type_of(ty).map_or(64, Type::bits) {
        8 => "b8",
        16 => "b16",
        32 => "b32",
        _ => "b64",
    }
}
