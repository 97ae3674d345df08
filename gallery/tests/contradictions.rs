//! What one advice says does not contradict itself: bounds and gains, distances and trip counts, answers and verdict.
//!
//! A few cases each time, others with each seed; `HEADSTART_CONTRADICTIONS=1000` takes all.

use std::fs;
use std::path::Path;

use headstart::advise::{self, Advice, Answer, advise};
use headstart::device::model;
use headstart::front::ptx;
use headstart::report::columns::Columns;
use headstart::report::{Trial, Verdict};
use headstart::tune::{FileSubject, LaunchFile, Progress, SimulatedBench, Subject};
use headstart_gallery::kernels;
use headstart_testing::{Random, base_seed, count};

struct Silent;

impl Progress for Silent {
    fn begin(&self, _plans: usize) {}
    fn done(&self, _trial: &Trial) {}
}

/// A kernel with its data, by name.
type Case = (String, Box<dyn Subject>);

/// The corpus with its launches on few work-groups.
fn corpus() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut cases = Vec::new();
    for entry in fs::read_dir(&folder).expect("the corpus is there") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        for entry in ptx::entries(&text).expect("a module") {
            let place = folder.join(format!("launch/{entry}.toml"));
            let launch = fs::read_to_string(&place).expect("its launch");
            let few = |line: &str| match line.split_once(" = ") {
                Some(("groups", groups)) if groups != "1" => "groups = 8".to_owned(),
                _ => line.to_owned(),
            };
            let launch: Vec<String> = launch.lines().map(few).collect();
            let launch = LaunchFile::parse(&launch.join("\n"), &place.to_string_lossy());
            let launch = launch.unwrap_or_else(|error| panic!("{error}"));
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let imported = ptx::import(&text, &file, Some(&entry), &launch.facts());
            let imported = imported.unwrap_or_else(|error| panic!("{file}:{entry}: {error}"));
            cases.push((
                format!("{file}:{entry}"),
                Box::new(FileSubject::of_module(imported, launch)) as Box<dyn Subject>,
            ));
        }
    }
    cases.sort_by(|(one, _), (other, _)| one.cmp(other));
    cases
}

/// The gallery's kernels, in launches of a few dozen iterations.
fn gallery() -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in kernels::all() {
        let chosen = kernel.with(&[], None).expect("its defaults fit");
        let small = chosen.small(24).expect("a small launch");
        cases.extend(small.map(|small| (kernel.name.to_owned(), Box::new(small) as Box<dyn Subject>)));
    }
    cases
}

/// What contradicts something else in an advice.
fn contradictions(advice: &Advice) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| found.extend((!holds).then_some(what));
    let text = advise::text(advice, Columns::UNLIMITED);
    let answer = |question: &str| {
        let step = advice.steps.iter().find(|step| step.question.contains(question));
        step.unwrap_or_else(|| panic!("no question of {question}"))
    };
    let here = || {
        advice
            .choices
            .iter()
            .filter(|choice| choice.what != Verdict::MoreWorkGroups)
    };
    let fastest = here().map(|choice| choice.speedup).fold(1.0, f64::max);
    let chosen: Vec<_> = advice.choices.iter().filter(|choice| choice.chosen).collect();
    check(chosen.len() == 1, format!("{} answers are chosen", chosen.len()));
    for choice in &chosen {
        check(
            choice.what == advice.verdict,
            "the choice is not the verdict".into(),
        );
        check(
            choice.condition.is_none(),
            "a condition is taken for granted".into(),
        );
    }
    if let Some(bounds) = &advice.bounds {
        check(
            fastest <= bounds.best_speedup * 1.001,
            format!("at most {} and a plan with {fastest}", bounds.best_speedup),
        );
        for roof in &bounds.roofs {
            let least = advice.time_ns / fastest;
            check(
                roof.least_ns <= least * 1.001,
                format!("{} takes {}, and a plan {least}", roof.name, roof.least_ns),
            );
        }
        let too_far = match (bounds.distance, bounds.iterations) {
            (Some(distance), Some(iterations)) => f64::from(distance) >= iterations,
            _ => false,
        };
        check(
            !too_far || text.contains("would have to start"),
            format!("{:?} ahead in a loop of {:?}", bounds.distance, bounds.iterations),
        );
        if let Some(factor) = bounds.without_waiting {
            let reached = chosen.first().map_or(1.0, |choice| choice.speedup);
            check(
                reached <= factor || text.contains("changes more than that"),
                format!("{factor} without waiting, and {reached} reached"),
            );
        }
    }
    let waits = answer("mostly wait");
    let waiting = waits.evidence.first().map_or(100.0, |measure| measure.value);
    check(
        waiting >= 10.0 || !text.contains("starved"),
        format!("starved where {waiting} % is waiting"),
    );
    // Whatever was carried out can be: no reason why its load may not be fetched early.
    let independent = answer("independent");
    let planned = here().any(|choice| choice.plan.as_ref().is_some_and(|plan| !plan.loads().is_empty()));
    let first = advice
        .plan
        .as_ref()
        .and_then(|plan| plan.loads().first().map(|(name, _)| name.to_string()));
    if let (true, Answer::No, Some(load)) = (planned, independent.answer, first) {
        check(
            !independent.finding.contains(&format!("`{load}`")),
            format!(
                "`{load}` is fetched early by the plan, and {}",
                independent.finding
            ),
        );
    }
    let measure = |question: &str, name: &str| {
        let evidence = &answer(question).evidence;
        evidence
            .iter()
            .find(|measure| measure.name == name)
            .map(|measure| measure.value)
    };
    let delivered = measure("bandwidth", "delivered by device memory");
    let most = measure("bandwidth", "bandwidth of device memory");
    if let (Some(delivered), Some(most)) = (delivered, most) {
        check(delivered <= 1.02 * most, format!("{delivered} of {most} GB/s"));
        let flying = measure("in flight", "in flight").zip(measure("in flight", "bandwidth × latency"));
        if let Some((flying, needed)) = flying {
            check(
                flying <= 1.5 * needed || delivered > 0.5 * most,
                format!(
                    "{flying} bytes on their way where {needed} are enough, and {delivered} of {most} GB/s"
                ),
            );
            check(
                delivered > 0.001 * most || flying < 0.02 * needed,
                format!("{flying} bytes on their way, and {delivered} GB/s"),
            );
        }
    }
    found
}

#[test]
fn no_advice_contradicts_itself() {
    let mut cases = corpus();
    cases.extend(gallery());
    assert!(cases.len() > 100, "{} cases", cases.len());
    let mut random = Random::new(base_seed());
    let tried = count("HEADSTART_CONTRADICTIONS", 16).min(cases.len() as u64);
    let mut wrong = Vec::new();
    for _ in 0..tried {
        let at = random.below(cases.len() as u64) as usize;
        let (name, subject) = cases.swap_remove(at);
        let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
        let advice = match advise(subject.as_ref(), &bench, &Silent) {
            Ok(advice) => advice,
            // A launch that the device cannot take, say.
            Err(error) => {
                assert_ne!(error.fault(), headstart::Fault::Bug, "{name}: {error}");
                println!("{name}: {error}");
                continue;
            }
        };
        let found = contradictions(&advice);
        if !found.is_empty() {
            wrong.push(format!(
                "{name}:\n  {}\n{}",
                found.join("\n  "),
                advise::text(&advice, Columns::UNLIMITED)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {tried}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
