//! Launch files: a kernel's geometry and arguments, and the contents of its buffers.

pub(crate) mod file;
pub(super) mod files;
pub(super) mod fills;
pub(super) mod fitted_template;
pub(super) mod hashed;
mod moved;
pub(super) mod permuted;
pub(super) mod scalars;
pub(super) mod template;
