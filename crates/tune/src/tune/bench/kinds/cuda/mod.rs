//! NVIDIA's GPUs: `cuda:N`.

pub mod gpu;
pub mod measured;

use serde_json::{Map, Value, json};

use super::{DeviceKind, KnownDevice, Opening, Reaches, counts_no_steps, named, numbered};
use crate::back::ptx;
use crate::device::Description;
use crate::device::cuda::device::describe;
use crate::device::cuda::gpu::{GpuFacts, count, facts};
use crate::error::{Error, Result};
use crate::ir::CacheLevel;
use crate::report::terms::Terms;
use crate::tune::bench::Bench;
use crate::tune::subject::workload::Workload;
use measured::MeasuredBench;

/// The kind.
pub(super) const KIND: DeviceKind = DeviceKind {
    name: "cuda",
    number: "N",
    has_worker: true,
    find: |number, overrides| {
        KIND.has_no_model(number, overrides)?;
        Ok(Box::new(facts(KIND.ordinal(number, "a GPU")?)?))
    },
    // Without a driver there are none; `--device cuda:0` says why.
    here: || numbered(count().unwrap_or(0), |ordinal| Ok(facts(ordinal)?)),
};

impl KnownDevice for GpuFacts {
    fn description(&self) -> Description {
        describe(self)
    }

    fn terms(&self) -> Terms {
        Terms::Cuda
    }

    fn facts(&self) -> Map<String, Value> {
        named([
            ("l2_bytes", json!(self.l2_bytes)),
            ("driver", json!(self.driver)),
            ("capability", json!(self.capability)),
            (super::ASYNCHRONOUS_COPIES, json!(self.capability >= (8, 0))),
        ])
    }

    fn reaches(&self) -> Vec<Reaches> {
        let row = |asked| {
            let (reached, by) = ptx::reached(asked);
            Reaches {
                asked,
                reached: Some(reached.name().to_owned()),
                by,
                because: None,
            }
        };
        CacheLevel::ALL.iter().copied().map(row).collect()
    }

    fn bench(&self, opening: &Opening) -> Result<Box<dyn Bench>> {
        counts_no_steps(&self.description().name, opening)?;
        let (program, arguments) = &opening.worker;
        let started = MeasuredBench::start(program, arguments, self.ordinal);
        let bench = started.map_err(|error: Error| {
            error.or_accepted("the `headstart` command in PATH: it tries plans in processes of its own")
        })?;
        Ok(Box::new(bench.with_cache(opening.cache)))
    }

    fn gpu(&self) -> Option<&GpuFacts> {
        Some(self)
    }

    fn ptx_target(&self) -> Option<ptx::PtxTarget> {
        ptx::PtxTarget::for_capability(self.capability)
    }

    fn groups_promised(&self, workload: &Workload) -> Option<u32> {
        workload.groups_promised(self.cores, self.registers_per_core)
    }
}
