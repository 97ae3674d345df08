//! Every number of a model in one list, with its unit, its source, and what it is.

use toml::{Table, Value};

use super::instruction::{InstructionTiming, Instructions};
use super::load::{SECTIONS, change, find, text};
use super::numbers::key;
use crate::Result;

/// A number of a model, or something that holds or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its path, as `--model` spells it: `dram.latency`.
    pub path: String,
    /// Its value, as the model's file spells it.
    pub value: String,
    /// Its unit; empty where it is a pure number.
    pub unit: String,
    /// How it is known.
    pub source: String,
    /// Its description; empty if nothing is documented.
    pub meaning: String,
}

/// The numbers of the model that a device's name means, in the order of its file.
///
/// # Errors
/// There is no such model, or an override is wrong: as for [`find`].
pub fn listing(name: &str, overrides: &[String]) -> Result<Vec<Listed>> {
    // A model that is wrong is refused with the place in its file.
    find(name, overrides)?;
    let (text, _) = text(name)?;
    let mut table: Table = text
        .parse()
        .map_err(|error| crate::Error::bug(format!("a model that was read is read no more: {error}")))?;
    change(&mut table, overrides)?;
    let mut listed = Vec::new();
    walk(&table, "", &mut listed);
    Ok(listed)
}

fn walk(table: &Table, prefix: &str, listed: &mut Vec<Listed>) {
    for (name, value) in table {
        let Value::Table(inner) = value else { continue };
        let path = match prefix {
            "" => name.clone(),
            _ => format!("{prefix}.{name}"),
        };
        let text = |key: &str| {
            inner
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let value = match (inner.get("value"), inner.get("reaches")) {
            (Some(value), _) => value.to_string(),
            (None, Some(_)) => format!("{} by {}", text("reaches"), text("by")),
            (None, None) => {
                walk(inner, &path, listed);
                continue;
            }
        };
        listed.push(Listed {
            value,
            unit: text("unit"),
            source: text("source"),
            meaning: meaning(&path),
            path,
        });
    }
}

/// The documentation of a number's field.
fn meaning(path: &str) -> String {
    let Some((section, field)) = path.rsplit_once('.') else {
        return String::new();
    };
    let said = |meanings: &[(&'static str, &'static str)], field: &str| {
        let found = meanings.iter().find(|(name, _)| key(name) == field);
        found.map_or("", |&(_, meaning)| meaning.trim())
    };
    let meaning = match section.strip_prefix("instructions.") {
        Some(class) => match said(Instructions::MEANINGS, class) {
            "" => String::new(),
            class => format!("{} {class}", said(InstructionTiming::MEANINGS, field)),
        },
        None => SECTIONS
            .iter()
            .find(|known| known.name == section)
            .map_or("", |known| said(known.meanings, field))
            .to_owned(),
    };
    unlinked(&meaning)
}

/// Documentation without rustdoc's links: ``[`Core::clock`](super::Core)`` becomes `Core::clock`.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((name, after)) = link.split_once(']') else {
            break;
        };
        plain.push_str(before);
        plain.push_str(name);
        rest = after;
        if let Some((_, after)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            rest = after;
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::super::built_in_names;
    use super::*;

    #[test]
    fn every_number_of_every_model_has_a_source_and_a_meaning() {
        for name in built_in_names() {
            let listed = listing(name, &[]).expect(name);
            assert!(listed.len() > 100, "{name}: {}", listed.len());
            for number in listed {
                assert!(!number.source.is_empty(), "{name}: {}", number.path);
                assert!(!number.meaning.is_empty(), "{name}: {}", number.path);
                assert!(!number.meaning.contains("]("), "{}", number.meaning);
            }
        }
    }

    #[test]
    fn a_changed_number_is_listed_as_given() {
        let listed = listing("h200", &["dram.latency=900".to_owned()]).expect("a model");
        let latency = listed
            .iter()
            .find(|number| number.path == "dram.latency")
            .expect("listed");
        assert_eq!((&*latency.value, &*latency.unit), ("900", "cycles"));
        assert_eq!(latency.source, "given: --model dram.latency=900");
    }

    #[test]
    fn links_become_their_text() {
        assert_eq!(
            unlinked("as [`a::b`](c) says, [`d`] too [1"),
            "as `a::b` says, `d` too [1"
        );
    }
}
