//! A better kernel's expected gain for the whole program, from its launches' share of the captured time.

use headstart::capture::{Captured, CapturedProgram, LaunchKind};

/// A sentence on the combined gain of all kernels of the program, if the captured launch is the typical one of its kind.
pub fn sentence(captured: &Captured, speedup: f64) -> Option<String> {
    let program = CapturedProgram::read(captured.folder.parent()?).ok()?;
    let folder = captured.folder.file_name()?.to_string_lossy().into_owned();
    let (_, kind) = program.kind_in(&folder)?;
    (kind.timed > 0 && kind.is_typical).then(|| said(kind, speedup))
}

fn said(kind: &LaunchKind, speedup: f64) -> String {
    let (share, like) = (kind.share, kind.share_of_typical);
    let together = |share: f64| 1.0 / (1.0 - share + share / speedup);
    let (least, most) = (together(share * like), together(share));
    // Where all launches are alike there is one number.
    let gain = match most - least < 0.01 {
        true => format!("{most:.2} times as fast"),
        false => {
            format!(
                "{least:.2} to {most:.2} times as fast, if its other launches gain nothing or as much as this one"
            )
        }
    };
    format!(
        "In the program such launches take {:.0} % of the time of all kernels, {:.0} % of that in launches about as long as this one: \
         all kernels together are {gain}.\n",
        100.0 * share,
        100.0 * like
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_counts_for_its_share_of_the_time() {
        let kind = |share, share_of_typical| LaunchKind {
            launches: 3,
            timed: 3,
            total_ns: 30.0,
            share,
            longest_ns: 10,
            typical: 2,
            share_of_typical,
            groups: [1; 3],
            group: [32, 1, 1],
            shared_bytes: 0,
            parameters: String::new(),
            is_typical: true,
            folder: Some("k".to_owned()),
            not_captured: None,
        };
        let found = said(&kind(0.8, 0.5), 2.0);
        assert!(
            found.contains("80 % of the time of all kernels, 50 % of that"),
            "{found}"
        );
        assert!(found.contains("1.25 to 1.67 times as fast, if"), "{found}");
        let found = said(&kind(0.5, 1.0), 2.0);
        assert!(found.ends_with("are 1.33 times as fast.\n"), "{found}");
    }
}
