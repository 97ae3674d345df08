//! The surroundings of a device: the link to the host, and the devices on a card.

use super::DeviceModel;
use super::numbers::numbers;
use super::quantity::{Bytes, Count, Cycles, GigabytesPerSecond, Quantity};

numbers! {
    /// A card with a device of this model on it, or with several.
    pub struct Card in "card" {
        /// How many devices of this model are on one card, each with cores and memory of its own (Intel's stacks).
        stacks: Quantity<Count>;
        /// Bytes per second between the host's memory and the device's, one way.
        link_bandwidth: Quantity<GigabytesPerSecond>;
        /// From the start of a copy over the link until its first byte arrives.
        link_latency: Quantity<Cycles>;
        /// Bytes per second that a stack gets from the memory of another one on the card.
        stack_bandwidth: Quantity<GigabytesPerSecond> = {
        nvidia: 1 because "there is one stack: nothing crosses",
        intel: 1475 because "Intel, GPU Memory System (oneAPI optimization guide): closely matches the bandwidth of the memory of one stack",
    };
        /// The additional latency of a load from host memory over one from device memory: the round trip over the link.
        host_latency: Quantity<Cycles> = {
        nvidia: 1900 because "assumed: about a microsecond over PCIe",
        intel: 1600 because "assumed: about a microsecond over PCIe",
    };
        /// Pages in which shared allocations move between the host's memory and the device's.
        shared_page: Quantity<Bytes> [power_of_two] = {
        nvidia: 4096 because "the host's pages (x86): whoever touches one that is elsewhere has it moved",
        intel: 4096 because "oneAPI GPU optimization notes: only referenced data are moved, with the granularity of a memory page; the host's pages (x86)",
    };
        /// From the touch of a shared page that is elsewhere until it starts to move.
        page_fault: Quantity<Cycles> = {
        nvidia: 39600 because "assumed: 20 microseconds for a lone fault. One measurement with many faults in flight has 12.2 each: 386.6 ms for 31774 faults on a GTX 1080 (parallelArchitect/pascal-um-benchmark, README). Times of migrating pages are nearly proportional: a fault of 10 or 40 microseconds halves or doubles them",
        intel: 32000 because "assumed: as NVIDIA's, 20 microseconds; a fault of 10 or 40 halves or doubles the times of migrating pages",
    };
        /// The latency that it adds to a load.
        stack_latency: Quantity<Cycles> = {
        nvidia: 0 because "there is one stack: nothing crosses",
        intel: 300 because "assumed: as much as the way to the far half of an L2; Intel's guide gives none",
    };
    }
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyDirection {
    /// From the host's memory to the device's.
    In,
    /// From the device's memory to the host's.
    Out,
    /// From the device's memory to the device's, or the host's to the host's.
    Within,
}

impl DeviceModel {
    /// How many devices of this model are on one card: at least 1.
    pub fn stacks(&self) -> u32 {
        self.card.as_ref().map_or(1, |card| (*card.stacks).max(1))
    }

    /// How long this many pages of a shared allocation take, which the host touches one after the other, in nanoseconds. Nothing
    /// without a link.
    pub fn shared_pages_ns(&self, pages: u64) -> f64 {
        self.card.as_ref().map_or(0.0, |card| {
            let fault = self.nanoseconds(f64::from(*card.page_fault));
            pages as f64 * (fault + *card.shared_page as f64 / *card.link_bandwidth)
        })
    }

    /// How long a copy takes, in nanoseconds. Without a link (a GPU that shares the host's memory) and within one memory
    /// every byte is read and written there.
    pub fn copy_ns(&self, bytes: u64, direction: CopyDirection) -> f64 {
        // A gigabyte a second is a byte a nanosecond.
        match (&self.card, direction) {
            (Some(card), CopyDirection::In | CopyDirection::Out) => {
                self.nanoseconds(f64::from(*card.link_latency)) + bytes as f64 / *card.link_bandwidth
            }
            _ => self.nanoseconds(f64::from(*self.dram.latency)) + 2.0 * bytes as f64 / *self.dram.bandwidth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in;

    #[test]
    fn copies_take_the_link_or_the_memory_twice() {
        let h200 = built_in("h200", &[]).expect("built in");
        let gigabyte = 1_000_000_000;
        let over = h200.copy_ns(gigabyte, CopyDirection::In);
        let within = h200.copy_ns(gigabyte, CopyDirection::Within);
        let card = h200.card.as_ref().expect("it sits on a card");
        assert!((over - 1e9 / *card.link_bandwidth - 2000.0).abs() < 1.0, "{over}");
        assert!((within - 2e9 / *h200.dram.bandwidth).abs() < 1000.0, "{within}");
        assert_eq!(h200.stacks(), 1);
        assert_eq!(built_in("pvc-1550", &[]).expect("built in").stacks(), 2);
        // It has the host's memory: there is nothing between them.
        let gen11 = built_in("gen11", &[]).expect("built in");
        assert_eq!(
            gen11.copy_ns(gigabyte, CopyDirection::In),
            gen11.copy_ns(gigabyte, CopyDirection::Within)
        );
    }
}
