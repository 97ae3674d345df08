//! The parameters of gallery kernels: whole numbers with a default and a range, or one of a few words, set as
//! `name=value`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use headstart::ir::Kernel;
use headstart::report::number::grouped;
use headstart::suggest::{accepted, quoted};
use headstart::tune::Workload;
use headstart::{Error, Result};

/// A parameter of a gallery kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, for `headstart kernels`.
    pub meaning: &'static str,
    /// Its value where it is not set.
    pub default: u64,
    /// The values that it may have.
    pub range: RangeInclusive<u64>,
    /// The words for its values, from 0 on; none where it is a number.
    pub words: &'static [&'static str],
}

impl Parameter {
    /// A whole number.
    pub const fn number(
        name: &'static str,
        meaning: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Parameter {
        Parameter {
            name,
            meaning,
            default,
            range,
            words: &[],
        }
    }

    /// One of these words, the first of them where it is not set.
    pub const fn choice(
        name: &'static str,
        meaning: &'static str,
        words: &'static [&'static str],
    ) -> Parameter {
        Parameter {
            name,
            meaning,
            default: 0,
            range: 0..=words.len() as u64 - 1,
            words,
        }
    }

    /// A value as it is written: a word or a number.
    pub fn written(&self, value: u64) -> String {
        match usize::try_from(value)
            .ok()
            .and_then(|value| self.words.get(value))
        {
            Some(word) => (*word).to_owned(),
            None => value.to_string(),
        }
    }
}

/// The values of a kernel's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    parameters: &'static [Parameter],
    /// One for each parameter; none where it was not set.
    values: Vec<Option<u64>>,
}

impl Settings {
    /// Every parameter at its default.
    pub fn defaults(parameters: &'static [Parameter]) -> Settings {
        Settings {
            parameters,
            values: vec![None; parameters.len()],
        }
    }

    /// Sets a parameter as the command line spells it: `items=512`, `table=2^20`, `elements=400_000`.
    ///
    /// # Errors
    /// There is no such parameter, it was set before, or the value is no number in its range.
    pub fn set(&mut self, assignment: &str) -> Result<()> {
        let Some((name, value)) = assignment.split_once('=') else {
            return Err(Error::usage(format!("{} sets nothing", quoted(assignment))).accepted("`name=value`"));
        };
        let (name, value) = (name.trim(), value.trim());
        let names = || self.parameters.iter().map(|parameter| parameter.name);
        let Some(position) = names().position(|known| known == name) else {
            return Err(
                Error::usage(format!("there is no parameter {}", quoted(name))).accepted(accepted(
                    name,
                    "parameters",
                    names(),
                )),
            );
        };
        let parameter = &self.parameters[position];
        if !parameter.words.is_empty() {
            let word = parameter.words.iter().position(|word| *word == value);
            let Some(word) = word else {
                return Err(
                    Error::usage(format!("{} is not a value for `{name}`", quoted(value)))
                        .accepted(accepted(value, "values", parameter.words.iter().copied())),
                );
            };
            return self.put(position, word as u64);
        }
        let range = format!(
            "{} to {}",
            grouped(*parameter.range.start()),
            grouped(*parameter.range.end())
        );
        let number = number(value).ok_or_else(|| {
            Error::usage(format!("{} is not a value for `{name}`", quoted(value)))
                .accepted(format!("a whole number from {range}, such as 4096 or 2^12"))
        })?;
        if !parameter.range.contains(&number) {
            return Err(Error::usage(format!("`{name}` cannot be {}", grouped(number))).accepted(range));
        }
        self.put(position, number)
    }

    fn put(&mut self, position: usize, value: u64) -> Result<()> {
        if self.values[position].replace(value).is_some() {
            let name = self.parameters[position].name;
            return Err(Error::usage(format!("`{name}` is set twice")));
        }
        Ok(())
    }

    /// The value of a parameter that the kernel has.
    pub fn get(&self, name: &str) -> u64 {
        self.given(name).unwrap_or_else(|| {
            let parameter = self.parameters.iter().find(|parameter| parameter.name == name);
            parameter
                .expect("a kernel asks for its own parameters only")
                .default
        })
    }

    /// The value that was set, if one was.
    pub fn given(&self, name: &str) -> Option<u64> {
        let position = self
            .parameters
            .iter()
            .position(|parameter| parameter.name == name)?;
        self.values[position]
    }

