//! Translations near the cores: a few neighbouring cores share them, and the requests whose page is not there take turns.
//!
//! On an H200 these are the six cores of a cluster. Random loads of 2 MiB of lines, which all are in L2, take six cores as
//! many cycles as they have requests to pages beyond 128 (`micro/strided together=1 places=4096 stride=65536`: 14 of 32 loads
//! of a sub-group; 32.1 cycles a load with up to four work-groups, then 43.4 from 5 on, 57.7 from 8, 71.0 from 20 and 85.2 from
//! 80 to 132, as more cores of a cluster have one). A lone request takes no longer.

use std::collections::hash_map::Entry;

use super::port::{Cycles, Port};
use crate::functional::FastMap;
use crate::model::Tlb;

/// The translations of all simulated cores.
#[derive(Clone, Debug)]
pub(super) struct NearTlb {
    clusters: Vec<Cluster>,
    /// Each core's last request: its block, and when it was looked up.
    last: Vec<(u64, Cycles)>,
    /// Cores of a cluster.
    sharing: usize,
    /// A page's bytes, and a block's, as shifts.
    page_shift: u32,
    block_shift: u32,
    /// From a request's turn until its page is at hand.
    fill: Cycles,
}

/// The translations that some cores share.
#[derive(Clone, Debug)]
struct Cluster {
    /// A turn for each request whose page is not at hand.
    turns: Port,
    /// The pages, and when each is at hand.
    pages: FastMap<Cycles>,
    /// As many as can be.
    most: usize,
}

impl NearTlb {
    /// None are needed if `footprint`, all the bytes that a launch can touch, is within their reach, or if the model has none.
    /// Of the device's `cores` there are `busy` ones, of which the first `simulated` are simulated.
    pub(super) fn new(tlb: &Tlb, cores: u32, simulated: u32, busy: u32, footprint: u64) -> Option<NearTlb> {
        if *tlb.near_reach == 0 || footprint <= *tlb.near_reach {
            return None;
        }
        let sharing = sharing(*tlb.near_cores, cores, busy);
        let cluster = |first: u32| {
            // Those of its cores that are not simulated have their turns, too.
            let part = f64::from((simulated - first).min(sharing)) / f64::from(sharing);
            Cluster {
                turns: Port::new(*tlb.near_misses_per_cycle * part),
                pages: FastMap::default(),
                most: (*tlb.near_reach / *tlb.page).max(1) as usize,
            }
        };
        Some(NearTlb {
            clusters: (0..simulated).step_by(sharing as usize).map(cluster).collect(),
            sharing: sharing as usize,
            last: vec![(u64::MAX, 0.0); simulated as usize],
            page_shift: tlb.page.trailing_zeros(),
            block_shift: tlb.near_block.trailing_zeros(),
            fill: f64::from(*tlb.near_fill),
        })
    }

    /// How long a core's request for an address waits until it is looked up, in the order of requests, and whether its page is at
    /// hand then. One for the block of the core's last request goes with that.
    pub(super) fn look_up(&mut self, core: usize, now: Cycles, address: u64) -> (Cycles, bool) {
        let block = address >> self.block_shift;
        let (last, then) = self.last[core];
        if last == block {
            return ((then - now).max(0.0), true);
        }
        let cluster = &mut self.clusters[core / self.sharing];
        let looked_up = cluster.turns.free().max(now);
        let is_at_hand = cluster.is_at_hand(address >> self.page_shift, looked_up, looked_up + self.fill);
        if !is_at_hand {
            cluster.turns.take(now, 1.0);
        }
        self.last[core] = (block, looked_up);
        (looked_up - now, is_at_hand)
    }
}

/// How many cores of the fullest cluster are busy. A launch of few work-groups fills some clusters more than others: on an H200
/// 5 have three cores of one busy, 8 four, 20 five, and 80 all six (as above).
fn sharing(of_cluster: u32, cores: u32, busy: u32) -> u32 {
    let idle = [2, 8, 18, 32]
        .iter()
        .filter(|&&part| busy * part <= cores)
        .count() as u32;
    of_cluster.saturating_sub(idle).clamp(1, busy.max(1))
}

