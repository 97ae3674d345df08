//! The same launches on a device that judges plans itself: the kernel as it is against the plan, in buffers that end at unmapped
//! pages.
//!
//! The simulator has found out which launches say most, and how long their buffers have to be. Where it drops a launch because
//! of what it says of the kernel as it is (a race, a read of uninitialised memory, work-items that are apart), the device is
//! asked all the same: a kernel that runs is right. Launches at which the kernel as it is faults are dropped, and counted.

use std::sync::Arc;

use super::launch::{Part, Variant};
use super::{Perturbed, Thoroughness};
use crate::error::{Error, Result};
use crate::ir::Kernel;
use crate::prefetch::Plan;
use crate::report::OnDevice;
use crate::tune::bench::{Judge, Judged};
use crate::tune::subject::workload::{ArgumentSpec, Workload};

/// The most launches that a device is asked about.
const MOST: u64 = 16;

/// Each launch at which the kernel as it is faults costs a process.
const MOST_FAULTS: u64 = 3;

impl Variant {
    /// The launch as a device gets it; none if pointers in memory lead to parts of it, or it asks for other shared memory.
    fn workload(&self, like: &Workload) -> Option<Workload> {
        let params = self.parts.get(..like.given.len())?;
        if self.shared_bytes.is_some() || params.len() < self.parts.len() {
            return None;
        }
        let given = params.iter().map(|part| match part {
            Part::Scalar(ty, bits) => Some(ArgumentSpec::Scalar(*ty, *bits)),
            Part::Given(_) => None,
            Part::Buffer(contents) => Some(match (contents.same_as, contents.compare) {
                (Some(of), _) => ArgumentSpec::Part {
                    of,
                    start: contents.start,
                },
                (None, Some(compare)) => ArgumentSpec::Output {
                    element: contents.element,
                    length: contents.length,
                    fill: contents.fill.clone(),
                    compare,
                },
                (None, None) => ArgumentSpec::input(contents.element, contents.length, contents.fill.clone()),
            }),
        });
        Some(Workload {
            groups: self.groups,
            group: self.group,
            given: given.collect::<Option<_>>()?,
            placed: None,
            divides: None,
            ..like.clone()
        })
    }
}

impl Perturbed {
    /// Runs the launches that say most on a device, until there is no time for more.
    ///
    /// # Errors
    /// The plan leaves something else on one of them, or the device is lost.
    pub(in crate::tune) fn check_on_device(
        &self,
        device: &dyn Judge,
        like: &Workload,
        (plan, derived): (&Plan, &Arc<Kernel>),
        is_over: &dyn Fn() -> bool,
    ) -> Result<OnDevice> {
        let kept = self.order_for(plan, Thoroughness::Quick).into_iter();
        let kept = kept.map(|number| &self.launches.kept[number]);
        let kept = kept.filter(|kept| !kept.beyond).map(|kept| &kept.variant);
        let takes = |variant: &Variant| derived.group_size.is_none_or(|group| group == variant.group);
        let (mut found, mut faults) = (OnDevice::default(), 0);
        let innocent = self.launches.innocent.iter().map(|variant| (variant, true));
        let all = innocent.chain(kept.map(|variant| (variant, false)));
        for (variant, is_innocent) in all.filter(|(variant, _)| takes(variant)) {
            if is_over() || found.agreed + found.dropped >= MOST || faults >= MOST_FAULTS {
                break;
            }
            let Some(launch) = variant.workload(like) else {
                continue;
            };
            match device.judge(&launch, derived)? {
                Judged::Same => found.agreed += 1,
                Judged::NotComparable => (found.dropped, faults) = (found.dropped + 1, faults + 1),
                // The kernel as it is races there, or reads what it never wrote: other code around may change what it leaves.
                Judged::Different(_) if is_innocent => found.dropped += 1,
                Judged::Different(error) => {
                    let what = match variant.what.as_str() {
                        "" => "the launch in few work-groups",
                        what => what,
                    };
                    return Err(Error::bug(format!("{}, with {what}", error.unblamed())).caused_by(&error));
                }
            }
        }
        Ok(found)
    }
}