    /// The same settings with one parameter at another value, which may lie outside its range: checks run kernels on
    /// less data than anyone would ask for.
    #[must_use]
    pub fn with(&self, name: &str, value: u64) -> Settings {
        let mut changed = self.clone();
        let position = self
            .parameters
            .iter()
            .position(|parameter| parameter.name == name);
        changed.values[position.expect("a kernel sets its own parameters only")] = Some(value);
        changed
    }

    /// Every parameter with its value, in the kernel's order.
    pub fn all(&self) -> Vec<(String, String)> {
        self.parameters
            .iter()
            .map(|parameter| {
                (
                    parameter.name.to_owned(),
                    parameter.written(self.get(parameter.name)),
                )
            })
            .collect()
    }

    /// A value that fits 32 bits, as the ranges of most parameters do.
    pub fn small(&self, name: &str) -> u32 {
        u32::try_from(self.get(name)).expect("the parameter's range fits 32 bits")
    }

    /// The word that a parameter of words was set to.
    pub fn word(&self, name: &str) -> &'static str {
        let parameter = self.parameters.iter().find(|parameter| parameter.name == name);
        let words = parameter.map_or(&[][..], |parameter| parameter.words);
        words.get(self.get(name) as usize).copied().unwrap_or_default()
    }
}

/// A whole number: digits, which `_` may set apart, or a power such as `2^28`.
fn number(text: &str) -> Option<u64> {
    let whole = |text: &str| -> Option<u64> {
        let digits: String = text.chars().filter(|&c| c != '_').collect();
        let clean = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        clean.then(|| digits.parse().ok()).flatten()
    };
    match text.split_once('^') {
        Some((base, exponent)) => whole(base)?.checked_pow(u32::try_from(whole(exponent)?).ok()?),
        None => whole(text),
    }
}

/// A kernel with the parameters `groups` and `group`, in the work-groups that they say.
pub(crate) fn launch(settings: &Settings, kernel: Kernel) -> Workload {
    Workload::new(
        Arc::new(kernel),
        settings.small("groups"),
        settings.small("group"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    static PARAMETERS: [Parameter; 2] = [
        Parameter::number("items", "items of a work-item", 1024, 1..=1 << 20),
        Parameter::number("table", "elements of the table", 1 << 28, 1..=1 << 31),
    ];

    #[test]
    fn words_are_values() {
        static WORDS: [Parameter; 1] = [Parameter::choice("order", "of the rows", &["sorted", "random"])];
        let mut settings = Settings::defaults(&WORDS);
        assert_eq!(settings.word("order"), "sorted");
        settings.set("order=random").expect("a word");
        assert_eq!((settings.word("order"), settings.get("order")), ("random", 1));
        assert_eq!(settings.all(), [("order".into(), "random".into())]);
        let message = Settings::defaults(&WORDS)
            .set("order=sortd")
            .expect_err("no word")
            .to_string();
        assert!(message.contains("did you mean `sorted`?"), "{message}");
    }

    #[test]
    fn values_are_set_read_and_listed() {
        let mut settings = Settings::defaults(&PARAMETERS);
        settings.set("table=2^20").expect("a power");
        assert_eq!((settings.get("table"), settings.get("items")), (1 << 20, 1024));
        settings.set(" items = 4_096").expect("a number");
        assert_eq!(
            settings.all(),
            [
                ("items".into(), "4096".into()),
                ("table".into(), "1048576".into())
            ]
        );
        assert_eq!(settings.with("items", 0).get("items"), 0);
    }

    #[test]
    fn mistakes_name_what_would_be_accepted() {
        for (assignment, expected) in [
            ("itms=4", "did you mean `items`? (parameters: items, table)"),
            ("items", "`name=value`"),
            ("items=", "a whole number from 1 to 1,048,576"),
            ("items=-1", "not a value for `items`"),
            ("items=0", "`items` cannot be 0; 1 to 1,048,576"),
            ("items=2^99", "not a value for `items`"),
            ("items=9999999999999999999999", "not a value for `items`"),
        ] {
            let message = Settings::defaults(&PARAMETERS)
                .set(assignment)
                .expect_err(assignment)
                .to_string();
            assert!(message.contains(expected), "{assignment}: {message}");
        }
        let mut settings = Settings::defaults(&PARAMETERS);
        settings.set("items=4").expect("once");
        assert!(
            settings
                .set("items=5")
                .expect_err("twice")
                .to_string()
                .contains("set twice")
        );
    }
}
