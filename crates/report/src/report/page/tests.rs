//! The page as text: it is self-contained, escapes its inputs, and is well formed.

use super::escape::Parts;
use super::html;
use crate::evidence::{Doing, Moment, Strip, Timeline};
use crate::report::Verdict;
use crate::report::detail::{Code, Detail, Hint, Listing, Load, Source, Stalled};
use crate::samples::sample;

#[test]
fn the_page_stands_alone_and_has_every_number() {
    let report = sample();
    let page = html(&report);
    let links = page.replace("http://www.w3.org/2000/svg", "");
    for foreign in [
        "http:",
        "https:",
        "<script src",
        "<img",
        "<link",
        "url(",
        "@import",
    ] {
        assert!(!links.contains(foreign), "{foreign}");
    }
    for trial in &report.trials {
        assert!(page.contains(&Parts(&trial.plan).to_string()), "{}", trial.plan);
    }
    assert!(page.contains("<p class=\"word\" id=\"verdict\">Prefetch</p>"));
    assert!(page.contains("needs 300 registers &lt;at most 255&gt;"));
}

fn with_everything(text: &str) -> Detail {
    let moment = |doing, from_ns, to_ns| Moment {
        doing,
        from_ns,
        to_ns,
    };
    let strip = Strip {
        moments: vec![
            moment(Doing::Computes, 0.0, 10.0),
            moment(Doing::WaitsForMemory, 10.0, 600.0),
            moment(Doing::WaitsOtherwise, 600.0, 610.0),
        ],
        iterations: vec![300.0, 550.0],
    };
    let timeline = Timeline {
        from_ns: 5000.0,
        length_ns: 610.0,
        life_ns: 10_000.0,
        strips: vec![strip.clone(), strip],
    };
    Detail {
        note: text.to_owned(),
        stalls: vec![Stalled {
            reason: text.to_owned(),
            profiler: text.to_owned(),
            plain: 0.8,
            best: Some(0.1),
        }],
        loads: vec![Load {
            name: text.to_owned(),
            place: text.to_owned(),
            lines: 32.0,
            fetched: 8.0,
            waiting: 0.9,
            best: None,
        }],
        timelines: vec![("none".to_owned(), timeline.clone()), (text.to_owned(), timeline)],
        hints: vec![Hint {
            place: text.to_owned(),
            asked: text.to_owned(),
            reached: text.to_owned(),
            by: text.to_owned(),
        }],
        codes: vec![Code {
            plan: text.to_owned(),
            time_ns: 1000.0,
            listings: ["IR", "PTX", "machine code"]
                .map(|form| Listing {
                    form: form.to_owned(),
                    text: text.to_owned(),
                    cut: 3,
                })
                .into(),
        }],
        sources: vec![Source {
            file: text.to_owned(),
            first: 41,
            lines: vec![text.to_owned()],
        }],
    }
}

#[test]
fn text_from_outside_does_not_become_markup() {
    let mut report = sample();
    let evil = "</title><script>alert(1)</script>\"'";
    report.kernel = evil.to_owned();
    report.device = evil.to_owned();
    report.reasons = vec![evil.to_owned()];
    report.notes = vec![evil.to_owned()];
    report.parameters = vec![(evil.to_owned(), evil.to_owned())];
    report.counters[0].name = evil.to_owned();
    report.counters[0].unit = evil.to_owned();
    report.detail = Some(with_everything(evil));
    let page = html(&report);
    // The page's own, which its policy names, and no other.
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains(&format!("<script>{}</script>", super::SCRIPT)));
    assert!(!page.contains("alert(1)</script>"));
}

#[test]
fn elements_are_closed_and_ids_differ() {
    let mut report = sample();
    report.detail = Some(with_everything("a < b"));
    let page = html(&report);
    for id in ["timeline", "iterations", "stalls", "loads", "levels", "code"] {
        assert!(page.contains(&format!(" id=\"{id}\"")), "{id}");
    }
    for element in [
        "svg", "g", "table", "section", "figure", "details", "ul", "ol", "tr", "td", "p", "text",
    ] {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(
            opened,
            page.matches(&format!("</{element}>")).count(),
            "{element}"
        );
    }
    let mut ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn a_report_with_nothing_but_the_plain_kernel_has_a_page() {
    let mut report = sample();
    report.trials.truncate(1);
    report.best.plan = crate::prefetch::Plan::none();
    report.verdict = Verdict::LeaveIt;
    let page = html(&report);
    assert!(!page.contains("<figure") && page.contains("Leave it"));
}

#[test]
fn the_policy_names_the_script() {
    let sum = "cd src/report/page && cat tables.js pair.js | sha256sum";
    let said = std::process::Command::new("sh")
        .args(["-c", sum])
        .output()
        .expect("it runs");
    let said = String::from_utf8(said.stdout).expect("text");
    // Three bytes are four digits in base 64, and six in base 16.
    let digit = |digit: u8| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digest = super::DIGEST.trim_start_matches("sha256-").trim_end_matches('=');
    let bits: String = digest
        .bytes()
        .map(|byte| format!("{:06b}", digit(byte)))
        .collect();
    let bytes = bits
        .as_bytes()
        .chunks_exact(8)
        .map(|byte| str::from_utf8(byte).expect("digits"));
    let hex: String = bytes
        .map(|byte| format!("{:02x}", u8::from_str_radix(byte, 2).expect("a byte")))
        .collect();
    assert_eq!(said.split_whitespace().next(), Some(hex.as_str()));
}
