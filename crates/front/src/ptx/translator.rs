//! What is known of an entry while it becomes a kernel. The instructions of each kind are translated in a file of their own;
//! [`structure`](super::structure) calls them.

use std::collections::{HashMap, HashSet};

use super::contract::OpenHalves;
use super::flow::Flow;
use super::kinds::Kinds;
use super::slots::Slots;
use super::tree::{Body, Function, Instruction, Location, Operand, Register, Variable};
use crate::ir::{Array, Builder, Place, Type, Value};
use crate::middle::Values;
use crate::middle::address::Shapes;
use crate::middle::facts::Facts;

/// What an entry is made of.
pub(super) struct Source<'a, 't> {
    /// The module's text.
    pub text: &'a str,
    /// The name of the text in places, if it names no source of its own.
    pub file: &'a str,
    /// The source files, by number.
    pub files: &'a [(u64, &'t str)],
    /// The entry.
    pub function: &'a Function<'t>,
    /// Its body.
    pub body: &'a Body<'t>,
    /// The variables that it mentions.
    pub variables: &'a HashMap<&'t str, &'a Variable<'t>>,
    /// The scalars that it is given.
    pub slots: &'a Slots<'t>,
    /// Its flow graph.
    pub flow: &'a Flow<'a, 't>,
    /// The entry's own text, where loops are planned.
    pub own: &'a Body<'t>,
    /// How many loops of the graph have edges.
    pub cuts: usize,
    /// What its registers hold.
    pub kinds: &'a Kinds,
    /// Functions that the module declares and others have.
    pub declared: &'a [Function<'t>],
    /// What the caller knows.
    pub facts: &'a Facts,
}

/// An instruction where it is translated: the code that it becomes, and what registers hold there.
pub(super) type At<'b, 'k, 't> = (&'b mut Builder<'k>, &'b mut Values, &'b Instruction<'t>);

/// Turns an entry into a kernel.
pub(super) struct Translator<'a, 't> {
    /// The entry.
    pub source: &'a Source<'a, 't>,
    /// The variables that are arrays of the kernel.
    pub arrays: HashMap<&'t str, Array>,
    /// The value of each slot.
    pub param_values: Vec<Value>,
    /// What is known of the values that addresses are made of.
    pub shapes: Shapes,
    pub places: HashMap<(Option<Location<'t>>, u32), Place>,
    /// Where loops are planned, the places of the text's statements.
    pub statements: HashMap<u32, Place>,
    /// Products and sums that an assembler may fuse.
    pub open: HashSet<Value>,
    /// Those of halves.
    pub open_halves: OpenHalves,
    /// For each loop that is cut out, the registers that go in, in the order of the edge's values.
    pub entered: Vec<Vec<Register>>,
}

impl<'a, 't> Translator<'a, 't> {
    /// One at the start of an entry.
    pub(crate) fn new(source: &'a Source<'a, 't>) -> Translator<'a, 't> {
        Translator {
            places: HashMap::new(),
            statements: HashMap::new(),
            arrays: HashMap::new(),
            param_values: Vec::new(),
            shapes: Shapes::default(),
            open: HashSet::new(),
            open_halves: OpenHalves::default(),
            entered: vec![Vec::new(); source.cuts],
            source,
        }
    }
}

/// The IR's type of an operand's register, where it is one.
pub(super) fn register_kind(kinds: &Kinds, operand: &Operand<'_>) -> Option<Type> {
    match operand {
        Operand::Register(register) => kinds.registers[*register as usize],
        _ => None,
    }
}
