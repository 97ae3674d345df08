//! A device's counters for a kernel.

use std::collections::BTreeMap;

/// Numbers by name, in the order of their names. Which there are depends on the device; two runs of the
/// same command on the simulator give the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    /// Operations executed, counted once for each active work-item.
    pub const OPERATIONS: &'static str = "operations";
    /// Bytes that loads and copies asked of global memory.
    pub const LOADED_BYTES: &'static str = "loaded bytes";
    /// Bytes that stores sent to global memory.
    pub const STORED_BYTES: &'static str = "stored bytes";

    /// The number of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Adds to a number, which starts at 0.
    #[doc(hidden)]
    pub fn add(&mut self, name: &'static str, amount: u64) {
        *self.0.entry(name).or_default() += amount;
    }

    /// Adds each number of another.
    #[doc(hidden)]
    pub fn merge(&mut self, other: &Counters) {
        for (&name, &amount) in &other.0 {
            self.add(name, amount);
        }
    }

    /// Every number with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(&name, &amount)| (name, amount))
    }
}
