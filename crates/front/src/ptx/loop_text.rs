//! A loop as the text has it: what stands around it, and copies of it.
//!
//! ```text
//! before                              a copy whose load is replaced and whose test is known to stay
//! $L3:                                {
//!   ld.global.f32 %f1, [%rd4];          mov.b32 %f1, …;
//!   add.f32 %f2, %f2, %f1;              add.f32 %f2, %f2, %f1;
//!   add.s32 %r1, %r1, 1;                add.s32 %r1, %r1, 1;
//!   setp.lt.s32 %p1, %r1, %r2;          setp.lt.s32 %p1, %r1, %r2;
//!   @%p1 bra $L3;                     $L3:
//!                                     }
//! ```
//!
//! A copy is a block of its own, so that its labels and what it declares are its own. The header's label stands at its end: the
//! way back leads behind the copy, and other ways out lead where they lead in the text.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::contract::Undecided;
use super::cuts::Found;
use super::tree::{Body, Instruction, Operand, Register, Statement};
use crate::error::{Error, Result};
use crate::ir::{Place, Type};
use crate::suggest::quoted;

/// A planned loop, as the text has it.
#[derive(Clone, Debug)]
pub struct LoopInText {
    /// Its header's label.
    pub label: String,
    /// Where the label stands, with the pragmas behind it.
    pub header: Range<usize>,
    /// The statement in front of the label belongs to the loop, and goes on there.
    pub falls_in: bool,
    /// The jumps to it from outside: where its name stands in each.
    pub jumps: Vec<Range<usize>>,
    /// The registers that go in, in the order of the edge's values.
    pub inputs: Vec<CutRegister>,
    /// The products and sums that are undecided in copies.
    pub undecided: Option<Undecided>,
    /// From its first statement to behind its last one.
    pub span: Range<usize>,
    /// The way out behind its last statement, if that does not jump.
    pub end: Option<Target>,
    /// Groups of asynchronous copies are made or waited for in it.
    pub copies: bool,
    /// Its loads of memory, by their places in the kernel.
    pub loads: HashMap<Place, LoadStatement>,
    /// Where `add` or `sub` stands in its sums that are known to be rounded alone: a copy says so.
    pub rounded: Vec<Range<usize>>,
    /// Its jumps under a predicate that either stay in the loop or leave it, by their places.
    pub tests: HashMap<Place, TestStatement>,
    /// The other statements that leave it.
    pub leaves: Vec<LeavingStatement>,
    /// Behind which bytes it is left for the next statement, in the middle of its text.
    pub falls_out: Vec<usize>,
}

/// A statement of an entry that follows a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A label.
    Label(String),
    /// A statement without one, at this byte of the text.
    Statement(usize),
}

/// A register of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutRegister {
    /// Its name.
    pub name: String,
    /// Its declared type: `pred`, `b32`, `f64`.
    pub ty: String,
}

/// A load.
#[derive(Clone, Debug)]
pub struct LoadStatement {
    /// Where it stands.
    pub span: Range<usize>,
    /// Its predicate, as it is written in front: `@!%p1 `.
    pub(crate) guard: String,
    /// Whether it extends what it loads by the sign.
    pub(crate) is_signed: bool,
    /// The bits of a value that it loads.
    pub bits: u32,
    /// The registers that get the values; none for one that no register gets.
    pub to: Vec<Option<CutRegister>>,
}

impl LoadStatement {
    /// What gives its registers values of these types; `given` says where each is. None if it loads others.
    pub fn exchanged(&self, types: &[Type], given: impl Fn(usize) -> String) -> Option<String> {
        if types.len() != self.to.len() {
            return None;
        }
        let mut text = String::new();
        for (number, (ty, to)) in types.iter().zip(&self.to).enumerate() {
            let Some(to) = to else { continue };
            let width: u32 = to.ty.get(1..)?.parse().ok()?;
            // Narrow integers lie in 32 bits, zeros above.
            let from = match ty {
                Type::I8 | Type::I16 => 32,
                ty => ty.bits(),
            };
            let op = match (self.is_signed && self.bits < width, from == width) {
                _ if ty.bits() != self.bits || width < self.bits => return None,
                (true, _) => format!("cvt.s{width}.s{}", self.bits),
                (false, true) => format!("mov.b{width}"),
                (false, false) => format!("cvt.u{width}.u{from}"),
            };
            text.push_str(&format!("{}{op} {}, {}; ", self.guard, to.name, given(number)));
        }
        Some(text.trim_end().to_owned())
    }
}

