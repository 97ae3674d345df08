//! A module that is loaded beside the program's own: its variables would be copies, so that its code reads the addresses of the
//! program's from variables that the loader fills.
//!
//! ```text
//! before                                   after
//! mov.u64 %rd1, table;                     ld.const.u64 %rd1, [headstart_address_of_table];
//! ld.const.f32 %f1, [%rd2];                ld.global.f32 %f1, [%rd2];
//! ld.const.f32 %f1, [scale+4];             { .reg .b64 %hs_at0; ld.const.u64 %hs_at0, [headstart_address_of_scale];
//!                                          ld.global.f32 %f1, [%hs_at0+4]; }
//! ```

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::front::ptx::{Origin, Original, Reference, VariableUse};

/// Statements with what takes their place.
pub(in crate::tune) type Exchanges = Vec<(Range<usize>, String)>;

/// What the code of an entry becomes that takes these variables from the program; `kept` says where their addresses are.
///
/// # Errors
/// The code does something with a variable that has no such form: which statement.
pub(in crate::tune) fn redirected(
    original: &Original,
    kept: &HashMap<String, String>,
) -> Result<(Exchanges, usize)> {
    let names = kept.keys().map(String::as_str).collect();
    let references = original.references(&names)?;
    let refused = |what: &str| {
        Error::input(format!(
            "variables of the program's module cannot be redirected: {what}"
        ))
        .accepted("a module that `headstart tune -o FILE` writes, loaded instead of the program's own")
    };
    if references.calls_any {
        return Err(refused("a function is called through a pointer"));
    }
    let constant: Vec<&str> = original
        .parameters
        .iter()
        .filter_map(|origin| match origin {
            Origin::Variable {
                name,
                is_constant: true,
                ..
            } => Some(&name[..]),
            _ => None,
        })
        .collect();
    let mut takes_constant = false;
    let all = references.all.iter().map(|reference| {
        let statement = &original.text[reference.span.clone()];
        let is_constant = |name: &String| constant.contains(&&name[..]);
        let text = match reference.use_ {
            VariableUse::Address { offset } => {
                takes_constant |= reference.variables.iter().any(is_constant);
                address(statement, &kept[&reference.variables[0]], offset)
            }
            VariableUse::Access => access(statement, reference, kept, is_constant),
            VariableUse::Other => None,
        };
        let text = text.ok_or_else(|| refused(&format!("`{statement}`")))?;
        Ok((reference.span.clone(), text))
    });
    let mut all = all.collect::<Result<Exchanges>>()?;
    if takes_constant {
        if references.takes_others {
            return Err(refused(
                "constant memory of two modules may be read by one instruction",
            ));
        }
        for span in references.through_registers {
            let statement = &original.text[span.clone()];
            let text = through_register(statement).ok_or_else(|| refused(&format!("`{statement}`")))?;
            all.push((span, text));
        }
    }
    Ok((all, references.declarations))
}

/// `ld.const.f32 %f1, [%rd1];` where the register has a global address, as the loader gives it.
fn through_register(statement: &str) -> Option<String> {
    match statement {
        _ if statement.contains("cvta.to.") => None,
        _ if statement.contains("cvta.const") => Some(statement.replacen("cvta.const", "mov", 1)),
        _ => Some(statement.replacen(".const", ".global", 1)),
    }
}

/// `@%p1 mov.u64 %rd1, table+8;`.
fn address(statement: &str, kept_in: &str, offset: i64) -> Option<String> {
    let (instruction, _) = statement.split_once(',')?;
    let (guard, instruction) = match instruction.trim_start().starts_with('@') {
        true => instruction.trim_start().split_once(char::is_whitespace)?,
        false => ("", instruction),
    };
    let register = instruction.split_whitespace().next_back()?;
    let mut text = format!("{guard} ld.const.u64 {register}, [{kept_in}];");
    if offset != 0 {
        let _ = write!(text, " {guard} add.s64 {register}, {register}, {offset};");
    }
    Some(text.trim_start().to_owned())
}

/// `ld.const.f32 %f1, [scale+4];`.
fn access(
    statement: &str,
    reference: &Reference,
    kept: &HashMap<String, String>,
    is_constant: impl Fn(&String) -> bool,
) -> Option<String> {
    let mut changed = statement.to_owned();
    let mut text = String::from("{");
    for (number, name) in reference.variables.iter().enumerate() {
        let register = format!("%hs_at{number}");
        let _ = write!(
            text,
            " .reg .b64 {register}; ld.const.u64 {register}, [{}];",
            kept.get(name)?
        );
        changed = with_word(&changed, name, &register);
        if is_constant(name) {
            changed = changed.replacen(".const", ".global", 1);
        }
    }
    let _ = write!(text, " {changed} }}");
    Some(text)
}

/// A text with a name exchanged wherever it is a whole word.
fn with_word(text: &str, name: &str, other: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let mut changed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        let is_whole = !before.ends_with(is_part) && !behind.starts_with(is_part);
        changed.push_str(before);
        changed.push_str(if is_whole { other } else { name });
        rest = behind;
    }
    changed.push_str(rest);
    changed
}
