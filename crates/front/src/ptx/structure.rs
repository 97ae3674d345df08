//! A body as a kernel: each instruction becomes operations, in the regions that [`regions`] makes of the flow graph.

use std::collections::{HashMap, HashSet};

use super::contract::{self, Undecided};
use super::opaque::is_carried;
use super::translator::{At, Source, Translator};
use super::tree::{ENTER, Instruction, Location, Operand, Register, Statement, TOKEN};
use super::{library, parameters as given};
use crate::cleanup;
use crate::error::{Error, Fault, Result};
use crate::ir::{Builder, CutEdge, FloatMode, Fused, Kernel, OpKind, Place, PlaceData, Type, Value};
use crate::middle::flow::Block;
use crate::middle::regions::{self, Front};
use crate::middle::{self, Values, copies};
use crate::suggest::quoted;

/// An entry as a kernel.
pub(super) struct Structured {
    pub kernel: Kernel,
    /// Whether one of its sums is left to the assembler.
    pub is_open: bool,
    /// What may become of each sum that is left to the assembler.
    pub open_sums: Vec<Vec<Fused>>,
    /// Generic addresses became those of the space that they begin in.
    pub spaces_inferred: bool,
    /// The products and sums of each planned loop that are undecided in copies.
    pub cuts_undecided: Vec<Option<Undecided>>,
    /// Where sums stand that are known to be rounded alone.
    pub rounded: HashSet<Place>,
    /// The registers that go into each of them, in the order of the edge's values.
    pub entered: Vec<Vec<Register>>,
    /// The places of the text's statements, if there are planned loops.
    pub places: HashMap<u32, Place>,
}

/// Turns an entry into a kernel, not yet verified; with it why it cannot be written back, if it cannot.
///
/// # Errors
/// An instruction or parameter that the IR cannot express, with its line.
pub(super) fn kernel(source: Source<'_, '_>) -> Result<Structured> {
    let mut kernel = Kernel::new(source.function.name);
    kernel.group_size = source.function.required_group;
    kernel.float_mode = FloatMode {
        // PTX does not define them, and rewritten PTX should not pay for more.
        any_nan: true,
        // Its instructions say it themselves.
        ..FloatMode::default()
    };
    let mut translator = Translator::new(&source);
    given::declare(&mut translator, &mut kernel)?;
    let mut builder = Builder::new(&mut kernel, Kernel::NOWHERE);
    regions::write(
        &mut translator,
        source.flow,
        source.body.registers.len(),
        &mut builder,
    )?;
    let body = builder.finish();
    let open = std::mem::take(&mut translator.open);
    let open_halves = std::mem::take(&mut translator.open_halves);
    kernel.body = body;
    let decided = source.facts.fused.as_deref();
    let contracted = contract::contract(&mut kernel, &open, &open_halves, decided);
    let is_open = !contracted.left.is_empty();
    let numbers = 0..source.cuts as u32;
    let cuts_undecided = numbers.map(|number| contract::in_copies(&kernel, &open, &contracted, number));
    let cuts_undecided = cuts_undecided.collect();
    let rounded = contract::rounded(&kernel, &contracted.known);
    cleanup::own_exits(&mut kernel);
    cleanup::tidy(&mut kernel);
    let spaces_inferred = cleanup::find_spaces(&mut kernel);
    middle::shape_loops(&mut kernel, source.facts.no_overflow);
    copies::merge(&mut kernel, source.file);
    Ok(Structured {
        kernel,
        is_open,
        open_sums: contracted.open_sums,
        spaces_inferred,
        cuts_undecided,
        rounded,
        entered: translator.entered,
        places: translator.statements,
    })
}

impl<'t> Front<&Instruction<'t>> for Translator<'_, 't> {
    fn kind(&self, register: Register) -> Result<Type> {
        Translator::kind(self, register)
    }

    fn get(&mut self, b: &mut Builder<'_>, values: &Values, register: Register) -> Result<Value> {
        Translator::get(self, b, values, register)
    }

    fn retyped(&mut self, b: &mut Builder<'_>, value: Value, ty: Type) -> Result<Value> {
        Translator::retyped(self, b, value, ty)
    }

    fn block_place(&mut self, b: &mut Builder<'_>, block: &Block<'_, &Instruction<'t>>) -> Place {
        match block.instructions.first() {
            Some(first) => self.place_of(b, first),
            None => self.place(b, None, block.line),
        }
    }

    fn is_called(&self, block: &Block<'_, &Instruction<'t>>) -> bool {
        block.start.is_none()
    }

    fn at_end(&mut self, b: &mut Builder<'_>, block: &Block<'_, &Instruction<'t>>) {
        let own = self.source.own;
        let last = block.last.and_then(|last| own.statements.get(last as usize));
        if let Some(Statement::Instruction(last)) = last {
            let place = self.place_of(b, last);
            b.at(place);
        }
    }

    fn instructions(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        block: &Block<'_, &Instruction<'t>>,
    ) -> Result<()> {
        for &instruction in &block.instructions {
            let place = self.place_of(b, instruction);
            b.at(place);
            if let Err(error) = self.instruction((b, values, instruction)) {
                // What is not understood is not to stand in the way of the rest: its effects are the worst.
                let is_carried =
                    error.fault() == Fault::Input && self.carry((b, values, instruction)).is_ok();
                if !is_carried {
                    let label = instruction.location.and_then(|location| location.function);
                    let called = label.and_then(|label| library::function(self.source.text, label));
                    let error = match called {
                        Some(name) => error.about(format!("in {}", quoted(&name))),
                        None => error,
                    };
                    return Err(error.at(format!("line {}", instruction.line)));
                }
            }
        }
        Ok(())
    }
}

