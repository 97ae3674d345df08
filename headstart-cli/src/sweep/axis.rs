//! The varied settings of a sweep, as `--over` spells them: `dram.latency=300..1500:7`, `shared.bytes=64KiB..256KiB`, and together
//! `l1.latency+l2.latency=30/200,40/300`.

use headstart::report::sweep::Axis;
use headstart::suggest::quoted;
use headstart::{Error, Result};

/// Points that a sweep may have. More would take hours, and no table shows them.
pub const MOST_POINTS: usize = 10_000;

/// The setting that an axis varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varied {
    /// The device.
    Device,
    /// A number of the device's model, by its path.
    Model,
    /// A parameter of the kernel, as `--set` spells it.
    Parameter,
    /// The distance of the plan.
    Distance,
    /// The strategy of the plan.
    Strategy,
    /// The whole plan.
    Plan,
}

/// An axis, and its setting.
#[derive(Clone, Debug)]
pub struct Over {
    /// Its setting.
    pub varied: Varied,
    /// Its name and values.
    pub axis: Axis,
}

/// The forms of a range, for messages.
const FORMS: &str = "NAME=A..B:N (N values from A to B), NAME=A..B (doubling from A to B, or L1..L4), or NAME=A,B,C; \
                     NAME+NAME=A/B,C/D sets both at once; 64KiB is 65536";

/// Units of bytes, and how many they are.
const UNITS: [(&str, u64); 6] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
];

/// A number without its unit, and the unit; empty where it has none.
fn unit(value: &str) -> (&str, &'static str) {
    let mut units = UNITS.iter();
    let found = units.find_map(|(unit, _)| Some((value.strip_suffix(unit)?.trim_end(), *unit)));
    found.unwrap_or((value, ""))
}

/// A value as settings spell it: bytes where it has a unit of them. Numbers of a model have units of their own: they are read
/// with what is written.
fn without_unit(varied: Varied, value: &str) -> String {
    let (number, unit) = unit(value);
    if varied == Varied::Model && unit.ends_with('B') {
        return value.to_owned();
    }
    let bytes = UNITS
        .iter()
        .find(|(own, _)| *own == unit)
        .map(|(_, bytes)| *bytes);
    match (number.parse::<f64>(), bytes) {
        (Ok(number), Some(bytes)) => format!("{}", number * bytes as f64),
        _ => value.to_owned(),
    }
}

impl Over {
    /// Its settings at a value: one, or one for each of the names that are set together.
    pub fn settings(&self, at: usize) -> Vec<String> {
        let (names, value) = (self.axis.name.split('+'), &self.axis.values[at]);
        let values: Vec<&str> = value.split('/').collect();
        let of = |number: usize| values.get(number).copied().unwrap_or(values[0]);
        let set = |(number, name): (usize, &str)| match self.axis.name.contains('+') {
            true => format!("{}={}", name.trim(), without_unit(self.varied, of(number))),
            false => format!("{name}={}", without_unit(self.varied, value)),
        };
        names.enumerate().map(set).collect()
    }

    /// A value with a unit of bytes, if there is one.
    pub fn in_bytes(&self) -> Option<&str> {
        let mut values = self.axis.values.iter().map(String::as_str);
        values.find(|value| unit(value).1.ends_with('B'))
    }

    /// Reads an axis.
    ///
    /// # Errors
    /// It names nothing, or its values are no range and no list.
    pub fn parse(text: &str) -> Result<Over> {
        let wrong = |what: String| Error::usage(what).at(format!("--over {}", quoted(text)));
        let (name, values) = text
            .split_once('=')
            .map(|(name, values)| (name.trim(), values.trim()))
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| wrong("this varies nothing".to_owned()).accepted(FORMS))?;
        if name.contains(',') {
            return Err(wrong("names that are set together are joined by `+`".to_owned()).accepted(FORMS));
        }
        let varied = match name {
            "device" => Varied::Device,
            "distance" => Varied::Distance,
            "strategy" => Varied::Strategy,
            "plan" | "plans" => Varied::Plan,
            _ if name.contains('.') => Varied::Model,
            _ => Varied::Parameter,
        };
        // A plan has commas of its own.
        let separator = if varied == Varied::Plan { ';' } else { ',' };
        let mut all: Vec<String> = Vec::new();
        for part in values.split(separator).map(str::trim) {
            let expanded = match part.split_once("..") {
                Some((first, rest)) if varied != Varied::Plan => {
                    range(first.trim(), rest.trim()).map_err(|what| wrong(what).accepted(FORMS))?
                }
                _ if part.is_empty() => {
                    return Err(wrong("a value is missing".to_owned()).accepted(FORMS));
                }
                _ => vec![part.to_owned()],
            };
            for value in expanded {
                if !all.contains(&value) {
                    all.push(value);
                }
            }
        }
        let together = name.split('+').count();
        if together > 1
            && all
                .iter()
                .any(|value| ![1, together].contains(&value.split('/').count()))
        {
            return Err(wrong(format!("{together} names are set together")).accepted(FORMS));
        }
        if all.len() > MOST_POINTS {
            return Err(wrong(format!("{} values are too many", all.len()))
                .accepted(format!("at most {MOST_POINTS} points in all")));
        }
        Ok(Over {
            varied,
            axis: Axis {
                name: name.to_owned(),
                values: all,
            },
        })
    }
}

