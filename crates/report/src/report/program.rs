//! A captured program as a whole: what each kind of its launches gains, and what the program does.
//!
//! [`ProgramReport`] is the output of `headstart tune DIR --json` for a capture; `page` shows it.

use serde::{Deserialize, Serialize};

use super::Report;
use crate::prefetch::Plan;

/// The result of tuning the kernels of a captured program on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The device, as `--device` spells it.
    pub device: String,
    /// The time of all kernels together divided by what it becomes, if all launches of a kind gain as much as the one that was
    /// tuned, and all others nothing.
    pub speedup: f64,
    /// The kinds of launches, those that take longest first.
    pub kinds: Vec<KindReport>,
}

/// Launches of a kernel that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindReport {
    /// The kernel's name.
    pub kernel: String,
    /// The hash of its image; `-` if it is not known.
    pub image: String,
    /// The folder of the captured launch, in that of the capture; nothing if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// How many launches.
    pub launches: u64,
    /// Their share of the time of all kernels.
    pub share: f64,
    /// Mean time of a launch, in nanoseconds, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Work-groups of a launch.
    pub groups: [u32; 3],
    /// Work-items of a work-group.
    pub group: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The parameters, in the words of `capture.toml`.
    pub parameters: String,
    /// What there is for these launches.
    #[serde(flatten)]
    pub answer: Answer,
    /// The search's report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<Report>>,
}

/// What there is for launches of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A better kernel, which `headstart exec` puts in place.
    Replaced {
        /// Its plan.
        plan: Plan,
        /// The original's time divided by its time.
        speedup: f64,
        /// What it assumes, a sentence each.
        rests_on: Vec<String>,
    },
    /// The original, for this reason: no plan is faster, or the faster one cannot be put in place.
    Kept {
        /// The reason.
        why: String,
    },
    /// The search was stopped before it found out.
    Open {
        /// How far it came.
        why: String,
    },
    /// The kernel or its launch cannot be tuned.
    Refused {
        /// The reason.
        why: String,
    },
    /// No launch was captured.
    NotCaptured {
        /// The reason.
        why: String,
    },
}

impl ProgramReport {
    /// The report on these kinds of launches.
    pub fn new(program: Vec<String>, device: String, kinds: Vec<KindReport>) -> ProgramReport {
        let left: f64 = kinds
            .iter()
            .map(|kind| match kind.answer {
                Answer::Replaced { speedup, .. } => kind.share * (1.0 - 1.0 / speedup),
                _ => 0.0,
            })
            .sum();
        ProgramReport {
            program,
            device,
            speedup: 1.0 / (1.0 - left.clamp(0.0, 0.999)),
            kinds,
        }
    }

    /// The share of the time of all kernels in launches of kinds that this is true of.
    pub fn share(&self, is_of: impl Fn(&Answer) -> bool) -> f64 {
        let own = self.kinds.iter().filter(|kind| is_of(&kind.answer));
        own.map(|kind| kind.share).sum()
    }
}

impl Answer {
    /// One word, or two.
    pub fn name(&self) -> &'static str {
        match self {
            Answer::Replaced { .. } => "faster",
            Answer::Kept { .. } => "kept",
            Answer::Open { .. } => "open",
            Answer::Refused { .. } => "refused",
            Answer::NotCaptured { .. } => "not captured",
        }
    }

    /// Why there is no better kernel; nothing if there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Answer::Replaced { .. } => None,
            Answer::Kept { why }
            | Answer::Open { why }
            | Answer::Refused { why }
            | Answer::NotCaptured { why } => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(share: f64, answer: Answer) -> KindReport {
        KindReport {
            kernel: "k".to_owned(),
            image: "ab".to_owned(),
            folder: None,
            launches: 3,
            share,
            mean_ns: Some(10.0),
            groups: [1; 3],
            group: [32, 1, 1],
            shared_bytes: 0,
            parameters: "a 2^9".to_owned(),
            answer,
            report: None,
        }
    }

    #[test]
    fn gains_count_for_their_share_of_the_time() {
        let faster = |speedup| Answer::Replaced {
            plan: "unroll:4".parse().expect("a plan"),
            speedup,
            rests_on: Vec::new(),
        };
        let kept = Answer::Kept {
            why: "no plan is faster".to_owned(),
        };
        let kinds = vec![kind(0.5, faster(2.0)), kind(0.3, kept), kind(0.2, faster(4.0))];
        let report = ProgramReport::new(vec!["./p".to_owned()], "sim:h200".to_owned(), kinds);
        assert!((report.speedup - 1.0 / 0.6).abs() < 1e-9, "{}", report.speedup);
        assert!((report.share(|answer| answer.reason().is_none()) - 0.7).abs() < 1e-9);
        let text = serde_json::to_string(&report).expect("JSON");
        assert!(
            text.contains(r#""answer":"replaced","plan":"unroll:4","speedup":2.0"#),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<ProgramReport>(&text).expect("the same"),
            report
        );
    }
}
