//! The common ground of Headstart's crates: [`ir`], a kernel as typed SSA, with its [`analysis`] and `cleanup`, and [`math`],
//! which expands exponentials and the like into IEEE operations.
//!
//! ```
//! use headstart::ir::{self, Type};
//!
//! let text = "hsir 1\nkernel @one(%n: i32) {\n  return\n}\n";
//! let kernel = ir::read(text, "one.hsir")?;
//! assert_eq!(kernel.ty(kernel.params[0].value), Type::I32);
//! // What is printed is read again, and is the same.
//! assert_eq!(ir::print(&ir::read(&ir::print(&kernel), "again")?), ir::print(&kernel));
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! Programs name the crate `headstart`, which has these modules under the same names.

pub mod analysis;
#[doc(hidden)]
pub mod cleanup;
pub mod cut;
pub mod error;
pub mod files;
pub mod ir;
pub mod math;
pub mod names;
#[doc(hidden)]
pub mod random;
pub mod suggest;
pub mod violation;

pub use error::{Error, Fault, Result};
