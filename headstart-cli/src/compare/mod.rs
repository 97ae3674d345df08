//! Two plans, two reports or two versions of a kernel beside each other: which is faster, by how much, and why.

pub mod code;
pub mod reports;
pub mod runs;
pub mod shown;

use headstart::device::sim::timer::StallReason;
use headstart::report::number;
use headstart::tune::doubt::settles;
use serde::Serialize;

use self::code::Difference;

/// A change of the waiting for something that is worth a sentence: 5 percentage points.
const WORTH_SAYING: f64 = 5.0;

/// One of the two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// As the command line names it.
    pub name: String,
    /// The kernel.
    pub kernel: String,
    /// How it is launched, in words.
    pub launch: String,
    /// The plan, the parents that it carries included.
    pub plan: String,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// Between which times it lies: the quartiles of a measured time, or how far a sample may be off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<(f64, f64)>,
    /// The device's counters.
    #[serde(skip)]
    pub counted: Vec<Counted>,
}

/// Something that the device counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The counter, in words.
    pub name: String,
    /// Its unit; empty for a plain count.
    pub unit: String,
    /// The value.
    pub value: f64,
}

/// A counter of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The counter, in words.
    pub name: String,
    /// Its unit; empty for a plain count.
    pub unit: String,
    /// Its value for A, where it was counted.
    pub a: Option<f64>,
    /// Its value for B, where it was counted.
    pub b: Option<f64>,
}

/// The statements about the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// B is faster.
    Faster,
    /// B is slower.
    Slower,
    /// There is no difference, or none that is not within the interval.
    Same,
    /// There is one that is within the simulator's error.
    Unsettled,
}

/// The two, and the differences.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The first.
    pub a: Side,
    /// The second.
    pub b: Side,
    /// The device, as `--device` spells it.
    pub device: String,
    /// Why the times say less than they seem to, a sentence each.
    pub warnings: Vec<String>,
    /// Further findings, a sentence each.
    pub findings: Vec<String>,
    /// The code, where there is some of both.
    pub code: Option<Difference>,
    /// How the numbers were made, a sentence each.
    pub notes: Vec<String>,
}

impl Comparison {
    /// A's time divided by B's.
    pub fn ratio(&self) -> f64 {
        self.a.time_ns / self.b.time_ns
    }

    /// Between which values that ratio lies, where both times have an interval.
    pub fn ratio_interval(&self) -> Option<(f64, f64)> {
        let (a, b) = (self.a.interval_ns?, self.b.interval_ns?);
        Some((a.0 / b.1, a.1 / b.0))
    }

    fn is_simulated(&self) -> bool {
        self.device.starts_with("sim:")
    }

    /// Which is faster, as far as this tells.
    pub fn verdict(&self) -> Verdict {
        let ratio = self.ratio();
        let is_same_code = self
            .code
            .as_ref()
            .is_some_and(|code| code.is_of_both_kernels && code.is_none());
        let is_within = self
            .ratio_interval()
            .is_some_and(|(least, most)| least <= 1.0 && 1.0 <= most);
        match ratio {
            _ if is_same_code && self.a.launch == self.b.launch => Verdict::Same,
            1.0 => Verdict::Same,
            _ if is_within => Verdict::Same,
            _ if self.is_simulated() && !settles(ratio) => Verdict::Unsettled,
            _ if ratio > 1.0 => Verdict::Faster,
            _ => Verdict::Slower,
        }
    }

    /// Which is faster, by how much, and the largest change, in a sentence or two.
    pub fn conclusion(&self) -> String {
        let ratio = self.ratio();
        let [a, b] = [self.a.time_ns, self.b.time_ns].map(number::duration);
        let (factor, word) = match ratio >= 1.0 {
            true => (ratio, "faster"),
            false => (1.0 / ratio, "slower"),
        };
        let (factor, times) = (number::speedup(factor), format!("{b} instead of {a}"));
        let said = match self.verdict() {
            Verdict::Same if a == b => return format!("No difference: both take {a}."),
            Verdict::Same => {
                return format!("No difference: {b} and {a} are within the interval of the times.");
            }
            Verdict::Unsettled => format!(
                "B is {factor} {word} on the model, {times}. The simulator cannot settle that: differences of its times \
                 of two launches are off by as much. Measure both on the device."
            ),
            Verdict::Faster | Verdict::Slower => format!("B is {factor} {word}, {times}."),
        };
        match self.reason() {
            Some(reason) => format!("{said} {reason}"),
            None => said,
        }
    }

