//! The table of a CSV file: found among the program's output, and read by its column names.

use crate::error::{Error, Result};

/// Rows that a file may have.
const MAX_ROWS: usize = 1 << 20;

/// A table.
#[derive(Clone, Debug)]
pub(in crate::advise) struct Table {
    /// The names of its columns.
    pub header: Vec<String>,
    /// Its rows, each with as many cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The table that begins at the first line that has all of these column names. The text before it was printed by the
    /// program, even without a newline at its end; behind it come lines of the profiler's own. Rows may end at the column
    /// `last`, if there is one of that name.
    ///
    /// # Errors
    /// There is no such line (`expected` says in which file there is one), or a row has another number of cells.
    pub(in crate::advise) fn find(
        text: &str,
        first: &str,
        names: &[&str],
        last: &str,
        expected: &str,
    ) -> Result<Table> {
        let (start, separator) = header(text, first, names).ok_or_else(|| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            Error::input(format!(
                "no line of the profile has the columns {}",
                names.join(", ")
            ))
            .accepted(expected)
        })?;
        let line = 1 + text[..start].matches('\n').count();
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .from_reader(&text.as_bytes()[start..]);
        let mut header: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record =
                record.map_err(|error| Error::input(format!("the table cannot be read: {error}")))?;
            let at = line as u64
                + record
                    .position()
                    .map_or(0, |position| position.line().saturating_sub(1));
            let cells: Vec<String> = record.iter().map(|cell| cell.trim().to_owned()).collect();
            if header.is_empty() {
                header = cells;
                continue;
            }
            // The profiler says goodbye among the rows: `==PROF== Disconnected from process 1234`.
            if cells.first().is_some_and(|cell| cell.starts_with("==")) {
                continue;
            }
            let last = header.iter().position(|own| own.eq_ignore_ascii_case(last));
            let mut cells = cells;
            if last.is_some_and(|last| cells.len() == last + 1) {
                cells.resize(header.len(), String::new());
            }
            if cells.len() != header.len() {
                return Err(Error::input(format!(
                    "a row has {} cells, its header has {}",
                    cells.len(),
                    header.len()
                ))
                .at(format!("line {at}"))
                .accepted("the whole file, as the profiler wrote it"));
            }
            if rows.len() == MAX_ROWS {
                return Err(Error::input("the table has too many rows").accepted("at most 1,048,576"));
            }
            rows.push(cells);
        }
        // A quoted cell that never ends swallows the rest of the file.
        if text[start..].matches('"').count() % 2 == 1 {
            return Err(Error::input("the table ends within a quoted cell")
                .accepted("the whole file, as the profiler wrote it"));
        }
        Ok(Table { header, rows })
    }

    /// The number of the column of this name, in any case.
    pub(in crate::advise) fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|own| own.eq_ignore_ascii_case(name))
    }
}

/// The position of the header, and the separator of its cells.
fn header(text: &str, first: &str, names: &[&str]) -> Option<(usize, u8)> {
    let contains = |line: &str, name: &str| line.to_ascii_lowercase().contains(&name.to_ascii_lowercase());
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        if names.iter().all(|name| contains(line, name))
            && let Some((column, separator)) = first_column(line, first)
        {
            return Some((line_start + column, separator));
        }
        line_start += line.len();
    }
    None
}

/// The position in a line where the column of this name is the first, and its separator.
fn first_column(line: &str, first: &str) -> Option<(usize, u8)> {
    let lower = line.to_ascii_lowercase();
    let name = first.to_ascii_lowercase();
    lower.match_indices(&name).find_map(|(at, _)| {
        let is_quoted = lower[..at].ends_with('"');
        let is_word = at == 0 || is_quoted || !lower[..at].ends_with(|c: char| c.is_alphanumeric());
        let rest = &lower[at + name.len()..];
        let rest = if is_quoted { rest.strip_prefix('"')? } else { rest };
        let separator = *rest.as_bytes().first()?;
        (is_word && matches!(separator, b',' | b';' | b'\t'))
            .then(|| (at - usize::from(is_quoted), separator))
    })
}
