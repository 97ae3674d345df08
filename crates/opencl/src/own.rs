//! A module of the user's own on an OpenCL device: its entry is launched as it was written.
//!
//! The IR's kernel has a parameter for each number and pointer; the entry that it was read from may take several of them as
//! a vector or a structure, and memory of the work-group.

use super::context::KernelArgument;
use crate::error::{Error, Result};
use headstart_device::Argument;

/// The argument of one of an entry's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The argument of a parameter of the kernel, by its number.
    Whole(usize),
    /// A vector or a structure.
    Parts {
        /// Its size in bytes.
        bytes: usize,
        /// Where parameters of the kernel start in it, in bytes, and their numbers.
        parts: Vec<(usize, usize)>,
    },
    /// This many bytes of memory of the work-group.
    Local(usize),
}

/// An entry of a module, as its author wrote it.
#[derive(Clone, Debug)]
pub struct OwnEntry {
    /// The module, as files hold it.
    pub module: Vec<u8>,
    /// The entry's name.
    pub entry: String,
    /// The argument.
    pub passed: Vec<Passed>,
}

impl OwnEntry {
    /// The arguments of the entry, where the kernel would get `given` for `arguments`.
    pub(super) fn pass<'m>(
        &self,
        given: &[KernelArgument<'m>],
        arguments: &[Argument],
    ) -> Result<Vec<KernelArgument<'m>>> {
        let lost = || Error::bug("an argument of an entry is lost");
        let passed = self.passed.iter().map(|passed| match passed {
            Passed::Whole(number) => given.get(*number).cloned().ok_or_else(lost),
            Passed::Local(bytes) => Ok(KernelArgument::Local(*bytes)),
            Passed::Parts { bytes, parts } => {
                let mut whole = vec![0; *bytes];
                for &(start, number) in parts {
                    let Some(Argument::Scalar(ty, bits)) = arguments.get(number) else {
                        return Err(Error::device("OpenCL passes no structures with pointers inside")
                            .accepted("numbers in structures, and pointers as parameters of their own"));
                    };
                    let end = start + ty.bytes() as usize;
                    let place = whole.get_mut(start..end).ok_or_else(lost)?;
                    place.copy_from_slice(&bits.to_le_bytes()[..ty.bytes() as usize]);
                }
                Ok(KernelArgument::Bytes(whole))
            }
        });
        passed.collect()
    }
}
