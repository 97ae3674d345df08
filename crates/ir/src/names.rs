//! Names of functions as their sources have them: C++ and Rust write namespaces and types into a symbol.
//!
//! ```
//! use headstart::names;
//!
//! assert_eq!(names::shown("_Z7tgatherIfEvPKT_PKiPS0_i"), "tgather<float>");
//! assert_eq!(names::shown("gather"), "gather");
//! let entries = ["_Z7tgatherIfEvPKT_PKiPS0_i", "_Z4spmvPKi"];
//! assert_eq!(names::find(&entries, "tgather")?, Some(entries[0]));
//! # Ok::<(), headstart::Error>(())
//! ```

use std::borrow::Cow;

use cpp_demangle::{DemangleOptions, Symbol};

use crate::error::{Error, Result};
use crate::suggest::quoted;

/// Most choices that a message lists.
const MOST_LISTED: usize = 8;

/// How mangled symbols begin: in the Itanium C++ ABI, which Rust's older scheme follows, and in Rust's present one.
const MANGLED: [&str; 2] = ["_Z", "_R"];

/// The name behind a symbol, with template arguments and without the parameters' types; nothing if it is no mangled one.
pub(crate) fn demangled(symbol: &str) -> Option<String> {
    // The demanglers also read what follows the prefix: an `extern "C"` kernel `g` would be the type `__float128`.
    if !MANGLED.iter().any(|prefix| symbol.starts_with(prefix)) {
        return None;
    }
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return Some(format!("{name:#}"));
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let name = Symbol::new(symbol).ok()?.demangle(&options).ok()?;
    // SYCL's kernels are named by the type of their function.
    let name = name
        .strip_prefix("typeinfo name for ")
        .map_or(name.clone(), str::to_owned);
    (name != symbol).then_some(name)
}

/// A symbol as people read it.
pub fn shown(symbol: &str) -> Cow<'_, str> {
    demangled(symbol).map_or(Cow::Borrowed(symbol), Cow::Owned)
}

/// The symbol that a name means: itself; or else the only one whose demangled name it is; or else the only one whose
/// name it is without namespaces, without template arguments, or without both. Spaces do not count.
///
/// # Errors
/// It means several: which.
pub fn find<'n>(symbols: &[&'n str], wanted: &str) -> Result<Option<&'n str>> {
    if let Some(&same) = symbols.iter().find(|&&symbol| symbol == wanted) {
        return Ok(Some(same));
    }
    let names: Vec<(&'n str, String)> = symbols
        .iter()
        .map(|&symbol| (symbol, shown(symbol).into_owned()))
        .collect();
    let levels: [fn(&str) -> &str; 4] = [|name| name, unqualified, plain, |name| last(plain(name))];
    let wanted_parts = || wanted.chars().filter(|character| *character != ' ');
    for level in levels {
        // Sources write `gather<float,4>`, demanglers `gather<float, 4>`.
        let is_wanted = |name: &str| {
            level(name)
                .chars()
                .filter(|character| *character != ' ')
                .eq(wanted_parts())
        };
        let found: Vec<&(&str, String)> = names.iter().filter(|(_, name)| is_wanted(name)).collect();
        match found[..] {
            [] => {}
            [(symbol, _)] => return Ok(Some(symbol)),
            _ => {
                let listed: Vec<String> = found
                    .iter()
                    .take(MOST_LISTED)
                    .map(
                        |(symbol, name)| match names.iter().filter(|(_, other)| other == name).count() {
                            1 => quoted(name),
                            _ => quoted(symbol),
                        },
                    )
                    .collect();
                let more = if found.len() > MOST_LISTED { ", …" } else { "" };
                return Err(
                    Error::usage(format!("{} means {} entries", quoted(wanted), found.len()))
                        .accepted(format!("one of {}{more}", listed.join(", "))),
                );
            }
        }
    }
    Ok(None)
}

/// A name without template arguments at its end.
fn plain(name: &str) -> &str {
    if !name.ends_with('>') {
        return name;
    }
    let mut depth = 0u32;
    for (at, character) in name.char_indices().rev() {
        match character {
            '>' => depth += 1,
            '<' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return &name[..at];
        }
    }
    name
}

/// A name without namespaces, with its template arguments.
fn unqualified(name: &str) -> &str {
    let path = plain(name).len();
    &name[path - last(&name[..path]).len()..]
}

/// The last part of a path.
fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: [&str; 4] = [
        "_Z7tgatherIfEvPKT_PKiPS0_i",
        "_Z7tgatherIdEvPKT_PKiPS0_i",
        "_ZN4math5scaleEPfi",
        "gather",
    ];

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(shown(SYMBOLS[0]), "tgather<float>");
        assert_eq!(shown(SYMBOLS[2]), "math::scale");
        assert_eq!(shown("_RNvCs1234_7mycrate6gather"), "mycrate::gather");
        assert_eq!(shown("_ZTSN3app6gatherIfEE"), "app::gather<float>");
        assert_eq!(demangled("gather"), None);
        assert_eq!(demangled("_Z"), None);
    }

    #[test]
    fn names_that_are_not_mangled_are_shown_as_they_are() {
        // Each is a type, a name or an encoding behind a mangled symbol's prefix.
        for name in ["g", "f", "i", "d", "Pf", "St4pair", "ZN1a1bE", "RNvC1a1b", "1a"] {
            assert_eq!(shown(name), name);
        }
    }

    #[test]
    fn a_name_is_found_where_it_means_one() {
        let found = |name: &str| find(&SYMBOLS, name).expect("one or none");
        assert_eq!(found("tgather<double>"), Some(SYMBOLS[1]));
        assert_eq!(found("math::scale"), Some(SYMBOLS[2]));
        assert_eq!(found("scale"), Some(SYMBOLS[2]));
        assert_eq!(found("gather"), Some("gather"));
        assert_eq!(found("scatter"), None);
        let error = find(&SYMBOLS, "tgather").expect_err("two").to_string();
        assert!(error.contains("`tgather<float>`, `tgather<double>`"), "{error}");
    }

    #[test]
    fn template_arguments_are_found_as_sources_spell_them() {
        let symbols = ["_ZN3lib6gatherIdLi8EEEvPKT_", "_ZN3lib6gatherIfLi4EEEvPKT_"];
        for wanted in ["lib::gather<float, 4>", "lib::gather<float,4>", "gather<float,4>"] {
            assert_eq!(find(&symbols, wanted).expect("one"), Some(symbols[1]), "{wanted}");
        }
        assert!(find(&symbols, "gather").is_err(), "two");
    }
}
