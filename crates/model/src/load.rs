//! Reading model files: from the built-in ones or the user's, with overrides.

use std::path::Path;

use super::check::check;
use super::numbers::{Completed, Section, complete};
use super::{
    Card, Core, DeviceModel, Dram, FixedRegisters, InstructionCache, L1, L2, Matrix, PooledRegisters,
    Prefetch, SharedMemory, Tlb,
};
use crate::files::{self, FileError};
use crate::suggest::{accepted, nearest, quoted};
use crate::{Error, Result};

macro_rules! built_in_models {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../devices/", $name, ".toml")))),+]
    };
}

/// Every built-in model: its name and its file.
const BUILT_IN: &[(&str, &str)] = built_in_models!(
    "h200",
    "h100",
    "a100",
    "pvc-1550",
    "pvc-1550-documented",
    "pvc-1550-card",
    "xe-lp",
    "gen11"
);

/// The tables of a model's file.
pub(super) const SECTIONS: &[Section] = &[
    Core::SECTION,
    PooledRegisters::SECTION,
    FixedRegisters::SECTION,
    SharedMemory::SECTION,
    L1::SECTION,
    L2::SECTION,
    Dram::SECTION,
    Tlb::SECTION,
    InstructionCache::SECTION,
    Matrix::SECTION,
    Prefetch::SECTION,
    Card::SECTION,
];

/// Model files are at most this long.
const LONGEST_FILE: u64 = 1 << 20;

/// The names of the built-in models.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|&(name, _)| name)
}

/// The built-in model of this name, with or without `sim:` in front; `overrides` as in [`parse`].
///
/// # Errors
/// No model has that name, or an override is wrong.
pub fn built_in(name: &str, overrides: &[String]) -> Result<DeviceModel> {
    let (text, place) = built_in_text(name.strip_prefix("sim:").unwrap_or(name))?;
    parse(text, &place, overrides)
}

/// A built-in model's text, and where it stands.
fn built_in_text(name: &str) -> Result<(&'static str, String)> {
    let found = BUILT_IN.iter().find(|(candidate, _)| *candidate == name);
    let Some((name, text)) = found else {
        return Err(
            Error::usage(format!("no simulated device {}", quoted(name))).accepted(format!(
                "{}, or a model file",
                accepted(name, "models", built_in_names())
            )),
        );
    };
    Ok((text, format!("devices/{name}.toml")))
}

/// The model in a file; `overrides` as in [`parse`].
///
/// # Errors
/// The file cannot be read or is no model, or an override is wrong.
pub fn read(path: &Path, overrides: &[String]) -> Result<DeviceModel> {
    let (text, place) = text_of(path)?;
    parse(&text, &place, overrides)
}

/// A file's text, as far as models may be long, and its name.
fn text_of(path: &Path) -> Result<(String, String)> {
    let place = path.display().to_string();
    let text = files::text(path, LONGEST_FILE).map_err(|error| {
        let what = format!("the device model cannot be read: {error}");
        match error {
            FileError::Io(_) => Error::usage(what).at(&place),
            FileError::TooLong { .. } => Error::input(what).at(&place).accepted("at most 1 MiB"),
            _ => Error::input(what).at(&place),
        }
    })?;
    Ok((text, place))
}

/// The model that a device's name on the command line means: a built-in one (`sim:h200`) or a file
/// (`my.toml`).
///
/// # Errors
/// As [`built_in`] and [`read`].
pub fn find(name: &str, overrides: &[String]) -> Result<DeviceModel> {
    let bare = name.strip_prefix("sim:").unwrap_or(name);
    if bare.ends_with(".toml") {
        read(Path::new(bare), overrides)
    } else {
        built_in(bare, overrides)
    }
}

/// The text of the model of a device's name, with omitted numbers filled in, and its place, for code that changes it as text.
///
/// # Errors
/// As [`find`], without errors in the text itself.
pub fn text(name: &str) -> Result<(String, String)> {
    let bare = name.strip_prefix("sim:").unwrap_or(name);
    if bare.ends_with(".toml") {
        return text_of(Path::new(bare)).map(|(text, place)| (complete(&text, SECTIONS).text, place));
    }
    built_in_text(bare).map(|(text, place)| (complete(text, SECTIONS).text, place))
}

