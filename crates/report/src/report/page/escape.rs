//! Escaping: untrusted text in a page never becomes markup.

use std::fmt;

use crate::prefetch::Plan;

/// Text that displays itself escaped, in an element as well as in a quoted attribute.
pub(in crate::report) struct Escaped<T>(pub(in crate::report) T);

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

/// A sentence, escaped, with the text between backquotes set as code.
pub(in crate::report) struct Prose<'a>(pub(in crate::report) &'a str);

impl fmt::Display for Prose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, code, after)) = rest
            .split_once('`')
            .and_then(|(before, rest)| rest.split_once('`').map(|(code, after)| (before, code, after)))
        {
            write!(f, "{}<code>{}</code>", Escaped(before), Escaped(code))?;
            rest = after;
        }
        write!(f, "{}", Escaped(rest))
    }
}

/// A plan, escaped, that is broken between its parts sooner than within one.
pub(in crate::report) struct Parts<'a>(pub(in crate::report) &'a Plan);

impl fmt::Display for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        for part in text.split_inclusive(',') {
            write!(f, "<span class=\"part\">{}</span>", Escaped(part))?;
        }
        Ok(())
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

    #[test]
    fn backquotes_make_code_only_in_pairs() {
        assert_eq!(
            Prose("load `a<b>` by `c`, or `d").to_string(),
            "load <code>a&lt;b&gt;</code> by <code>c</code>, or `d"
        );
    }
}
