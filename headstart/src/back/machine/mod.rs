//! Kernel to machine program: the instruction stream that the timer runs.
//!
//! A device does not execute IR operations. A square root is a dozen instructions, an address may be
//! none, a 64-bit addition two. This back end lowers a kernel to the stream that the vendor's
//! compiler would emit for it, as far as time depends on it: the number of instructions, the units
//! they occupy, what they wait for, their bytes of code, the registers they need. The stream is also
//! executable: each IR operation is attached to the instruction that completes it, so the timer
//! computes real addresses and takes real branches.
//!
//! [`program`] defines the result.

pub mod program;

pub use program::{
    Class, Control, Guard, Instruction, MachineProgram, Register, RegisterEstimate, RegisterList, Slot, Step,
};
