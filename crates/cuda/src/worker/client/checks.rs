//! Requests to a worker that check kernels against one whose outputs it keeps.

use std::time::Duration;

use super::{PATIENCE, Worker, unexpected};
use crate::compare::Difference;
use crate::failure::{Failure, FailureKind};
use crate::worker::{Piece, Reply, Request, Whose};

/// The outcome of the launches whose outputs are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Referred {
    /// The first launch's time on the GPU, in nanoseconds.
    pub elapsed_ns: f64,
    /// The inputs that it wrote, by their place among the arguments.
    pub wrote: Vec<usize>,
    /// How each output of a second launch differs, whose outputs held other bytes before.
    pub other_poison: Vec<Difference>,
    /// If one does: how those of a third launch differ, whose outputs had the same initial bytes as the first one's.
    pub same_poison: Option<Vec<Difference>>,
    /// Whether each buffer ended at a page that is not mapped.
    pub guarded: bool,
}

/// The outcome of a launch that was compared with the kept outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// Its time on the GPU, in nanoseconds.
    pub elapsed_ns: f64,
    /// The inputs that it wrote, by their place among the arguments.
    pub wrote: Vec<usize>,
    /// How each output differs.
    pub differences: Vec<Difference>,
}

impl Worker {
    /// Launches a module twice, on restored inputs and outputs with different initial bytes, and keeps the first launch's
    /// outputs on the GPU. A new worker launches it again.
    ///
    /// # Errors
    /// The kernel faulted or ran too long, or there is no memory for the copy.
    #[doc(hidden)]
    pub fn refer(&mut self, module: &str, limit: Duration) -> Result<Referred, Failure> {
        self.referred = None;
        let request = Request::Refer {
            module: module.to_owned(),
            limit,
        };
        match self.request(&request, PATIENCE + limit * 3)? {
            Reply::Referred {
                elapsed_ns,
                wrote,
                other_poison,
                same_poison,
                guarded,
            } => {
                self.referred = Some((module.to_owned(), limit));
                Ok(Referred {
                    elapsed_ns,
                    wrote,
                    other_poison,
                    same_poison,
                    guarded,
                })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Launches a module on restored inputs and outputs that hold one of the poisons (`POISONS`), and compares its outputs on
    /// the GPU with those kept.
    ///
    /// # Errors
    /// The kernel faulted or ran too long, or nothing is kept.
    pub fn verify(&mut self, module: &str, limit: Duration, poison: usize) -> Result<Verified, Failure> {
        let request = Request::Verify {
            module: module.to_owned(),
            limit,
            poison,
        };
        match self.request(&request, PATIENCE + limit)? {
            Reply::Verified {
                elapsed_ns,
                wrote,
                differences,
            } => Ok(Verified {
                elapsed_ns,
                wrote,
                differences,
            }),
            other => Err(unexpected(&other)),
        }
    }

    /// Launches a module on its last launch's outputs: how each output differs from the one kept.
    ///
    /// # Errors
    /// The kernel faulted or ran too long, or nothing is kept.
    pub fn again(&mut self, module: &str, limit: Duration) -> Result<Vec<Difference>, Failure> {
        let request = Request::Again {
            module: module.to_owned(),
            limit,
        };
        match self.request(&request, PATIENCE + limit)? {
            Reply::Verified { differences, .. } => Ok(differences),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads pieces of the kept outputs, or of the last launch's, concatenated.
    ///
    /// # Errors
    /// There is no such piece, or the worker was lost.
    pub fn fetch(&mut self, whose: Whose, pieces: &[Piece]) -> Result<Vec<u8>, Failure> {
        let file = self.folder.path().join("pieces");
        let request = Request::Fetch {
            whose,
            pieces: pieces.to_vec(),
            file: file.clone(),
        };
        match self.request(&request, PATIENCE)? {
            Reply::Fetched => {
                let bytes = std::fs::read(&file).map_err(|error| {
                    Failure::new(
                        FailureKind::Worker,
                        format!("{} cannot be read: {error}", file.display()),
                    )
                });
                let _ = std::fs::remove_file(&file);
                bytes
            }
            other => Err(unexpected(&other)),
        }
    }
}
