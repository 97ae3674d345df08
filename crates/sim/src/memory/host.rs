//! The link to the host, for kernels that access memory behind it: host memory, which crosses the link on every access, and
//! pages of shared allocations, each of which migrates when it is touched first.

use std::collections::HashMap;
use std::ops::Range;

use super::port::{Cycles, Port};
use crate::model::DeviceModel;

/// The parts of a launch's buffers that lie with the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WithHost {
    /// Memory of the host.
    pub pinned: Vec<Range<u64>>,
    /// Pages of shared allocations.
    pub pages: Vec<Range<u64>>,
}

/// The link, or the part of it that the simulated cores can claim.
#[derive(Clone, Debug)]
pub(super) struct HostLink {
    to_device: Port,
    to_host: Port,
    latency: Cycles,
    fault: Cycles,
    page: u64,
    with_host: WithHost,
    /// When the pages that were touched are there.
    arrived: HashMap<u64, Cycles>,
}

impl HostLink {
    /// None where nothing lies with the host, or nothing is between.
    pub(super) fn new(model: &DeviceModel, with_host: &WithHost, share: f64) -> Option<HostLink> {
        let card = model.card.as_ref()?;
        if with_host.pinned.is_empty() && with_host.pages.is_empty() {
            return None;
        }
        let bytes_per_cycle =
            (*card.link_bandwidth * 1000.0 / *model.core.clock * share).max(f64::MIN_POSITIVE);
        Some(HostLink {
            to_device: Port::new(bytes_per_cycle),
            to_host: Port::new(bytes_per_cycle),
            latency: f64::from(*card.host_latency),
            fault: f64::from(*card.page_fault),
            page: (*card.shared_page).max(1),
            with_host: with_host.clone(),
            arrived: HashMap::new(),
        })
    }

    /// The additional time for bytes that a core requests at `now`.
    pub(super) fn reach(&mut self, now: Cycles, address: u64, bytes: f64) -> Cycles {
        let among = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&address));
        if among(&self.with_host.pinned) {
            return self.to_device.take(now, bytes) - now + self.latency;
        }
        if !among(&self.with_host.pages) {
            return 0.0;
        }
        let (page, size) = (address / self.page, self.page as f64);
        let (port, fault) = (&mut self.to_device, self.fault);
        let there = *self.arrived.entry(page).or_insert_with(|| {
            // The page takes its place on the link when it is asked for, and the fault comes before.
            port.take(now, size) + fault
        });
        (there - now).max(0.0)
    }

    /// Bytes that are written at `now`: until when the link is busy with them.
    pub(super) fn write(&mut self, now: Cycles, address: u64, bytes: f64) -> Cycles {
        match self.with_host.pinned.iter().any(|range| range.contains(&address)) {
            true => self.to_host.take(now, bytes) - now,
            // A page is written where it was moved to.
            false => self.reach(now, address, bytes),
        }
    }
}
