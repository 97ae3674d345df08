//! Measurements of one run of a kernel, and quantities derived from them.

use crate::device::CacheState;
use crate::model::occupancy::Occupancy;
use crate::number::{grouped, percent};

/// The facts about one run of the plain kernel. Numbers that a device does not report are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Cores of the device.
    pub cores: u32,
    /// Sub-groups that a core has places for.
    pub places: u32,
    /// Work-groups of the launch.
    pub groups: u64,
    /// Work-items of a work-group.
    pub group: u32,
    /// How many work-groups fit into a core, and the limit.
    pub fits: Option<Occupancy>,
    /// Sub-groups resident in a core on average, where they were counted.
    pub achieved: Option<f64>,
    /// Time of the run, in nanoseconds, from the start of its first work-group to the end of its last where `launch_ns` is known.
    pub time_ns: f64,
    /// What a launch takes beside it, in nanoseconds: a part of the times that are reported.
    pub launch_ns: Option<f64>,
    /// How long all work-groups take to start, in nanoseconds, where they start one after the other.
    pub starts_ns: Option<f64>,
    /// What it found in L2.
    pub cache: Option<CacheState>,
    /// Bytes moved between device memory and the caches.
    pub memory_bytes: Option<f64>,
    /// Device memory's best rate, in bytes per nanosecond (GB/s).
    pub bandwidth: Option<f64>,
    /// Share of that rate that was counted, where bytes were not, 0 to 1.
    pub bandwidth_counted: Option<f64>,
    /// Its best rate if each access is to another place, in bytes per nanosecond.
    pub scattered_bandwidth: Option<f64>,
    /// How long a load from idle device memory takes, in nanoseconds.
    pub latency_ns: Option<f64>,
    /// Bytes in flight to all cores that keep device memory busy: its bandwidth times its latency under that load.
    pub saturating_bytes: Option<f64>,
    /// Bytes in flight from memory to all cores, on average; if the device does not count them, they follow from the memory's
    /// throughput.
    pub bytes_in_flight: Option<f64>,
    /// Share of the time in which resident sub-groups wait for loads from global memory, 0 to 1.
    pub waiting_for_loads: Option<f64>,
    /// Share of the issue slots that are used, 0 to 1.
    pub issued: Option<f64>,
}

/// Numbers that differ by less than this part are the same to a reader.
const ABOUT: f64 = 0.1;
/// The starts of work-groups set the pace from this share of the time on.
const STARTS: f64 = 0.8;

impl Evidence {
    /// Sub-groups resident in a core while there are enough of them: as many as fit, or as many as the launch has for each
    /// core.
    pub fn resident(&self) -> Option<u32> {
        let fits = self.fits.as_ref()?;
        let launched = self.groups.div_ceil(u64::from(self.cores.max(1)));
        let groups = launched.min(u64::from(fits.groups_per_core));
        u32::try_from(groups)
            .ok()
            .map(|groups| groups * fits.sub_groups_per_group)
    }

    /// Share of a core's places for sub-groups that is taken on average, 0 to 1: as counted, or as the launch allows.
    pub fn occupancy(&self) -> Option<f64> {
        self.counted()
            .or_else(|| self.resident().map(f64::from))
            .map(|resident| self.of_places(resident))
    }

    /// Sub-groups that were resident in a core on average, where that is another number than the launch allows.
    pub(crate) fn counted(&self) -> Option<f64> {
        let launched = self.resident().map(f64::from);
        self.achieved
            .filter(|achieved| launched.is_none_or(|launched| (achieved - launched).abs() > ABOUT * launched))
    }

    fn of_places(&self, sub_groups: f64) -> f64 {
        sub_groups / f64::from(self.places.max(1))
    }

    /// Whether more work-groups would fit beside those that the launch has, and half of the places or more are empty.
    pub fn is_starved(&self) -> bool {
        let more_would_fit = match (&self.fits, self.resident()) {
            (Some(fits), Some(resident)) => resident < fits.sub_groups_per_core,
            _ => false,
        };
        let launched = self
            .resident()
            .map(|resident| self.of_places(f64::from(resident)));
        // Where some end long before the others, it is not the number of them that keeps the places empty.
        more_would_fit && launched.is_some_and(|share| share <= 0.5) && self.short_of().is_none()
    }

    /// That the starts of work-groups set the pace, where they do: without a full stop.
    #[doc(hidden)]
    pub fn starts(&self) -> Option<String> {
        let share = self.starts_ns? / self.time_ns;
        (share >= STARTS && share.is_finite()).then(|| {
            format!(
                "work-groups start one after the other, and the starts of {} take {} of the time",
                grouped(self.groups),
                percent(share.min(1.0))
            )
        })
    }

    /// The launch's part of the times that are reported, in nanoseconds.
    pub(crate) fn launching_ns(&self) -> f64 {
        self.launch_ns.unwrap_or(0.0)
    }

    /// Device memory's rate in this run, in bytes per nanosecond (GB/s).
    pub fn delivered(&self) -> Option<f64> {
        self.memory_bytes
            .filter(|_| self.time_ns > 0.0)
            .map(|bytes| bytes / self.time_ns)
    }

    /// Share of the bandwidth of device memory that is used, 0 to 1.
    pub fn bandwidth_used(&self) -> Option<f64> {
        let bandwidth = self.bandwidth.filter(|&bandwidth| bandwidth > 0.0);
        let of_bytes = self.delivered().zip(bandwidth);
        of_bytes
            .map(|(delivered, bandwidth)| delivered / bandwidth)
            .or(self.bandwidth_counted)
    }

    /// Bytes on their way from memory on average, and how many keep it busy: bandwidth × latency (Little's law), the latency of idle
    /// memory where that of busy memory is not known.
    pub fn in_flight(&self) -> Option<(f64, f64)> {
        let latency = self.latency_ns?;
        let in_flight = self
            .bytes_in_flight
            .or_else(|| self.delivered().map(|delivered| delivered * latency));
        let by_idle_latency = self.bandwidth.map(|bandwidth| bandwidth * latency);
        Some((in_flight?, self.saturating_bytes.or(by_idle_latency)?))
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::starved;

    #[test]
    fn one_group_a_core_is_starved_and_eight_are_not() {
        let mut evidence = starved();
        assert_eq!(
            (evidence.resident(), evidence.occupancy()),
            (Some(4), Some(0.0625))
        );
        assert!(evidence.is_starved());
        evidence.groups = 132 * 16;
        assert!(!evidence.is_starved());
        // As many as registers allow, few as they are: more work-groups would not fit.
        evidence.groups = 132;
        evidence.fits.as_mut().expect("known").sub_groups_per_core = 4;
        evidence.fits.as_mut().expect("known").groups_per_core = 1;
        assert!(!evidence.is_starved());
    }

    #[test]
    fn bytes_in_flight_follow_from_bandwidth_and_latency() {
        let (in_flight, needed) = starved().in_flight().expect("all is known");
        assert!((150e3..170e3).contains(&in_flight), "{in_flight}");
        assert!((1.4e6..1.5e6).contains(&needed), "{needed}");
        let used = starved().bandwidth_used().expect("all is known");
        assert!((0.10..0.12).contains(&used), "{used}");
    }
}