    /// The waiting that changed most, where it goes the way that the times do.
    fn reason(&self) -> Option<String> {
        let changes = StallReason::ALL
            .into_iter()
            .filter(|reason| *reason != StallReason::NotSelected);
        let changes = changes.filter_map(|reason| {
            let share = |side: &Side| {
                let counted = side.counted.iter().find(|counted| counted.name == reason.words());
                counted.map(|counted| counted.value)
            };
            // A reason that is not listed is below 1 %.
            match (share(&self.a), share(&self.b)) {
                (None, None) => None,
                (a, b) => Some((reason.words(), a.unwrap_or(0.0), b.unwrap_or(0.0))),
            }
        });
        let is_faster = self.ratio() > 1.0;
        let (words, a, b) = changes
            .filter(|(_, a, b)| (a > b) == is_faster && (a - b).abs() >= WORTH_SAYING)
            .max_by(|(_, a, b), (_, c, d)| (a - b).abs().total_cmp(&(c - d).abs()))?;
        let verb = if b < a { "falls" } else { "rises" };
        let mut sentence = format!(
            "{words} {verb} from {} to {}.",
            number::percent(a / 100.0),
            number::percent(b / 100.0)
        );
        sentence[..1].make_ascii_uppercase();
        Some(sentence)
    }

    /// The counters of both: A's in their order, then those that only B has.
    pub fn rows(&self) -> Vec<Row> {
        let value = |side: &Side, of: &Counted| {
            let own = side
                .counted
                .iter()
                .find(|own| own.name == of.name && own.unit == of.unit);
            own.map(|own| own.value)
        };
        let is_in_a = |of: &&Counted| value(&self.a, of).is_some();
        let only_b = self.b.counted.iter().filter(|of| !is_in_a(of));
        let rows = self.a.counted.iter().chain(only_b).map(|of| Row {
            name: of.name.clone(),
            unit: of.unit.clone(),
            a: value(&self.a, of),
            b: value(&self.b, of),
        });
        rows.filter(|row| row.a.unwrap_or(0.0) != 0.0 || row.b.unwrap_or(0.0) != 0.0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(time_ns: f64, interval_ns: Option<(f64, f64)>, waiting: f64) -> Side {
        Side {
            name: String::new(),
            kernel: "gather".to_owned(),
            launch: "1 work-group".to_owned(),
            plan: "none".to_owned(),
            time_ns,
            interval_ns,
            counted: vec![Counted {
                name: StallReason::LongScoreboard.words().to_owned(),
                unit: "%".to_owned(),
                value: waiting,
            }],
        }
    }

    fn of(device: &str, a: Side, b: Side) -> Comparison {
        Comparison {
            a,
            b,
            device: device.to_owned(),
            warnings: Vec::new(),
            findings: Vec::new(),
            code: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_conclusion_has_ratio_times_and_what_changed_most() {
        let faster = of("sim:h200", side(180e3, None, 71.0), side(100e3, None, 20.0));
        assert_eq!(faster.verdict(), Verdict::Faster);
        assert_eq!(
            faster.conclusion(),
            "B is 1.80× faster, 100 µs instead of 180 µs. Waiting for loads from global memory falls from 71 % to 20 %."
        );
        let slower = of("sim:h200", side(100e3, None, 20.0), side(180e3, None, 71.0));
        assert!(
            slower
                .conclusion()
                .starts_with("B is 1.80× slower, 180 µs instead of 100 µs. ")
        );
        // Less waiting is no reason to be slower.
        let odd = of("sim:h200", side(100e3, None, 71.0), side(180e3, None, 20.0));
        assert_eq!(odd.conclusion(), "B is 1.80× slower, 180 µs instead of 100 µs.");
    }

    #[test]
    fn a_difference_within_the_interval_is_none() {
        let (near, far) = (Some((99e3, 103e3)), Some((96e3, 98e3)));
        let same = of("cuda:0", side(101e3, near, 50.0), side(100e3, near, 50.0));
        assert_eq!(same.verdict(), Verdict::Same);
        assert_eq!(
            same.conclusion(),
            "No difference: 100 µs and 101 µs are within the interval of the times."
        );
        let differs = of("cuda:0", side(101e3, near, 50.0), side(97e3, far, 50.0));
        assert_eq!(differs.verdict(), Verdict::Faster);
        let equal = of("cuda:0", side(1e3, None, 50.0), side(1e3, None, 10.0));
        assert_eq!(equal.conclusion(), "No difference: both take 1 µs.");
    }

    #[test]
    fn a_small_difference_on_a_model_is_not_settled() {
        let (a, b) = (side(105e3, None, 50.0), side(100e3, None, 50.0));
        let simulated = of("sim:h200", a.clone(), b.clone());
        assert_eq!(simulated.verdict(), Verdict::Unsettled);
        assert!(
            simulated
                .conclusion()
                .contains("The simulator cannot settle that")
        );
        assert_eq!(of("cuda:0", a, b).verdict(), Verdict::Faster);
    }

    #[test]
    fn counters_of_either_side_have_a_row() {
        let mut b = side(1.0, None, 20.0);
        b.counted.push(Counted {
            name: "bank conflicts".to_owned(),
            unit: String::new(),
            value: 3.0,
        });
        b.counted.push(Counted {
            name: "nothing".to_owned(),
            unit: String::new(),
            value: 0.0,
        });
        let rows = of("sim:h200", side(1.0, None, 71.0), b).rows();
        let values: Vec<_> = rows.iter().map(|row| (row.a, row.b)).collect();
        assert_eq!(values, [(Some(71.0), Some(20.0)), (None, Some(3.0))]);
    }
}
