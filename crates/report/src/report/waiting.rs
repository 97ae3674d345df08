//! Where the work-groups of a kernel wait for others, as reports have it.

use serde::{Deserialize, Serialize};

use crate::analysis::waits::{self, Writer};
use crate::ir::Kernel;

/// A read that a work-group may wait for in a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Where it is written.
    pub place: String,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// Who may write what a work-group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsFor {
    /// Another work-group of the launch: the kernel writes that memory.
    WorkGroup,
    /// Another work-group, another kernel or the host: the kernel may write that memory.
    Anyone,
    /// Another kernel or the host: nothing in the kernel writes that memory.
    Outside,
}

impl Waiting {
    /// Where a kernel's work-groups wait.
    pub fn of(kernel: &Kernel) -> Vec<Waiting> {
        let waiting = |wait: &waits::Wait| Waiting {
            place: kernel.describe_place(wait.place),
            waits_for: match wait.writer {
                Writer::WorkGroup => WaitsFor::WorkGroup,
                Writer::Anyone => WaitsFor::Anyone,
                Writer::Outside => WaitsFor::Outside,
            },
        };
        waits::waits(kernel).iter().map(waiting).collect()
    }
}

/// What people are to know of them: `its work-groups wait for each other at k.cu:7`. None if there are none.
pub fn sentence(waits: &[Waiting]) -> Option<String> {
    let first = waits.first()?;
    let is = |wanted: WaitsFor| waits.iter().any(|wait| wait.waits_for == wanted);
    let each_other = is(WaitsFor::WorkGroup) || is(WaitsFor::Anyone);
    let outside = is(WaitsFor::Outside) || is(WaitsFor::Anyone);
    let whom = match (each_other, outside) {
        (true, false) => "for each other",
        (false, _) => "for another kernel or the host",
        (true, true) => "for each other, or for another kernel or the host",
    };
    let more = match waits.len() - 1 {
        0 => String::new(),
        1 => " and at another place".to_owned(),
        more => format!(" and at {more} other places"),
    };
    Some(format!("its work-groups wait {whom} at {}{more}", first.place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_for_whom_and_where() {
        let waits = |all: &[WaitsFor]| {
            let wait = |(at, &waits_for): (usize, &WaitsFor)| Waiting {
                place: format!("k.cu:{at}"),
                waits_for,
            };
            let all: Vec<Waiting> = all.iter().enumerate().map(wait).collect();
            sentence(&all)
        };
        use WaitsFor::{Anyone, Outside, WorkGroup};
        assert_eq!(waits(&[]), None);
        let said = |all: &[WaitsFor]| waits(all).expect("some");
        assert_eq!(
            said(&[WorkGroup]),
            "its work-groups wait for each other at k.cu:0"
        );
        assert_eq!(
            said(&[Outside, Outside]),
            "its work-groups wait for another kernel or the host at k.cu:0 and at another place"
        );
        for both in [
            &[Anyone, WorkGroup, WorkGroup][..],
            &[WorkGroup, Outside, WorkGroup],
        ] {
            assert_eq!(
                said(both),
                "its work-groups wait for each other, or for another kernel or the host at k.cu:0 and at 2 other places"
            );
        }
    }
}
