//! What README.md and `docs/programs.md` say of programs is what `results/` says of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use headstart::report::number::{duration, speedup};

use crate::documents::compare;
use crate::read;

/// Gains from here on are named: a program's own times vary by as much from run to run.
const GAIN: f64 = 1.05;
/// Programs on the first page.
const SHOWN: usize = 3;
/// Characters of a line of a list.
const WIDTH: usize = 120;

/// A program of `results/programs-h200.txt`.
#[derive(Default)]
struct Program {
    /// Its kinds of launches: name, share of the time of all kernels, answer, gain in the search.
    kinds: Vec<(String, f64, String, f64)>,
    /// Those that ran a better kernel in the program: name, mean time of the original and of the better one, in nanoseconds.
    replaced: Vec<(String, f64, f64)>,
}

impl Program {
    fn share(&self, answer: &str) -> f64 {
        let of_it = self.kinds.iter().filter(|(_, _, own, _)| own == answer);
        // A sum of nothing is a negative zero.
        of_it.map(|(_, share, ..)| share).sum::<f64>() + 0.0
    }

    /// How fast all kernels together are if these shares of their time become so much shorter.
    fn all(saved: impl Iterator<Item = (f64, f64)>) -> f64 {
        1.0 / (1.0 - saved.map(|(share, gain)| share * (1.0 - 1.0 / gain)).sum::<f64>())
    }

    fn in_the_search(&self) -> f64 {
        let replaced = self.kinds.iter().filter(|(_, _, answer, _)| answer == "replaced");
        Program::all(replaced.map(|(_, share, _, gain)| (*share, *gain)))
    }

    fn in_the_program(&self) -> f64 {
        let share = |name: &String| self.kinds.iter().find(|(own, ..)| own == name).map(|kind| kind.1);
        let saved = self.replaced.iter();
        Program::all(saved.filter_map(|(name, before, after)| Some((share(name)?, before / after))))
    }
}

/// The programs that ran, by name.
fn programs() -> BTreeMap<String, Program> {
    let mut programs: BTreeMap<String, Program> = BTreeMap::new();
    for line in read("results/programs-h200.txt").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, _, kernel, share, _, times, answer, gain, _] = fields[..] else {
            continue;
        };
        if name == "program" || answer == "-" || answer.starts_with("did not run") {
            continue;
        }
        let program = programs.entry(shown(name)).or_default();
        if answer == "in the program" {
            let (before, after) = times.split_once(" -> ").expect("two times");
            let ns = |text: &str| 1e3 * text.parse::<f64>().expect("microseconds");
            program.replaced.push((kernel.to_owned(), ns(before), ns(after)));
        } else if let Ok(share) = share.parse() {
            let gain = gain.parse().unwrap_or(1.0);
            program
                .kinds
                .push((kernel.to_owned(), share, answer.to_owned(), gain));
        }
    }
    programs
}

/// A program's suite and name as a page writes them.
fn shown(name: &str) -> String {
    let suites = [
        ("rod-", "Rodinia"),
        ("shoc-", "SHOC"),
        ("gar-", "GARDENIA"),
        ("sam-", "CUDA samples"),
    ];
    let found = suites
        .iter()
        .find_map(|(start, suite)| Some((suite, name.strip_prefix(start)?)));
    match found {
        Some((suite, name)) => format!("{suite} `{name}`"),
        None => format!("XSBench and RSBench `{name}`"),
    }
}

/// Those that ran faster kernels with a gain, the largest first.
fn faster(programs: &BTreeMap<String, Program>) -> Vec<(&String, &Program)> {
    let mut faster: Vec<_> = programs
        .iter()
        .filter(|(_, program)| program.in_the_program() >= GAIN)
        .collect();
    faster.sort_by(|(_, one), (_, other)| other.in_the_program().total_cmp(&one.in_the_program()));
    faster
}

/// Parts of one page are compared one after the other: each may be written anew.
#[test]
fn the_page_of_programs_quotes_the_results() {
    let programs = programs();
    compare("docs/programs.md", "programs-h200.txt", &all_of_them(&programs));
    compare("docs/programs.md", "gain-h200.txt", &own_gains().1);
}

/// The parts of README.md that are about programs.
pub fn are_on_the_first_page() {
    let programs = programs();
    public_programs(&faster(&programs), programs.len());
    compare("README.md", "gain-h200.txt", &own_gains().0);
}

