//! Parts of messages: user input shown safely on one line, and the nearest accepted name.

/// The longest piece of the user's text that a message repeats, in characters.
const SHOWN: usize = 60;

/// The user's text between backquotes, on one line: control characters escaped, long text cut.
///
/// ```
/// use headstart::suggest::quoted;
/// assert_eq!(quoted("gather"), "`gather`");
/// assert_eq!(quoted("two\nlines"), "`two\\nlines`");
/// ```
pub fn quoted(text: &str) -> String {
    let mut shown = String::from("`");
    for (count, character) in text.chars().enumerate() {
        if count == SHOWN {
            shown.push('…');
            break;
        }
        match character {
            '\'' | '"' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown.push('`');
    shown
}

/// The candidate that `written` was most likely meant to be, if one is near enough.
///
/// Near enough is one mistyped character in three, and at least one: `gathr` is `gather`, `xyz` is nothing.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long text is no typing error, and the distance takes quadratic time.
    if written.len() > SHOWN {
        return None;
    }
    let written = written.to_lowercase();
    let allowed = (written.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&written, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// The most candidates that a message lists.
const MOST_SHOWN: usize = 24;

/// What would be accepted: the nearest candidate if there is one, and always the whole list.
///
/// `kind` is the plural that heads the list: `did you mean `gather`? (kernels: article, gather)`.
pub fn accepted<'a>(written: &str, kind: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    // One line is to stay one line.
    let shown = candidates.len().min(MOST_SHOWN);
    let mut list = candidates[..shown].join(", ");
    if shown < candidates.len() {
        list.push_str(&format!(", … {} in all", candidates.len()));
    }
    match nearest(written, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`? ({kind}: {list})"),
        None if candidates.is_empty() => format!("there are no {kind}"),
        None => format!("{kind}: {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_slips_and_not_strangers() {
        let kernels = ["article", "gather"];
        assert_eq!(nearest("gathr", kernels), Some("gather"));
        assert_eq!(nearest("Gather", kernels), Some("gather"));
        assert_eq!(nearest("matmul", kernels), None);
        assert_eq!(nearest(&"gather".repeat(1000), kernels), None);
    }

    #[test]
    fn quoted_is_one_short_line() {
        let shown = quoted(&"\n\u{1b}[31m".repeat(1000));
        assert!(!shown.contains('\n') && !shown.contains('\u{1b}'));
        assert!(shown.len() < 1000);
    }

    #[test]
    fn accepted_names_the_list() {
        assert_eq!(
            accepted("gathr", "kernels", ["gather"]),
            "did you mean `gather`? (kernels: gather)"
        );
        assert_eq!(
            accepted("x", "kernels", ["article", "gather"]),
            "kernels: article, gather"
        );
        assert_eq!(accepted("x", "loads", []), "there are no loads");
    }
}
