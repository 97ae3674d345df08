//! Devices of OpenCL, Intel's GPUs among them: `opencl:N`.

pub mod bench;

use serde_json::{Map, Value, json};

use super::{Kind, KnownDevice, Opening, Reaches, counts_no_steps};
use crate::back::spirv;
use crate::device::opencl::platform::{OpenClFacts, count, facts};
use crate::device::{CacheState, Description};
use crate::error::{Error, Result};
use crate::ir::CacheLevel;
use crate::report::terms::Terms;
use crate::tune::bench::Bench;
use bench::OpenClBench;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "opencl",
    number: "N",
    has_worker: false,
    find: |number, overrides| {
        KIND.has_no_model(number, overrides)?;
        Ok(Box::new(facts(KIND.ordinal(number, "device")?)?))
    },
    here: || {
        let all =
            (0..count().unwrap_or(0)).map(|ordinal| Ok(Box::new(facts(ordinal)?) as Box<dyn KnownDevice>));
        all.collect()
    },
};

impl KnownDevice for OpenClFacts {
    fn description(&self) -> Description {
        self.description()
    }

    fn terms(&self) -> Terms {
        Terms::Sycl
    }

    fn facts(&self) -> Map<String, Value> {
        let facts = [("driver", json!(self.driver)), ("spirv", json!(self.spirv))];
        facts
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
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

    fn spirv_target(&self) -> Option<spirv::Target> {
        Some(self.target())
    }
}
