//! A test for every rule: the kernels of `tests/pass/<pass>/`, each with a plan that is refused, and what makes it legal.
//!
//! ```text
//! ; plan: values=rolling-registers:3
//! ; refused: volatile.hsir:12: `values` cannot be fetched early: the load is volatile
//! ; launch: 1 × 32
//! ; n: 40
//! ; again: n = 0
//! …
//!     %x = load i32 %at, @values volatile
//!     ;+ %x = load i32 %at, @values
//! ```
//! `; refused:` is the error, word for word, with its place. `;+` replaces the line above it; with that one line changed the
//! plan must be applied, and must change no bit of the launch. If the plan itself is at fault, `; accepted: PLAN` is one that
//! must be applied instead. `; again: NAME = VALUE, …` is a further launch, which differs from the first in these scalars,
//! buffers or in its `launch`. `HEADSTART_BLESS=1` writes the message behind `; refused:`.
//!
//! A file with `; carried out: PLAN; PLAN` instead has a shape that an analysis must see through: each plan is carried
//! out, and changes no bit of any launch.
//!
//! A second test reads the source of `prefetch` and of the analyses behind it: each message there is asserted by a file here.
//! `scripts/mutants` runs these tests with each safety condition negated, dropped or off by one;
//! `tests/pass/equivalent-mutants.md` justifies the survivors.

use std::fs;
use std::path::{Path, PathBuf};

use headstart::Fault;
use headstart::device::sim::functional::Options;
use headstart::ir::{self, Kernel};
use headstart::prefetch::{Plan, PlanTarget, Versions, apply, apply_to};
use headstart_testing::{Case, run};

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
}

impl Rule {
    fn read(path: PathBuf) -> Rule {
        Rule {
            name: path.file_name().expect("a name").to_string_lossy().into_owned(),
            text: fs::read_to_string(&path).expect("readable"),
            path,
        }
    }

