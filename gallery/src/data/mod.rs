//! Data for the gallery's kernels: the form of buffers, and data that are built once and used by many workloads.

pub mod graph;
pub mod matrix;
pub mod skew;

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use headstart::device::{Fill, Pattern};
use headstart::ir::Type;
use headstart::report::number::grouped;
use headstart::tune::{ArgumentSpec, Compare};
use headstart::{Error, Result};
use rayon::prelude::*;

/// An input that holds a function of the index.
pub(crate) fn input(element: Type, length: u64, pattern: Pattern) -> ArgumentSpec {
    ArgumentSpec::input(element, length, Fill::Pattern(pattern))
}

/// An input of floats from 1 to 2.
pub(crate) fn fractions(element: Type, length: u64) -> ArgumentSpec {
    input(element, length, Pattern::Fractions { low: 1.0 })
}

/// An input of integers whose function has no closed form.
pub(crate) fn computed(
    element: Type,
    length: u64,
    of: impl Fn(u64) -> u64 + Send + Sync + 'static,
) -> ArgumentSpec {
    input(element, length, Pattern::Function(Arc::new(of)))
}

/// The same, with a name that includes everything on which it depends, so that a copy can be recognised.
pub(crate) fn computed_as(
    name: &str,
    element: Type,
    length: u64,
    of: impl Fn(u64) -> u64 + Send + Sync + 'static,
) -> ArgumentSpec {
    let function = kept(name, || Arc::new(of) as Arc<dyn Fn(u64) -> u64 + Send + Sync>);
    input(element, length, Pattern::Function(Arc::clone(&function)))
}

/// An input of 32-bit integers.
pub(crate) fn words(values: &Words) -> ArgumentSpec {
    ArgumentSpec::Input {
        element: Type::I32,
        length: values.0.len() as u64 / 4,
        fill: Fill::Bytes(Arc::clone(&values.0)),
    }
}

/// An output that holds nothing before the kernel writes it, compared by its bits.
pub(crate) fn output(element: Type, length: u64) -> ArgumentSpec {
    ArgumentSpec::output(element, length, Fill::Uninitialized, Compare::Bits)
}

/// An output that holds zeros before, compared by its bits.
pub(crate) fn zeroed(element: Type, length: u64) -> ArgumentSpec {
    ArgumentSpec::Output {
        element,
        length,
        fill: Fill::Pattern(Pattern::Constant(0)),
        compare: Compare::Bits,
    }
}

/// A number of things that the kernels count in 32 bits.
///
/// # Errors
/// There are more.
pub(crate) fn counted(count: u64, what: &str) -> Result<u32> {
    u32::try_from(count).map_err(|_| {
        Error::usage(format!(
            "there are {} {what}, which the kernel counts in 32 bits",
            grouped(count)
        ))
        .accepted(format!("up to {}", grouped(u64::from(u32::MAX))))
    })
}

/// A 32-bit scalar.
pub(crate) fn scalar(value: u32) -> ArgumentSpec {
    ArgumentSpec::Scalar(Type::I32, u64::from(value))
}

/// 32-bit integers as a buffer holds them, shared by all workloads that read them.
#[derive(Clone, Debug)]
pub struct Words(Arc<[u8]>);

impl Words {
    /// The bytes of these integers; at least one of them, for buffers are not empty.
    pub fn new(values: &[u32]) -> Words {
        let values = if values.is_empty() { &[0] } else { values };
        let mut bytes = Vec::with_capacity(values.len() * 4);
        values
            .iter()
            .for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        Words(bytes.into())
    }

