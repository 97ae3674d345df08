//! Simulated devices: `sim:NAME`, or a model file.

pub(crate) mod bench;

use serde_json::{Map, Value, json};

use super::{DeviceKind, KnownDevice, Opening, Reaches, named};
use crate::back::{ptx, spirv};
use crate::device::Description;
use crate::error::Result;
use crate::model::{self, DeviceModel, PrefetchInstruction, Reached, Registers, Vendor};
use crate::report::terms::Terms;
use crate::tune::bench::Bench;
use crate::tune::subject::workload::Workload;
use bench::SimulatedBench;

/// The kind.
pub(super) const KIND: DeviceKind = DeviceKind {
    name: "sim",
    number: "NAME",
    has_worker: false,
    find: |name, overrides| {
        // A device's own name says which numbers were changed: `h200 --model dram.latency=900`.
        let mut parts = name.split(" --model ");
        let bare = parts.next().unwrap_or_default();
        let changed: Vec<String> = parts
            .map(str::to_owned)
            .chain(overrides.iter().cloned())
            .collect();
        Ok(Box::new(model::find(bare, &changed)?))
    },
    here: || {
        let all = model::built_in_names()
            .map(|name| Ok(Box::new(model::built_in(name, &[])?) as Box<dyn KnownDevice>));
        all.collect()
    },
};

impl KnownDevice for DeviceModel {
    fn description(&self) -> Description {
        self.description()
    }

    fn terms(&self) -> Terms {
        match self.vendor {
            Vendor::Nvidia => Terms::Cuda,
            Vendor::Intel => Terms::Sycl,
        }
    }

    fn facts(&self) -> Map<String, Value> {
        named([
            ("bandwidth_gb_s", json!(*self.dram.bandwidth)),
            (
                super::ASYNCHRONOUS_COPIES,
                json!(self.shared.asynchronous_copies.value),
            ),
        ])
    }

    fn reaches(&self) -> Vec<Reaches> {
        let row = |(asked, form): (_, &model::PrefetchForm)| Reaches {
            asked,
            reached: match form.reaches {
                Reached::L1 => Some("L1".to_owned()),
                Reached::L2 => Some(self.l2.name.clone()),
                Reached::Nothing => None,
            },
            by: match form.by {
                PrefetchInstruction::Hint => "the prefetch instruction",
                PrefetchInstruction::ScratchCopy => "an asynchronous copy to a scratch word",
                PrefetchInstruction::Nothing => "nothing",
            },
            because: Some(("source", form.source.clone())),
        };
        self.prefetch.levels().map(row).collect()
    }

    fn bench(&self, opening: &Opening) -> Result<Box<dyn Bench>> {
        let bench = SimulatedBench::new(self.clone())
            .with_cache(opening.cache)
            .with_stop(opening.stop);
        Ok(Box::new(match opening.max_steps {
            Some(limit) => bench.with_operation_limit(limit),
            None => bench,
        }))
    }

    fn model(&self) -> Option<&DeviceModel> {
        Some(self)
    }

    fn ptx_target(&self) -> Option<ptx::PtxTarget> {
        ptx::PtxTarget::for_model(self)
    }

    fn spirv_target(&self) -> Option<spirv::SpirvTarget> {
        match self.vendor {
            Vendor::Nvidia => None,
            // A device without a prefetch that does anything is one of those before the Max series.
            Vendor::Intel => Some(match self.prefetch.l1.reaches {
                Reached::Nothing => spirv::SpirvTarget::IntelOlder,
                _ => spirv::SpirvTarget::IntelLsc,
            }),
        }
    }

    fn block_access(&self) -> spirv::BlockAccess {
        match self.vendor {
            Vendor::Nvidia => spirv::BlockAccess::default(),
            Vendor::Intel => spirv::BlockAccess {
                most_items: *self.core.block_items,
                ..spirv::BlockAccess::ALL
            },
        }
    }

    fn groups_promised(&self, workload: &Workload) -> Option<u32> {
        match &self.registers {
            Registers::Pooled(registers) => workload.groups_promised(*self.core.count, *registers.per_core),
            Registers::Fixed(_) => None,
        }
    }
}
