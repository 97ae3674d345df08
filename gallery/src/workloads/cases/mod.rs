//! The cases of `headstart-lab bench --suite workloads`: each workload at its sizes and geometries.
//!
//! Every workload has a small case, one about as large as an H200's L2 cache, and one of several gigabytes. Those that cannot
//! have all three state the reason.

mod bags;
mod list;
#[cfg(test)]
mod tests;

use headstart::tune::Subject;
use headstart::{Error, Result};

use super::{bfs, hash_probe, pagerank, spmv};
use crate::kernels::{self, Chosen};
use crate::spatter::{Access, Trace};

pub use bags::COMBINATIONS;

/// One workload at one size.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The workload that it is a size of: the name that all of its sizes begin with.
    pub workload: &'static str,
    /// Settings of all geometries, as `--set` takes them.
    pub settings: Vec<String>,
    /// A trace for the indices.
    pub trace: Option<&'static str>,
    /// Kernels of the gallery, each with the settings of a geometry: the fastest plain one is compared.
    pub shapes: Vec<(&'static str, Vec<String>)>,
    /// Which bytes have to be moved.
    pub moves: Moves,
    /// Why the workload has no other sizes, if it has none.
    pub alone: Option<&'static str>,
}

/// Which bytes a workload has to move, to say which share of the bandwidth it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// Not given: caches decide.
    Unknown,
    /// All of its buffers, once.
    Buffers,
    /// The rows that an embedding bag's indices name, the indices, and the results.
    Rows,
}

/// Which combinations of the embedding bag's settings are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bags {
    /// Those that were chosen by hand, and as many more as it takes until any two values of two settings meet.
    #[default]
    Pairs,
    /// All [`COMBINATIONS`].
    All,
}

/// How large a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// At most 16 MB.
    Small,
    /// 30 to 80 MB: about an H200's L2 cache, which has 63.
    Middle,
    /// 2 GB or more.
    Large,
    /// None of these.
    Between,
}

impl Size {
    /// The size of this many bytes.
    pub fn of(bytes: u64) -> Size {
        match bytes {
            0..=16_000_000 => Size::Small,
            30_000_000..=80_000_000 => Size::Middle,
            2_000_000_000.. => Size::Large,
            _ => Size::Between,
        }
    }
}

/// Every case, in the order that they are measured.
pub fn all(bags: Bags) -> Vec<Case> {
    [bags::cases(bags), list::cases()].concat()
}

impl Case {
    fn new(name: &str, workload: &'static str, settings: &[&str]) -> Case {
        Case {
            name: name.to_owned(),
            workload,
            settings: settings.iter().map(ToString::to_string).collect(),
            trace: None,
            shapes: Vec::new(),
            moves: Moves::Unknown,
            alone: None,
        }
    }

    /// Tried with each of these settings, which stand apart by spaces.
    fn shaped<S: AsRef<str>>(mut self, kernel: &'static str, shapes: &[S]) -> Case {
        let words = |shape: &S| shape.as_ref().split_whitespace().map(str::to_owned).collect();
        self.shapes
            .extend(shapes.iter().map(|shape| (kernel, words(shape))));
        self
    }

    fn moving(self, moves: Moves) -> Case {
        Case { moves, ..self }
    }

    fn traced(self, trace: &'static str) -> Case {
        let alone = "a trace is as large as the application made it";
        Case {
            trace: Some(trace),
            ..self.alone(alone)
        }
    }

    fn alone(self, why: &'static str) -> Case {
        Case {
            alone: Some(why),
            ..self
        }
    }

    /// Whether it is a control, for which no plan should be chosen: the others are compared with the programs of `peers/`.
    pub fn is_control(&self) -> bool {
        self.workload.starts_with("control")
    }

    /// One of its kernels with the settings of a geometry.
    ///
    /// # Errors
    /// There is no such kernel, setting or trace.
    pub fn chosen(&self, kernel: &str, shape: &[String]) -> Result<Chosen> {
        let kernel = kernels::find(kernel)?;
        let access = kernel.takes_trace.unwrap_or(Access::Gather);
        let trace = self
            .trace
            .map(|trace| Trace::open(trace)?.entry(access, None).cloned());
        kernel.with(&[&self.settings, shape].concat(), trace.transpose()?)
    }

    /// Bytes of its buffers, without generating their contents. It omits less than a thirtieth, which depends on the geometry
    /// or on the progress of a search.
    ///
    /// # Errors
    /// The settings are out of a kernel's range.
    pub fn bytes(&self) -> Result<u64> {
        let (kernel, shape) = self
            .shapes
            .first()
            .ok_or_else(|| Error::bug("a case without geometries"))?;
        let chosen = self.chosen(kernel, shape)?;
        Ok(match *kernel {
            "spmv" => spmv::bytes(chosen.settings()),
            "bfs" => bfs::bytes(chosen.settings()),
            "pagerank" => pagerank::bytes(chosen.settings()),
            "hash-probe" => hash_probe::bytes(chosen.settings()),
            _ => chosen.workload()?.bytes(),
        })
    }
}
