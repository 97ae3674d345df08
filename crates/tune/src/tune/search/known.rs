//! Better algorithms that are known for what a kernel does, by rules: what its loops and atomic operations are, and how this launch
//! ran. Each is named with its source; nothing is said of a gain that nothing measured.

use crate::analysis::definitions::Definitions;
use crate::analysis::folds::{Folds, folds, is_loaded};
use crate::analysis::loops::summarize;
use crate::analysis::neighbours::Neighbours;
use crate::analysis::roots::{Root, root};
use crate::evidence::{Evidence, Profile, Remedy};
use crate::ir::{AtomicOp, Kernel, Op, OpKind, Place};
use crate::report::PlainBest;
use crate::report::number::{duration, figures, grouped, speedup};
use crate::tune::subject::workload::{ArgumentSpec, Workload};

/// Iterations that each part of a split loop has at least: fewer are not worth combining.
const ITERATIONS: f64 = 8.0;
/// A row is long from this many times the mean on.
const LONG: f64 = 2.0;
/// Bytes of results that a work-group can hold a copy of in shared memory.
const PRIVATE: u64 = 32 << 10;
/// Work-items for each result from which on they meet often.
const MEET: u64 = 64;

/// What is known to be better; `other` is the same work in more work-groups, where that ran. Where `is_split`, the verdict
/// says that the launch can be split.
pub(crate) fn known(
    kernel: &Kernel,
    workload: &Workload,
    evidence: &Evidence,
    profile: Option<&Profile>,
    other: Option<&PlainBest>,
    is_split: bool,
) -> Vec<Remedy> {
    let mut sized = kernel.clone();
    sized.group_size = sized.group_size.or(Some(workload.group));
    let definitions = Definitions::of(&sized);
    let case = Case {
        kernel: &sized,
        definitions: &definitions,
        workload,
        evidence,
        profile,
        other,
        is_split,
    };
    let mut remedies = Vec::new();
    sized.body.walk(&mut |op| {
        let found = match op.kind {
            OpKind::Loop { .. } => case.looped(op),
            OpKind::Atomic { .. } => case.counted(op),
            _ => None,
        };
        // Copies of a loop or of an operation are one finding.
        remedies.extend(found.filter(|remedy| !remedies.contains(remedy)));
    });
    remedies
}

struct Case<'a> {
    kernel: &'a Kernel,
    definitions: &'a Definitions,
    workload: &'a Workload,
    evidence: &'a Evidence,
    profile: Option<&'a Profile>,
    other: Option<&'a PlainBest>,
    is_split: bool,
}

impl Case<'_> {
    fn at(&self, place: Place, finding: String) -> Remedy {
        Remedy {
            finding,
            place: Some(self.kernel.describe_place(place)).filter(|place| !place.is_empty()),
        }
    }

    /// The loop that the kernel waits in, where it folds what it reads.
    fn looped(&self, op: &Op) -> Option<Remedy> {
        let main = self.profile?.main_loop()?;
        if self.kernel.describe_place(op.place) != main.place {
            return None;
        }
        let summary = summarize(self.kernel, self.definitions, op);
        let how = folds(self.kernel, self.definitions, &summary)?;
        let bound = summary.counting()?.bound;
        let longest = self.profile?.balance.map_or(1.0, |balance| balance.work_items);
        if longest >= LONG && is_loaded(self.definitions, bound) {
            let is_shared = Neighbours::of(self.kernel, self.definitions, false).growth(bound) == Some(0);
            let own = match is_shared {
                true => "",
                false => "a sub-group for each row (Bell and Garland, 2009), or ",
            };
            return Some(self.at(
                op.place,
                format!(
                    "The loop goes through rows whose lengths are loaded, and the longest work-item takes {} the mean: {own}equal \
                     shares of rows and elements together (merge-based, Merrill and Garland, 2016) would even that out. That was \
                     not measured here.",
                    speedup(longest)
                ),
            ));
        }
        let fits = self.evidence.fits.as_ref()?;
        let places = f64::from(self.evidence.cores) * f64::from(fits.groups_per_core);
        let most = (places / self.evidence.groups.max(1) as f64).min(main.iterations / ITERATIONS);
        if self.is_split || !self.evidence.is_starved() || most < 2.0 {
            return None;
        }
        let source = match how {
            Folds::Alone => "split-K in NVIDIA's CUTLASS",
            Folds::Rescaled => "flash-decoding, Dao and others, 2023: each part with its own maximum and sum",
        };
        let ran = match self
            .other
            .filter(|other| other.geometry.groups > self.evidence.groups)
        {
            Some(other) => format!(
                "The same work as {} ran in {}, {} the speed, without the combining.",
                other.geometry,
                duration(other.time_ns),
                speedup(other.speedup)
            ),
            None => "That was not measured here.".to_owned(),
        };
        Some(self.at(
            op.place,
            format!(
                "The loop folds what it reads into results whose parts can be combined: its {} iterations can be split over up to \
                 {} times as many work-groups, and a second step combines their parts ({source}). {ran}",
                figures(main.iterations),
                grouped(most as u64)
            ),
        ))
    }

    /// Atomic operations of many work-items on few results.
    fn counted(&self, op: &Op) -> Option<Remedy> {
        use AtomicOp::{Add, And, FAdd, FAddBrainHalves, FAddHalves, MaxS, MaxU, MinS, MinU, Or, Sub, Xor};
        let OpKind::Atomic { op: change, ptr, .. } = &op.kind else {
            return None;
        };
        let commutes = matches!(
            change,
            Add | Sub | And | Or | Xor | MinS | MinU | MaxS | MaxU | FAdd | FAddHalves | FAddBrainHalves
        );
        let Some(Root::Param(number)) = root(self.kernel, self.definitions, *ptr) else {
            return None;
        };
        let ArgumentSpec::Output { element, length, .. } = self.workload.given.get(number)? else {
            return None;
        };
        let bytes = length.saturating_mul(u64::from(element.bytes()));
        let work_items = self
            .evidence
            .groups
            .saturating_mul(u64::from(self.evidence.group));
        if !commutes || bytes > PRIVATE || work_items < MEET.saturating_mul(*length) {
            return None;
        }
        Some(self.at(
            op.place,
            format!(
                "{} work-items change the {} elements of `{}` by atomic operations, which wait for each other: a copy in shared memory \
                 for each work-group, which joins the others once at its end, lets few of them meet (privatisation: Podlozhnyuk, \
                 Histogram calculation in CUDA, 2007). That was not measured here.",
                grouped(work_items),
                grouped(*length),
                self.kernel.params[number].name
            ),
        ))
    }
}
