//! A worker's output: replies, and kernels' printed lines between them.

use std::io::{BufRead, Read};

/// Most bytes that are kept of the lines printed between two replies.
pub(super) const MOST_PRINTED: usize = 1 << 20;
/// Longest reply, in bytes: a module's log of the compiler is the longest part.
const LONGEST_REPLY: usize = 256 << 20;
/// This many bytes of a line are looked at at once: a kernel may print one that never ends.
const PIECE: u64 = 1 << 16;

/// A reply's text, and the lines printed before it.
pub(super) struct Line {
    pub reply: String,
    pub printed: String,
}

/// Takes a worker's output apart: replies are lines that begin with the mark, everything else was printed by kernels.
/// Until the output ends or `send` says that the receiver is gone.
pub(super) fn separate(mut output: impl BufRead, mark: &str, mut send: impl FnMut(Line) -> bool) {
    let mut printed = Vec::new();
    let mut line = Vec::new();
    // Whether `line` begins where a line of the output does.
    let mut whole = true;
    loop {
        match output.by_ref().take(PIECE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let ended = line.ends_with(b"\n");
        if whole && line.starts_with(mark.as_bytes()) {
            if ended {
                // The line's end before the mark is ours.
                let end = printed
                    .len()
                    .saturating_sub(usize::from(printed.ends_with(b"\n")));
                let start = end.saturating_sub(MOST_PRINTED);
                let sent = send(Line {
                    reply: String::from_utf8_lossy(&line[mark.len()..]).into_owned(),
                    printed: String::from_utf8_lossy(&printed[start..end]).into_owned(),
                });
                if !sent {
                    return;
                }
                printed.clear();
                line.clear();
            } else if line.len() > LONGEST_REPLY {
                return;
            }
            continue;
        }
        printed.append(&mut line);
        whole = ended;
        if printed.len() > 2 * MOST_PRINTED {
            printed.drain(..printed.len() - MOST_PRINTED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(output: &[u8]) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        separate(output, "mark: ", |line| {
            found.push((line.reply, line.printed.len()));
            true
        });
        found
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut output = vec![b'x'; 5 << 20];
        // In the middle of a line the mark is no mark.
        output.extend_from_slice(b"mark: no\nmark: yes\n");
        assert_eq!(lines(&output), [("yes\n".to_owned(), MOST_PRINTED)]);
    }

    #[test]
    fn a_long_reply_comes_in_pieces() {
        let text = "y".repeat(300_000);
        assert_eq!(
            lines(format!("mark: {text}\n").as_bytes()),
            [(format!("{text}\n"), 0)]
        );
    }
}