    fn plans(&self, said: &str) -> Vec<Plan> {
        let plan = |plan: &str| {
            plan.parse()
                .unwrap_or_else(|error| panic!("{}: {error}", self.name))
        };
        said.split("; ").map(plan).collect()
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

    fn kernel(&self, text: &str) -> Result<Kernel, String> {
        let kernel = ir::read(text, &self.name).map_err(|error| error.to_string())?;
        ir::verify(&kernel).map_err(|error| format!("{}: {error}", self.name))?;
        Ok(kernel)
    }

    fn target(&self) -> PlanTarget {
        match said(&self.text, "group") {
            Some("unknown") => PlanTarget::default(),
            _ => PlanTarget::of([32, 1, 1]),
        }
    }

    /// Complaints about what is refused and what is accepted.
    fn check(&self) -> Vec<String> {
        let name = &self.name;
        if let Some(plans) = said(&self.text, "carried out") {
            let plans = self.plans(plans);
            return plans
                .iter()
                .flat_map(|plan| self.accepted(&self.text, plan))
                .collect();
        }
        let plan =
            said(&self.text, "plan").unwrap_or_else(|| panic!("{name}: no `; plan:` or `; carried out:`"));
        let plan = self.plans(plan).remove(0);
        let mut complaints = self.refused(&plan);
        let mended = self.mended();
        let other = said(&self.text, "accepted");
        assert!(
            mended.is_some() != other.is_some(),
            "{name}: `;+` or `; accepted:` says what makes the plan legal"
        );
        let plan = other.map_or(plan, |other| self.plans(other).remove(0));
        complaints.extend(self.accepted(&mended.unwrap_or_else(|| self.text.clone()), &plan));
        complaints
    }

    /// Whether the plan is carried out behind a test in front of the loop; complaints if that changes a bit of a launch.
    fn in_versions(&self) -> (bool, Vec<String>) {
        let Some(plan) = said(&self.text, "plan") else {
            return (false, Vec::new());
        };
        let plan = self.plans(plan).remove(0);
        let Ok(kernel) = self.kernel(&self.text) else {
            return (false, Vec::new());
        };
        let Ok(applied) = apply_to(&kernel, &plan, &self.target(), Versions::IfItWraps) else {
            return (false, Vec::new());
        };
        // Launches that only the mended kernel survives say nothing.
        let differs = |launch: &String| {
            let complaint = self.differs(launch, &plan, &applied.kernel)?;
            (!complaint.contains("the plain kernel fails")).then_some(complaint)
        };
        (
            true,
            self.launches(&self.text).iter().filter_map(differs).collect(),
        )
    }

    /// Complaints if the plan is not refused as the file says.
    fn refused(&self, plan: &Plan) -> Vec<String> {
        let name = &self.name;
        let expected = said(&self.text, "refused").unwrap_or_default();
        let kernel = match self.kernel(&self.text) {
            Ok(kernel) => kernel,
            Err(error) => return vec![error],
        };
        // What the rule says, without the test in front that tells whether it would hold.
        match apply_to(&kernel, plan, &self.target(), Versions::One) {
            Ok(_) => vec![format!("{name}: {plan} is carried out, and must not be")],
            Err(error) => {
                let found = error.to_string().replace('\n', " ");
                if error.fault() == Fault::Bug || found == expected {
                    let bug = (error.fault() == Fault::Bug).then(|| format!("{name}: {error}"));
                    return bug.into_iter().collect();
                }
                self.bless(&found);
                vec![format!("{name}: refused\n  {found}\nnot\n  {expected}")]
            }
        }
    }

    /// Complaints if the plan is not carried out, or changes a bit of a launch.
    fn accepted(&self, text: &str, plan: &Plan) -> Vec<String> {
        let name = &self.name;
        let kernel = match self.kernel(text) {
            Ok(kernel) => kernel,
            Err(error) => return vec![error],
        };
        let applied = match apply(&kernel, plan, &self.target()) {
            Err(error) => return vec![format!("{name}: {plan} must be legal here: {error}")],
            Ok(applied) => applied,
        };
        let differs = |launch: &String| self.differs(launch, plan, &applied.kernel);
        self.launches(text).iter().filter_map(differs).collect()
    }

    /// The text with each of its launches.
    fn launches(&self, text: &str) -> Vec<String> {
        let again = text.lines().filter_map(|line| line.strip_prefix("; again: "));
        let other = |changes: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for change in changes.split(", ") {
                let (key, value) = change.split_once(" = ").expect("`; again: NAME = VALUE`");
                let start = format!("; {key}: ");
                let line = lines.iter_mut().find(|line| line.starts_with(&start));
                let line = line.unwrap_or_else(|| panic!("{}: no `{start}`", self.name));
                *line = format!("{start}{value}");
            }
            lines.join("\n")
        };
        [text.to_owned()].into_iter().chain(again.map(other)).collect()
    }

