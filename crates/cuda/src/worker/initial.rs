//! What a worker's buffers hold at first.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Contents;
use super::reference::Fills;
use crate::back::ptx::PtxTarget;
use crate::device::refill_with;
use crate::failure::{Failure, FailureKind};
use crate::gpu::Gpu;
use crate::ir::Type;
use crate::memory::Buffer;
use headstart_device::{Fill, Pattern};

/// The initial contents of a buffer.
pub(super) enum Initial {
    /// The bytes of a file. They are read each time: there may be gigabytes, and the process that gave them holds them, too.
    File(PathBuf),
    Fill(Fill),
}

/// Bytes that are copied to the GPU at a time.
const CHUNK: usize = 16 << 20;

impl Initial {
    pub(crate) fn of(contents: &Contents) -> Initial {
        Initial::Fill(match contents {
            Contents::File(path) => return Initial::File(path.clone()),
            Contents::Uninitialized => Fill::Uninitialized,
            Contents::Constant(bits) => Fill::Pattern(Pattern::Constant(*bits)),
            Contents::Steps { first, step } => Fill::Pattern(Pattern::Steps {
                first: *first,
                step: *step,
            }),
            Contents::Below { bound, seed } => Fill::Pattern(Pattern::Below {
                bound: *bound,
                seed: *seed,
            }),
            Contents::Fractions(low) => Fill::Pattern(Pattern::Fractions {
                low: f64::from_bits(*low),
            }),
            Contents::Bits(seed) => Fill::Pattern(Pattern::Bits { seed: *seed }),
        })
    }

    /// Whether the buffer is given nothing.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Initial::Fill(Fill::Uninitialized))
    }

    /// The bytes of `length` elements.
    ///
    /// # Errors
    /// The buffer is not possible, or the file has another size.
    pub(crate) fn check(&self, element: Type, length: u64) -> Result<u64, Failure> {
        let request = |what: String| Failure::new(FailureKind::Request, what);
        let check = |fill: &Fill| {
            fill.check(element, length)
                .map_err(|error| request(error.to_string()))
        };
        match self {
            Initial::Fill(fill) => check(fill),
            Initial::File(path) => {
                let bytes = check(&Fill::Uninitialized)?;
                let found = std::fs::metadata(path)
                    .map_err(|error| unreadable(path, &error))?
                    .len();
                match found == bytes {
                    true => Ok(bytes),
                    false => Err(request(format!(
                        "{} has {found} bytes, and the buffer {bytes}",
                        path.display()
                    ))),
                }
            }
        }
    }

    /// Puts the contents into the buffer's memory.
    pub(crate) fn put(
        &self,
        (gpu, target): (&Gpu, PtxTarget),
        memory: &mut Buffer,
        (element, length): (Type, u64),
        fills: &mut Fills,
    ) -> Result<(), Failure> {
        let path = match self {
            Initial::Fill(fill) => {
                return refill_with(gpu, target, memory, element, length, fill, Some(fills));
            }
            Initial::File(path) => path,
        };
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let bytes = length as usize * element.bytes() as usize;
        let mut chunk = vec![0; CHUNK.min(bytes)];
        let mut at = 0;
        while at < bytes {
            let part = CHUNK.min(bytes - at);
            let chunk = &mut chunk[..part];
            file.read_exact(chunk).map_err(|error| unreadable(path, &error))?;
            memory.write_at(at, chunk)?;
            at += part;
        }
        Ok(())
    }
}

/// The bytes of a file.
pub(super) fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        FailureKind::Request,
        format!("{} cannot be read: {error}", path.display()),
    )
}

/// A buffer's contents, with a file's bytes read.
#[doc(hidden)]
pub fn contents(contents: &Contents) -> Result<Fill, Failure> {
    match Initial::of(contents) {
        Initial::File(path) => Ok(Fill::Bytes(bytes_of(&path)?.into())),
        Initial::Fill(fill) => Ok(fill),
    }
}
