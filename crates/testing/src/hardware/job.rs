//! What a worker on the GPU is given, and what it says: lines of JSON, and two files of bytes.
//!
//! All arrays of a launch lie in one piece of memory, an arena, with bytes between them that nothing writes: it goes to the
//! GPU and comes back in one copy, and a store that leads elsewhere is seen.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::device::cuda::gpu::GpuFacts;

/// Entries to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Machine code, or PTX for the driver's compiler.
    pub images: Vec<PathBuf>,
    /// The arenas as launches find them.
    pub data: PathBuf,
    /// Gets the arenas as the first image of each trial leaves them, at the same places.
    pub results: PathBuf,
    /// What is run.
    pub trials: Vec<Trial>,
}

/// An entry in several images, under several launches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// Its place in the caller's list.
    pub number: usize,
    /// The entry's name.
    pub entry: String,
    /// Work-groups.
    pub groups: u32,
    /// Work-items of a work-group.
    pub group: u32,
    /// The images that have it, by number; the others are compared with the first.
    pub images: Vec<usize>,
    /// The launches.
    pub launches: Vec<Arena>,
}

/// The memory of a launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Arena {
    /// Where it lies in the files.
    pub at: u64,
    /// Its size.
    pub bytes: u64,
    /// The arguments.
    pub arguments: Vec<Passed>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Passed {
    /// The address of a byte of the arena.
    Address(u64),
    /// A number's bytes.
    Number(Vec<u8>),
}

/// A line of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The GPU that it has.
    Opened(GpuFacts),
    /// It has none.
    NoGpu(String),
    /// An image cannot be loaded, or lacks an entry.
    NotLoaded {
        /// Which image.
        image: usize,
        /// The driver's words.
        why: String,
    },
    /// A trial is over.
    Done {
        /// Which.
        number: usize,
        /// The first image ran under all launches.
        ran: bool,
        /// For each image but the first the outcome of each launch.
        images: Vec<(usize, Vec<Ran>)>,
    },
    /// The context is lost, and the worker ends.
    Lost {
        /// In which trial.
        number: usize,
        /// In which image.
        image: usize,
        /// In which launch.
        launch: usize,
        /// The driver's words.
        why: String,
    },
    /// The job is over.
    Over,
}

/// What came of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ran {
    /// The same bits.
    Same,
    /// Others.
    Differs {
        /// The first byte of the arena that differs.
        at: u64,
        /// How many do.
        bytes: u64,
        /// Bytes from there on as they are, and as the first image leaves them.
        found: Vec<u8>,
        /// As the first image leaves them.
        wanted: Vec<u8>,
        /// The first image, run again, leaves the same as before.
        steady: bool,
    },
    /// The driver refuses the launch, and goes on.
    Refused(String),
}
