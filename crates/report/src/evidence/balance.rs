//! How evenly a launch's work is spread, and what an even split would take.

use serde::Serialize;

use super::{Evidence, Remedy};
use crate::device::sim::timer::LaunchTime;
use crate::number::{duration, figures, grouped, percent, speedup};

/// Fewer sub-groups than this share of those that the launch has at once are not the work of its start and its end alone.
const SHORT: f64 = 0.75;
/// An even split is worth a word where it takes less than this part of the time.
const WORTH: f64 = 0.9;
/// A last round that fills this part of the places is no tail.
const NEARLY_FULL: f64 = 0.75;
/// A work-item is long from this many times the mean on: times alone differ by chance.
const LONG: f64 = 1.5;

/// The longest parts of a launch, as multiples of the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Balance {
    /// By instructions.
    pub work_items: f64,
    /// By time.
    pub sub_groups: f64,
    /// By time.
    pub groups: f64,
    /// Share of a sub-group's work-items that an instruction acts on, on average, 0 to 1.
    pub(crate) active: f64,
}

impl Balance {
    /// Of a simulated run.
    pub(crate) fn of(time: &LaunchTime) -> Balance {
        let balance = &time.balance;
        let width = f64::from(time.footprint.sub_group.min(time.footprint.group).max(1));
        let all = time.instructions * width;
        let active = match all > 0.0 {
            true => (time.work_item_instructions / all).clamp(0.0, 1.0),
            false => 1.0,
        };
        Balance {
            // A sub-group goes on until its longest work-item ends.
            work_items: balance.instructions.uneven() / active.max(f64::MIN_POSITIVE),
            sub_groups: balance.sub_groups.uneven(),
            groups: balance.groups.uneven(),
            active,
        }
    }
}

impl Evidence {
    /// Sub-groups that a busy core has at once on average until some end before the others.
    fn launched(&self) -> Option<f64> {
        let fits = self.fits.as_ref()?;
        let busy = self.groups.min(u64::from(self.cores)).max(1);
        let groups = (self.groups as f64 / busy as f64).min(f64::from(fits.groups_per_core));
        Some(groups * f64::from(fits.sub_groups_per_group))
    }

    /// The sub-groups that were resident, and those that would be if none ended long before the others; none where these are about
    /// as many, or where they do not start fast enough.
    pub(crate) fn short_of(&self) -> Option<(f64, f64)> {
        let (achieved, launched) = self.achieved.zip(self.launched())?;
        (achieved < SHORT * launched && self.starts().is_none()).then_some((achieved, launched))
    }
}

/// The remedy for a launch whose cores run empty before its end.
pub(super) fn remedy(evidence: &Evidence, balance: Option<&Balance>) -> Option<Remedy> {
    if let Some(starts) = evidence.starts() {
        let finding = format!("Let fewer, larger work-groups share the work: {starts}.");
        return Some(Remedy { finding, place: None });
    }
    let (achieved, launched) = evidence.short_of()?;
    let balance = balance?;
    let fits = evidence.fits.as_ref()?;
    let all = evidence.cores.max(1) * fits.groups_per_core.max(1);
    let rounds = evidence.groups as f64 / f64::from(all);
    let memory_ns = evidence.memory_bytes.zip(evidence.bandwidth);
    let memory_ns = memory_ns.map_or(0.0, |(bytes, bandwidth)| bytes / bandwidth);
    let launch_ns = evidence.launching_ns();
    let whole_ns = evidence.time_ns + launch_ns;
    let even = |share: f64| {
        let even_ns = (evidence.time_ns * share).max(memory_ns) + launch_ns;
        (even_ns < WORTH * whole_ns).then(|| duration(even_ns))
    };
    let whole = duration(whole_ns);
    let full = format!(
        "{} of {} sub-groups are resident on a core on average",
        figures(achieved),
        figures(launched)
    );
    let finding = if balance.work_items >= LONG {
        format!(
            "The work is spread unevenly: the longest work-item takes {} the mean (of instructions), the longest sub-group {} and \
             the longest work-group {} (of time), so {full}. Split evenly among the work-items, the same work would take about {} \
             instead of {whole}.",
            speedup(balance.work_items),
            speedup(balance.sub_groups),
            speedup(balance.groups),
            even(achieved / launched * balance.active)?
        )
    } else if rounds > 1.0 && rounds.fract() < NEARLY_FULL {
        let last = rounds.fract() * f64::from(all);
        format!(
            "The launch ends with a tail: its {} work-groups are {} rounds of {} that are resident at once, and the last round has {} \
             ({} of the places); {full}. In whole rounds the same work would take about {} instead of {whole}.",
            grouped(evidence.groups),
            figures(rounds),
            grouped(u64::from(all)),
            grouped(last.round() as u64),
            percent(last / f64::from(all)),
            // The last round is no longer than the others.
            even((achieved / launched).max(rounds / rounds.ceil()))?
        )
    } else {
        return None;
    };
    Some(Remedy { finding, place: None })
}
