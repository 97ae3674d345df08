//! A module as it is written: entries, parameters, variables, and the statements of a body.
//!
//! Nothing is interpreted here. An instruction is its words; what they mean is decided when an entry
//! needs it.

use std::collections::{HashMap, HashSet};

/// The type of registers that hold tokens, and the instruction that copies one: no word of PTX.
pub(super) const TOKEN: &str = "token";
/// The instruction that stands for the front edge of a planned loop: no word of PTX.
pub(super) const ENTER: &str = "<enter>";

/// A module.
#[derive(Debug, Default)]
pub(super) struct Module<'t> {
    /// Entries and functions with a body, in the order of the text.
    pub functions: Vec<Function<'t>>,
    /// Functions without a body: those of the driver, or of another module.
    pub declared: Vec<Function<'t>>,
    /// Variables outside functions.
    pub variables: Vec<Variable<'t>>,
    /// The `.file` directives: number and path.
    pub files: Vec<(u64, &'t str)>,
    /// Bits of an address, where the module says.
    pub address_size: Option<u64>,
    /// The PTX version that the module names, and where its number stands in the text.
    pub version: Option<((u32, u32), (usize, usize))>,
    /// The GPU that the module is for: `sm_90`.
    pub target: &'t str,
}

/// An entry or a device function.
#[derive(Clone, Debug)]
pub(super) struct Function<'t> {
    /// Its name.
    pub name: &'t str,
    /// Where its declaration starts in the text: the byte of `.visible`, or of `.entry` where that is first.
    pub start: usize,
    /// Whether it is launched rather than called.
    pub is_entry: bool,
    /// What it takes.
    pub params: Vec<Param<'t>>,
    /// What it gives back; only device functions do.
    pub results: Vec<Param<'t>>,
    /// The work-group size that it requires.
    pub required_group: Option<[u32; 3]>,
    /// Where its body starts, behind the brace: byte and line.
    pub body: (usize, u32),
    /// Where its body ends: the byte of the closing brace.
    pub body_end: usize,
}

/// A parameter of an entry or a function.
#[derive(Clone, Debug)]
pub(super) struct Param<'t> {
    /// Its name in the text.
    pub name: &'t str,
    /// Its type: `u64`, `f32`, `b8`.
    pub ty: &'t str,
    /// How many elements, if it is an array of bytes.
    pub array: Option<u64>,
    /// Its own alignment in bytes, where the text says; 0 where its type does.
    pub align: u64,
    /// The space and alignment of its target, if it is declared a pointer.
    pub pointer: Option<(&'t str, u64)>,
}

/// A variable of a state space.
#[derive(Clone, Debug)]
pub(super) struct Variable<'t> {
    /// Its name.
    pub name: &'t str,
    /// `global`, `const`, `shared` or `local`.
    pub space: &'t str,
    /// The type of an element.
    pub ty: &'t str,
    /// How many elements; nothing for `[]`, whose size the launch or another module says.
    pub length: Option<u64>,
    /// Another module may have a longer one of this name, which then is this one.
    pub is_common: bool,
    /// Alignment in bytes; 0 where it is left to the element.
    pub align: u64,
    /// Where it is declared.
    pub line: u32,
    /// Where its values start in the text, behind `=`: byte and line.
    pub values: Option<(usize, u32)>,
    /// Whether it stands in a block of its own inside a body.
    pub is_inner: bool,
}

pub(super) use crate::middle::Register;

/// A body.
#[derive(Clone, Debug, Default)]
pub(super) struct Body<'t> {
    /// Registers, in the order of their first appearance.
    pub registers: Vec<RegisterData<'t>>,
    /// Variables that the body declares.
    pub variables: Vec<Variable<'t>>,
    /// Instructions and labels, in order.
    pub statements: Vec<Statement<'t>>,
    /// The labels, by number.
    pub labels: Vec<LabelData<'t>>,
    /// Where each statement stands, as the body was read.
    pub spans: Vec<Span>,
    /// The blocks in braces, the function's own first.
    pub scopes: Vec<Scope<'t>>,
}

/// A block in braces: what names mean inside it.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'t> {
    /// The block around it; none around the function's own.
    pub around: Option<u32>,
    /// The registers that it declares, and that are used.
    pub registers: HashMap<&'t str, Register>,
    /// `%r<36>`: by prefix, how many, and their type.
    pub ranges: HashMap<&'t str, (u64, &'t str)>,
    /// The labels that stand in it.
    pub labels: HashMap<&'t str, u32>,
}

/// The place of a statement in the module's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
    /// The number of the block in braces that it stands in.
    pub scope: u32,
}

impl<'t> Body<'t> {
    /// A block and those around it, from the inside out.
    fn scopes_around(&self, scope: u32) -> impl Iterator<Item = (u32, &Scope<'t>)> {
        let mut next = Some(scope);
        std::iter::from_fn(move || {
            let number = next?;
            let scope = self.scopes.get(number as usize)?;
            next = scope.around;
            Some((number, scope))
        })
    }

