//! The ways in: what turns a program of the user's into IR.
//!
//! ```
//! use headstart::front::ptx::{self, Facts};
//!
//! let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
//!     .visible .entry one(.param .u32 n) {\n  ret;\n}\n";
//! assert_eq!(ptx::entries(text)?, ["one"]);
//! let kernel = ptx::read(text, "one.ptx", None, &Facts::default())?;
//! assert_eq!(kernel.params.len(), 1);
//! # Ok::<(), headstart::Error>(())
//! ```

pub mod lang;
mod middle;
pub mod prelude;
pub mod ptx;
pub mod spirv;

// The crates below, by the names that all of Headstart has for them.
use headstart_ir::{Error, Result, analysis, cleanup, error, ir, math, names, suggest};
use headstart_prefetch as prefetch;
