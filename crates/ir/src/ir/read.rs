//! Kernels that people write.

use super::kernel::Kernel;
use super::parse::Parser;
use crate::error::Result;

/// Reads a kernel that someone wrote: [`parse`](super::parse()) and [`verify`](super::verify()), and operations
/// and loads without a source place get that of their line in the text, so that later messages can name it.
///
/// # Errors
/// Input errors at `file_name:line:column`.
pub fn read(text: &str, file_name: &str) -> Result<Kernel> {
    let kernel = Parser::new(text, file_name, true)?.kernel()?;
    super::verify(&kernel)?;
    Ok(kernel)
}