/// The model in a text; `place` names it in errors. Each of `overrides` changes one number:
/// `dram.latency=900`, in the unit that the model uses there.
///
/// # Errors
/// An unknown or missing key, a wrong unit, a number out of range or without source, a model that
/// contradicts itself: with file and line. An override of something that is not there.
pub fn parse(text: &str, place: &str, overrides: &[String]) -> Result<DeviceModel> {
    let completed = complete(text, SECTIONS);
    let text = &completed.text;
    let located = |error: toml::de::Error| located(&error, &completed, place);
    let model: DeviceModel = toml::from_str(text).map_err(located)?;
    check(&model).map_err(|(key, error)| {
        let line = completed.original(line_of_key(text, &key));
        error.at(format!("{place}:{line}"))
    })?;
    if overrides.is_empty() {
        return Ok(model);
    }
    let mut table: toml::Table = text.parse().map_err(located)?;
    change(&mut table, overrides)?;
    let blame = |what: String| Error::usage(what).at(format!("--model {}", overrides.join(" --model ")));
    // Written and read again: a second deserializer would double the time that this crate takes to build.
    let mut model: DeviceModel = toml::from_str(&table.to_string()).map_err(|error| {
        let (what, accepted) = split(error.message());
        let error = blame(what);
        match accepted {
            Some(accepted) => error.accepted(accepted),
            None => error,
        }
    })?;
    check(&model).map_err(|(key, error)| blame(format!("{key}: {}", error.what())))?;
    model.changed = overrides.iter().map(|over| over.trim().to_owned()).collect();
    Ok(model)
}

/// Replaces numbers of a model: `dram.latency=900`, or with a unit, `l2.size=30MiB`.
pub(super) fn change(table: &mut toml::Table, overrides: &[String]) -> Result<()> {
    overrides.iter().try_for_each(|over| apply(table, over))
}

/// What others call numbers of a model, as whole paths: the last part is what is asked for.
const USUAL_NAMES: [(&str, &str); 11] = [
    ("mshr", "l1.outstanding"),
    ("mshrs", "l1.outstanding"),
    ("sm", "core.count"),
    ("sms", "core.count"),
    ("cu", "core.count"),
    ("cus", "core.count"),
    ("dtlb", "tlb"),
    ("hbm", "dram"),
    ("gddr", "dram"),
    ("row-buffer", "dram.bank-busy"),
    ("llc", "l2"),
];

