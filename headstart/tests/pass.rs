//! A test for every rule: the kernels of `tests/pass/<pass>/`, each with a plan that is refused, and what makes it legal.
//!
//! ```text
//! ; plan: values=rolling-registers:3
//! ; refused: volatile.hsir:12: `values` cannot be fetched early: the load is volatile
//! ; launch: 1 × 32
//! …
//!     %x = load i32 %at, @values volatile
//!     ;+ %x = load i32 %at, @values
//! ```
//! `; refused:` is the error, word for word, with its place. `;+` replaces the line above it; with that one line changed the
//! plan must be carried out, and must change no bit of the launch. Where it is the plan that is at fault, `; accepted: PLAN`
//! is one that must be carried out instead. `HEADSTART_BLESS=1` writes what was said behind `; refused:`.
//!
//! A second test reads the source of `prefetch` and of the analyses behind it: each message there is asserted by a file here.

use std::fs;
use std::path::{Path, PathBuf};

use headstart::Fault;
use headstart::device::sim::functional::Options;
use headstart::ir::{self, Kernel};
use headstart::prefetch::{Plan, Target, apply};
use headstart::testing::{Case, run};

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files below a folder with this extension, in alphabetical order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// One rule's file.
struct Rule {
    path: PathBuf,
    name: String,
    text: String,
    plan: Plan,
    refused: String,
}

impl Rule {
    fn read(path: PathBuf) -> Rule {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("readable");
        let plan = said(&text, "plan").unwrap_or_else(|| panic!("{name}: no `; plan:`"));
        Rule {
            plan: plan.parse().unwrap_or_else(|error| panic!("{name}: {error}")),
            refused: said(&text, "refused").unwrap_or_default().to_owned(),
            path,
            name,
            text,
        }
    }

    /// The text with the line above `;+` exchanged; nothing if there is no `;+`.
    fn mended(&self) -> Option<String> {
        let mut lines: Vec<&str> = Vec::new();
        let mut changed = 0;
        for line in self.text.lines() {
            match line.trim_start().strip_prefix(";+") {
                Some(new) => {
                    lines.pop();
                    lines.push(new);
                    changed += 1;
                }
                None => lines.push(line),
            }
        }
        assert!(changed <= 1, "{}: one line makes the difference", self.name);
        (changed == 1).then(|| lines.join("\n"))
    }

    fn kernel(&self, text: &str) -> Kernel {
        let kernel = ir::read(text, &self.name).unwrap_or_else(|error| panic!("{error}"));
        ir::verify(&kernel).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        kernel
    }

    /// Complaints about what is refused and what is accepted.
    fn check(&self) -> Vec<String> {
        let name = &self.name;
        let target = match said(&self.text, "group") {
            Some("unknown") => Target::default(),
            _ => Target {
                group_size: Some([32, 1, 1]),
                ..Target::default()
            },
        };
        let mut complaints = Vec::new();
        match apply(&self.kernel(&self.text), &self.plan, &target) {
            Ok(_) => complaints.push(format!("{name}: {} is carried out, and must not be", self.plan)),
            Err(error) => {
                assert_ne!(error.fault(), Fault::Bug, "{name}: {error}");
                let found = error.to_string().replace('\n', " ");
                if found != self.refused {
                    complaints.push(format!("{name}: refused\n  {found}\nnot\n  {}", self.refused));
                    self.bless(&found);
                }
            }
        }
        let mended = self.mended();
        let plan = said(&self.text, "accepted");
        assert!(
            mended.is_some() != plan.is_some(),
            "{name}: `;+` or `; accepted:` says what makes the plan legal"
        );
        let plan = plan.map_or(self.plan.clone(), |plan| {
            plan.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
        });
        let text = mended.unwrap_or_else(|| self.text.clone());
        let kernel = self.kernel(&text);
        match apply(&kernel, &plan, &target) {
            Err(error) => complaints.push(format!("{name}: {plan} must be legal here: {error}")),
            Ok(applied) => complaints.extend(self.runs_alike(&text, &applied.kernel)),
        }
        complaints
    }

    /// Runs the plain and the planned kernel.
    fn runs_alike(&self, text: &str, planned: &Kernel) -> Option<String> {
        let case = Case::read(text, &self.name).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let case = case.unwrap_or_else(|| panic!("{}: no `; launch:`", self.name));
        let run = |kernel: &Kernel| run(&case.workload, kernel, Options::CHECKING);
        match (run(&case.workload.kernel), run(planned)) {
            (Ok(plain), Ok(planned)) if plain == planned => None,
            (Ok(_), Ok(_)) => Some(format!(
                "{}: the planned kernel computes something else",
                self.name
            )),
            (Err(error), _) | (_, Err(error)) => Some(format!("{}: {error}", self.name)),
        }
    }

    fn bless(&self, found: &str) {
        if std::env::var_os("HEADSTART_BLESS").is_some() {
            let lines = self
                .text
                .lines()
                .map(|line| match line.starts_with("; refused:") {
                    true => format!("; refused: {found}\n"),
                    false => format!("{line}\n"),
                });
            fs::write(&self.path, lines.collect::<String>()).expect("writable");
        }
    }
}

/// What a comment at the top says behind a word.
fn said<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let line = line.strip_prefix(';')?.trim();
        Some(line.strip_prefix(word)?.strip_prefix(':')?.trim())
    })
}

fn rules() -> Vec<Rule> {
    let files = files(&manifest("tests/pass"), "hsir");
    files.into_iter().map(Rule::read).collect()
}

#[test]
fn each_rule_refuses_and_one_line_makes_it_legal() {
    let complaints: Vec<String> = rules().iter().flat_map(Rule::check).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
