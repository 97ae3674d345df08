//! Text from outside in a page: nothing of it becomes markup.

use std::fmt;

/// Text that displays itself escaped, in an element as well as in a quoted attribute.
pub(super) struct Escaped<T>(pub(super) T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl fmt::Write for Escaping<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for character in text.chars() {
                    match character {
                        '&' => self.0.write_str("&amp;")?,
                        '<' => self.0.write_str("&lt;")?,
                        '>' => self.0.write_str("&gt;")?,
                        '"' => self.0.write_str("&quot;")?,
                        '\'' => self.0.write_str("&#39;")?,
                        '\n' | '\t' => self.0.write_char(character)?,
                        // Control characters are not allowed in a page, and those that turn the writing direction
                        // could make text look like other text.
                        c if c.is_control()
                            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
                        {
                            self.0.write_char('\u{fffd}')?;
                        }
                        c => self.0.write_char(c)?,
                    }
                }
                Ok(())
            }
        }
        write!(Escaping(f), "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        let shown = Escaped("<script>\"&'\u{1b}\u{202e}</script>").to_string();
        assert_eq!(
            shown,
            "&lt;script&gt;&quot;&amp;&#39;\u{fffd}\u{fffd}&lt;/script&gt;"
        );
    }
}
