//! A worker's output: replies, and what kernels printed between them.

use std::io::BufRead;

use super::MARK;

/// Most bytes that are kept of what a worker prints between two replies.
pub(super) const MOST_PRINTED: usize = 1 << 20;

/// A reply's text, and what was printed before it.
pub(super) struct Line {
    pub reply: String,
    pub printed: String,
}

/// Takes a worker's output apart: replies are lines with the mark, everything else was printed by kernels. Until the
/// output ends or `send` says that nobody listens.
pub(super) fn separate(mut output: impl BufRead, mut send: impl FnMut(Line) -> bool) {
    let mut printed = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let Some(reply) = line.strip_prefix(MARK.as_bytes()) else {
            printed.extend_from_slice(&line);
            if printed.len() > 2 * MOST_PRINTED {
                printed.drain(..printed.len() - MOST_PRINTED);
            }
            continue;
        };
        // The line's end before the mark is ours.
        let end = printed
            .len()
            .saturating_sub(usize::from(printed.ends_with(b"\n")));
        let start = end.saturating_sub(MOST_PRINTED);
        let sent = send(Line {
            reply: String::from_utf8_lossy(reply).into_owned(),
            printed: String::from_utf8_lossy(&printed[start..end]).into_owned(),
        });
        if !sent {
            return;
        }
        printed.clear();
    }
}