    /// Whether a register has its name in a block.
    pub(crate) fn names_register(&self, scope: u32, register: Register) -> bool {
        let name = self.registers[register as usize].name;
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[prefix.len()..].parse::<u64>();
        for (_, scope) in self.scopes_around(scope) {
            if let Some(&own) = scope.registers.get(name) {
                return own == register;
            }
            if let (Some((count, _)), Ok(number)) = (scope.ranges.get(prefix), &number)
                && number < count
            {
                return false;
            }
        }
        false
    }

    /// Whether a label has its name in a block.
    pub(crate) fn names_label(&self, scope: u32, label: u32) -> bool {
        let name = self.labels[label as usize].name;
        let mut found = self
            .scopes_around(scope)
            .filter_map(|(_, scope)| scope.labels.get(name));
        found.next() == Some(&label)
    }

    /// The instructions, in their order.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = &Instruction<'t>> {
        self.statements.iter().filter_map(|statement| match statement {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    }

    /// How many instructions write each register.
    pub(crate) fn definitions(&self) -> HashMap<Register, u32> {
        let mut definitions = HashMap::new();
        for instruction in self.instructions() {
            for operand in instruction.written() {
                operand.for_each_register(&mut |register| *definitions.entry(register).or_default() += 1);
            }
        }
        definitions
    }

    /// Removes the instructions whose result is one of `registers` and is not read, until none is left.
    pub(crate) fn remove_unread(&mut self, registers: impl Fn(Register) -> bool) {
        let mut before = usize::MAX;
        while before != self.statements.len() {
            before = self.statements.len();
            let mut used: HashSet<Register> = HashSet::new();
            for instruction in self.instructions() {
                used.extend(instruction.guard.map(|(register, _)| register));
                for operand in instruction.read() {
                    operand.for_each_register(&mut |register| {
                        used.insert(register);
                    });
                }
            }
            self.statements.retain(|statement| match statement {
                Statement::Instruction(instruction) => match instruction.operands.first() {
                    Some(&Operand::Register(to)) => !registers(to) || used.contains(&to),
                    _ => true,
                },
                _ => true,
            });
        }
    }
}

/// A label.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelData<'t> {
    /// Its name.
    pub name: &'t str,
    /// The number of the entry's statement that it is; none in a function that is called.
    pub number: Option<u32>,
}

/// A register.
#[derive(Clone, Debug)]
pub(super) struct RegisterData<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its declared type: `pred`, `b32`, `f64`.
    pub ty: &'t str,
}

/// A part of a body.
#[derive(Clone, Debug)]
pub(super) enum Statement<'t> {
    /// A place to jump to, by number.
    Label(u32),
    /// `.pragma "nounroll"`: a loop that starts with this block stays as it is.
    KeepLoop,
    /// An instruction.
    Instruction(Instruction<'t>),
}

/// A source line, as `.loc` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Location<'t> {
    /// The number of the file.
    pub file: u64,
    /// From 1.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Where the function that it is in was called, if it was inlined: file, line, column.
    pub inlined_at: Option<(u64, u32, u32)>,
    /// The label of that function's name, if it was inlined.
    pub function: Option<&'t str>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction<'t> {
    /// What comes before the first dot.
    pub opcode: &'t str,
    /// The text behind the dots.
    pub modifiers: Vec<&'t str>,
    /// The predicate, and whether it is negated.
    pub guard: Option<(Register, bool)>,
    /// The operands.
    pub operands: Vec<Operand<'t>>,
    /// The line of the module's text.
    pub line: u32,
    /// The number of the entry's statement that it is, or is a part of: what a call becomes has the call's.
    pub number: u32,
    /// The line of the source.
    pub location: Option<Location<'t>>,
}

