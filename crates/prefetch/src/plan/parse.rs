//! Reading a plan. Every message names the faulty part, its column, and what would be accepted.
//!
//! ```text
//! plan     = "none" | part { "," part }
//! part     = inner | unroll | registers | load          in this order
//! inner    = "inner:" N
//! unroll   = "unroll:" ( N | "full" )
//! registers = "registers:" N
//! load     = PARAM [ "@" ( "*" | LOOP | FILE ":" ( line | "{" line { "," line } "}" ) ) ] "=" strategy
//! line     = N [ "." COLUMN ]
//! strategy = ( "batched-registers" | "rolling-registers" ) ":" D
//!          | ( "batched-shared" | "rolling-shared" | "rolling-async" ) ":" D [ "/plain" | "/padded" | "/interleaved" ]
//!          | "cache:" LEVEL ":" D [ "/nt" ]
//!          | "joint:" LEVEL ":" D [ "/nt" ] [ "/group" ]
//!          | "bulk:L2:" D
//! ```
//!
//! Spaces around the parts are allowed and not kept.

use std::num::NonZeroU32;
use std::str::FromStr;

use super::{Distance, Layout, LoadName, LoadPlace, Plan, REGISTERS, Strategy, StrategyKind, Unroll};
use crate::error::{Error, Result};
use crate::ir::CacheLevel;
use crate::suggest::{accepted, quoted};

/// The longest plan that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;

impl FromStr for Plan {
    type Err = Error;

    fn from_str(text: &str) -> Result<Plan> {
        if text.len() > MAX_BYTES {
            return Err(
                Error::usage(format!("a plan of {} bytes is too long", text.len()))
                    .accepted(format!("at most {MAX_BYTES} bytes")),
            );
        }
        let whole = Part { text, start: 0 };
        plan(whole).map_err(|Fault { start, error }| {
            let column = text[..start].chars().count() + 1;
            error.at(format!("plan {}, column {column}", quoted(text)))
        })
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Strategy> {
        strategy(Part { text, start: 0 })
            .map_err(|fault| fault.error.at(format!("strategy {}", quoted(text))))
    }
}

impl FromStr for LoadName {
    type Err = Error;

    fn from_str(text: &str) -> Result<LoadName> {
        load_name(Part { text, start: 0 }).map_err(|fault| fault.error.at(format!("load {}", quoted(text))))
    }
}

/// A piece of the plan's text and the byte at which it starts.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    start: usize,
}

/// An error and the byte that it is about.
struct Fault {
    start: usize,
    error: Error,
}

impl<'a> Part<'a> {
    fn trimmed(self) -> Part<'a> {
        let text = self.text.trim_start();
        Part {
            text: text.trim_end(),
            start: self.start + (self.text.len() - text.len()),
        }
    }

    /// The parts before and after the first separator, both trimmed.
    fn split_once(self, separator: char) -> Option<(Part<'a>, Part<'a>)> {
        let (before, after) = self.text.split_once(separator)?;
        let after = Part {
            text: after,
            start: self.start + before.len() + separator.len_utf8(),
        };
        Some((
            Part {
                text: before,
                start: self.start,
            }
            .trimmed(),
            after.trimmed(),
        ))
    }

    fn split(self, separator: char) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut rest = self.trimmed();
        while let Some((before, after)) = rest.split_once(separator) {
            parts.push(before);
            rest = after;
        }
        parts.push(rest);
        parts
    }

    /// The parts between commas, without those between the lines of one load.
    fn split_parts(self) -> Vec<Part<'a>> {
        let mut parts: Vec<Part<'a>> = Vec::new();
        for part in self.split(',') {
            match parts
                .last_mut()
                .filter(|last| last.lines().is_some_and(|lines| !lines.text.contains('}')))
            {
                Some(last) => {
                    last.text = &self.text[last.start - self.start..part.start + part.text.len() - self.start]
                }
                None => parts.push(part),
            }
        }
        parts
    }

    /// From where several lines of one load begin: behind `:{`.
    fn lines(self) -> Option<Part<'a>> {
        let at = self.text.rfind(":{")?;
        let is_load = !self.text[..at].contains('=') && self.text[..at].contains('@');
        let start = at + ":{".len();
        is_load.then(|| Part {
            text: &self.text[start..],
            start: self.start + start,
        })
    }

    fn fault(self, error: Error) -> Fault {
        Fault {
            start: self.start,
            error,
        }
    }
}