/// Replaces one number of a model.
fn apply(table: &mut toml::Table, over: &str) -> Result<()> {
    let wrong = |what: String| Error::usage(what).at(format!("--model {over}"));
    let (path, number) = over.split_once('=').ok_or_else(|| {
        wrong("this changes nothing".into()).accepted("PATH=NUMBER, as in dram.latency=900")
    })?;
    let number = number.trim();
    let (digits, unit) = number.split_at(
        number
            .rfind(|end: char| end.is_ascii_digit())
            .map_or(0, |at| at + 1),
    );
    let value = match digits.parse::<i64>() {
        Ok(whole) => toml::Value::Integer(whole),
        Err(_) => match digits.parse::<f64>() {
            Ok(float) if float.is_finite() => toml::Value::Float(float),
            _ => return Err(wrong(format!("`{number}` is not a number"))),
        },
    };
    let mut here = table;
    for key in path.trim().split('.') {
        let names: Vec<String> = here.keys().cloned().collect();
        let Some(toml::Value::Table(next)) = here.get_mut(key) else {
            let usual = USUAL_NAMES
                .iter()
                .find(|(name, _)| key.eq_ignore_ascii_case(name));
            let usual = usual.map_or(String::new(), |(_, own)| format!("here that is `{own}`; "));
            let near = nearest(key, names.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            return Err(wrong(format!("the model has no number `{key}` there"))
                .accepted(format!("{usual}{near}there are {}", names.join(", "))));
        };
        here = next;
    }
    match here.get_mut("value") {
        Some(old) if !old.is_array() => {
            *old = value;
            if !unit.is_empty() {
                here.insert("unit".into(), toml::Value::String(unit.trim().to_owned()));
            }
            here.insert(
                "source".into(),
                toml::Value::String(format!("given: --model {over}")),
            );
            Ok(())
        }
        Some(_) => Err(wrong(
            "this is a list, and cannot be replaced by one number".into(),
        )),
        None => {
            let names: Vec<String> = here.keys().cloned().collect();
            Err(wrong("this is a group of numbers".into()).accepted(format!("it has {}", names.join(", "))))
        }
    }
}

/// A parser's error as ours: with the line, and with the expected text separated from the found one.
fn located(error: &toml::de::Error, model: &Completed, place: &str) -> Error {
    let line = error.span().map_or(1, |span| line_of(&model.text, span.start));
    let line = model.original(line);
    let (what, accepted) = split(error.message());
    let error = Error::input(what).at(format!("{place}:{line}"));
    match accepted {
        Some(accepted) => error.accepted(accepted),
        None => error,
    }
}

/// Splits a message at the expected text. Errors are one line.
fn split(message: &str) -> (String, Option<String>) {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match message.split_once(", expected ") {
        Some((what, expected)) => (what.to_owned(), Some(format!("expected {expected}"))),
        None => (message, None),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// The line where a dotted key stands; 1 if it cannot be found.
fn line_of_key(text: &str, key: &str) -> usize {
    let find = || {
        let document = toml::de::DeTable::parse(text).ok()?;
        let mut span = None;
        let mut here = document.get_ref();
        for part in key.split('.') {
            let (name, value) = here.get_key_value(part)?;
            span = Some(name.span());
            match value.get_ref() {
                toml::de::DeValue::Table(next) => here = next,
                _ => break,
            }
        }
        span
    };
    find().map_or(1, |span| line_of(text, span.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> &'static str {
        BUILT_IN[0].1
    }

    fn error(text: &str) -> String {
        parse(text, "my.toml", &[]).unwrap_err().to_string()
    }

    fn line_with(text: &str, part: &str) -> usize {
        1 + text.lines().position(|line| line.contains(part)).unwrap()
    }

    #[test]
    fn every_built_in_model_is_right() {
        for name in built_in_names() {
            let model = built_in(name, &[]).unwrap();
            assert_eq!(model.name, name);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_models() {
        let message = built_in("sim:h2000", &[]).unwrap_err().to_string();
        assert!(
            message.starts_with("no simulated device `h2000`; did you mean `h200`? (models: h200, "),
            "{message}"
        );
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let text = h200().replace("bank-busy =", "bank-buzy =");
        let line = line_with(&text, "bank-buzy");
        let message = error(&text);
        assert!(
            message.starts_with(&format!(
                "my.toml:{line}: unknown field `bank-buzy`; expected one of"
            )),
            "{message}"
        );
    }

    #[test]
    fn a_missing_key_is_named() {
        let start = h200().find("bank-busy =").unwrap();
        let end = start + h200()[start..].find('\n').unwrap();
        let message = error(&format!("{}{}", &h200()[..start], &h200()[end..]));
        assert!(message.contains("missing field `bank-busy`"), "{message}");
    }

    #[test]
    fn a_wrong_unit_is_named_with_its_line() {
        let text = h200().replacen("unit = \"MHz\"", "unit = \"GHz\"", 1);
        let line = line_with(&text, "GHz");
        assert_eq!(
            error(&text),
            format!("my.toml:{line}: wrong unit `GHz`; expected `MHz`")
        );
    }

    #[test]
    fn a_number_out_of_range_is_named_with_its_line() {
        let text = h200().replacen("schedulers = { value = 4", "schedulers = { value = -4", 1);
        let line = line_with(&text, "value = -4");
        assert_eq!(
            error(&text),
            format!("my.toml:{line}: -4 is out of range; expected 0 to 16777216")
        );
        let text = h200().replacen("schedulers = { value = 4", "schedulers = { value = 4.5", 1);
        assert!(error(&text).contains("4.5 is not whole"), "{}", error(&text));
    }

    #[test]
    fn a_number_needs_a_source() {
        let text = h200().replacen(
            "schedulers = { value = 4, source",
            "schedulers = { value = 4, sauce",
            1,
        );
        assert!(error(&text).contains("unknown field `sauce`"), "{}", error(&text));
    }

    #[test]
    fn a_contradiction_is_found_at_its_line() {
        let text = h200().replacen("banks = { value = 32", "banks = { value = 31", 1);
        let line = line_with(&text, "value = 31");
        assert!(
            error(&text).starts_with(&format!("my.toml:{line}: ")),
            "{}",
            error(&text)
        );
    }

    #[test]
    fn a_number_that_is_left_out_is_the_vendors() {
        assert!(!h200().contains("read-after-write"));
        let model = built_in("h200", &[]).unwrap();
        assert_eq!(*model.l2.read_after_write, 0);
        assert_eq!(model.l2.read_after_write.source(), "not measured");
        assert_eq!(*built_in("gen11", &[]).unwrap().l2.read_after_write, 30);
        // It can be changed, and stands in the text that calibration starts from.
        let changed = built_in("h200", &["l2.read-after-write=7".into()]).unwrap();
        assert_eq!(*changed.l2.read_after_write, 7);
        assert!(
            super::text("h200")
                .unwrap()
                .0
                .contains("read-after-write = { value = 0, unit = \"cycles\"")
        );
        // A model that says it keeps its own, and lines behind it are those of the file.
        let own = "read-after-write = { value = 9, unit = \"cycles\", source = \"test\" }\n[dram]";
        let text = h200().replacen("[dram]", own, 1);
        assert_eq!(*parse(&text, "my.toml", &[]).unwrap().l2.read_after_write, 9);
    }

    #[test]
    fn overrides_change_one_number() {
        let model = built_in("h200", &["dram.latency=900".into(), "core.clock=1000.5".into()]).unwrap();
        assert_eq!(*model.dram.latency, 900);
        assert_eq!(*model.core.clock, 1000.5);
        assert_eq!(model.dram.latency.source(), "given: --model dram.latency=900");
        let model = built_in(
            "h200",
            &["l2.size=61440 KiB".into(), "dram.latency=9e2cycles".into()],
        )
        .unwrap();
        assert_eq!((*model.l2.size, *model.dram.latency), (60 << 20, 900));
    }

    #[test]
    fn wrong_overrides_say_what_there_is() {
        for (over, part) in [
            (
                "dram.latencies=900",
                "the model has no number `latencies` there; did you mean `latency`? there are",
            ),
            ("dram=900", "this is a group of numbers; it has"),
            ("l1.MSHRs=9", "there; here that is `l1.outstanding`; there are"),
            ("hbm.latency=9", "here that is `dram`"),
            ("dram.latency", "this changes nothing; PATH=NUMBER"),
            ("dram.latency=fast", "`fast` is not a number"),
            ("dram.latency=400ns", "wrong unit `ns`; expected `cycles`"),
            ("l1.outstanding=1KiB", "`KiB`"),
            ("L1.size=64", "did you mean `l1`?"),
            (
                "dram.latency=-1",
                "-1 cycles is out of range; expected 0 to 1000000 cycles",
            ),
            ("dram.size=1e9", "out of range; expected 0 to 1048576 GiB"),
            ("shared.sizes=1", "this is a list"),
            ("core.schedulers=0", "core.schedulers"),
        ] {
            let message = built_in("h200", &[over.into()]).unwrap_err().to_string();
            assert!(message.contains(part), "{over}: {message}");
            assert!(message.contains(&format!("--model {over}")), "{over}: {message}");
        }
    }

    #[test]
    fn hostile_files_end_in_an_error() {
        for text in ["", "name = 1", "[core]\n[core]", "\u{0}", "name = \"x\"\n[[[[[["] {
            let message = error(text);
            assert!(
                message.starts_with("my.toml:") && !message.contains('\n'),
                "{message}"
            );
        }
    }
}
