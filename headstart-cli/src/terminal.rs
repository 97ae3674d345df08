//! Properties of standard output and standard error: width, whether colours and progress are wanted, and which vendor's terms.
//!
//! It is found out once, before a command runs; whose words, as soon as there is a device.

use std::io::IsTerminal;
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use headstart::report::columns::Columns;
use headstart::report::terms::Terms;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in a file or a pipe
    Always,
    /// Not at all
    Never,
}

/// How a command prints.
#[derive(Args, Clone, Copy, Debug)]
pub struct Look {
    /// Colour headings, verdicts and warnings
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true)]
    pub color: Colour,
    /// Terms for threads and cores: CUDA's or SYCL's [default: by the device's vendor]
    #[arg(long, value_enum, value_name = "WHOSE", global = true)]
    pub terms: Option<Words>,
    /// Print nothing but errors to standard error
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print more: a report in full with all its plans; to standard error the fate of each plan and the reason, the programs
    /// started, and the time of each phase
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// The detected properties.
#[derive(Clone, Copy, Debug)]
struct Terminal {
    is_coloured: bool,
    is_quiet: bool,
    is_verbose: bool,
    output: Columns,
    errors: Columns,
}

static TERMINAL: OnceLock<Terminal> = OnceLock::new();

static TERMS: OnceLock<Terms> = OnceLock::new();

/// Whose words to use, as an option spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Words {
    /// Threads, warps, blocks, SMs
    Cuda,
    /// Work-items, sub-groups, work-groups, Xe-cores
    Sycl,
}

impl From<Words> for Terms {
    fn from(words: Words) -> Terms {
        match words {
            Words::Cuda => Terms::Cuda,
            Words::Sycl => Terms::Sycl,
        }
    }
}

/// Sets whose terms to use. The first call decides: an option precedes any device.
pub fn use_terms(terms: Terms) {
    TERMS.get_or_init(|| terms);
}

/// A page in the words of the device's users.
pub fn page(page: &str) -> String {
    TERMS
        .get()
        .map_or_else(|| page.to_owned(), |terms| terms.in_page(page))
}

/// Finds out what follows from the options. Later calls change nothing.
pub fn set_up(look: &Look) {
    if let Some(words) = look.terms {
        use_terms(words.into());
    }
    // As https://no-color.org has it: set to anything but nothing.
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_coloured = match look.color {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => std::io::stdout().is_terminal() && !is_unwanted,
    };
    TERMINAL.get_or_init(|| Terminal {
        is_coloured,
        is_quiet: look.quiet,
        is_verbose: look.verbose,
        output: columns(terminal_size::terminal_size_of(std::io::stdout())),
        errors: columns(terminal_size::terminal_size_of(std::io::stderr())),
    });
}

/// The width of a terminal; without one, the value of COLUMNS; without that, no limit.
fn columns(size: Option<(terminal_size::Width, terminal_size::Height)>) -> Columns {
    let told = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = size.map(|(width, _)| usize::from(width.0)).or_else(told);
    width
        .filter(|&width| width > 0)
        .map_or(Columns::UNLIMITED, Columns::new)
}

/// The width of standard output, and whose words are used there.
pub fn output() -> Columns {
    let known = TERMINAL.get().map(|terminal| terminal.output);
    known.unwrap_or(Columns::UNLIMITED).in_terms(TERMS.get().copied())
}

/// The same for a report, whose lines have in a file, a log or a notebook the width that it is laid out for.
pub fn report() -> Columns {
    const WIDTH: usize = 100;
    let columns = output();
    match columns.width() {
        usize::MAX => Columns::new(WIDTH).in_terms(TERMS.get().copied()),
        _ => columns,
    }
}

/// The same of standard error.
pub fn errors() -> Columns {
    let known = TERMINAL.get().map(|terminal| terminal.errors);
    known.unwrap_or(Columns::UNLIMITED).in_terms(TERMS.get().copied())
}

/// Whether only errors are wanted on standard error.
pub fn is_quiet() -> bool {
    TERMINAL.get().is_some_and(|terminal| terminal.is_quiet)
}

