//! An advice does not contradict itself: bounds and gains, distances and trip counts, answers and verdict.
//!
//! The same holds for the report of a search.
//!
//! A few cases each time, others with each seed; `HEADSTART_CONTRADICTIONS=1000` takes all.

mod of_advice;
mod of_report;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use headstart::advise::{self, advise};
use headstart::device::model;
use headstart::error::Result;
use headstart::front::ptx;
use headstart::prefetch::Plan;
use headstart::report::columns::Columns;
use headstart::report::{Report, Verdict, table};
use headstart::tune::{self, FileSubject, LaunchFile, Progress, SearchSettings, SimulatedBench, Subject};
use headstart_gallery::kernels::{self, GalleryKernel, KERNELS};
use headstart_gallery::settings::Parameter;
use headstart_testing::{Random, base_seed, count};

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

/// Looks at some of the cases, `few` of them without `HEADSTART_CONTRADICTIONS`. `look` gives what contradicts something else
/// in what is said of a case, and the text.
fn look_at(few: u64, look: impl Fn(&dyn Subject, &SimulatedBench) -> Result<(Vec<String>, String)>) {
    let mut cases = corpus();
    cases.extend(gallery());
    assert!(cases.len() > 100, "{} cases", cases.len());
    let mut random = Random::new(base_seed());
    let tried = count("HEADSTART_CONTRADICTIONS", few).min(cases.len() as u64);
    let mut wrong = Vec::new();
    for _ in 0..tried {
        let at = random.below(cases.len() as u64) as usize;
        let (name, subject) = cases.swap_remove(at);
        let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
        match look(subject.as_ref(), &bench) {
            Ok((found, _)) if found.is_empty() => {}
            Ok((found, text)) => wrong.push(format!("{name}:\n  {}\n{text}", found.join("\n  "))),
            // A launch that the device cannot take, say.
            Err(error) => {
                assert_ne!(error.fault(), headstart::Fault::Bug, "{name}: {error}");
                println!("{name}: {error}");
            }
        }
    }
    let (count, texts) = (wrong.len(), wrong.join("\n"));
    assert!(wrong.is_empty(), "{count} of {tried}:\n{texts}");
}

#[test]
fn no_advice_contradicts_itself() {
    look_at(12, |subject, bench| {
        let advice = advise(subject, bench, &())?;
        let text = advise::text(&advice, Columns::UNLIMITED);
        Ok((of_advice::contradictions(&advice), text))
    });
}

#[test]
fn no_report_contradicts_itself() {
    look_at(4, |subject, bench| {
        let likely = tune::likely(subject, bench)?;
        let asked = SearchSettings {
            plans: Some(&likely),
            ..SearchSettings::default()
        };
        let found = tune::search(subject, bench, &asked, &())?;
        let text = table::text(&found.report, Columns::UNLIMITED);
        Ok((
            of_report::contradictions(&found.report, &found.baseline.evidence),
            text,
        ))
    });
}

/// A search that ends then.
struct Until(Instant);

impl Progress for Until {
    fn is_stopped(&self) -> bool {
        Instant::now() >= self.0
    }

    fn left(&self) -> Option<Duration> {
        Some(self.0.saturating_duration_since(Instant::now()))
    }
}

/// Random settings of a gallery kernel: less work than by default, in work-groups of random number and size.
fn geometry(kernel: &GalleryKernel, random: &mut Random) -> Vec<String> {
    let mut of = |values: &[u64]| values[random.below(values.len() as u64) as usize];
    let value = |parameter: &Parameter, of: &mut dyn FnMut(&[u64]) -> u64| match parameter.name {
        "groups" => of(&[1, 7, 33, 132, 264, 1056]),
        "group" => of(&[32, 64, 96, 128, 256, 512]),
        _ if parameter.words.is_empty() => parameter.default >> of(&[2, 3, 4, 5]),
        _ => of(&[0, 1, 2]),
    };
    let parameters = kernel.parameters.iter();
    parameters
        .map(|parameter| {
            let value = value(parameter, &mut of).clamp(*parameter.range.start(), *parameter.range.end());
            format!("{}={}", parameter.name, parameter.written(value))
        })
        .collect()
}

/// The most data of a random geometry, and the time for all of them and for each.
const MOST_BYTES: u64 = 1 << 26;
const ALL: Duration = Duration::from_secs(20);
const EACH: Duration = Duration::from_secs(2);