/// The programs that gain most, in a sentence and in a table.
fn public_programs(faster: &[(&String, &Program)], count: usize) {
    let [(first, most), .., (_, least)] = faster else {
        panic!("{} programs gain", faster.len());
    };
    let sentence = format!(
        "Of {} public CUDA programs (Rodinia, SHOC, GARDENIA, XSBench, RSBench, CUDA's samples), unmodified, on an NVIDIA H200,\n\
         **{} run with faster kernels** that Headstart derived: all of a program's kernels together are {:.2} to {:.2} times as\n\
         fast, most in {first}. The other {} keep theirs: no faster one is worth loading, or none is known.\n",
        count,
        faster.len(),
        least.in_the_program(),
        most.in_the_program(),
        count - faster.len()
    );
    compare("README.md", "programs-h200.txt in a sentence", &sentence);
    let mut table = format!(
        "Of the {} programs that run faster, on an NVIDIA H200, those that gain most, and what all kernels of each gain together\n\
         ([all {count}](docs/programs.md#programs-of-public-suites)):\n\n\
         | program | a launch of its longest faster kernel | all its kernels |\n|---|---|---|\n",
        faster.len()
    );
    for (name, program) in faster.iter().take(SHOWN) {
        let share = |name: &str| {
            program
                .kinds
                .iter()
                .find(|kind| kind.0 == name)
                .map_or(0.0, |kind| kind.1)
        };
        let longest = program.replaced.iter();
        let longest = longest.max_by(|one, other| share(&one.0).total_cmp(&share(&other.0)));
        let (kernel, before, after) = longest.expect("a kernel was replaced");
        let _ = writeln!(
            table,
            "| {name} | `{kernel}` {} → {} | {} |",
            duration(*before),
            duration(*after),
            speedup(program.in_the_program())
        );
    }
    compare("README.md", "programs-h200.txt", &table);
}

/// Those with better kernels in a table, and the others in lists.
fn all_of_them(programs: &BTreeMap<String, Program>) -> String {
    let mut replaced: Vec<_> = programs
        .iter()
        .filter(|(_, program)| program.in_the_search() > 1.0)
        .collect();
    let gains = |program: &Program| (program.in_the_program(), program.in_the_search());
    replaced.sort_by(|(_, one), (_, other)| gains(other).partial_cmp(&gains(one)).expect("numbers"));
    let mut page = format!(
        "Of {} programs {} have kernels for which the search found a better one, and {} gain 5 % or more in the program:\n\n\
         | program | the kernels' time: faster, kept, no answer | all kernels, by the search | in the program |\n\
         |---|---|---:|---:|\n",
        programs.len(),
        replaced.len(),
        faster(programs).len()
    );
    for (name, program) in &replaced {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let (faster, kept) = (program.share("replaced"), program.share("kept"));
        let none = ["open", "refused", "not_captured"].map(|answer| program.share(answer));
        let in_the_program = match program.replaced.is_empty() {
            true => "not loaded".to_owned(),
            false => speedup(program.in_the_program()),
        };
        let _ = writeln!(
            page,
            "| {name} | {}, {}, {} | {} | {in_the_program} |",
            percent(faster),
            percent(kept),
            percent(none.iter().sum()),
            speedup(program.in_the_search())
        );
    }
    let mut others: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (name, program) in programs
        .iter()
        .filter(|(_, program)| program.in_the_search() <= 1.0)
    {
        let answers = [
            ("kept", "no plan is faster, or no loop loads"),
            ("refused", "refused, as its results differ from run to run"),
            ("not_captured", "no launch was captured"),
            ("open", "no answer in the budget"),
        ];
        let most = answers
            .into_iter()
            .max_by(|one, other| program.share(one.0).total_cmp(&program.share(other.0)))
            .filter(|(answer, _)| program.share(answer) > 0.0);
        let why = most.map_or("of which the results name no kernel", |(_, why)| why);
        let (suite, name) = name.split_once(" `").expect("a suite");
        others
            .entry((suite, why))
            .or_default()
            .push(name.trim_end_matches('`'));
    }
    page.push_str("\nThe others keep their kernels:\n\n");
    for ((suite, why), names) in others {
        let line = format!("- {suite}, {why}: `{}`", names.join("`, `"));
        let mut length = 0;
        for word in line.split(' ') {
            let own = word.chars().count() + 1;
            if length + own > WIDTH {
                page.push_str("\n ");
                length = 1;
            }
            page.push_str(if length == 0 { "" } else { " " });
            page.push_str(word);
            length += own;
        }
        page.push('\n');
    }
    page
}

/// The runs of our own programs in `results/gain-h200.txt`: the program with its arguments, and its gain where it has one.
fn own_runs() -> Vec<(String, Option<f64>)> {
    let text = read("results/gain-h200.txt");
    let runs = text.split("\n== ").nth(1).expect("programs");
    let run = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let share = words.iter().position(|word| word.ends_with('%'))?;
        let same = words.iter().position(|word| *word == "same")?;
        Some((
            words[..share].join(" "),
            words[same - 1].trim_end_matches('x').parse().ok(),
        ))
    };
    runs.lines().filter_map(run).collect()
}

/// What they gain, in a sentence and as a list.
fn own_gains() -> (String, String) {
    let runs = own_runs();
    let mut gains: Vec<(&str, f64)> = runs
        .iter()
        .filter_map(|(name, gain)| Some((name.as_str(), gain.filter(|gain| *gain >= GAIN)?)))
        .collect();
    gains.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let [(_, most), .., (_, least)] = gains[..] else {
        panic!("{} gain", gains.len());
    };
    let (all, gain) = (runs.len(), gains.len());
    let sentence = format!(
        "Of {all} [runs of small programs of ours](docs/programs.md#how-much-there-is-to-gain) {gain} gain {least:.2} to {most:.2} \
         times, those\nwhose launches do not fill the GPU.\n"
    );
    let mut list =
        format!("Of {all} runs of programs of ours {gain} gain 5 % or more in the program's own timing:\n\n");
    for (name, gain) in gains {
        let _ = writeln!(list, "- {gain:.2}× `{name}`");
    }
    (sentence, list)
}