/// Instructions that write their first operand, whatever its old value, and no other; in order.
const RESULT_FIRST: [&str; 103] = [
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "atom",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "brev",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "createpolicy",
    "cvt",
    "cvta",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "fma",
    "fns",
    "getctarank",
    "isspacep",
    "istypep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "neg",
    "not",
    "or",
    "popc",
    "prmt",
    "rcp",
    "redux",
    "rem",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "stacksave",
    "sub",
    "subc",
    "suld",
    "suq",
    "szext",
    "tanh",
    "testp",
    "tex",
    "tld4",
    "token",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vote",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "xor",
];

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand<'t> {
    /// A register.
    Register(Register),
    /// A negated predicate register.
    Not(Register),
    /// A special register, without its percent sign: `tid.x`.
    Special(&'t str, &'t str),
    /// A variable, parameter or function.
    Symbol(&'t str),
    /// A label, by number.
    Label(u32),
    /// A whole number.
    Integer(u64),
    /// A single-precision constant, by its bits.
    Single(u32),
    /// A double-precision constant.
    Double(f64),
    /// `{a, b}`.
    Vector(Vec<Operand<'t>>),
    /// `[base + offset]`.
    Address(Box<Operand<'t>>, i64),
    /// `[a, b]`: a texture with coordinates, a map with them, an address with a barrier.
    Bracket(Vec<Operand<'t>>),
    /// `p|q`: two results.
    Pair(Box<Operand<'t>>, Box<Operand<'t>>),
    /// `(a, b)`: arguments or results of a call.
    List(Vec<Operand<'t>>),
    /// `_`: a result that is not wanted.
    Sink,
}

impl Instruction<'_> {
    /// Whether a load or store is an atomic one: it names a scope with its order.
    pub(crate) fn is_atomic_access(&self) -> bool {
        ["relaxed", "acquire", "release"]
            .into_iter()
            .any(|word| self.has(word))
    }

    /// Whether it reads or writes the carry flag.
    pub(crate) fn is_carrying(&self) -> bool {
        match self.opcode {
            "addc" | "subc" | "madc" => true,
            "add" | "sub" | "mad" => self.has("cc"),
            _ => false,
        }
    }

    /// The opcode with its modifiers, as it is written.
    pub(crate) fn spelling(&self) -> String {
        let mut text = self.opcode.to_owned();
        for modifier in &self.modifiers {
            text.push('.');
            text.push_str(modifier);
        }
        text
    }

    /// Whether a modifier is there.
    pub(crate) fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// The last modifier: nearly always the type.
    pub(crate) fn last(&self) -> &str {
        self.modifiers.last().copied().unwrap_or_default()
    }
}

impl<'t> Operand<'t> {
    /// Calls `visit` on each variable, parameter and function that the operand names.
    pub(crate) fn for_each_symbol(&self, visit: &mut impl FnMut(&'t str)) {
        match self {
            Operand::Symbol(name) => visit(name),
            Operand::Address(base, _) => base.for_each_symbol(visit),
            Operand::Vector(parts) | Operand::List(parts) | Operand::Bracket(parts) => {
                parts.iter().for_each(|part| part.for_each_symbol(visit));
            }
            _ => {}
        }
    }

    /// Calls `visit` on each register in the operand.
    pub(crate) fn for_each_register(&self, visit: &mut impl FnMut(Register)) {
        match self {
            Operand::Register(register) | Operand::Not(register) => visit(*register),
            Operand::Vector(parts) | Operand::List(parts) | Operand::Bracket(parts) => {
                parts.iter().for_each(|part| part.for_each_register(visit));
            }
            Operand::Address(base, _) => base.for_each_register(visit),
            Operand::Pair(a, b) => {
                a.for_each_register(visit);
                b.for_each_register(visit);
            }
            Operand::Special(..)
            | Operand::Symbol(_)
            | Operand::Label(_)
            | Operand::Integer(_)
            | Operand::Single(_)
            | Operand::Double(_)
            | Operand::Sink => {}
        }
    }
}

impl<'t> Instruction<'t> {
    /// Whether it writes its first operand and no other.
    pub(crate) fn has_result_first(&self) -> bool {
        RESULT_FIRST.binary_search(&self.opcode).is_ok()
    }

    /// The operands that are written: the first, for instructions that have a result; all of an instruction that is not known.
    pub(crate) fn written(&self) -> &[Operand<'t>] {
        let count = match self.opcode {
            // Copies that were given the register of their token have it first.
            "cp" => usize::from(matches!(self.operands.first(), Some(Operand::Register(_)))),
            "st"
            | "stu"
            | "red"
            | "prefetch"
            | "prefetchu"
            | "membar"
            | "fence"
            | "bra"
            | "ret"
            | "exit"
            | "trap"
            | "brkpt"
            | "wait"
            | "nanosleep"
            | "discard"
            | "griddepcontrol"
            | "pmevent"
            | "setmaxnreg"
            | "stmatrix"
            | "sust"
            | "sured"
            | "tensormap"
            | "applypriority"
            | "clusterlaunchcontrol" => 0,
            "wgmma" => usize::from(self.has("mma_async")),
            "wmma" => usize::from(self.modifiers.first() != Some(&"store")),
            "mbarrier" => usize::from(
                !["init", "inval", "expect_tx", "complete_tx"]
                    .contains(&self.modifiers.first().copied().unwrap_or_default()),
            ),
            "multimem" => usize::from(self.modifiers.first() == Some(&"ld_reduce")),
            "tcgen05" => usize::from(self.modifiers.first() == Some(&"ld")),
            "bar" | "barrier" if !self.has("red") => 0,
            "call" => usize::from(matches!(self.operands.first(), Some(Operand::List(_)))),
            ENTER | "bar" | "barrier" => 1,
            _ if self.has_result_first() => 1,
            _ => self.operands.len(),
        };
        &self.operands[..count.min(self.operands.len())]
    }

    /// The operands that are read.
    pub(crate) fn read(&self) -> &[Operand<'t>] {
        &self.operands[self.written().len()..]
    }
}
