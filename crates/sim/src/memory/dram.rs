//! Device memory: a common bus, and banks that are busy for a while after each access.
//!
//! Scattered accesses are limited by the banks, streams by the bus. Consecutive lines lie in different banks; the slowest of
//! many scattered accesses waits where several happen to meet, or for a refresh.

use super::port::{Cycles, Port, Turns};
use crate::model::DeviceModel;

/// Device memory, or the part of it that the simulated cores can claim.
#[derive(Clone, Debug)]
pub(super) struct Dram {
    bus: Port,
    banks: Vec<Cycles>,
    /// The bank of each line: another order than the caches', for lines of one set must not meet in one bank.
    turns: Turns,
    busy: Cycles,
    /// A hint's read occupies a bank for this multiple of a load's.
    hint_busy: f64,
    /// A write occupies the bus, and a bank, for these multiples of a read.
    write_bytes: f64,
    write_busy: f64,
    refresh: Cycles,
    refresh_interval: Cycles,
    /// Cycles of the bus for a unit.
    unit: Cycles,
    /// Cycles that writes take of the bus, and of the banks on average.
    bus_written: Cycles,
    banks_written: Cycles,
}

impl Dram {
    /// `share` of the model's memory.
    pub(super) fn new(model: &DeviceModel, share: f64) -> Dram {
        let banks = f64::from(*model.dram.banks) * share;
        let count = banks.round().max(1.0);
        let rate = model.dram.bytes_per_cycle(*model.core.clock) * share;
        Dram {
            bus: Port::new(rate),
            unit: 1.0 / rate,
            bus_written: 0.0,
            banks_written: 0.0,
            banks: vec![0.0; count as usize],
            turns: Turns::new(count as usize, 0x9e37_79b9_7f4a_7c15),
            // What rounding adds to the number of banks it takes from their rate.
            busy: f64::from(*model.dram.bank_busy) * count / banks,
            hint_busy: f64::from(*model.dram.hint_busy) / f64::from(*model.dram.bank_busy).max(1.0),
            write_bytes: *model.dram.bandwidth / *model.dram.write_bandwidth,
            write_busy: f64::from(*model.dram.write_busy) / f64::from(*model.dram.bank_busy).max(1.0),
            refresh: f64::from(*model.dram.refresh),
            refresh_interval: f64::from(*model.dram.refresh_interval),
        }
    }

    /// A read of `bytes` of a line; gives the start of its service.
    pub(super) fn access(&mut self, now: Cycles, line: u64, bytes: u64) -> Cycles {
        self.serve(now, line, bytes as f64, self.busy)
    }

    /// A read of `bytes` of a line that is kept with others: it takes this part of the time that one to a line does.
    pub(super) fn access_part(&mut self, now: Cycles, line: u64, bytes: u64, part: f64) -> Cycles {
        self.serve(now, line, bytes as f64, self.busy * part)
    }

    /// A read for a hint.
    pub(super) fn hint(&mut self, now: Cycles, line: u64, bytes: u64) -> Cycles {
        self.serve(now, line, bytes as f64, self.busy * self.hint_busy)
    }

    /// A write of `bytes` of a line; gives the start of its service.
    pub(super) fn write(&mut self, now: Cycles, line: u64, bytes: u64) -> Cycles {
        let (units, busy) = (bytes as f64 * self.write_bytes, self.busy * self.write_busy);
        self.bus_written += units * self.unit;
        self.banks_written += busy / self.banks.len() as f64;
        self.serve(now, line, units, busy)
    }

    /// How long all writes so far take, at least.
    pub(super) fn written(&self) -> Cycles {
        self.bus_written.max(self.banks_written)
    }

    fn serve(&mut self, now: Cycles, line: u64, units: f64, busy: Cycles) -> Cycles {
        let start = self.bus.take(now, units);
        let bank = self.turns.place(line);
        let start = self.after_refresh(bank, start.max(self.banks[bank]));
        self.banks[bank] = start + busy;
        start
    }

    /// The first moment from `now` on at which a bank is not refreshed. Banks take turns.
    fn after_refresh(&self, bank: usize, now: Cycles) -> Cycles {
        if self.refresh_interval == 0.0 {
            return now;
        }
        let turn = self.refresh_interval * bank as f64 / self.banks.len() as f64;
        let at = now + turn;
        // Nearly always it is enough to know about where in the interval that is.
        let about = at - (at / self.refresh_interval).floor() * self.refresh_interval;
        if about > self.refresh + 1.0 && about < self.refresh_interval - 1.0 {
            return now;
        }
        let since = at % self.refresh_interval;
        now + (self.refresh - since).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::port::spread;
    use super::*;
    use crate::model::built_in;

    /// Bytes per cycle of `count` accesses at once to lines that `line` gives.
    fn rate(share: f64, bytes: u64, line: impl Fn(u64) -> u64) -> f64 {
        let model = built_in("h200", &[]).unwrap();
        let mut dram = Dram::new(&model, share);
        let count = (3_000_000.0 * share) as u64 + 200_000;
        let mut last = 0.0f64;
        for access in 0..count {
            // As many on their way as 64 sub-groups with 32 addresses each have on every core.
            let waiting = 2048.0 * 132.0 * share;
            let now = (access as f64 - waiting).max(0.0) * last / (access as f64).max(1.0);
            last = last.max(dram.access(now, line(access), bytes));
        }
        (count * bytes) as f64 / last
    }

    #[test]
    fn streams_reach_the_bandwidth() {
        let model = built_in("h200", &[]).unwrap();
        let full = model.dram.bytes_per_cycle(*model.core.clock);
        assert!(rate(1.0, 128, |access| access) > 0.95 * full);
        assert!(rate(4.0 / 132.0, 128, |access| access) > 0.95 * full * 4.0 / 132.0);
    }

    #[test]
    fn scattered_accesses_reach_the_part_that_the_model_says() {
        let model = built_in("h200", &[]).unwrap();
        let full = model.dram.bytes_per_cycle(*model.core.clock);
        let reached = rate(1.0, 64, |access| spread(access) >> 20) / full;
        let said = model.dram.scattered_efficiency(*model.core.clock);
        assert!((reached / said - 1.0).abs() < 0.1, "{reached} {said}");
    }
}
