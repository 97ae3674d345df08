//! What became of a program's launches with better kernels in place: as data, and in sentences.
//!
//! Every launch of a kernel is accounted for, and every one that took the original has a reason.

use std::fmt::Write as _;

use headstart::capture::{Counts, Process};
use headstart::report::number;
use serde::Serialize;

use super::{Better, name};

/// What became of a program with better kernels in place.
#[derive(Debug, Serialize)]
pub struct ExecReport {
    /// The program's exit status, as a shell has it.
    pub status: u8,
    /// The better kernels, those that are expected to save most first.
    pub kernels: Vec<Ran>,
    /// What went wrong in the preloaded library, a sentence each.
    pub troubles: Vec<String>,
    /// Whether the program called the driver where the library could see it; nothing if it ran without the library.
    pub is_observed: Option<bool>,
}

/// A better kernel in the program.
#[derive(Debug, Serialize)]
pub struct Ran {
    /// Its folder's name.
    pub folder: String,
    kernel: String,
    plan: String,
    /// The device of the search.
    device: String,
    /// Its gain in the search.
    speedup: f64,
    /// Why it was not put in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    /// Launches of the kernel, of any kind; zero if it was not put in place.
    launches: u64,
    /// Those that ran this better kernel.
    replaced: u64,
    /// Those that met the facts of no better kernel of this one.
    refused: u64,
    /// The reasons, with the launches that each refused.
    refusals: Vec<Refusal>,
    /// Those that ran the original for comparison.
    compared: u64,
    /// Those after it was switched off.
    left: u64,
    /// Those in graphs that ran the original.
    in_graphs: u64,
    /// Those that nothing is known of.
    unknown: u64,
    /// The kernel's launches from another image than the captured one.
    of_another_image: u64,
    /// Whether it was slower here, and was switched off.
    is_switched_back: bool,
    /// Mean time of timed launches, and how many: of the better kernel, of the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    better_ns: Option<(f64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_ns: Option<(f64, u64)>,
    /// What its launches saved, by these means; negative if they lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_ns: Option<f64>,
}

/// Launches that were refused for one reason.
#[derive(Debug, Serialize)]
struct Refusal {
    launches: u64,
    /// The assumption.
    assumed: String,
    /// What the first of them had instead.
    found: String,
}

/// The first words of facts that the library looks at for each launch, in the order of the file.
const FACTS: [&str; 7] = ["group", "shared", "resident", "apart", "ends", "aligned", "known"];

/// The report on a run; `processes` is nothing if it ran without the library.
pub fn report(better: &[Better], processes: Option<&[Process]>, status: u8) -> ExecReport {
    let all = processes.unwrap_or_default();
    ExecReport {
        status,
        kernels: better.iter().map(|own| Ran::of(own, all)).collect(),
        troubles: all
            .iter()
            .flat_map(|process| {
                let troubles = process.troubles.iter();
                troubles.map(|trouble| format!("process {}: {trouble}", process.number))
            })
            .collect(),
        is_observed: processes.map(|all| !all.is_empty()),
    }
}

