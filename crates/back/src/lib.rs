//! Back ends: pure functions from a kernel to text or words for a driver, or to instructions for the timer.
//!
//! ```
//! use headstart::back::ptx::{Options, PtxTarget, emit};
//!
//! let kernel = headstart::ir::read("hsir 1\nkernel @one(%n: i32) {\n  return\n}\n", "one.hsir")?;
//! let ptx = emit(&kernel, &Options::new(PtxTarget::Sm90))?;
//! assert_eq!(ptx.entry, "one");
//! assert!(ptx.text.contains(".visible .entry one("));
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! | module | what it gives |
//! |---|---|
//! | [`ptx`] | PTX, which NVIDIA's driver takes |
//! | [`spirv`] | SPIR-V, which OpenCL's runtimes take |
//! | [`machine`] | instructions as a GPU's compiler would choose and order them |
//! | [`hints`] | what becomes of a prefetch on a device |

mod banked;
mod commits;
mod copies;
pub mod hints;
mod library;
pub mod machine;
mod nan;
pub mod ptx;
mod roots;
pub mod spirv;
mod tables;

// The crates below, by the names that all of Headstart has for them.
use headstart_ir::{Error, Result, analysis, cleanup, error, ir, math};
use headstart_model as model;
use headstart_prefetch as prefetch;