    /// Runs the plain and the planned kernel.
    fn differs(&self, text: &str, plan: &Plan, planned: &Kernel) -> Option<String> {
        let name = &self.name;
        let case = match Case::read(text, name) {
            Ok(case) => case.unwrap_or_else(|| panic!("{name}: no `; launch:`")),
            Err(error) => return Some(error.to_string()),
        };
        let run = |kernel: &Kernel| run(&case.workload, kernel, Options::CHECKING);
        match (run(&case.workload.kernel), run(planned)) {
            (Ok(plain), Ok(planned)) if plain == planned => None,
            (Ok(_), Ok(_)) => Some(format!("{name}: {plan} computes something else")),
            (Err(error), _) => Some(format!("{name}: the plain kernel fails: {error}")),
            (_, Err(error)) => Some(format!("{name}: with {plan}: {error}")),
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

/// What the rules refuse because a counter may wrap is carried out where it does not, and stays as it is where it does.
#[test]
fn loops_that_may_wrap_are_carried_out_in_versions() {
    let mut carried_out = 0;
    let mut complaints = Vec::new();
    for rule in rules() {
        let (is_carried_out, found) = rule.in_versions();
        carried_out += usize::from(is_carried_out);
        complaints.extend(found);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(carried_out >= 10, "only {carried_out} are carried out");
}

/// Messages that no kernel of these tests can bring about, and why.
const UNREACHED: &[(&str, &str)] = &[
    (
        "is not in global memory, which alone has caches to fill",
        "a plan names loads of global memory only",
    ),
    (
        "the load is no statement of its own in the text",
        "loops of these files stand in no module's text",
    ),
    (
        "its loop lies in a function that is called",
        "loops of these files stand in no module's text",
    ),
    (
        "` is no load of the loop around its own",
        "the loop around has the loads of the loops inside, unless the text names them otherwise",
    ),
    (
        "its address depends on what an iteration hands on to the next one in registers",
        "loops of these files stand in no module's text",
    ),
];

#[test]
fn each_message_is_asserted() {
    let passes = manifest("../crates/prefetch/src");
    let mut sources = files(&passes, "rs");
    // Plans are parsed elsewhere; the checker's messages are about bugs of ours.
    let elsewhere = ["plan", "check", "plan.rs"];
    sources.retain(|path| {
        let named = |part: std::path::Component<'_>| elsewhere.iter().any(|name| part.as_os_str() == *name);
        // The folders above may have any name.
        let inside = path.strip_prefix(&passes).expect("a file of that folder");
        !inside.components().any(named)
    });
    assert!(!sources.is_empty(), "no sources in {}", passes.display());
    sources.push(manifest("../crates/ir/src/analysis/counted.rs"));
    sources.push(manifest("../crates/ir/src/analysis/apart.rs"));
    let rules = rules();
    let asserted: Vec<&str> = rules
        .iter()
        .filter_map(|rule| said(&rule.text, "refused"))
        .collect();
    let mut complaints = Vec::new();
    let mut unreached: Vec<&str> = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("readable");
        for message in messages(&text) {
            let found = asserted.iter().any(|refused| refused.contains(&message));
            let excused = UNREACHED.iter().find(|(excused, _)| message.contains(excused));
            unreached.extend(excused.map(|(excused, _)| *excused));
            let file = path.display();
            match (found, excused) {
                (true, Some(_)) => complaints.push(format!("{file}: it can be reached after all: {message}")),
                (false, None) => complaints.push(format!("{file}: no file in tests/pass asserts: {message}")),
                _ => {}
            }
        }
    }
    let stale = UNREACHED
        .iter()
        .filter(|(excused, _)| !unreached.contains(excused));
    complaints.extend(stale.map(|(excused, _)| format!("no source says any more: {excused}")));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The longest piece between placeholders of each string in a source that users may read. Strings that only say what is
/// accepted, that tell of a bug, that describe a strategy, or that are too short to be a sentence are none.
fn messages(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n");
    let mut found = Vec::new();
    let mut calls: Vec<String> = Vec::new();
    let (mut word, mut last_word) = (String::new(), String::new());
    let mut rest = code.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '(' | '[' | '{' => calls.push(std::mem::take(&mut word)),
            ')' | ']' | '}' => {
                calls.pop();
            }
            // A letter in quotes; a lifetime has no second quote.
            '\'' => {
                let ahead: Vec<char> = rest.clone().take(3).collect();
                let skipped = match ahead[..] {
                    ['\\', _, '\''] => 3,
                    [_, '\'', ..] => 2,
                    _ => 0,
                };
                rest.by_ref().take(skipped).for_each(drop);
            }
            '"' => {
                let text = literal(&mut rest);
                let silent = ["bug", "accepted", "expect", "expect!"];
                // A field of a descriptor; `report::explain` tests what it becomes.
                let describes = last_word == "sentence";
                let told = !describes && !calls.iter().any(|call| silent.contains(&call.as_str()));
                let longest = pieces(&text)
                    .into_iter()
                    .max_by_key(String::len)
                    .unwrap_or_default();
                if told && longest.len() >= 12 && longest.contains(' ') {
                    found.push(longest);
                }
            }
            _ => {}
        }
        match letter.is_alphanumeric() || letter == '_' {
            true => word.push(letter),
            false if !word.is_empty() => last_word = std::mem::take(&mut word),
            false => {}
        }
    }
    found
}

/// The rest of a string literal, its line breaks joined.
fn literal(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(letter) = rest.next() {
        match letter {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => while rest.next_if(|letter| letter.is_whitespace()).is_some() {},
                other => text.extend(other),
            },
            _ => text.push(letter),
        }
    }
    text
}

/// What stands between the placeholders of a format.
fn pieces(format: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut depth = 0;
    for letter in format.chars() {
        match letter {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                pieces.push(String::new());
            }
            _ if depth == 0 => pieces.last_mut().expect("one at least").push(letter),
            _ => {}
        }
    }
    pieces
}
