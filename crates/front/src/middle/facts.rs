//! The caller's facts about an entry's parameters, beyond those in the module.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ir::{Fused, Kernel, Races, Type};

/// Facts about the launches of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What reports call the entry's parameters, in their order, where the module does not say.
    pub names: Vec<String>,
    /// The same module as its compiler makes it with debug information: its names of structures' members hold here.
    pub source: Option<Arc<String>>,
    /// By the parameter's name, as the kernel has it: the PTX name without the entry's in front.
    pub parameters: BTreeMap<String, ParameterFacts>,
    /// Bytes of dynamic shared memory that the launch asks for.
    pub dynamic_shared_bytes: Option<u32>,
    /// The module's signed loop counters do not overflow. In C++ none does, but a compiler's may count further than the
    /// source's, or from another start.
    pub no_overflow: bool,
    /// Which races are meant, whichever memory they are for.
    pub races: Races,
    /// The module's variables may be accessed beyond their ends: where those are is not used.
    pub unbounded_variables: bool,
    /// The work-items of a sub-group run in lockstep, as on GPUs before Volta: they meet before and after each access to shared
    /// memory.
    pub warp_synchronous: bool,
    /// What the assembler made of each sum that the text leaves to it, in the order in which they stand, once a pass has found
    /// out.
    pub fused: Option<Vec<Fused>>,
    /// The assembler whose machine code for each plan is run beside the original's: what it makes of the sums that the text leaves to
    /// it, shows in their bits.
    pub assembler: Option<Assembler>,
}

impl Facts {
    /// The same for an edited module: elements have the types that they have in this kernel, whichever of the copied accesses are the
    /// most. Lengths count them.
    #[must_use]
    pub fn with_elements_of(mut self, kernel: &Kernel) -> Facts {
        for param in &kernel.params {
            if let Some(known) = param.facts {
                self.parameters.entry(param.name.clone()).or_default().element = Some(known.element);
            }
        }
        self
    }
}

/// An assembler of machine code: a driver's, for devices of one compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembler {
    /// The driver's version, as that says it: 13000 for 13.0.
    pub driver: u64,
    /// The compute capability: 90 for 9.0.
    pub capability: u64,
}

/// Facts about the memory behind a pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterFacts {
    /// Elements.
    pub length: Option<u64>,
    /// Bytes of each of these, where they are not the elements that the kernel reads: two halves in a word, say.
    pub unit: Option<u32>,
    /// The type of its elements, where it does not follow from the accesses: in an edited module it is what it was before.
    pub element: Option<Type>,
    /// Nothing writes, while the kernel runs, what it reads through this parameter.
    pub read_only: bool,
    /// What is accessed through this parameter is accessed through no other one.
    pub unaliased: bool,
    /// Alignment of the first element, in bytes; a power of two.
    pub align: Option<u32>,
    /// Which races for what is reached through this parameter are meant.
    pub races: Races,
}

impl ParameterFacts {
    /// The number of its elements of this many bytes.
    pub(crate) fn elements(&self, bytes: u32) -> Option<u64> {
        match (self.length, self.unit) {
            (Some(length), Some(unit)) => {
                Some(length.saturating_mul(u64::from(unit)) / u64::from(bytes).max(1))
            }
            (length, _) => length,
        }
    }
}