/// The values of `L1..L4`: words that end in numbers, one for each number from the first to the last.
fn numbered(first: &str, last: &str) -> Option<Vec<String>> {
    let word = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let number = |text: &str| text.strip_prefix(word)?.parse::<u32>().ok();
    let (from, to) = (number(first)?, number(last)?);
    let is_one = word.ends_with(char::is_alphabetic) && first.parse::<f64>().is_err() && from <= to;
    // One more than is accepted, so that it is refused.
    is_one.then(|| {
        (from..=to)
            .take(MOST_POINTS + 1)
            .map(|number| format!("{word}{number}"))
            .collect()
    })
}

/// The values of `FIRST..LAST:N` or `FIRST..LAST`, or the error. Whole ends give whole values.
fn range(first: &str, rest: &str) -> std::result::Result<Vec<String>, String> {
    let number = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("{} is not a number", quoted(text))),
    };
    let (last, count) = match rest.split_once(':') {
        Some((last, count)) => (last, Some(count)),
        None => (rest, None),
    };
    if let Some(values) = numbered(first, rest) {
        return Ok(values);
    }
    let ((first, own), (last, unit)) = (unit(first), unit(last));
    if own != unit {
        return Err("the ends have different units".to_owned());
    }
    let whole = first.parse::<i64>().is_ok() && last.parse::<i64>().is_ok();
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err("the range ends before it begins".to_owned());
    }
    let spelled = |value: f64| match whole {
        true => format!("{:.0}{unit}", value.round()),
        // Six digits distinguish values, and hide the rounding of divisions.
        false => format!("{}{unit}", format!("{value:.6}").parse::<f64>().unwrap_or(value)),
    };
    match count {
        Some(count) => match count.parse::<usize>() {
            Ok(count) if (2..=MOST_POINTS).contains(&count) => {
                let step = (last - first) / (count - 1) as f64;
                Ok((0..count).map(|at| spelled(first + step * at as f64)).collect())
            }
            _ => Err(format!(
                "{} is not a number of values from 2 to {MOST_POINTS}",
                quoted(count)
            )),
        },
        None if first > 0.0 => {
            let doubled = std::iter::successors(Some(first), |value| Some(value * 2.0));
            let mut values: Vec<String> = doubled.take_while(|&value| value < last).map(spelled).collect();
            values.push(spelled(last));
            Ok(values)
        }
        None => Err("doubling needs to begin above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Over::parse(text).expect(text).axis.values
    }

    #[test]
    fn ranges_are_spaced_doubled_or_listed() {
        assert_eq!(
            values("dram.latency=300..1500:7"),
            ["300", "500", "700", "900", "1100", "1300", "1500"]
        );
        assert_eq!(values("distance=1..32"), ["1", "2", "4", "8", "16", "32"]);
        assert_eq!(values("distance=1..24"), ["1", "2", "4", "8", "16", "24"]);
        assert_eq!(values("items=64, 128,4..8"), ["64", "128", "4", "8"]);
        assert_eq!(values("dram.bandwidth=0.5..1:3"), ["0.5", "0.75", "1"]);
        assert_eq!(values("distance=1..3:9"), ["1", "2", "3"]);
        assert_eq!(values("default-level=L1..L4"), ["L1", "L2", "L3", "L4"]);
        assert_eq!(
            values("strategy=cache:L1..cache:L3"),
            ["cache:L1", "cache:L2", "cache:L3"]
        );
        assert_eq!(
            values("plan=none;a=rolling-async:4,b=cache:L1:2"),
            ["none", "a=rolling-async:4,b=cache:L1:2"]
        );
    }

    #[test]
    fn values_have_units_and_names_are_set_together() {
        let settings = |text: &str| {
            let over = Over::parse(text).expect(text);
            (0..over.axis.values.len())
                .map(|at| over.settings(at))
                .collect::<Vec<_>>()
        };
        assert_eq!(values("l2.bytes=1MiB..4MiB"), ["1MiB", "2MiB", "4MiB"]);
        assert_eq!(
            settings("l2.size=0.5MiB,64Ki"),
            [["l2.size=0.5MiB"], ["l2.size=65536"]]
        );
        assert_eq!(settings("bytes=0.5MiB,64Ki"), [["bytes=524288"], ["bytes=65536"]]);
        assert_eq!(
            settings("l1.latency+l2.latency=30/200,40"),
            [
                ["l1.latency=30", "l2.latency=200"],
                ["l1.latency=40", "l2.latency=40"]
            ]
        );
        for text in ["a.b+c.d=1/2/3", "l2.bytes=1KiB..1MiB"] {
            Over::parse(text).expect_err(text);
        }
    }

    #[test]
    fn what_is_varied_follows_from_the_name() {
        let varied = |text: &str| Over::parse(text).expect(text).varied;
        assert_eq!(varied("dram.latency=1,2"), Varied::Model);
        assert_eq!(varied("items=1,2"), Varied::Parameter);
        assert_eq!(varied("distance=1,2"), Varied::Distance);
        assert_eq!(varied("device=sim:h200,sim:h100"), Varied::Device);
        assert_eq!(varied("strategy=cache:L1,rolling-async"), Varied::Strategy);
    }

    #[test]
    fn wrong_ranges_say_what_is_accepted() {
        for text in [
            "items",
            "=3",
            "items=",
            "items=5..1",
            "items=0..8",
            "items=a..b",
            "items=a3..b4",
            "items=a4..a3",
            "items=a1..a4000000000",
            "items=1..8:1",
            "items=1..1000000:999999",
            "items=1,,2",
            "l1.latency,l2.latency=30/200",
        ] {
            let error = Over::parse(text).expect_err(text).to_string();
            assert!(error.contains("--over"), "{error}");
        }
    }
}