fn plan(whole: Part) -> Result<Plan, Fault> {
    let parts = whole.split_parts();
    if let [only] = parts[..] {
        match only.text {
            "none" => return Ok(Plan::none()),
            "" => {
                let error = Error::usage("the plan is empty");
                return Err(only.fault(error.accepted("write `none` to leave the kernel as it is")));
            }
            _ => {}
        }
    }
    let mut plan = Plan::none();
    for (position, part) in parts.into_iter().enumerate() {
        let (name, rest) = part.split_once(':').unwrap_or((part, part));
        if part.text.is_empty() {
            return Err(
                part.fault(Error::usage("there is nothing between the commas").accepted("`LOAD=STRATEGY`"))
            );
        } else if part.text == "none" {
            let error = Error::usage("`none` is a whole plan");
            return Err(part.fault(error.accepted("leave out the loads that are to stay as they are")));
        } else if name.text == "inner" && !part.text.contains('=') {
            if position > 0 {
                let error = Error::usage("`inner` is said once, in front of all else");
                return Err(part.fault(error.accepted("`inner:N,unroll:N,LOAD=STRATEGY`")));
            }
            plan = plan.with_inner(Some(inner(part, rest)?));
        } else if name.text == "unroll" || part.text == "early" {
            if position > usize::from(plan.inner().is_some()) {
                let error = Error::usage("unrolling is said once, in front of the loads");
                return Err(part.fault(error.accepted("`unroll:N,LOAD=STRATEGY`")));
            }
            plan = plan.unrolled(unroll(part, rest)?);
        } else if name.text == "registers" && !part.text.contains('=') {
            if plan.registers().is_some() || !plan.loads().is_empty() {
                let error = Error::usage("the registers are said once, in front of the loads");
                return Err(part.fault(error.accepted("`registers:N,LOAD=STRATEGY`")));
            }
            plan = plan.with_registers(Some(registers(part, rest)?));
        } else if let Some((load, text)) = part.split_once('=') {
            for load in load_names(load)? {
                plan = plan
                    .with(load, strategy(text)?)
                    .map_err(|error| part.fault(error))?;
            }
        } else {
            return Err(part.fault(no_strategy(name.text, part.text)));
        }
    }
    Ok(plan)
}

/// The message for a part without `=`: a load without strategy, or a strategy without load.
fn no_strategy(name: &str, part: &str) -> Error {
    if StrategyKind::named(name).is_some() {
        return Error::usage(format!("{} is for no load", quoted(part))).accepted(format!("`LOAD={part}`"));
    }
    let error = Error::usage(format!("{} has no strategy", quoted(part)));
    match crate::suggest::nearest(name, ["none", "inner", "unroll", "registers"]) {
        Some("none") => error.accepted("did you mean `none`?"),
        Some("registers") => error.accepted("did you mean `registers:N`?"),
        Some("inner") => error.accepted("did you mean `inner:N`?"),
        Some(_) => error.accepted(format!("did you mean `unroll`? ({})", Unroll::accepted())),
        None => error.accepted("`LOAD=STRATEGY`, `inner:N`, `unroll:N`, `early`, `registers:N` or `none`"),
    }
}

fn inner(whole: Part, rest: Part) -> Result<u32, Fault> {
    let accepted = || format!("`inner:N` with N from 1 to {}", Plan::MAX_INNER);
    if whole.text == "inner" {
        let error = Error::usage("`inner` does not say how many iterations");
        return Err(whole.fault(error.accepted(accepted())));
    }
    let count = whole_number(rest.text).filter(|count| (1..=Plan::MAX_INNER).contains(count));
    count.ok_or_else(|| {
        let error = Error::usage(format!(
            "{} iterations of a loop cannot become part of another",
            quoted(rest.text)
        ));
        rest.fault(error.accepted(accepted()))
    })
}