    /// This many integers that `fill` writes where they stay: large data are there once. They are zero before.
    pub(crate) fn filled(length: usize, fill: impl FnOnce(&mut [[u8; 4]])) -> Words {
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length.max(1) * 4).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            fill(&mut bytes.as_chunks_mut().0[..length]);
        }
        Words(bytes)
    }

    /// The integers of many rows one after the other, made on all cores: `starts` has the start of each row, and the end of the
    /// last one; `row` writes the integers of one.
    pub(crate) fn in_rows(starts: &[u32], row: impl Fn(u32, &mut Vec<u32>) + Sync) -> Words {
        let length = starts.last().map_or(0, |&end| end as usize);
        Words::filled(length, |all| {
            parts_of_rows(starts, all)
                .into_par_iter()
                .for_each(|(rows, part)| {
                    let mut own = Vec::new();
                    let mut at = 0;
                    for number in rows {
                        own.clear();
                        row(number as u32, &mut own);
                        for value in &own {
                            part[at] = value.to_le_bytes();
                            at += 1;
                        }
                    }
                    assert_eq!(at, part.len(), "rows are as long as was said");
                });
        })
    }

    /// The integer at a place.
    pub fn get(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.0.as_chunks().0[index])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len() / 4
    }

    /// Whether there are none; there never are.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The integers, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.as_chunks().0.iter().copied().map(u32::from_le_bytes)
    }
}

/// Rows one after the other, in parts that cores can work on side by side: the numbers of each part's rows, and their elements.
/// `starts` has the start of each row, and the end of the last one.
pub(crate) fn parts_of_rows<'a, T>(starts: &[u32], all: &'a mut [T]) -> Vec<(Range<usize>, &'a mut [T])> {
    let rows = starts.len().saturating_sub(1);
    let mut parts = Vec::with_capacity(rows.div_ceil(ROWS_OF_PART));
    let mut rest = all;
    for first in (0..rows).step_by(ROWS_OF_PART) {
        let end = (first + ROWS_OF_PART).min(rows);
        let (part, after) = rest.split_at_mut((starts[end] - starts[first]) as usize);
        parts.push((first..end, part));
        rest = after;
    }
    parts
}

/// Rows of a part.
const ROWS_OF_PART: usize = 1 << 12;

/// Data sets that are kept: checks and benchmarks ask for the same ones again and again.
const KEPT: usize = 4;

/// The data sets that are kept. Which one to forget goes by GreedyDual (Young, 1994): that with the least time to build, counted
/// from how much others were worth when they had to go. Checks build many small sets, one after the other, and a search asks for
/// its large one again afterwards.
struct Sets {
    kept: Vec<Set>,
    /// The worth of the last one that was forgotten.
    forgotten: Duration,
}

struct Set {
    name: String,
    data: Arc<dyn Any + Send + Sync>,
    took: Duration,
    worth: Duration,
}

impl Sets {
    const fn new() -> Sets {
        Sets {
            kept: Vec::new(),
            forgotten: Duration::ZERO,
        }
    }

    fn find(&mut self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        let set = self.kept.iter_mut().find(|set| set.name == name)?;
        set.worth = self.forgotten + set.took;
        Some(Arc::clone(&set.data))
    }

    fn keep(&mut self, name: &str, data: Arc<dyn Any + Send + Sync>, took: Duration) {
        if self.kept.len() == KEPT
            && let Some((least, _)) = self.kept.iter().enumerate().min_by_key(|(_, set)| set.worth)
        {
            self.forgotten = self.kept.remove(least).worth;
        }
        self.kept.push(Set {
            name: name.to_owned(),
            data,
            took,
            worth: self.forgotten + took,
        });
    }
}

/// A data set by its name, with everything that it depends on in the name: built when it is first asked for.
pub(crate) fn kept<T: Send + Sync + 'static>(name: &str, build: impl FnOnce() -> T) -> Arc<T> {
    static SETS: Mutex<Sets> = Mutex::new(Sets::new());
    let sets = || SETS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = sets().find(name).and_then(|data| data.downcast::<T>().ok()) {
        return found;
    }
    let start = Instant::now();
    let built = Arc::new(build());
    sets().keep(name, built.clone(), start.elapsed());
    built
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_takes_long_to_build_outlasts_many_small_ones() {
        let mut sets = Sets::new();
        let second = Duration::from_secs(1);
        sets.keep("large", Arc::new(0), 30 * second);
        for small in 0..20 {
            sets.keep(&small.to_string(), Arc::new(small), second);
        }
        assert!(sets.find("large").is_some() && sets.find("19").is_some());
        assert!(sets.find("0").is_none());
        // What is not used any more goes in the end.
        for small in 0..200 {
            sets.keep(&format!("later {small}"), Arc::new(small), second);
        }
        assert!(sets.find("large").is_none());
    }
}
