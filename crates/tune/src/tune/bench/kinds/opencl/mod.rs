//! OpenCL devices, including Intel's GPUs: `opencl:N`.

pub(crate) mod bench;

use serde_json::{Map, Value, json};

use super::{DeviceKind, KnownDevice, Opening, Reaches, counts_no_steps, named, numbered};
use crate::back::spirv;
#[doc(hidden)]
pub use crate::device::opencl::own::{OwnEntry, Passed};
use crate::device::opencl::platform::{OpenClFacts, count, facts};
use crate::device::{CacheState, Description};
use crate::error::{Error, Result};
use crate::front::spirv::{Argument, Original};
use crate::ir::CacheLevel;
use crate::report::terms::Terms;
use crate::tune::bench::Bench;
use bench::OpenClBench;

/// The kind.
pub(super) const KIND: DeviceKind = DeviceKind {
    name: "opencl",
    number: "N",
    has_worker: false,
    find: |number, overrides| {
        KIND.has_no_model(number, overrides)?;
        Ok(Box::new(facts(KIND.ordinal(number, "a device")?)?))
    },
    here: || numbered(count().unwrap_or(0), facts),
};

impl KnownDevice for OpenClFacts {
    fn description(&self) -> Description {
        self.description()
    }

    fn terms(&self) -> Terms {
        Terms::Sycl
    }

    fn facts(&self) -> Map<String, Value> {
        named([
            ("driver", json!(self.driver)),
            ("spirv", json!(self.spirv)),
            (super::ASYNCHRONOUS_COPIES, json!(false)),
        ])
    }

    fn reaches(&self) -> Vec<Reaches> {
        let row = |asked| {
            let (reached, by, why) = spirv::reached(self.target(), asked);
            Reaches {
                asked,
                reached: reached.map(|level| level.name().to_owned()),
                by,
                because: Some(("why", why.to_owned())),
            }
        };
        CacheLevel::ALL.iter().copied().map(row).collect()
    }

    fn bench(&self, opening: &Opening) -> Result<Box<dyn Bench>> {
        let name = self.description().name;
        counts_no_steps(&name, opening)?;
        if opening.cache != CacheState::Kept {
            return Err(Error::usage(format!(
                "`--l2 flushed` empties a cache, and {name} has no way to"
            ))
            .accepted("`--l2 kept`"));
        }
        Ok(Box::new(OpenClBench::open(self.ordinal)?))
    }

    fn block_access(&self) -> spirv::BlockAccess {
        self.block_access
    }

    fn opencl(&self) -> Option<&OpenClFacts> {
        Some(self)
    }

    fn spirv_target(&self) -> Option<spirv::SpirvTarget> {
        Some(self.target())
    }
}

/// An entry as a module has it, to be launched on an OpenCL device: the module that it was read from, or one in which it was
/// exchanged.
pub fn own_entry(original: &Original, words: &[u32]) -> OwnEntry {
    let passed = original.arguments.iter().map(|argument| match argument {
        Argument::Whole(number) => Passed::Whole(*number),
        Argument::Local(bytes) => Passed::Local(*bytes as usize),
        Argument::Parts { bytes, parts } => Passed::Parts {
            bytes: *bytes as usize,
            parts: parts
                .iter()
                .map(|&(start, number)| (start as usize, number))
                .collect(),
        },
    });
    OwnEntry {
        module: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        entry: original.entry.clone(),
        passed: passed.collect(),
    }
}