fn unroll(whole: Part, rest: Part) -> Result<Unroll, Fault> {
    if whole.text == "early" {
        return Ok(Unroll::Early);
    }
    if whole.text == "unroll" {
        return Err(
            whole.fault(Error::usage("`unroll` does not say by how many").accepted(Unroll::accepted()))
        );
    }
    if rest.text == "full" {
        return Ok(Unroll::Full);
    }
    let wrong = || {
        let error = Error::usage(format!("a loop cannot be unrolled by {}", quoted(rest.text)));
        rest.fault(error.accepted(Unroll::accepted()))
    };
    let count = whole_number(rest.text).ok_or_else(wrong)?;
    Unroll::by(count).map_err(|_| wrong())
}

fn registers(whole: Part, rest: Part) -> Result<u32, Fault> {
    let accepted = || {
        format!(
            "`registers:N` with N from {} to {}",
            REGISTERS.start(),
            REGISTERS.end()
        )
    };
    if whole.text == "registers" {
        let error = Error::usage("`registers` does not say how many");
        return Err(whole.fault(error.accepted(accepted())));
    }
    let count = whole_number(rest.text).filter(|count| REGISTERS.contains(count));
    count.ok_or_else(|| {
        let error = Error::usage(format!("a work-item cannot have {} registers", quoted(rest.text)));
        rest.fault(error.accepted(accepted()))
    })
}

/// The loads of a part: several where it names several lines.
fn load_names(whole: Part) -> Result<Vec<LoadName>, Fault> {
    let ended = whole.lines().and_then(|lines| lines.split_once('}'));
    let Some((lines, _)) = ended.filter(|(_, rest)| rest.text.is_empty()) else {
        return Ok(vec![load_name(whole)?]);
    };
    let file = whole.text.rsplit_once('{').map_or("", |(file, _)| file);
    let named = lines.split(',').into_iter().map(|line| {
        let text = format!("{file}{}", line.text);
        let named = load_name(Part {
            text: &text,
            start: 0,
        });
        named.map_err(|fault| line.fault(fault.error))
    });
    named.collect()
}

fn load_name(whole: Part) -> Result<LoadName, Fault> {
    let Some((param, place)) = whole.split_once('@') else {
        return LoadName::of_param(whole.text).map_err(|error| whole.fault(error));
    };
    let name = LoadName::of_param(param.text).map_err(|error| param.fault(error))?;
    let place_of = |text: &str| -> Result<LoadPlace> {
        if text == "*" {
            return Ok(LoadPlace::Everywhere);
        }
        let Some((file, line)) = text.rsplit_once(':') else {
            return Ok(LoadPlace::Loop(text.to_owned()));
        };
        let number = |text: &str| whole_number(text).and_then(NonZeroU32::new);
        let (line_number, column) = match line.split_once('.') {
            None => (number(line), Some(None)),
            Some((line, column)) => (number(line), number(column).map(Some)),
        };
        match (line_number, column) {
            (Some(line), Some(column)) => Ok(LoadPlace::Line {
                file: file.to_owned(),
                line,
                column,
            }),
            _ => Err(Error::usage(format!("{} is not a line number", quoted(line)))
                .accepted("`LOAD@LOOP`, `LOAD@FILE:LINE` or `LOAD@FILE:LINE.COLUMN`")),
        }
    };
    place_of(place.text)
        .and_then(|place| name.at(place))
        .map_err(|error| place.fault(error))
}

fn strategy(whole: Part) -> Result<Strategy, Fault> {
    let parts = whole.split('/');
    let (head, flags) = parts.split_first().expect("a split gives at least one part");
    let words = head.split(':');
    let (name, settings) = words.split_first().expect("a split gives at least one part");
    let kind = StrategyKind::named(name.text).ok_or_else(|| no_such_strategy(*head, *name))?;
    let levels = kind.descriptor().takes.levels;
    let strategy = if levels.is_empty() {
        Strategy::new(kind, distance(*head, settings)?)
    } else {
        let (level, settings) = level(*head, settings, levels)?;
        Strategy::new(kind, distance(*head, settings)?).to_level(level)
    };
    flags
        .iter()
        .try_fold((strategy, Vec::new()), |(strategy, mut seen), flag| {
            let strategy = with_flag(strategy, *flag)?;
            // Two layouts are one flag said twice, as are two `/nt`.
            let kind = if Layout::ALL.iter().any(|layout| layout.name() == flag.text) {
                "layout"
            } else {
                flag.text
            };
            if seen.contains(&kind) {
                let error = Error::usage(format!("the {kind} is said twice"));
                return Err(flag.fault(error.accepted("once is enough")));
            }
            seen.push(kind);
            Ok((strategy, seen))
        })
        .map(|(strategy, _)| strategy)
}