impl Ran {
    fn of(better: &Better, processes: &[Process]) -> Ran {
        let tuned = &better.tuned;
        let module = better.module().to_string_lossy().into_owned();
        let (mut whole, mut own, mut of_another_image) = (Counts::default(), Counts::default(), 0);
        let mut refusals: Vec<u64> = Vec::new();
        for process in processes {
            for seen in process.kernels.iter().filter(|seen| seen.name == tuned.kernel) {
                match seen.image.as_deref() == Some(&tuned.image) {
                    true => whole.add(&seen.counts),
                    false => of_another_image += seen.counts.launches,
                }
            }
            for placed in process.better.iter().filter(|own| own.file == module) {
                own.add(&placed.counts);
                refusals.resize(refusals.len().max(placed.refusals.len()), 0);
                for (sum, count) in refusals.iter_mut().zip(&placed.refusals) {
                    *sum += count;
                }
            }
        }
        let found = |number: usize| {
            let key = (module.clone(), number);
            let found = processes.iter().find_map(|process| process.refused.get(&key));
            found.cloned().unwrap_or_default()
        };
        let looked_at = tuned.facts.iter().zip(&tuned.rests_on).filter(|(fact, _)| {
            let first = fact.split(' ').next().unwrap_or_default();
            FACTS.contains(&first)
        });
        let assumed: Vec<&String> = looked_at.map(|(_, sentence)| sentence).collect();
        let refusal = |(number, &launches): (usize, &u64)| Refusal {
            launches,
            assumed: assumed.get(number).map_or_else(
                || "its parameters and context can be looked at".to_owned(),
                |own| (*own).clone(),
            ),
            found: found(number),
        };
        let refusals = refusals.iter().enumerate().filter(|(_, count)| **count > 0);
        let mean = |(timed, total): (u64, u64)| (timed > 0).then(|| (total as f64 / timed as f64, timed));
        let (better_ns, original_ns) = (mean(own.replaced_timed), mean(own.original_timed));
        let saved_ns = better_ns
            .zip(original_ns)
            .map(|((better, _), (original, _))| (original - better) * own.replaced as f64);
        let graphs = u64::from(whole.in_graphs);
        let known = whole.replaced + whole.refused + whole.compared + whole.left + graphs;
        Ran {
            folder: name(&better.folder),
            kernel: tuned.kernel.clone(),
            plan: tuned.plan.clone(),
            device: tuned.device.clone(),
            speedup: tuned.speedup,
            left_out: better.left_out.clone(),
            launches: whole.launches,
            replaced: own.replaced,
            refused: whole.refused,
            refusals: refusals.map(refusal).collect(),
            compared: whole.compared,
            left: whole.left,
            in_graphs: graphs,
            unknown: whole.launches.saturating_sub(known),
            of_another_image,
            is_switched_back: own.is_switched_back,
            better_ns,
            original_ns,
            saved_ns,
        }
    }

    fn said(&self, text: &mut String) {
        let name = &self.folder;
        let searched = format!(
            "{}, {:.2} times as fast on {} in the search",
            self.plan, self.speedup, self.device
        );
        if let Some(why) = &self.left_out {
            let _ = writeln!(text, "headstart: {name}: stays as it is ({searched}): {why}");
            return;
        }
        let _ = write!(
            text,
            "headstart: {name}: {} of {} launches ran the tuned kernel ({searched})",
            self.replaced, self.launches
        );
        if let (Some((better, timed)), Some((original, of_original))) = (self.better_ns, self.original_ns) {
            let _ = write!(
                text,
                "; here {} instead of {} (means of {timed} and {of_original} launches)",
                number::duration(better),
                number::duration(original),
            );
        }
        if let Some(saved) = self.saved_ns {
            let word = if saved < 0.0 { "lost" } else { "saved" };
            let _ = write!(text, "; {word} {}", number::duration(saved.abs()));
        }
        text.push('\n');
        let mut line = |count: u64, what: &str| {
            if count > 0 {
                let _ = writeln!(text, "headstart: {name}: {count} launches {what}");
            }
        };
        line(self.refused, "did not meet its assumptions and ran the original");
        for refusal in &self.refusals {
            let what = format!(
                "did not have: {}; the first of them: {}",
                refusal.assumed, refusal.found
            );
            line(refusal.launches, &what);
        }
        line(self.in_graphs, "in graphs ran the original");
        if self.replaced == 0 || self.is_switched_back {
            line(self.compared, "ran the original for comparison");
        }
        line(
            self.left,
            "ran the original after the tuned kernel was switched off",
        );
        line(
            self.unknown,
            "ran the original: the tuned kernel was not loaded, or the program got the kernel in a way that is not observed",
        );
        line(
            self.of_another_image,
            "are of another image than the captured one, and ran the original: capture the program as it is now",
        );
        if self.launches + self.of_another_image == 0 {
            let _ = writeln!(text, "headstart: {name}: the program did not launch this kernel");
        }
        if self.is_switched_back {
            let _ = writeln!(
                text,
                "headstart: {name}: the tuned kernel was slower here, so the original runs again"
            );
        }
    }
}

impl ExecReport {
    /// The report in sentences, a line each.
    pub fn said(&self) -> String {
        let mut text = String::new();
        for kernel in &self.kernels {
            kernel.said(&mut text);
        }
        for trouble in &self.troubles {
            let _ = writeln!(text, "headstart: {trouble}");
        }
        if self.kernels.is_empty() {
            text.push_str("headstart: this capture has no tuned kernels; `headstart tune DIR` makes them\n");
        }
        if self.is_observed == Some(false) {
            text.push_str(
                "headstart: the program did not call the CUDA driver, or could not be observed (linked statically, setuid, or no room on the disk for its record)\n",
            );
        }
        text
    }
}
