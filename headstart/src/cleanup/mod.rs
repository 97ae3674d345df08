//! Tidying derived kernels: same meaning, less text.
//!
//! Passes generate straightforwardly and leave the tidying to this one:
//!
//! ```text
//! before                                        after
//! if true { yield %a } else { break 'items }    (nothing; %r is %a)
//! %x = add %i, 1                                %y = add %i, 2
//! %y = add %x, 1
//! loop 'items (%unused = 0: i32, …) { …         loop 'items (…) { …
//!   continue %unused2, … }                        continue … }
//! ```
//!
//! Loads, stores, copies, waits and hints are kept, a load whose result nobody uses excepted.

mod dead;
mod fold;

use crate::ir::Kernel;

/// Folds what is known, then removes what is unused.
pub fn tidy(kernel: &mut Kernel) {
    fold::fold(kernel);
    dead::remove(kernel);
}
