//! A model file with some of its numbers replaced, each with where it comes from. All else stays as it is, order and all.

use std::collections::BTreeMap;

use headstart::device::model::{self, DeviceModel};
use headstart::{Error, Result};

use super::fit::Fitted;

/// The model that calibration starts from, as text: a number a line, under its table's heading.
#[derive(Clone, Debug)]
pub struct Base {
    text: String,
    place: String,
}

impl Base {
    /// A built-in model, or a file.
    ///
    /// # Errors
    /// There is none, or it is wrong.
    pub fn find(name: &str) -> Result<Base> {
        let (text, place) = model::text(name)?;
        model::parse(&text, &place, &[])?;
        Ok(Base { text, place })
    }

    /// The line that holds a number, counted from 0, and the text before and behind the number itself.
    fn line(&self, key: &str) -> Option<(usize, &str)> {
        let (table, name) = key.rsplit_once('.')?;
        let mut here = "";
        for (index, line) in self.text.lines().enumerate() {
            let trimmed = line.trim();
            if let Some(heading) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                here = heading;
            }
            let is_it = here == table
                && trimmed
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.trim_start().starts_with('='));
            if is_it && trimmed.contains("value = ") {
                return Some((index, line));
            }
        }
        None
    }

    /// A number, in the unit that the model uses there.
    pub fn number(&self, key: &str) -> Option<f64> {
        let (_, line) = self.line(key)?;
        let (_, rest) = line.split_once("value = ")?;
        rest.split([',', ' ', '}']).next()?.parse().ok()
    }

    /// Whether the model keeps only whole numbers there: cycles and counts.
    fn is_whole(&self, key: &str) -> bool {
        let line = self.line(key).map_or("", |(_, line)| line);
        line.contains("unit = \"cycles\"") || !line.contains("unit = ")
    }

    /// A number as precise as the model keeps it: whole, or four digits.
    pub fn rounded(&self, key: &str, number: f64) -> f64 {
        if self.is_whole(key) {
            return number.round().max(if key == "dram.banks" { 1.0 } else { 0.0 });
        }
        let digits = 3 - number.abs().max(1e-9).log10().floor() as i32;
        let scale = 10f64.powi(digits);
        (number * scale).round() / scale
    }

    /// The model with these numbers.
    ///
    /// # Errors
    /// It would contradict itself.
    pub fn with(&self, numbers: &BTreeMap<&'static str, f64>) -> Result<DeviceModel> {
        let overrides: Vec<String> = numbers
            .iter()
            .map(|(key, number)| format!("{key}={number}"))
            .collect();
        model::parse(&self.text, &self.place, &overrides)
    }

    /// The text with new numbers: the model's own of a device, then those that were fitted.
    ///
    /// # Errors
    /// A number has no line of its own, or the model would contradict itself.
    pub fn write(
        &self,
        named: &Named,
        device: &[(&'static str, f64, String)],
        fitted: &[Fitted],
    ) -> Result<String> {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        let mut put = |key: &str, number: f64, source: &str| -> Result<()> {
            let (index, line) = self.line(key).ok_or_else(|| {
                Error::usage(format!("`{key}` is not on a line of its own")).at(&self.place)
            })?;
            let name = line.split('=').next().unwrap_or_default().trim();
            let unit = line
                .split_once("unit = \"")
                .and_then(|(_, rest)| rest.split_once('"'))
                .map_or(String::new(), |(unit, _)| format!(" unit = \"{unit}\","));
            let source = source.replace(['"', '\\'], "'");
            lines[index] = format!("{name} = {{ value = {number},{unit} source = \"{source}\" }}");
            Ok(())
        };
        for (key, number, source) in device {
            put(key, *number, source)?;
        }
        for one in fitted {
            let source = format!(
                "{}: `{} {}` gives {} on it, {} here",
                named.measured,
                one.kernel,
                one.settings,
                short(one.measured),
                short(one.modelled)
            );
            put(one.key, one.value, &source)?;
        }
        let mut text = String::new();
        let (mut in_notes, mut in_tables) = (false, false);
        for line in lines {
            if in_notes {
                in_notes = !line.contains("\"\"\"");
                continue;
            }
            // The device's own name stands before all tables; L2 has one, too.
            in_tables |= line.starts_with('[');
            if in_tables {
                text.push_str(&line);
                text.push('\n');
            } else if line.starts_with("name = ") {
                text.push_str(&format!("name = \"{}\"\n", named.name));
            } else if line.starts_with("title = ") {
                text.push_str(&format!(
                    "title = \"{}\"\n",
                    named.title.replace(['"', '\\'], "'")
                ));
            } else if let Some(notes) = line.strip_prefix("notes = \"\"\"") {
                in_notes = !notes.contains("\"\"\"");
                let what = format!("{}\nWhat says otherwise is from {}.", named.notes, self.place);
                text.push_str(&format!("notes = \"\"\"\n{what}\n\"\"\"\n"));
            } else {
                text.push_str(&line);
                text.push('\n');
            }
        }
        model::parse(&text, "the new model", &[])?;
        Ok(text)
    }
}

/// The name of the new model, and the origin of its numbers.
#[derive(Clone, Debug)]
pub struct Named {
    /// As in `sim:NAME`.
    pub name: String,
    /// As people call the device.
    pub title: String,
    /// For all of it.
    pub notes: String,
    /// For one number: the device and date of its measurement.
    pub measured: String,
}

/// Four digits.
fn short(number: f64) -> String {
    headstart::report::number::figures(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_replaced_and_all_else_stays() {
        for name in model::built_in_names() {
            let base = Base::find(name).expect("a built-in model");
            let named = Named {
                name: "mine".into(),
                title: "My \"own\"".into(),
                notes: "Measured.".into(),
                measured: "measured".into(),
            };
            let fitted = Fitted {
                key: "dram.latency",
                value: 777.0,
                before: base.number("dram.latency").expect("there"),
                kernel: "micro/latency",
                settings: "footprint=2^30".into(),
                measured: 700.0,
                modelled: 701.0,
            };
            let text = base.write(&named, &[], &[fitted]).expect("a model");
            let model = model::parse(&text, "mine.toml", &[]).expect("it is right");
            let before = model::built_in(name, &[]).expect("a built-in model");
            assert_eq!(
                (*model.dram.latency, model.name.as_str(), model.title.as_str()),
                (777, "mine", "My 'own'")
            );
            assert!(
                model.dram.latency.source().contains("footprint=2^30"),
                "{}",
                model.dram.latency.source()
            );
            assert_eq!(
                (&model.core, &model.l2, &model.instructions),
                (&before.core, &before.l2, &before.instructions)
            );
        }
    }

    #[test]
    fn numbers_are_as_precise_as_the_model_keeps_them() {
        let base = Base::find("h200").expect("a built-in model");
        assert_eq!(base.number("l2.requests-per-cycle"), Some(84.0));
        assert_eq!(base.number("l2.nothing"), None);
        assert_eq!(base.rounded("dram.latency", 600.7), 601.0);
        assert_eq!(base.rounded("dram.bandwidth", 4567.89), 4568.0);
        assert_eq!(base.rounded("instructions.fp32.rate", 0.123_456), 0.1235);
    }
}
