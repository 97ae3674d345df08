//! Opaque instructions: carried through as text, not interpreted.
//!
//! A kernel may contain instructions that the IR cannot express: tensor cores, barriers with phases, bulk copies, textures,
//! clocks, calls of driver functions. An [`Opaque`](super::OpKind::Opaque) operation keeps such an instruction as text, with
//! its operands and results, and states the properties that matter for moving, repeating or removing code around it. Everything
//! unstated is assumed to be the worst: it may touch all memory, orders other accesses, concerns all work-items of a sub-group
//! together, may not be speculated, and changes its results after it has run. That it may end the work-item, as a function that is
//! called may, is stated.

use super::carried::Carried;
use super::effects::{Access, Awaits, Effects, Meets, Memory};
use super::kernel::Value;
use super::table::words;
use super::types::Type;

words! {
    /// Which memory an opaque operation may touch, in reading or writing.
    pub enum Touches: "`nothing`, `reads`, `shared` or `anything`" {
        /// None.
        Nothing = "nothing",
        /// It may read anything, and writes nothing.
        Reads = "reads",
        /// Shared memory.
        Shared = "shared",
        /// All that the kernel can reach.
        Anything = "anything",
    }
}

/// Functions of the driver that read texts and change no memory of the kernel's: `printf` and `assert` become them.
pub const PRINTING: [&str; 2] = ["vprintf", "__assertfail"];

/// An instruction that is carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// Its text in PTX. `=0` stands for the first result, `@0` for the first operand.
    pub text: String,
    /// What it does, by its text.
    pub does: Box<Carried>,
    /// The types of its results.
    pub makes: Vec<Type>,
    /// Which memory it may touch.
    pub touches: Touches,
    /// Whether it orders accesses, as a fence or a barrier of any kind does.
    pub orders: bool,
    /// Whether all work-items of a sub-group run it together: it is not repeated under conditions that differ among them.
    pub convergent: bool,
    /// Whether it may run where the program would not have run it.
    pub speculatable: bool,
    /// Whether its results change behind it, until something else waits for them.
    pub asynchronous: bool,
    /// Whether it may end the work-item.
    pub ends: bool,
}

impl Opaque {
    /// An instruction of whose effects nothing is known.
    pub fn unknown(text: String, makes: Vec<Type>) -> Opaque {
        Opaque {
            does: Box::new(Carried::read(&text, name_of(&text), makes.len())),
            text,
            makes,
            touches: Touches::Anything,
            orders: true,
            convergent: true,
            speculatable: false,
            asynchronous: true,
            ends: false,
        }
    }

    /// A copy of a piece of a program's text, of this number.
    pub fn copy(number: usize) -> Opaque {
        Opaque {
            does: Box::new(Carried::Copy(number)),
            ..Opaque::unknown(format!("<copy> {number}"), Vec::new())
        }
    }

    /// How many operands its text names.
    pub(super) fn operands(&self) -> usize {
        super::carried::operands(&self.text)
    }

    /// The worst, but for what is stated.
    pub(super) fn effects(&self) -> Effects {
        let worst = Effects {
            ends: self.ends,
            ..Effects::worst()
        };
        let touched = |is: bool| match self.touches {
            _ if !is => Memory::None,
            Touches::Shared => Memory::Shared,
            _ => Memory::Any,
        };
        Effects {
            // One that orders accesses may be a barrier of the work-group.
            meets: match (self.convergent, self.orders) {
                (true, true) => worst.meets,
                (true, false) => Meets::SubGroup(None),
                (false, _) => Meets::None,
            },
            orders: worst.orders.filter(|_| self.orders),
            reads: touched(self.touches != Touches::Nothing),
            writes: touched(!matches!(self.touches, Touches::Nothing | Touches::Reads)),
            // Only a read is one of memory that nothing writes meanwhile.
            access: match self.touches {
                Touches::Anything => worst.access,
                _ => Access::Plain,
            },
            awaits: if self.orders {
                worst.awaits
            } else {
                Awaits::Nothing
            },
            ..worst
        }
    }

    /// Its name for people: the instruction without its operands.
    pub fn name(&self) -> &str {
        name_of(&self.text)
    }

    /// The properties that the text form states: those in which it is better than the worst, and whether it may end the work-item.
    pub(super) fn stated(&self) -> [(&'static str, bool); 5] {
        [
            ("unordered", !self.orders),
            ("alone", !self.convergent),
            ("speculatable", self.speculatable),
            ("settled", !self.asynchronous),
            ("ends", self.ends),
        ]
    }

    /// The text with registers in the places of results and operands.
    pub fn written(&self, results: &[String], operands: &[String]) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut rest = self.text.as_str();
        while let Some(at) = rest.find(['=', '@']) {
            let (before, behind) = rest.split_at(at);
            text.push_str(before);
            let digits = behind[1..].chars().take_while(char::is_ascii_digit).count();
            let names = if behind.starts_with('=') {
                results
            } else {
                operands
            };
            let named = behind[1..1 + digits]
                .parse::<usize>()
                .ok()
                .and_then(|number| names.get(number));
            text.push_str(named.map_or(&behind[..1 + digits], String::as_str));
            rest = &behind[1 + digits..];
        }
        text.push_str(rest);
        text
    }
}

/// The name of the instruction that a text is: of a call, the function's.
fn name_of(text: &str) -> &str {
    let text = text.trim_start_matches(['{', ' ', '\n', '\t']);
    match text.split_once("call ") {
        Some((_, call)) => call
            .split_once("), ")
            .map_or(call, |(_, call)| call)
            .split([',', ';'])
            .next()
            .unwrap_or(call),
        None => text.split([' ', ';']).next().unwrap_or(text),
    }
}

impl super::field::Field for Opaque {}

/// `(%a, %b)`, or `()`: the operands of an opaque operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpaqueOperands(pub Vec<Value>);

impl super::field::Field for OpaqueOperands {
    fn visit(&self, visit: &mut dyn FnMut(Value)) {
        self.0.iter().for_each(|&value| visit(value));
    }

    fn map(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        self.0.iter_mut().for_each(|value| *value = map(*value));
    }
}
