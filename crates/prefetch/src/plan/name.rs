//! The name of a load in a plan: the parameter that it reads and, if that is ambiguous, the place of the load.

use std::fmt;
use std::num::NonZeroU32;

use crate::error::{Error, Result};
use crate::suggest::quoted;

/// The load that a strategy is for: `values`, `values@row`, `values@gather.rs:41`; `values@*` is every load from `values`. A plan
/// writes those on several lines of one file with one strategy as `values@gather.rs:{41,43}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadName {
    param: String,
    place: Option<LoadPlace>,
}

/// Which of the loads from one parameter is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadPlace {
    /// All of them, written `*`.
    Everywhere,
    /// The load in the loop of this name.
    Loop(String),
    /// The load on this source line.
    Line {
        /// The file as the kernel's source places spell it, or its last part.
        file: String,
        /// The line, counted from 1.
        line: NonZeroU32,
        /// The column, counted from 1, where the line has several loads from the parameter.
        column: Option<NonZeroU32>,
    },
}

impl LoadName {
    /// The longest parameter, loop or file name, in bytes.
    pub(crate) const MAX_BYTES: usize = 1024;

    /// The load from this parameter, wherever it is.
    ///
    /// # Errors
    /// The name is empty, too long, or holds a character that has a meaning in plans.
    pub fn of_param(param: impl Into<String>) -> Result<LoadName> {
        let param = param.into();
        check(&param, "a load's name")?;
        Ok(LoadName { param, place: None })
    }

    /// The load from the same parameter at this place.
    ///
    /// # Errors
    /// As for [`LoadName::of_param`], for the loop's or file's name.
    pub(crate) fn at(mut self, place: LoadPlace) -> Result<LoadName> {
        match &place {
            LoadPlace::Loop(name) => {
                check(name, "a loop's name")?;
                if name.contains(':') {
                    return Err(Error::usage(format!("{} is not a loop name", quoted(name)))
                        .accepted("`LOAD@LOOP` or `LOAD@FILE:LINE`"));
                }
            }
            LoadPlace::Line { file, .. } => check(file, "a file's name")?,
            LoadPlace::Everywhere => {}
        }
        self.place = Some(place);
        Ok(self)
    }

    /// The parameter that the load reads.
    pub fn param(&self) -> &str {
        &self.param
    }

    /// The loop or line of the load, if the plan says.
    pub fn place(&self) -> Option<&LoadPlace> {
        self.place.as_ref()
    }
}

impl LoadName {
    /// The place in front of the line, and the line with its column.
    fn line(&self) -> Option<(String, &str)> {
        let Some(LoadPlace::Line { file, line, column }) = &self.place else {
            return None;
        };
        let column = column.map(|column| format!(".{column}")).unwrap_or_default();
        Some((format!("{line}{column}"), file))
    }

    /// How many of these loads, from the first on, are on lines of one file and of one parameter; and all of them as one name.
    pub(super) fn together<'a>(loads: impl Iterator<Item = &'a LoadName>) -> Option<(usize, String)> {
        let mut loads = loads.peekable();
        let first = *loads.peek()?;
        let (_, file) = first.line().filter(|(_, file)| !file.contains(['{', '}']))?;
        let beside = loads.map_while(|load| {
            let (line, own) = load.line()?;
            (load.param == first.param && own == file).then_some(line)
        });
        let lines: Vec<String> = beside.collect();
        (lines.len() > 1).then(|| {
            let name = format!("{}@{file}:{{{}}}", first.param, lines.join(","));
            (lines.len(), name)
        })
    }
}

/// Refuses names that could not be read back from a plan.
fn check(name: &str, what: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::usage(format!("{what} is missing")).accepted("`LOAD=STRATEGY`"));
    }
    if name.len() > LoadName::MAX_BYTES {
        return Err(Error::usage(format!(
            "{what} is longer than {} bytes",
            LoadName::MAX_BYTES
        )));
    }
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ',' | ';' | '=' | '@' | '`');
    match name.chars().find(|&c| forbidden(c)) {
        Some(c) => Err(Error::usage(format!(
            "{what} cannot hold {c:?}: {}",
            quoted(name)
        ))),
        None => Ok(()),
    }
}

impl fmt::Display for LoadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadPlace::Everywhere => f.write_str("*"),
            LoadPlace::Loop(name) => f.write_str(name),
            LoadPlace::Line {
                file,
                line,
                column: None,
            } => write!(f, "{file}:{line}"),
            LoadPlace::Line {
                file,
                line,
                column: Some(column),
            } => write!(f, "{file}:{line}.{column}"),
        }
    }
}

impl fmt::Display for LoadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.param)?;
        match &self.place {
            Some(place) => write!(f, "@{place}"),
            None => Ok(()),
        }
    }
}