/// Whether standard error is to say how everything went.
pub fn is_verbose() -> bool {
    TERMINAL.get().is_some_and(|terminal| terminal.is_verbose)
}

/// A text with its headings, verdicts and warnings coloured, if colours are wanted.
pub fn coloured(text: &str) -> String {
    match TERMINAL.get() {
        Some(terminal) if terminal.is_coloured => text.split_inclusive('\n').map(line).collect(),
        _ => text.to_owned(),
    }
}

/// The change of a line between two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Only the first has it.
    Removed,
    /// Only the second has it.
    Added,
    /// It says where the lines below it stand.
    Place,
}

/// A line of a difference, coloured if colours are wanted.
pub fn changed(how: Changed, line: &str) -> String {
    let colour = match how {
        Changed::Removed => AnsiColor::Red,
        Changed::Added => AnsiColor::Green,
        Changed::Place => AnsiColor::Cyan,
    };
    match TERMINAL.get() {
        Some(terminal) if terminal.is_coloured => {
            let style = Style::new().fg_color(Some(colour.into()));
            format!("{}{line}{}", style.render(), style.render_reset())
        }
        _ => line.to_owned(),
    }
}

/// A line with its colours. Its kind follows from its beginning: see the tests.
fn line(text: &str) -> String {
    let (line, end) = text.strip_suffix('\n').map_or((text, ""), |line| (line, "\n"));
    let bold = Style::new().bold();
    let styled = |style: Style, part: &str| format!("{}{part}{}", style.render(), style.render_reset());
    let coloured = if let Some(verdict) = line.strip_prefix("Verdict: ") {
        let colour = match verdict {
            "prefetch" | "unroll" => AnsiColor::Green,
            "more work-groups" | "more blocks" | "other work-groups" | "other blocks" => AnsiColor::Yellow,
            _ => AnsiColor::Cyan,
        };
        format!(
            "{}{}",
            styled(bold, "Verdict: "),
            styled(bold.fg_color(Some(colour.into())), verdict)
        )
    } else if line.starts_with("Warning:") || line.starts_with("headstart: ") {
        let warning = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
        styled(warning, line)
    } else if line.starts_with("  ") && line.trim_start().starts_with('─') {
        styled(Style::new().dimmed(), line)
    } else if is_heading(line) {
        styled(bold, line)
    } else if let Some((before, best, after)) = best_of(line) {
        format!(
            "{before}{}{after}",
            styled(bold.fg_color(Some(AnsiColor::Green.into())), best)
        )
    } else {
        line.to_owned()
    };
    coloured + end
}

/// A short line without indentation and full stop.
fn is_heading(line: &str) -> bool {
    let begins = line.chars().next().is_some_and(char::is_uppercase);
    begins && !line.ends_with(['.', ':', ',']) && line.chars().count() <= 60
}

/// The number marked as the best in a row of a table, with its mark: `*2.29`.
fn best_of(line: &str) -> Option<(&str, &str, &str)> {
    let start = line.find(" *").map(|at| at + 1)?;
    let rest = &line[start..];
    let end = rest.find(' ').unwrap_or(rest.len());
    let best = &rest[..end];
    let is_number = best.len() > 1 && best[1..].chars().all(|c| c.is_ascii_digit() || c == '.');
    is_number.then(|| (&line[..start], best, &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_coloured_and_nothing_else_is() {
        for (plain, is_coloured) in [
            ("Verdict: prefetch\n", true),
            ("Warning: its loops never run.\n", true),
            ("The fastest\n", true),
            ("  ────────\n", true),
            ("  unroll     2.26   *2.29   2.22\n", true),
            (
                "  2.29× the speed of the plain kernel, 37.6 µs instead of 86.2 µs.\n",
                false,
            ),
            ("  values=rolling-async:4   1.0 µs\n", false),
            ("  a * b\n", false),
        ] {
            let coloured = line(plain);
            assert_eq!(coloured != plain, is_coloured, "{plain}");
            let mut bare = coloured;
            while let Some(start) = bare.find('\u{1b}') {
                let end = start + bare[start..].find('m').expect("an end");
                bare.replace_range(start..=end, "");
            }
            assert_eq!(bare, plain);
        }
    }
}
