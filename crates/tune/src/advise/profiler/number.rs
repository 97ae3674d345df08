//! Numbers in any locale's format: `1,273.44`, `1.273,44`, `1 273,44`, `1'273.44`.

/// Which character stands between the whole and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::advise) enum Spelling {
    /// `1,273.44`
    Point,
    /// `1.273,44`
    Comma,
}

impl Spelling {
    /// The number format of a file, from its cells: unambiguous ones decide, by majority. Without any, the point is the decimal
    /// separator.
    pub(in crate::advise) fn of<'a>(cells: impl Iterator<Item = &'a str>) -> Spelling {
        let (mut points, mut commas) = (0, 0);
        for cell in cells {
            match only_reading(cell) {
                Some(Spelling::Point) => points += 1,
                Some(Spelling::Comma) => commas += 1,
                None => {}
            }
        }
        if commas > points {
            Spelling::Comma
        } else {
            Spelling::Point
        }
    }

    /// The number in a cell; none for `n/a`, words, and text that is not a number in this format.
    pub(in crate::advise) fn number(self, cell: &str) -> Option<f64> {
        let cell = plain(cell);
        let (thousands, decimal) = match self {
            Spelling::Point => (',', '.'),
            Spelling::Comma => ('.', ','),
        };
        if cell.is_empty() || cell.matches(decimal).count() > 1 {
            return None;
        }
        let (whole, rest) = cell.split_once(decimal).unwrap_or((&cell, ""));
        if rest.contains(thousands) || !is_grouped(whole.trim_start_matches(['-', '+']), thousands) {
            return None;
        }
        let text: String = cell
            .chars()
            .filter(|&character| character != thousands)
            .map(|character| if character == decimal { '.' } else { character })
            .collect();
        // `inf` and `nan` are numbers to Rust, not to us.
        let starts = text
            .trim_start_matches(['-', '+'])
            .starts_with(|c: char| c.is_ascii_digit() || c == '.');
        text.parse()
            .ok()
            .filter(|number: &f64| starts && number.is_finite())
    }
}

/// The cell without spaces between digits (also the narrow and unbreakable ones) and Swiss apostrophes.
fn plain(cell: &str) -> String {
    cell.trim()
        .chars()
        .filter(|&character| !matches!(character, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\'' | '’'))
        .collect()
}

/// Whether digits are set apart in threes, or not at all.
fn is_grouped(whole: &str, separator: char) -> bool {
    let mut groups = whole.split(separator);
    let first = groups.next().unwrap_or("");
    let mut more = groups.peekable();
    (more.peek().is_none() || (1..=3).contains(&first.len())) && more.all(|group| group.len() == 3)
}

/// The spelling that a number has, where it can have only one.
fn only_reading(cell: &str) -> Option<Spelling> {
    let cell = plain(cell);
    if !cell
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-'))
    {
        return None;
    }
    let readable = |spelling: Spelling| spelling.number(&cell).is_some();
    match (readable(Spelling::Point), readable(Spelling::Comma)) {
        (true, false) => Some(Spelling::Point),
        (false, true) => Some(Spelling::Comma),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_country_s_numbers() {
        for (text, spelling, number) in [
            ("1,273.44", Spelling::Point, 1273.44),
            ("1,273,440", Spelling::Point, 1_273_440.0),
            ("1.273,44", Spelling::Comma, 1273.44),
            ("1.273.440", Spelling::Comma, 1_273_440.0),
            ("1\u{202f}273,44", Spelling::Comma, 1273.44),
            ("1'273.44", Spelling::Point, 1273.44),
            ("-0.5", Spelling::Point, -0.5),
            ("12", Spelling::Comma, 12.0),
            ("1.5e-3", Spelling::Point, 0.0015),
        ] {
            assert_eq!(spelling.number(text), Some(number), "{text}");
        }
        for text in [
            "n/a",
            "",
            "nan",
            "inf",
            "(!) n/a",
            "1,2,3",
            "(128, 1, 1)",
            "-",
            ".",
            "1..2",
            "0x10",
        ] {
            assert_eq!(Spelling::Point.number(text), None, "{text}");
        }
        assert_eq!(Spelling::Point.number("12,5"), None);
    }

    #[test]
    fn cells_that_can_be_read_one_way_decide() {
        let of = |cells: &[&str]| Spelling::of(cells.iter().copied());
        assert_eq!(of(&["1.273", "12,50", "n/a"]), Spelling::Comma);
        assert_eq!(of(&["1,273", "12.50"]), Spelling::Point);
        assert_eq!(of(&["1.273.440", "7"]), Spelling::Comma);
        // 1.273 alone may be either.
        assert_eq!(of(&["1.273"]), Spelling::Point);
        assert_eq!(of(&["1,273.44", "1.5", "0,5"]), Spelling::Point);
    }
}