impl Cluster {
    /// Whether a page is at hand when it is looked up; if it is not, and not on its way, it is brought until `ready`.
    fn is_at_hand(&mut self, page: u64, looked_up: Cycles, ready: Cycles) -> bool {
        match self.pages.entry(page) {
            Entry::Occupied(entry) => return *entry.get() <= looked_up,
            Entry::Vacant(entry) => entry.insert(ready),
        };
        if self.pages.len() > self.most {
            // All go at once. So it is by the measurements: of random requests for 160 pages half are not among 128, of 512 seven
            // in eight.
            self.pages.clear();
            self.pages.insert(page, ready);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::port::spread;
    use super::*;
    use crate::model::built_in;

    const MIB: u64 = 1 << 20;

    fn near(simulated: u32, footprint: u64) -> Option<NearTlb> {
        let model = built_in("h200", &[]).expect("a built-in model");
        NearTlb::new(&model.tlb, 132, simulated, 132, footprint)
    }

    #[test]
    fn what_is_within_reach_needs_none() {
        assert!(near(132, 256 * MIB).is_none());
        assert_eq!(near(132, 257 * MIB).expect("some").clusters.len(), 22);
        assert_eq!(near(8, 1024 * MIB).expect("some").clusters.len(), 2);
    }

    /// Cycles of a core's request for random pages of a footprint, if it could make one every two cycles.
    fn cycles(footprint: u64) -> f64 {
        let mut tlb = near(6, footprint).expect("some");
        let pages = footprint / MIB / 2;
        let mut last: Cycles = 0.0;
        for request in 0..20_000u64 {
            for core in 0..6 {
                let page = spread(request * 6 + core) % pages;
                let now = 2.0 * request as Cycles;
                last = last.max(now + tlb.look_up(core as usize, now, page * 2 * MIB).0);
            }
        }
        last / 20_000.0
    }

    #[test]
    fn requests_beyond_reach_take_turns() {
        // On an H200, these cycles are measured, with 17 of 32 loads that miss L1. In the model 19 do, and its rate is 1.2.
        for (gibibytes, measured) in [
            (0.3125, 52.5),
            (0.375, 59.4),
            (0.5, 71.5),
            (1.0, 85.2),
            (8.0, 99.8),
        ] {
            let found = 17.0 * 1.2 * cycles((gibibytes * 1024.0) as u64 * MIB);
            assert!((0.9..1.17).contains(&(found / measured)), "{gibibytes}: {found}");
        }
    }

    #[test]
    fn few_work_groups_fill_clusters_as_measured() {
        for (busy, measured) in [
            (1, 1),
            (4, 2),
            (5, 3),
            (7, 3),
            (8, 4),
            (16, 4),
            (20, 5),
            (66, 5),
            (80, 6),
            (132, 6),
        ] {
            assert_eq!(sharing(6, 132, busy), measured, "{busy}");
        }
        assert_eq!(sharing(1, 20, 1), 1);
    }

    #[test]
    fn neighbours_find_each_others_pages() {
        let mut tlb = near(12, 1024 * MIB).expect("some");
        let mut look_up = |core: usize, now: Cycles, kibibytes: u64| {
            let (wait, is_at_hand) = tlb.look_up(core, now, kibibytes << 10);
            (wait > 0.5, is_at_hand)
        };
        assert_eq!(look_up(0, 10.0, 2048), (false, false));
        assert_eq!(
            look_up(1, 10.0, 2048),
            (true, false),
            "behind the first, and not there yet"
        );
        assert_eq!(look_up(5, 500.0, 2048), (false, true), "at hand");
        assert_eq!(
            look_up(6, 500.0, 2048),
            (false, false),
            "another cluster's is not"
        );
        assert_eq!(look_up(6, 500.0, 2048 + 31), (false, true), "in the same block");
        assert_eq!(look_up(6, 500.0, 2048 + 32), (true, false));
    }
}