/// The message for a name that no strategy has.
fn no_such_strategy(head: Part, name: Part) -> Fault {
    name.fault(match name.text {
        "unroll" => Error::usage("a loop is unrolled, not a load")
            .accepted(format!("put `{}` in front of the loads", head.text)),
        "" | "none" => Error::usage("the load has no strategy").accepted(format!(
            "leave it out, or one of {}",
            StrategyKind::names().join(", ")
        )),
        unknown => Error::usage(format!("there is no strategy {}", quoted(unknown))).accepted(accepted(
            unknown,
            "strategies",
            StrategyKind::names(),
        )),
    })
}

/// The one setting that is left after name and level.
fn distance(head: Part, settings: &[Part]) -> Result<Distance, Fault> {
    let [setting] = settings else {
        let (part, what) = match settings {
            [] => (head, format!("{} has no distance", quoted(head.text))),
            [_, more, ..] => (*more, format!("{} is one setting too many", quoted(more.text))),
            [_] => unreachable!("one setting was matched above"),
        };
        return Err(part.fault(Error::usage(what).accepted(Distance::accepted())));
    };
    match whole_number(setting.text) {
        Some(iterations) => Distance::new(iterations).map_err(|error| setting.fault(error)),
        None => {
            let error = Error::usage(format!("invalid distance {}", quoted(setting.text)));
            Err(setting.fault(error.accepted(Distance::accepted())))
        }
    }
}

/// The cache level that comes first, and the settings after it.
fn level<'a, 'p>(
    head: Part<'a>,
    settings: &'p [Part<'a>],
    levels: &[CacheLevel],
) -> Result<(CacheLevel, &'p [Part<'a>]), Fault> {
    let names = levels.iter().map(|level| level.name());
    match settings {
        [first, rest @ ..] => match levels
            .iter()
            .find(|level| level.name().eq_ignore_ascii_case(first.text))
        {
            Some(&level) => Ok((level, rest)),
            None => {
                let error = Error::usage(format!("{} is not a cache level here", quoted(first.text)));
                Err(first.fault(error.accepted(accepted(first.text, "levels", names))))
            }
        },
        [] => {
            let error = Error::usage(format!("{} has no cache level", quoted(head.text)));
            Err(head.fault(error.accepted(accepted("", "levels", names))))
        }
    }
}

/// The strategy with a layout or a flag set.
fn with_flag(strategy: Strategy, flag: Part) -> Result<Strategy, Fault> {
    let descriptor = strategy.descriptor();
    let layout = Layout::ALL.into_iter().find(|layout| layout.name() == flag.text);
    match (layout, flag.text) {
        (Some(layout), _) if descriptor.takes.layout => return Ok(strategy.in_layout(layout)),
        (_, "nt") if descriptor.takes.nontemporal => return Ok(strategy.nontemporal()),
        (_, "group") if descriptor.takes.group => return Ok(strategy.of_work_group()),
        _ => {}
    }
    let flags = [
        (
            descriptor.takes.layout,
            &["/plain", "/padded", "/interleaved"][..],
        ),
        (descriptor.takes.nontemporal, &["/nt"]),
        (descriptor.takes.group, &["/group"]),
    ];
    let flags: Vec<&str> = flags
        .into_iter()
        .filter(|(has, _)| *has)
        .flat_map(|(_, flags)| flags.iter().copied())
        .collect();
    let written = format!("/{}", flag.text);
    let error = Error::usage(format!("`{}` takes no {}", strategy.name(), quoted(&written)));
    Err(flag.fault(match flags.is_empty() {
        true => error.accepted("it takes nothing after its distance"),
        false => error.accepted(accepted(&written, "accepted", flags)),
    }))
}

/// Digits only: no sign, no spaces, nothing that `u32` could not hold.
fn whole_number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