#[test]
fn no_report_of_a_random_geometry_contradicts_itself() {
    let (mut random, until) = (Random::new(base_seed()), Instant::now() + ALL);
    let mut wrong = Vec::new();
    let mut told = 0;
    while Instant::now() < until {
        let kernel = KERNELS[random.below(KERNELS.len() as u64) as usize];
        let settings = geometry(kernel, &mut random);
        // Some kernels take some settings only.
        let Ok(chosen) = kernel.with(&settings, None) else {
            continue;
        };
        if !chosen
            .workload()
            .is_ok_and(|workload| workload.bytes() <= MOST_BYTES)
        {
            continue;
        }
        let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
        let each = Until(Instant::now() + EACH);
        match tune::search(&chosen, &bench, &SearchSettings::default(), &each) {
            Ok(found) => {
                told += 1;
                let contradictions = of_report::contradictions(&found.report, &found.baseline.evidence);
                let text = table::text(&found.report, Columns::UNLIMITED);
                wrong.extend((!contradictions.is_empty()).then(|| {
                    format!(
                        "{} {settings:?}:\n  {}\n{text}",
                        kernel.name,
                        contradictions.join("\n  ")
                    )
                }));
            }
            Err(error) => assert_ne!(
                error.fault(),
                headstart::Fault::Bug,
                "{} {settings:?}: {error}",
                kernel.name
            ),
        }
    }
    println!("{told} geometries");
    assert!(told > 0 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `advise` shows the search that `tune` makes.
#[test]
fn an_advice_is_the_search_s() {
    let gather = kernels::find("gather").expect("in the gallery");
    let gather = gather.with(&["items=64".to_owned()], None).expect("they fit");
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    let advice = advise(&gather, &bench, &()).expect("advice");
    let found = tune::tune(&gather, &bench, None, &()).expect("a report");
    assert_eq!(advice.verdict, found.verdict);
    assert_eq!(advice.plan.as_ref(), Some(&found.best.plan));
    assert_eq!(advice.conclusion, found.conclusion());
    assert_eq!(advice.doubt, found.doubt);
}

/// A kernel without loads waits for none, and one of many short work-groups for their starts.
#[test]
fn what_a_kernel_without_loads_waits_for_is_said() {
    let advice = |case: &str| {
        let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
        advise(&kernels::case(case).expect("a case"), &bench, &()).expect("advice")
    };
    let launch = advice("micro/launch groups=65536");
    let text = advise::text(&launch, Columns::UNLIMITED);
    let roofs = &launch.bounds.as_ref().expect("bounds").roofs;
    assert_eq!(roofs[0].name, "starts of work-groups", "{text}");
    assert!(
        launch.first[0].finding.contains("start one after the other"),
        "{text}"
    );
    for wrong in ["tail", "long before the others", "; the remedy is"] {
        assert!(!text.contains(wrong), "{wrong} in:\n{text}");
    }
    let stores = advice("micro/stores groups=264 footprint=2^27");
    let text = advise::text(&stores, Columns::UNLIMITED);
    for question in ["mostly wait", "miss in the cache"] {
        let step = stores.steps.iter().find(|step| step.question.contains(question));
        let said = &step.expect("a step").finding;
        assert_eq!(said, "The kernel has no load from global memory.", "{text}");
    }
    let flying = stores.steps.iter().flat_map(|step| &step.evidence);
    let flying = flying
        .filter(|measure| measure.name == "in flight")
        .map(|measure| measure.value);
    assert!(flying.sum::<f64>() > 1e5, "{text}");
}

/// What is looked for is found: each statement is changed in turn.
#[test]
fn a_contradiction_is_found() {
    let gather = kernels::find("gather").expect("in the gallery").with(&[], None);
    let gather = gather
        .expect("its defaults fit")
        .small(24)
        .expect("a small launch");
    let gather = gather.expect("it is small");
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    let plans: Vec<Plan> = ["unroll:4", "values=cache:L2:4", "values=rolling-registers:4"]
        .map(|plan| plan.parse().expect("a plan"))
        .into();
    let asked = SearchSettings {
        plans: Some(&plans),
        ..SearchSettings::default()
    };
    let found = tune::search(&gather, &bench, &asked, &()).expect("a report");
    let evidence = &found.baseline.evidence;
    let none: [String; 0] = [];
    assert_eq!(of_report::contradictions(&found.report, evidence), none);
    let changes: [fn(&mut Report); 8] = [
        |report| report.doubt = Some("The simulator cannot settle this.".to_owned()),
        |report| report.verdict = Verdict::LeaveIt,
        |report| report.best.speedup *= 0.9,
        |report| report.trials.retain(|trial| trial.plan.loads().is_empty()),
        |report| {
            if let Some(bounds) = &mut report.bounds {
                bounds.best_speedup = 1.0;
            }
        },
        |report| {
            for roof in report.bounds.iter_mut().flat_map(|bounds| &mut bounds.roofs) {
                roof.least_ns = report.baseline_ns;
            }
        },
        |report| {
            let plan = report.best.plan.clone();
            report.reasons.push(format!("`{plan}` reaches 99.00×."));
        },
        |report| {
            report
                .reasons
                .push("Here no prefetching plan was tried.".to_owned())
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut report = found.report.clone();
        change(&mut report);
        let contradictions = of_report::contradictions(&report, evidence);
        assert!(!contradictions.is_empty(), "change {number} is not noticed");
    }
}
