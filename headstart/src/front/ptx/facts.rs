//! What a caller knows of an entry's parameters beyond what the PTX says.

use std::collections::BTreeMap;

/// Facts about the launches of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// By the parameter's name, as the kernel has it: the PTX name without the entry's in front.
    pub parameters: BTreeMap<String, ParameterFacts>,
    /// Bytes of dynamic shared memory that the launch asks for.
    pub dynamic_shared_bytes: Option<u32>,
    /// The source's signed loop counters do not overflow, as C++ and Rust have it.
    pub no_overflow: bool,
}

/// Facts about the memory behind a pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterFacts {
    /// Elements.
    pub length: Option<u64>,
    /// Nothing writes it while the kernel runs.
    pub read_only: bool,
    /// No other parameter reaches the same memory.
    pub unaliased: bool,
    /// Alignment of the first element, in bytes; a power of two.
    pub align: Option<u32>,
}
