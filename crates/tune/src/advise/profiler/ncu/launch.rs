//! One launch of a kernel in a profile: its metrics, by name and unit.

use std::collections::BTreeMap;

use super::metrics::{
    BYTES_OP_READ, BYTES_OP_WRITTEN, BYTES_RATE, BYTES_READ, BYTES_WRITTEN, REASONS, SECTOR, Unit, base,
};
use crate::advise::profiler::number::Spelling;
use crate::evidence::Stall;
use crate::model::{self, DeviceModel, Vendor};

/// One launch of a kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Launch {
    pub(super) id: u64,
    pub(super) kernel: String,
    pub(super) capability: String,
    pub(super) groups: Option<u64>,
    pub(super) group: Option<u32>,
    /// By name in lower case: units and values, in base units.
    pub(super) metrics: BTreeMap<String, Vec<(Unit, f64)>>,
    /// Text values, such as the device's name.
    pub(super) words: BTreeMap<String, String>,
    /// What the profiler's own rules say.
    pub(super) rules: Rules,
}

/// The findings of the details page that stand in its rules' sentences only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    /// Share of the time spent waiting for L1TEX.
    pub(super) waiting: Option<f64>,
    /// Share of the sectors that only uncoalesced accesses to global memory need.
    pub(super) excessive: Option<f64>,
    /// Bytes that are used of each sector of a load.
    pub(super) of_sector: Option<f64>,
}

impl Rules {
    /// Reads a rule's sentences, in the words of all versions so far:
    ///
    /// - "… waiting for a scoreboard dependency on a L1TEX … operation. … This stall type represents about 83.1% of the total
    ///   average of 14.9 cycles …"
    /// - "… uncoalesced global accesses resulting in a total of 117440512 excessive sectors (78% of the total 151257088 sectors) …"
    /// - "The memory access pattern for global loads … On average, only 7.1 of the 32 bytes transmitted per sector are utilized …"
    fn read(&mut self, text: &str, spelling: Spelling) {
        let lower = text.to_ascii_lowercase();
        let number = |before: &str| {
            let digits = before
                .rsplit(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')))
                .next()?;
            // A rule's sentence may have a point where the table has commas.
            spelling.number(digits).or_else(|| digits.parse().ok())
        };
        let share = |mark: &str| {
            let (before, _) = lower.split_once(mark)?;
            let share = number(before)? / 100.0;
            (0.0..=1.0).contains(&share).then_some(share)
        };
        if lower.contains("l1tex") && lower.contains("scoreboard") {
            self.waiting = share("% of the total").or(self.waiting);
        }
        if lower.contains("global") && lower.contains("excessive sectors") {
            self.excessive = share("% of the total").or(self.excessive);
        }
        if lower.contains("global loads")
            && let Some((before, _)) = lower.split_once(" of the 32 bytes transmitted per sector")
        {
            let used = number(before).filter(|used| (0.0..=SECTOR).contains(used));
            self.of_sector = used.or(self.of_sector);
        }
    }
}

impl Launch {
    /// Adds a metric. Unavailable ones are omitted.
    pub(super) fn add(&mut self, name: &str, unit: &str, cell: &str, spelling: Spelling) {
        let name = name.to_ascii_lowercase();
        let (unit, factor) = base(unit);
        match spelling.number(cell) {
            Some(number) => self
                .metrics
                .entry(name)
                .or_default()
                .push((unit, number * factor)),
            None => {
                self.words.insert(name, cell.to_owned());
            }
        }
    }

    /// Takes in a rule's sentences.
    pub(super) fn read_rule(&mut self, text: &str, spelling: Spelling) {
        self.rules.read(text, spelling);
    }

    /// The first of these metrics that is there, in this unit.
    pub(super) fn find(&self, names: &[&str], unit: Unit) -> Option<f64> {
        names.iter().find_map(|name| {
            let found = self.metrics.get(&name.to_ascii_lowercase())?;
            let of_unit = found.iter().find(|(own, _)| *own == unit);
            // A raw page without units counts in base units.
            let bare = found.iter().find(|(own, _)| *own == Unit::Other);
            of_unit.or(bare).map(|&(_, value)| value)
        })
    }

    pub(super) fn count(&self, names: &[&str]) -> Option<u32> {
        let value = self.find(names, Unit::Other)?;
        (value >= 0.0 && value <= f64::from(u32::MAX)).then_some(value as u32)
    }

