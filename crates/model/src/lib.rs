//! Device models: the resources and speeds of a device, as data with sources.
//!
//! ```
//! let model = headstart::model::find("h200", &["dram.latency=900".to_owned()])?;
//! assert_eq!(*model.core.count, 132);
//! // Every answer says that a number was changed.
//! assert_eq!(model.description().name, "sim:h200 --model dram.latency=900");
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! A model is a TOML file. Every number in it stands beside its source:
//!
//! ```toml
//! [dram]
//! latency = { value = 669, unit = "cycles", source = "measured: dependent loads over 1 GiB" }
//! ```
//!
//! [`find`] gives a built-in model by name or reads a user's file; `PATH=NUMBER` overrides change
//! single numbers. A [`DeviceModel`] that exists has been checked: its numbers are in range and do not
//! contradict each other. Numbers dereference to their values.
//!
//! A number is declared once, by a row of the table in `numbers.rs`, from which everything else follows.
//!
//! The occupancy rules are in [`occupancy`]; the simulator's memory hierarchy and timer read the rest.

mod card;
mod check;
mod core;
mod description;
#[doc(hidden)]
pub mod hint;
mod instruction;
mod listing;
mod load;
mod matrix;
mod memory;
mod numbers;
pub mod occupancy;
mod prefetch;
mod quantity;

// The crates below, by the names that all of Headstart has for them.
use headstart_ir::{Error, Result, files, ir, suggest};

use serde::Deserialize;

pub use self::core::{Core, Registers};
pub(crate) use self::core::{FixedRegisters, PooledRegisters};
pub use card::{Card, CopyDirection};
#[doc(hidden)]
pub use check::MOST_WAYS;
pub use description::Description;
#[doc(hidden)]
pub use description::too_wide_for_blocks;
pub use instruction::{InstructionTiming, Instructions};
pub use listing::{Listed, listing};
pub use load::{built_in, built_in_names, find, parse, read, text};
pub use matrix::Matrix;
pub(crate) use memory::InstructionCache;
pub use memory::{Dram, L1, L2, SharedMemory, Tlb};
pub use prefetch::{Prefetch, PrefetchForm, PrefetchInstruction, Reached};
pub use quantity::{Bytes, Count, Cycles, Quantity, Unit};

/// A device: its resources and speeds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceModel {
    /// As in `sim:NAME`.
    pub name: String,
    /// As its driver calls it, or the beginning of that: `NVIDIA H200`. A GPU with such a name has this model.
    pub title: String,
    /// Who makes it.
    pub vendor: Vendor,
    /// Where the numbers come from, and how far to trust them.
    pub(crate) notes: String,
    /// Its cores.
    pub core: Core,
    /// How the register file is shared out.
    pub registers: Registers,
    /// Shared memory.
    pub shared: SharedMemory,
    /// The cache of each core; none if global memory is cached by L2 alone.
    pub l1: Option<L1>,
    /// The cache of all cores.
    pub l2: L2,
    /// Device memory.
    pub dram: Dram,
    /// Address translation.
    pub tlb: Tlb,
    /// The instruction caches.
    pub instruction_cache: InstructionCache,
    /// Tensor cores.
    pub matrix: Matrix,
    /// Where prefetches go.
    pub prefetch: Prefetch,
    /// The link to the host, and the other devices on the card; none if it shares the host's memory.
    pub card: Option<Card>,
    /// Latency and rate of each class of instructions.
    pub instructions: Instructions,
    /// The numbers that differ from those of the model's file, as `--model` spells them: `dram.latency=900`.
    #[serde(skip)]
    pub changed: Vec<String>,
}

/// Who makes a device; it decides the machine instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// Intel.
    Intel,
}

/// Something that holds or does not, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Whether it holds.
    pub value: bool,
    /// How that is known.
    pub source: String,
}

impl DeviceModel {
    /// Nanoseconds of a number of cycles.
    pub fn nanoseconds(&self, cycles: f64) -> f64 {
        cycles * 1000.0 / *self.core.clock
    }

    /// How long all work-groups of a launch take to start, in nanoseconds, where they start one after the other.
    pub fn starts_ns(&self, groups: u64) -> Option<f64> {
        let starts = self.core.group_starts.as_ref()?;
        Some(self.nanoseconds(groups.saturating_sub(1) as f64 / **starts))
    }

    /// The device that is modelled, with the numbers that differ: `NVIDIA H200 with dram.latency=900`.
    pub fn modelled(&self) -> String {
        match &self.changed[..] {
            [] => self.title.clone(),
            changed => format!("{} with {}", self.title, changed.join(", ")),
        }
    }

    /// The simulated device, as launches are checked against it. Its name is that of the command line, changed numbers
    /// included: `sim:h200 --model dram.latency=900`.
    pub fn description(&self) -> Description {
        let most = *self.core.work_group_size;
        let changes = self.changed.iter().map(|change| format!(" --model {change}"));
        Description {
            name: format!("sim:{}{}", self.name, changes.collect::<String>()),
            title: format!("{} (simulated)", self.modelled()),
            cores: *self.core.count,
            max_group_size: most,
            // CUDA limits the third dimension to 64; OpenCL has no limit of its own.
            max_group_dimensions: match self.vendor {
                Vendor::Nvidia => [most, most, most.min(64)],
                Vendor::Intel => [most; 3],
            },
            sub_group_sizes: self.core.sub_group_sizes.to_vec(),
            default_sub_group_size: *self.core.sub_group_size,
            most_block_items: *self.core.block_items,
            max_shared_bytes: self.shared_per_group(),
            memory_bytes: *self.dram.size,
        }
    }
}
