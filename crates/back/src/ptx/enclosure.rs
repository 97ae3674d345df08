//! What stands around a block in a module, as the block needs it: [`within`](super::within) emits it.

/// The largest alignment that instructions ask of shared memory, in bytes: that of tiles which bulk copies and products of warp
/// groups swizzle.
pub(super) const SHARED_BASE: u64 = 1024;

/// The enclosure of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Where each of the kernel's parameters comes from.
    pub parameters: Vec<Handed>,
    /// Names of shared and local variables that are declared around the block: arrays of these names are those.
    pub arrays: Vec<String>,
    /// Bytes of shared memory that are declared around the block.
    pub static_shared_bytes: u64,
    /// Bytes that launches ask for beside them.
    pub dynamic_shared_bytes: u64,
    /// Whether other shared memory may lie behind what the block declares: it moves by multiples of 1,024 bytes only.
    pub has_shared_behind: bool,
    /// The source files that the module names, by number. Places in other files are left out.
    pub files: Vec<(u64, String)>,
    /// The code around makes addresses by `mad.wide`, as Triton does, rather than by `mul.wide` and a sum.
    pub fuses_addresses: bool,
    /// What the names of variables begin with that the block declares for itself, beside the kernel's arrays.
    pub stem: String,
    /// The registers around the block that go in, in the order of the front edge's values.
    pub enter: Vec<Around>,
    /// The label of the loop as it was.
    pub leave: String,
    /// The pieces of text that the block has copies of; [`given`] says where their operands are.
    pub copies: Vec<String>,
}

/// What stands for an operand of a copy.
pub fn given(operand: usize) -> String {
    format!("\u{1}{operand}\u{1}")
}

/// A register around a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// Its name.
    pub name: String,
    /// Its width in bits; none for a predicate.
    pub bits: Option<u32>,
}

/// How a block comes by a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handed {
    /// From a parameter of the entry, or a member of it.
    Parameter {
        /// Its name in the text.
        name: String,
        /// Bytes from its start.
        offset: u64,
    },
    /// It is the address of a structure that is passed by value, which only `ld.param` reads.
    Structure {
        /// Its name in the text.
        name: String,
    },
    /// It is the address of a variable.
    Variable {
        /// Its name in the text.
        name: String,
        /// Whether it lies in constant memory, which only `ld.const` reads.
        is_constant: bool,
    },
    /// It is an address that this variable of constant memory holds: of another module's variable, by its global address.
    Kept {
        /// The variable's name in the text.
        name: String,
    },
    /// It is the address of a cooperative launch's workspace.
    Workspace,
}