    /// Bytes that device memory moved.
    pub(super) fn memory_bytes(&self, time_ns: f64) -> Option<f64> {
        let sum = |read: &str, written: &str, unit| {
            let read = self.find(&[read], unit)?;
            Some(read + self.find(&[written], unit).unwrap_or(0.0))
        };
        let seconds = time_ns / 1e9;
        sum(BYTES_READ, BYTES_WRITTEN, Unit::Bytes)
            .or_else(|| sum(BYTES_OP_READ, BYTES_OP_WRITTEN, Unit::Bytes))
            .or_else(|| self.find(&["dram__bytes.sum"], Unit::Bytes))
            .or_else(|| {
                self.find(&[BYTES_RATE], Unit::BytesPerSecond)
                    .map(|rate| rate * seconds)
            })
            .or_else(|| {
                let rate = sum(
                    "dram__bytes_read.sum.per_second",
                    "dram__bytes_write.sum.per_second",
                    Unit::BytesPerSecond,
                );
                rate.map(|rate| rate * seconds)
            })
            .or_else(|| {
                // The details page has two metrics of this name; the other one is a percentage.
                let found = self.metrics.get("memory throughput")?;
                let rate = found.iter().find(|(unit, _)| *unit == Unit::BytesPerSecond)?;
                Some(rate.1 * seconds)
            })
    }

    /// Shares of the warps' time by reason, the largest first; empty where they are not there.
    pub(super) fn stalls(&self) -> Vec<Stall> {
        // By what stands around the reason: several families of metrics count the same.
        let mut families: BTreeMap<(&str, &str), Vec<(&str, f64)>> = BTreeMap::new();
        for (name, values) in &self.metrics {
            let (Some((before, after)), Some(&(_, value))) =
                (name.split_once("issue_stalled_"), values.first())
            else {
                continue;
            };
            if after.contains("not_issued") {
                continue;
            }
            let reason = REASONS.iter().find(|(reason, _)| {
                after
                    .strip_prefix(reason)
                    .is_some_and(|end| end.is_empty() || end.starts_with(['_', '.', 's']))
            });
            if let Some((reason, _)) = reason {
                let end = after[reason.len()..].trim_start_matches('s');
                families.entry((before, end)).or_default().push((reason, value));
            }
        }
        let Some(family) = families
            .into_values()
            .max_by_key(Vec::len)
            .filter(|family| family.len() >= 3)
        else {
            return Vec::new();
        };
        let all: f64 = family.iter().map(|(_, value)| value).sum();
        if all <= 0.0 {
            return Vec::new();
        }
        let mut stalls: Vec<Stall> = Vec::new();
        for (name, value) in family {
            let Some(&(_, Some(reason))) = REASONS.iter().find(|(own, _)| *own == name) else {
                continue;
            };
            match stalls.iter_mut().find(|stall| stall.reason == reason) {
                Some(stall) => stall.share += value / all,
                None => stalls.push(Stall {
                    reason,
                    share: value / all,
                }),
            }
        }
        stalls.sort_by(|one, other| other.share.total_cmp(&one.share));
        stalls
    }

    /// The model of the device that the launch ran on, where there is one.
    pub(super) fn model(&self) -> Option<DeviceModel> {
        let title = self.device().to_ascii_lowercase();
        let names = model::built_in_names().filter(|name| title.contains(*name));
        let by_name = names.max_by_key(|name| name.len()).map(str::to_owned);
        let by_capability = || match self.capability.as_str() {
            "8.0" => Some("a100"),
            "9.0" => Some("h200"),
            _ => None,
        };
        let name = by_name.or_else(|| by_capability().map(str::to_owned))?;
        model::built_in(&name, &[])
            .ok()
            .filter(|model| model.vendor == Vendor::Nvidia)
    }

    /// Whether the profile has the device's name, and not only its generation.
    pub(super) fn names_its_device(&self) -> bool {
        self.words.contains_key("device__attribute_display_name")
    }

    pub(super) fn device(&self) -> String {
        self.words
            .get("device__attribute_display_name")
            .cloned()
            .unwrap_or_else(|| match self.capability.as_str() {
                "" => "an NVIDIA GPU".to_owned(),
                capability => format!("compute capability {capability}"),
            })
    }
}