impl<'t> Translator<'_, 't> {
    /// The place of an instruction; where loops are planned, its own and no other one's.
    fn place_of(&mut self, b: &mut Builder<'_>, instruction: &Instruction<'t>) -> Place {
        if self.source.cuts == 0 {
            return self.place(b, instruction.location, instruction.line);
        }
        if let Some(&place) = self.statements.get(&instruction.number) {
            return place;
        }
        let like = self.place(b, instruction.location, instruction.line);
        let data = b.kernel.places[like].clone();
        let place = b.kernel.places.push(data);
        self.statements.insert(instruction.number, place);
        place
    }

    /// The place of a source line if the module says, else of a line in the module.
    fn place(&mut self, b: &mut Builder<'_>, location: Option<Location<'t>>, line: u32) -> Place {
        let key = match location {
            Some(_) => (location, 0),
            None => (None, line),
        };
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let path = |file: u64| {
            let mut files = self.source.files.iter();
            files
                .find(|(number, _)| *number == file)
                .map_or(String::new(), |(_, path)| (*path).to_owned())
        };
        let data = match location {
            Some(location) => {
                let call = location.inlined_at.map(|(file, line, column)| PlaceData {
                    file: path(file),
                    line,
                    column,
                    inlined_at: None,
                });
                PlaceData {
                    file: path(location.file),
                    line: location.line,
                    column: location.column,
                    inlined_at: call.map(|call| b.kernel.places.push(call)),
                }
            }
            None => PlaceData {
                file: self.source.file.to_owned(),
                line,
                column: 0,
                inlined_at: None,
            },
        };
        let place = b.kernel.places.push(data);
        self.places.insert(key, place);
        place
    }

    /// The front edge of a planned loop: a block that passes the registers on. What is a constant in front is one inside.
    fn edge(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let [Operand::List(registers), _, Operand::Integer(cut)] = &instruction.operands[..] else {
            return Err(Error::bug("the edge of a loop has other operands"));
        };
        let (mut over, mut types, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        for operand in registers {
            let &Operand::Register(register) = operand else {
                continue;
            };
            let ty = self.kind(register)?;
            let value = self.get(b, values, register)?;
            let value = self.retyped(b, value, ty)?;
            if b.kernel.as_constant(value).is_none() {
                over.push(register);
                types.push(ty);
                passed.push(value);
            }
        }
        let label = b.kernel.label(None, types.clone());
        b.kernel.labels[label].edge = Some(CutEdge::Enter(*cut as u32));
        let before = b.begin_region();
        b.break_(label, passed);
        let body = b.end_region(before);
        let results = b.push(OpKind::Block { label, body }, &types);
        for (&register, result) in over.iter().zip(results) {
            values[register as usize] = Some(result);
        }
        self.entered[*cut as usize] = over;
        Ok(())
    }

    /// Writes one instruction.
    fn instruction(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        match instruction.opcode {
            "bar" | "barrier" if instruction.has("arrive") || instruction.has("cluster") => {
                self.carry((b, values, instruction))
            }
            "fence" if instruction.has("proxy") || instruction.has("mbarrier_init") => {
                self.carry((b, values, instruction))
            }
            "bar" if instruction.has("warp") => self.meet(b, values, instruction),
            "bar" | "barrier" if instruction.has("red") => self.group_vote((b, values, instruction)),
            "bar" | "barrier" => self.barrier(b, instruction),
            "fence" => self.together((b, values, instruction)),
            "cp" if matches!(instruction.modifiers[..], ["async", "ca" | "cg", ..]) => {
                self.asynchronous((b, values, instruction))
            }
            _ if is_carried(instruction) => self.carry((b, values, instruction)),
            "ld" if instruction.is_atomic_access() => self.atomic_load((b, values, instruction)),
            "ld" | "ldu" => self.load((b, values, instruction)),
            "st" if instruction.is_atomic_access() => self.atomic_store((b, values, instruction)),
            "st" => self.store((b, values, instruction)),
            "atom" | "red" | "membar" | "shfl" | "vote" | "match" | "activemask" | "elect" | "redux"
            | "griddepcontrol" => self.together((b, values, instruction)),
            "cp" | "wait" | TOKEN => self.asynchronous((b, values, instruction)),
            "prefetch" => self.prefetch(b, values, instruction),
            "mov" => self.mov((b, values, instruction)),
            "cvta" => self.cvta((b, values, instruction)),
            "cvt" => self.convert((b, values, instruction)),
            "setp" | "set" | "selp" | "slct" | "testp" => self.comparison((b, values, instruction)),
            _ if instruction.is_carrying() => self.carried((b, values, instruction)),
            "bmsk" | "szext" | "bfe" | "bfi" | "bfind" | "clz" | "popc" | "brev" | "prmt" | "lop3"
            | "shf" | "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" => {
                self.bit_operation((b, values, instruction))
            }
            ENTER => self.edge((b, values, instruction)),
            // The block ends with it.
            "trap" => Ok(()),
            _ => self.arithmetic((b, values, instruction)),
        }
    }
}
