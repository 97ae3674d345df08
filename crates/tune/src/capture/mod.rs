//! Launches that were captured while a program ran: an address space, a kernel, its parameters.
//!
//! ```text
//! FOLDER/
//!   capture.toml           the program, its kernels and the kinds of their launches; written last, it makes the folder whole
//!   images/HASH            the images that the program loaded
//!   buffers/HASH           memory, each content once, compressed
//!   process-PID.txt        what a process loaded and asked for; process-PID.counts what it launched
//!   KERNEL/launch.toml     a launch: geometry, parameters, and every allocation that they reach, before and after
//!   KERNEL/module.ptx      the text of its kernel
//!   KERNEL/tuned.ptx       the better kernel, once it was tuned; tuned.toml what it rests on
//! ```
//!
//! The preloaded library writes most of it (`headstart-driver`); it does not parse PTX. It is read here. A launch keeps its
//! addresses, so that a pointer inside a structure or a buffer stays valid: [`Launch::memory`](crate::device::Launch::memory)
//! puts the buffers there.

mod fat_binary;
mod launch;
mod manifest;
mod process;
mod program;
mod stored;

pub use fat_binary::{Text, texts};
pub use launch::{Allocation, Captured, Contraction, Difference, Variable};
pub use process::{Better, Class, Counts, Process, Seen};
pub use program::{CapturedKernel, CapturedProgram, LaunchKind};

/// The manifest of a captured launch, in its folder.
pub const LAUNCH: &str = "launch.toml";
/// The module of a captured launch, in its folder.
pub const MODULE: &str = "module.ptx";
/// The contents of a finished capture's folder.
pub const WHOLE: &str = "capture.toml";