/// A jump under a predicate.
#[derive(Clone, Debug)]
pub struct TestStatement {
    /// Where it stands.
    pub span: Range<usize>,
    /// What is left of it where it stays in the loop.
    pub staying: String,
    /// What is left of it where it leaves the loop.
    pub leaving: String,
}

/// A statement that ends a loop.
#[derive(Clone, Debug)]
pub struct LeavingStatement {
    /// Where it stands.
    pub span: Range<usize>,
    /// Its predicate, as it is written in front: `@!%p1 `.
    pub guard: String,
    /// Where the label stands that it jumps to; none if the work-item ends.
    pub label: Option<Range<usize>>,
}

/// What the kernel says of the entry's statements.
pub(super) struct InKernel<'k> {
    /// Their places.
    pub places: &'k HashMap<u32, Place>,
    /// The places of sums that are known to be rounded alone.
    pub rounded: &'k HashSet<Place>,
}

/// A loop that was found, as the text has it. `entered` has the registers of its front edge.
///
/// # Errors
/// Its text cannot be copied: why.
pub(super) fn in_text(
    text: &str,
    own: &Body<'_>,
    cut: &Found,
    entered: &[Register],
    known: &InKernel<'_>,
    undecided: Option<Undecided>,
) -> Result<LoopInText> {
    let rounded = known.rounded;
    let reader = Reader {
        text,
        own,
        cut,
        rounded,
    };
    let scope = own.spans[cut.header as usize].scope;
    let label = reader.label_at(cut.header, scope);
    let label = label.ok_or_else(|| Error::bug("a loop's header has no label"))?;
    let jumps = cut.jumps.iter().map(|&jump| reader.target(jump, label));
    let inputs = entered.iter().map(|&register| reader.register(register, scope));
    let numbers = || cut.statements.iter().copied();
    let (first, last) = numbers().fold((cut.header, cut.header), |(first, last), number| {
        (first.min(number), last.max(number))
    });
    let span = own.spans[first as usize].start..own.spans[last as usize].end;
    let behind = reader.next(cut.header).min(last + 1) - 1;
    let header = own.spans[cut.header as usize].start..own.spans[behind as usize].end;
    let before = cut.header.checked_sub(1);
    stands_alone(&text[span.clone()], header.start - span.start)
        .map_err(|why| refused(label, why, "loops whose text is one piece of its block"))?;
    let mut found = LoopInText {
        label: label.to_owned(),
        header,
        falls_in: before.is_some_and(|before| cut.statements.contains(&before) && reader.goes_on(before)),
        jumps: jumps.collect::<Result<_>>()?,
        inputs: inputs.collect::<Result<_>>()?,
        undecided,
        span,
        end: None,
        copies: cut.copies,
        loads: HashMap::new(),
        rounded: Vec::new(),
        tests: HashMap::new(),
        leaves: Vec::new(),
        falls_out: Vec::new(),
    };
    let mut sorted: Vec<u32> = numbers().collect();
    sorted.sort_unstable();
    for number in sorted {
        reader.statement(number, known.places.get(&number).copied(), &mut found)?;
    }
    if reader.goes_on(last) {
        let next = reader.next(last);
        let behind = &own.spans[last as usize];
        let rest = &text[behind.end..];
        let next_span = own.spans.get(next as usize);
        found.end = match (reader.label_at(next, scope), next_span) {
            (Some(label), _) => Some(Target::Label(label.to_owned())),
            (None, Some(span)) if span.scope == scope => Some(Target::Statement(span.start)),
            // In front of the block that begins there.
            (None, Some(_)) if behind.scope == scope => {
                Some(Target::Statement(text.len() - rest.trim_start().len()))
            }
            _ => {
                let why = "it is left for a block of its own";
                return Err(refused(label, why, "loops that are left for labels"));
            }
        };
    }
    Ok(found)
}

