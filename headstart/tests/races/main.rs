//! Kernels that are right and kernels that are wrong, under the checks of the functional engine: no false alarm, no miss.
//!
//! They are in `kernels.cu`, each with what is expected of it in the line before, and are compiled to `kernels.ptx`
//! (`headstart/tests/races/make`).

use std::sync::Arc;

use headstart::device::sim::functional::{CompiledKernel, Groups, Messages, Options};
use headstart::front::ptx;
use headstart::tune::{FileSubject, LaunchFile, Subject};
use headstart_testing::bind;

const SOURCE: &str = include_str!("kernels.cu");
const MODULE: &str = include_str!("kernels.ptx");

/// Operations of a sub-group after which a loop counts as endless; none of the kernels needs as many.
const OPERATIONS: u64 = 1 << 20;

/// What is expected of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Good,
    /// Right, with a remark.
    Note,
    Bad,
}

/// A kernel of the source.
struct Case<'s> {
    name: &'s str,
    verdict: Verdict,
    groups: u32,
    group: u32,
    arguments: Vec<&'s str>,
    /// What is said.
    message: &'s str,
    /// The lines that are at fault.
    here: Vec<usize>,
}

fn cases() -> Vec<Case<'static>> {
    let lines: Vec<&str> = SOURCE.lines().collect();
    let case = |(at, spec): (usize, &'static str)| {
        let (launch, message) = spec.split_once('|').unwrap_or((spec, ""));
        let mut words = launch.split_whitespace();
        let verdict = match words.next() {
            Some("good") => Verdict::Good,
            Some("note") => Verdict::Note,
            Some("bad") => Verdict::Bad,
            other => panic!("line {}: {other:?}", at + 1),
        };
        let (groups, group) = words
            .next()
            .and_then(|word| word.split_once('x'))
            .expect("a geometry");
        let body = lines[at + 1..].iter().zip(at + 2..);
        let body = body.take_while(|(line, _)| !line.starts_with("//@"));
        Case {
            name: lines[at + 1]
                .strip_prefix("K ")
                .and_then(|line| line.split('(').next())
                .expect("a kernel"),
            verdict,
            groups: groups.parse().expect("a number"),
            group: group.parse().expect("a number"),
            arguments: words.collect(),
            message: message.trim(),
            here: body
                .filter(|(line, _)| line.contains("// HERE"))
                .map(|(_, number)| number)
                .collect(),
        }
    };
    let specs = lines.iter().enumerate();
    specs
        .filter_map(|(at, line)| Some((at, line.strip_prefix("//@ ")?)))
        .filter(|(_, spec)| !spec.starts_with("good GROUPS"))
        .map(case)
        .collect()
}

impl Case<'_> {
    /// Its launch file.
    fn launch(&self) -> String {
        let mut text = format!("groups = {}\ngroup = {}\n", self.groups, self.group);
        for (argument, number) in self.arguments.iter().zip(0..) {
            text.push_str(&format!("[parameters.param_{number}]\n"));
            if let Some(value) = argument.strip_prefix('=') {
                text.push_str(&format!("value = {value}\n"));
                continue;
            }
            let (fill, length) = argument.split_once(':').expect("a fill and a length");
            let (length, below) = length.split_once('<').unwrap_or((length, ""));
            text.push_str(&format!("length = {length}\n"));
            match fill {
                "seq" => text.push_str("fill = \"sequence\"\n"),
                "zero" => text.push_str("fill = \"zero\"\n"),
                "idx" => text.push_str(&format!("fill = \"indices\"\nbelow = {below}\nseed = 3\n")),
                "none" => text.push_str("output = \"bits\"\n"),
                other => panic!("{}: no fill `{other}`", self.name),
            }
        }
        text
    }

    fn run(&self, options: Options) -> headstart::Result<Messages> {
        let launch = LaunchFile::parse(&self.launch(), "launch.toml")?;
        let imported = ptx::import(MODULE, "kernels.ptx", Some(self.name), &launch.facts())?;
        let workload = FileSubject::of_module(imported, launch).workload()?;
        let (mut launch, _) = bind(&workload)?;
        launch.operation_limit = Some(OPERATIONS);
        let compiled = CompiledKernel::new(Arc::clone(&workload.kernel));
        let (_, told) = compiled.run_telling(&launch, 32, options, &Groups::All)?;
        Ok(told)
    }

    /// What is wrong with how it is judged, if anything is.
    fn judge(&self) -> Option<String> {
        let said = match self.run(Options::CHECKING) {
            Ok(told) => match self.verdict {
                Verdict::Good if told.notes.is_empty() => return None,
                Verdict::Note if told.notes.iter().any(|note| note.contains(self.message)) => return None,
                Verdict::Bad => return Some(format!("{}: missed", self.name)),
                _ => format!("notes {:?}", told.notes),
            },
            Err(error) => {
                let said = error.to_string();
                let is_there = |line: &usize| said.contains(&format!("kernels.cu:{line}:"));
                if self.verdict == Verdict::Bad
                    && said.contains(self.message)
                    && self.here.iter().any(is_there)
                {
                    return None;
                }
                said
            }
        };
        Some(format!(
            "{} ({:?}, lines {:?}): {said}",
            self.name, self.verdict, self.here
        ))
    }
}

#[test]
fn no_false_alarm_and_no_miss() {
    let cases = cases();
    let wrong: Vec<String> = cases.iter().filter_map(Case::judge).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    let count = |is_bad: bool| {
        let alike = cases
            .iter()
            .filter(|case| (case.verdict == Verdict::Bad) == is_bad);
        alike.count()
    };
    assert!(
        count(false) >= 60 && count(true) >= 60,
        "{} good, {} bad",
        count(false),
        count(true)
    );
}

#[test]
fn bad_kernels_are_told_the_same_on_any_number_of_threads() {
    let all = || -> Vec<String> {
        let told = |case: &Case<'_>| case.run(Options::CHECKING).map(|told| told.notes);
        cases().iter().map(|case| format!("{:?}", told(case))).collect()
    };
    let on = |threads: usize| {
        let pool = rayon_pool(threads);
        pool.install(all)
    };
    let one = on(1);
    assert_eq!(one, on(3));
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("a pool of threads")
}

/// Where nothing is checked, kernels whose work-groups wait for each other end, too.
#[test]
fn the_fast_mode_takes_turns_as_well() {
    for case in cases().iter().filter(|case| case.verdict != Verdict::Bad) {
        case.run(Options::FAST)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}

/// A grid-wide barrier needs all work-groups resident at once.
#[test]
fn a_grid_of_more_work_groups_than_are_resident_is_told_so() {
    let cases = cases();
    let grid = cases
        .iter()
        .find(|case| case.name == "g_grid_barrier")
        .expect("it is there");
    let with = |resident_groups: u64| {
        grid.run(Options {
            resident_groups,
            ..Options::CHECKING
        })
    };
    assert!(with(5).is_ok());
    let said = with(3).expect_err("two cannot begin").to_string();
    assert!(
        said.contains("the device has 3 work-groups of this launch resident at once, all of them wait, and 2 have not begun"),
        "{said}"
    );
}
