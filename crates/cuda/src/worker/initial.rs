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
    /// The bytes of a file.
    File(FileContents),
    Fill(Fill),
}

/// The contents of a file. What is put back again and again lies on the GPU, too, where that has room: a captured launch of 63 MB
/// was timed for 4 s, and 3 of them went into reading.
pub(super) struct FileContents {
    path: PathBuf,
    was_put: bool,
    copy: Option<Buffer>,
}

/// Bytes that are copied to the GPU at a time.
const CHUNK: usize = 16 << 20;

/// A copy takes at most one part in this many of the GPU's free memory. By choice: checks keep a kernel's outputs there as well.
const PARTS: u64 = 4;

impl Initial {
    pub(crate) fn of(contents: &Contents) -> Initial {
        Initial::Fill(match contents {
            Contents::File(path) => {
                return Initial::File(FileContents {
                    path: path.clone(),
                    was_put: false,
                    copy: None,
                });
            }
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
            Initial::File(FileContents { path, .. }) => {
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
        &mut self,
        (gpu, target): (&Gpu, PtxTarget),
        memory: &mut Buffer,
        (element, length): (Type, u64),
        fills: &mut Fills,
    ) -> Result<(), Failure> {
        match self {
            Initial::Fill(fill) => refill_with(gpu, target, memory, element, length, fill, Some(fills)),
            Initial::File(file) => file.put(gpu, memory),
        }
    }
}

impl FileContents {
    fn put(&mut self, gpu: &Gpu, memory: &mut Buffer) -> Result<(), Failure> {
        if let Some(copy) = &self.copy {
            return memory.copy_from(copy);
        }
        let path = &self.path;
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let bytes = memory.bytes();
        let mut chunk = vec![0; CHUNK.min(bytes)];
        let mut at = 0;
        while at < bytes {
            let part = CHUNK.min(bytes - at);
            let chunk = &mut chunk[..part];
            file.read_exact(chunk).map_err(|error| unreadable(path, &error))?;
            memory.write_at(at, chunk)?;
            at += part;
        }
        let is_again = std::mem::replace(&mut self.was_put, true);
        if is_again && gpu.free_bytes()? / PARTS > bytes as u64 {
            let mut copy = gpu.allocate(bytes)?;
            copy.copy_from(memory)?;
            self.copy = Some(copy);
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
        Initial::File(file) => Ok(Fill::Bytes(bytes_of(&file.path)?.into())),
        Initial::Fill(fill) => Ok(fill),
    }
}
