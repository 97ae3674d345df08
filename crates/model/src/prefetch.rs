//! Where prefetches really go: asked level → level reached.

use std::fmt;

use serde::Deserialize;

use super::DeviceModel;
use super::Vendor;
use super::hint::{Form, HintReached, asked, cost};
use super::numbers::numbers;
use super::quantity::{Bytes, PerCycle, Quantity};
use crate::ir::{CacheLevel, HintSource, Kernel, LscControl, OpKind, PrefetchScope};

numbers! {
    /// The effects of prefetching on a device.
    pub struct Prefetch in "prefetch" {
        /// The effect of a prefetch to level 1.
        l1: PrefetchForm;
        /// The effect of a prefetch to level 2.
        l2: PrefetchForm;
        /// The effect of a prefetch to level 3.
        l3: PrefetchForm;
        /// The effect of a prefetch to level 4.
        l4: PrefetchForm;
        /// The effect of the device's own hint for level 1, if `l1` uses another instruction, or none is better: imported code
        /// contains it.
        l1_hint: PrefetchForm;
        /// Bytes that a hint fetches, aligned to that size.
        fetch: Quantity<Bytes> [power_of_two];
        /// Lines that hints ask L2 for in a cycle, all cores together.
        lines_per_cycle: Quantity<PerCycle>;
    }
}

/// An instruction for prefetching, and the cache that it fills.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrefetchForm {
    /// The nearest cache that it fills.
    pub reaches: Reached,
    /// The instruction that does it best.
    pub by: PrefetchInstruction,
    /// How that is known.
    pub source: String,
}

/// The cache that a prefetch fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reached {
    /// The core's own.
    L1,
    /// The one that all cores share.
    L2,
    /// None: the prefetch does nothing.
    Nothing,
}

/// The instruction that carries a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchInstruction {
    /// The device's prefetch instruction.
    Hint,
    /// An asynchronous copy to a scratch word of the work-item's own in shared memory.
    ScratchCopy,
    /// None: the prefetch is left out.
    Nothing,
}

impl Prefetch {
    /// The effect of a prefetch to a level.
    pub fn at(&self, level: CacheLevel) -> &PrefetchForm {
        match level {
            CacheLevel::L1 => &self.l1,
            CacheLevel::L2 => &self.l2,
            CacheLevel::L3 => &self.l3,
            CacheLevel::L4 => &self.l4,
        }
    }

    /// Every level with its form, for tables.
    pub fn levels(&self) -> impl Iterator<Item = (CacheLevel, &PrefetchForm)> {
        CacheLevel::ALL.iter().map(|&level| (level, self.at(level)))
    }
}

impl DeviceModel {
    /// The outcome of each prefetch of a kernel, in the order in which they stand there.
    pub fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        let form = match self.vendor {
            Vendor::Nvidia => Form::nvidia(true),
            Vendor::Intel => Form::intel(*self.core.sub_group_size),
        };
        let has_any = self
            .prefetch
            .levels()
            .any(|(_, level)| level.by != PrefetchInstruction::Nothing);
        let form = Form { has_any, ..form };
        let mut hints: Vec<HintReached> = Vec::new();
        kernel.body.walk(&mut |op| {
            let OpKind::Prefetch {
                hint, source, scope, ..
            } = &op.kind
            else {
                return;
            };
            let level = self.prefetch.at(hint.level);
            let reached = match level.reaches {
                _ if !source.fills() => None,
                Reached::Nothing => None,
                Reached::L1 => Some(CacheLevel::L1),
                // The cache of all cores has the name that its maker gives it.
                Reached::L2 if self.l2.name == "L3" => Some(CacheLevel::L3),
                Reached::L2 => Some(CacheLevel::L2),
            };
            let by = match level.by {
                _ if reached.is_none() => "nothing",
                PrefetchInstruction::Nothing => "nothing",
                PrefetchInstruction::ScratchCopy => "a copy to a scratch word",
                PrefetchInstruction::Hint if *scope == PrefetchScope::Bulk && form.has_bulk => {
                    "a bulk prefetch"
                }
                PrefetchInstruction::Hint => "a prefetch",
            };
            let why = match (source, self.vendor) {
                _ if !source.fills() => "it names no level".to_owned(),
                (HintSource::Control(control), Vendor::Intel) if reached.is_some() => {
                    format!("{}: {}", control.name(), level.source)
                }
                // Which of Intel's controls stands for it, nontemporal ones among them.
                (_, Vendor::Intel) if reached.is_some() => {
                    format!("{}: {}", LscControl::of(*hint).name(), level.source)
                }
                _ => level.source.clone(),
            };
            let hint = HintReached {
                place: kernel.describe_place(op.place),
                asked: asked(*hint, *source, *scope),
                level: hint.level,
                reached,
                by: by.to_owned(),
                why,
                cost: cost(&op.kind, &form),
            };
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        });
        hints
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reached::L1 => "L1",
            Reached::L2 => "L2",
            Reached::Nothing => "nothing",
        })
    }
}