fn refused(label: &str, why: &str, accepted: &str) -> Error {
    Error::input(format!("loop {} cannot be edited: {why}", quoted(label))).accepted(accepted)
}

struct Reader<'r, 't> {
    text: &'r str,
    own: &'r Body<'t>,
    cut: &'r Found,
    rounded: &'r HashSet<Place>,
}

impl<'t> Reader<'_, 't> {
    fn label_at(&self, statement: u32, scope: u32) -> Option<&'t str> {
        match self.own.statements.get(statement as usize) {
            Some(Statement::Label(label)) if self.own.names_label(scope, *label) => {
                Some(self.own.labels[*label as usize].name)
            }
            _ => None,
        }
    }

    fn span(&self, statement: u32) -> Range<usize> {
        let span = &self.own.spans[statement as usize];
        span.start..span.end
    }

    /// Where a jump names its target.
    fn target(&self, jump: u32, label: &str) -> Result<Range<usize>> {
        let span = self.span(jump);
        let at = self.text[span.clone()].rfind(label);
        let at = at.ok_or_else(|| Error::bug("a jump without its label"))?;
        Ok(span.start + at..span.start + at + label.len())
    }

    fn register(&self, register: Register, scope: u32) -> Result<CutRegister> {
        let data = &self.own.registers[register as usize];
        let is_moved = matches!(data.ty, "pred") || matches!(&data.ty[1..], "16" | "32" | "64");
        match is_moved && self.own.names_register(scope, register) {
            false => Err(Error::input(format!(
                "the loop cannot be edited: register {} of type `.{}` goes over its edge",
                quoted(data.name),
                data.ty
            ))
            .accepted("predicates and registers of 16, 32 or 64 bits that have their names there")),
            true => Ok(CutRegister {
                name: data.name.to_owned(),
                ty: data.ty.to_owned(),
            }),
        }
    }

    fn instruction(&self, statement: u32) -> Option<&Instruction<'t>> {
        match self.own.statements.get(statement as usize) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }

    /// Whether the next statement may run behind this one.
    fn goes_on(&self, statement: u32) -> bool {
        let jumps = |own: &Instruction<'_>| matches!(own.opcode, "bra" | "brx" | "ret" | "exit" | "trap");
        let jump = self.instruction(statement).filter(|own| jumps(own));
        jump.is_none_or(|jump| jump.guard.is_some())
    }

    fn guard(&self, instruction: &Instruction<'_>) -> String {
        instruction.guard.map_or(String::new(), |(register, negated)| {
            let name = self.own.registers[register as usize].name;
            format!("@{}{name} ", if negated { "!" } else { "" })
        })
    }

    /// Notes what a copy may do otherwise with a statement.
    fn statement(&self, number: u32, place: Option<Place>, found: &mut LoopInText) -> Result<()> {
        let is_inside = |number: u32| self.cut.statements.contains(&number);
        let span = self.span(number);
        let falls_out = self.goes_on(number) && !is_inside(self.next(number));
        if falls_out && span.end < found.span.end {
            found.falls_out.push(span.end);
        }
        let Some(instruction) = self.instruction(number) else {
            return Ok(());
        };
        let guard = self.guard(instruction);
        match (instruction.opcode, &instruction.operands[..]) {
            ("bra", [Operand::Label(label)]) => {
                let data = self.own.labels[*label as usize];
                let stays = data.number.is_some_and(is_inside);
                if let (false, Some(place)) = (guard.is_empty() || stays != falls_out, place) {
                    let (jumps, goes_on) = (format!("bra {};", data.name), String::new());
                    let (staying, leaving) = match stays {
                        true => (jumps, goes_on),
                        false => (goes_on, jumps),
                    };
                    let span = span.clone();
                    let test = TestStatement {
                        span,
                        staying,
                        leaving,
                    };
                    found.tests.insert(place, test);
                }
                if !stays {
                    let label = Some(self.target(number, data.name)?);
                    found.leaves.push(LeavingStatement { span, guard, label });
                }
            }
            ("brx", _) => {
                let why = "it has a computed jump";
                return Err(refused(&found.label, why, "loops without `brx.idx`"));
            }
            (sum @ ("add" | "sub"), _) if place.is_some_and(|place| self.rounded.contains(&place)) => {
                let at = self.text[span.clone()].find(&format!("{sum}."));
                let at = at.ok_or_else(|| Error::bug("a sum without its operation"))?;
                found.rounded.push(span.start + at..span.start + at + sum.len());
            }
            ("ret" | "exit" | "trap", _) => found.leaves.push(LeavingStatement {
                span,
                guard,
                label: None,
            }),
            ("ld" | "ldu", [to, _]) => {
                if let (Some(place), Some(load)) = (place, self.load(instruction, to, span)) {
                    found.loads.insert(place, load);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The statement behind this one, pragmas left out.
    fn next(&self, number: u32) -> u32 {
        let pragma = |number: &u32| {
            matches!(
                self.own.statements.get(*number as usize),
                Some(Statement::KeepLoop)
            )
        };
        (number + 1..).find(|next| !pragma(next)).unwrap_or(u32::MAX)
    }

    /// A load of numbers into registers.
    fn load(&self, load: &Instruction<'_>, to: &Operand<'_>, span: Range<usize>) -> Option<LoadStatement> {
        let loaded = load.last();
        let register = |part: &Operand<'_>| match part {
            Operand::Register(register) => {
                let data = &self.own.registers[*register as usize];
                Some(Some(CutRegister {
                    name: data.name.to_owned(),
                    ty: data.ty.to_owned(),
                }))
            }
            Operand::Sink => Some(None),
            _ => None,
        };
        Some(LoadStatement {
            span,
            guard: self.guard(load),
            is_signed: loaded.starts_with('s'),
            bits: loaded.get(1..)?.parse().ok()?,
            to: super::memory::parts(to)
                .iter()
                .map(register)
                .collect::<Option<_>>()?,
        })
    }
}

/// Why a text cannot stand in a block of its own, if it cannot: it ends blocks that it does not begin, or declares what stands
/// for more than itself. `header` is the byte of its label.
fn stands_alone(text: &str, header: usize) -> std::result::Result<(), &'static str> {
    let mut depth = 0u32;
    let mut is_start = true;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        if at == header && depth > 0 {
            return Err("it begins in a block of its own");
        }
        let skipped = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '{' => {
                depth += 1;
                is_start = true;
                1
            }
            '}' => {
                depth = depth.checked_sub(1).ok_or("it ends in a block of its own")?;
                is_start = true;
                1
            }
            ';' | ':' => {
                is_start = true;
                1
            }
            '.' if is_start => {
                let name = &rest[1..];
                let name = &name[..name
                    .find(|c: char| !c.is_ascii_alphanumeric())
                    .unwrap_or(name.len())];
                let may = match name {
                    "loc" | "pragma" => true,
                    "reg" | "param" | "callprototype" => depth > 0,
                    _ => false,
                };
                // `.loc` ends with its line.
                is_start = name == "loc";
                match may {
                    true if is_start => rest.find(['\n', ';']).unwrap_or(rest.len()),
                    true => name.len() + 1,
                    false => return Err("it declares variables or registers"),
                }
            }
            first => {
                is_start &= first.is_whitespace();
                first.len_utf8()
            }
        };
        rest = &rest[skipped..];
    }
    match depth {
        0 => Ok(()),
        _ => Err("it ends in a block of its own"),
    }
}
