//! The documents made from a record: a summary for the terminal, and a page, `docs/accuracy.md` of the H200 and
//! `docs/accuracy-h100.md` of the H100.

use std::fmt::Write as _;

use headstart::report::number::{duration, speedup};

use super::judge::{JudgedVerdict, Judgement, Standing, median, rank_correlation};
use super::record::{Origin, Record};
use super::{errors, known};

/// An expected speedup within this share of the measured one is called right in the page's last table.
const GAIN_BAR: f64 = 0.15;

/// The bars and how they were met, for a terminal.
pub fn summary(judgements: &[Judgement]) -> String {
    if judgements.is_empty() {
        return "no case has both measured and simulated times yet\n".to_owned();
    }
    let mut text = String::new();
    for (what, found) in totals(judgements) {
        let _ = writeln!(text, "{what}: {found}");
    }
    for judgement in judgements {
        for (by, answer) in [("simulated", &judgement.alone), ("measured", &judgement.with_gpu)] {
            if matches!(answer.standing, Standing::Right | Standing::NoMatter) {
                continue;
            }
            let _ = writeln!(
                text,
                "{}, {by}: {}: says {} with `{}`, {} measured; best {} with `{}`",
                judgement.case,
                standing(answer.standing),
                answer.says.name(),
                answer.pick,
                speedup(answer.measured),
                speedup(judgement.best_speedup),
                judgement.best,
            );
        }
    }
    text
}

/// A standing in a word or two.
pub fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Right => "right",
        Standing::NoMatter => "either way",
        Standing::Slower => "wrong: slower",
        Standing::Missed => "wrong: missed",
        Standing::Doubted => "missed, in doubt",
        Standing::NotMeasured => "not measured",
    }
}

/// The error of an expected speedup, as a share of the measured one.
fn gain_error(judgement: &Judgement) -> f64 {
    (judgement.expected / judgement.alone.measured - 1.0).abs()
}

/// By how much plans are slower than the fastest of their case, in words.
fn slower(judgements: &[Judgement], by: fn(&Judgement) -> f64) -> String {
    let regrets: Vec<f64> = judgements.iter().map(by).collect();
    let worst = regrets.iter().copied().fold(0.0, f64::max);
    let far = regrets.iter().filter(|&&regret| regret > 0.05).count();
    format!(
        "median {:.1} %, at most {:.1} %, over 5 % in {far} of {}",
        100.0 * median(regrets.clone()),
        100.0 * worst,
        regrets.len()
    )
}

/// Each figure with its name.
fn totals(judgements: &[Judgement]) -> Vec<(&'static str, String)> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let named = judgements.iter().filter(|own| own.alone.pick != "none");
    let doubted = judgements.iter().filter(|own| own.doubted);
    let plan_errors: Vec<f64> = judgements
        .iter()
        .flat_map(|own| own.plans.iter().map(|plan| (plan.ratio() - 1.0).abs()))
        .collect();
    let plans = || judgements.iter().flat_map(|own| &own.plans);
    let simulated: Vec<f64> = plans().map(|plan| plan.simulated).collect();
    let measured: Vec<f64> = plans().map(|plan| plan.measured).collect();
    vec![
        (
            "verdicts on the GPU, twenty plans measured",
            verdicts(judgements, |own| &own.with_gpu),
        ),
        (
            "verdicts from simulation alone",
            format!(
                "{}; {} express doubt",
                verdicts(judgements, |own| &own.alone),
                doubted.count()
            ),
        ),
        (
            "gain expected from simulation alone compared with measured, for recommended plans",
            format!(
                "median error {}",
                percent(median(named.map(gain_error).collect()))
            ),
        ),
        (
            "speedup of each plan compared with measured",
            format!(
                "{} plans, median error {}",
                plan_errors.len(),
                percent(median(plan_errors))
            ),
        ),
        (
            "time of the plain kernel compared with measured",
            format!(
                "median error {}",
                percent(median(
                    judgements
                        .iter()
                        .map(|own| (own.plain_ratio - 1.0).abs())
                        .collect()
                ))
            ),
        ),
        (
            "rank correlation of speedups",
            format!(
                "{:.2} over all plans, {:.2} within a case (median), where many plans are equally fast",
                rank_correlation(&simulated, &measured).unwrap_or(0.0),
                median(judgements.iter().filter_map(|own| own.rank_correlation).collect())
            ),
        ),
        (
            "loss to the fastest plan, simulator's fastest",
            slower(judgements, |own| own.regret),
        ),
        (
            "loss to the fastest plan, `tune` from simulation alone",
            slower(judgements, |own| own.best_speedup / own.alone.measured - 1.0),
        ),
        (
            "loss to the fastest plan, tuner with twenty measured plans",
            slower(judgements, |own| own.regret_of_few),
        ),
    ]
}

/// How many verdicts stand, in words.
fn verdicts(judgements: &[Judgement], answer: fn(&Judgement) -> &JudgedVerdict) -> String {
    let of = |wanted: Standing| {
        let answers = judgements.iter().map(answer);
        answers.filter(|answer| answer.standing == wanted).count()
    };
    let doubted = match of(Standing::Doubted) {
        0 => String::new(),
        count => format!(", {count} miss 10 % or more but express doubt"),
    };
    format!(
        "{} cases: {} right, {} within 3 % either way, {} recommend a slower plan, {} miss 10 % or more{doubted}, {} not measured",
        judgements.len(),
        of(Standing::Right),
        of(Standing::NoMatter),
        of(Standing::Slower),
        of(Standing::Missed),
        of(Standing::NotMeasured)
    )
}

/// The numbers fitted on the GPU that a page is about, and those that were not: a model's name, and words.
const FITTED: [(&str, &str); 2] = [
    (
        "h200",
        "The model's numbers were fitted to microbenchmarks on an H200, and its rules were found on this GPU, many of them on kernels of this list. [An H100](accuracy-h100.md), for which only microbenchmarks were fitted, is the independent test.",
    ),
    (
        "h100",
        "The simulator was not tuned for this GPU. `headstart calibrate` measured microbenchmarks on it and wrote its model from them \
         (`results/micro-h100.json`, `devices/h100.toml`): latencies, bandwidths and rates of memory, copies, hints and \
         arithmetic, and the cost of a launch. Numbers that no microbenchmark reveals are the H200's or from a data sheet, as the \
         file says. No kernel or plan of this list was fitted on an H100. The model's rules, which all devices \
         share, were found on [an H200](accuracy.md), except those for `attention` and the last three cases, whose errors showed \
         on an H100.",
    ),
];

/// The page.
pub fn page(record: &Record, judgements: &[Judgement]) -> String {
    let model = record
        .simulated_by
        .as_ref()
        .map_or("", |origin| origin.device.trim_start_matches("sim:"));
    let mut text = format!(
        "# Accuracy of the simulator, compared with {}\n\nEvery plan of a fixed list of cases, measured and simulated. This page \
         is generated from `results/accuracy-{model}.json`.\n\n",
        record
            .measured_by
            .as_ref()
            .map_or("a GPU".to_owned(), |origin| { format!("an {}", origin.device) }),
    );
    for (what, origin) in [
        ("Measured", &record.measured_by),
        ("Simulated", &record.simulated_by),
    ] {
        if let Some(origin) = origin {
            text.push_str(&by(what, origin));
        }
    }
    if let Some((_, fitted)) = FITTED.iter().find(|(name, _)| *name == model) {
        let _ = writeln!(text, "\n{fitted}");
    }
    let _ = write!(
        text,
        "\nMeasured speedups are medians of ratios to the plain kernel's time in the same round, with alternating launches and \
         L2 flushed before each launch; intervals are from the smallest ratio to the largest.\n\nTwo verdicts are \
         compared with them. *On the GPU* is the verdict of `headstart tune` and `headstart advise` with `--device cuda:0`: \
         twenty plans are measured, the likely ones first, here replayed with the recorded measurements. Its gain \
         is a measured one, so it can only be wrong about which plans to measure. *From simulation alone* is \
         the verdict of both with `--device sim:{model}`, which needs no GPU.\n\n*Either way*: no plan is 3 % faster \
         than the plain kernel, and the recommended plan, if any, is not 3 % slower. *Wrong*: the recommended plan is more than \
         3 % slower than the plain kernel in every round, or none is recommended although one is 10 % faster in every round. *In \
         doubt*: the verdict itself says that it is within the simulator's error, and advises to measure. That happens if no plan \
         is recommended although the interval of one reaches over 10 %, which the device's limits leave, or one that is \
         expected to gain is not recommended because its interval reaches below the plain kernel.\n\n| quantity | result \
         |\n|---|---|\n",
    );
    for (what, found) in totals(judgements) {
        let _ = writeln!(text, "| {what} | {found} |");
    }
    if let Ok((held, of, width)) = errors::held(record) {
        let _ = writeln!(
            text,
            "| measured speedups within the simulated ones' intervals, which are made of this record and the other GPU's | {:.1} % of \
             {of}; ± {:.1} % wide in the median |",
            100.0 * held as f64 / of.max(1) as f64,
            100.0 * width
        );
    }
    text.push_str(
        "\n## Case by case\n\n| case | on the GPU | plan | measured | verdict | from simulation alone | plan | expected | measured \
         | verdict | fastest of all | measured | plain, simulated / measured | rank correlation | loss of simulator's \
         fastest | loss of tuner of twenty |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for own in judgements {
        let doubt = if own.doubted { ", in doubt" } else { "" };
        let _ = writeln!(
            text,
            "| {} | {} | `{}` | {} | {} | {}{doubt} | `{}` | {} | {} | {} | `{}` | {} | {:.2} | {} | {:.1} % | {:.1} % |",
            own.case,
            own.with_gpu.says.name(),
            own.with_gpu.pick,
            speedup(own.with_gpu.measured),
            standing(own.with_gpu.standing),
            own.alone.says.name(),
            own.alone.pick,
            speedup(own.expected),
            speedup(own.alone.measured),
            standing(own.alone.standing),
            own.best,
            speedup(own.best_speedup),
            own.plain_ratio,
            own.rank_correlation
                .map_or("–".to_owned(), |correlation| format!("{correlation:.2}")),
            100.0 * own.regret,
            100.0 * own.regret_of_few,
        );
    }
    text.push_str(&by_strategy(judgements));
    text.push_str(&known_to_be_off(record, model));
    for case in &record.cases {
        for side in [&case.measured, &case.simulated].into_iter().flatten() {
            if let Some(error) = &side.error {
                let _ = writeln!(text, "\n{}: {error}", case.case);
            }
        }
    }
    text
}

/// The known errors, with their times in this record.
fn known_to_be_off(record: &Record, model: &str) -> String {
    let rows: Vec<String> = known::OFF
        .iter()
        .filter(|off| off.models.contains(&model))
        .filter_map(|off| {
            let (measured, simulated) = off.times(record)?;
            Some(format!(
                "| {} | `{}` | {} | {} | {:.2} | {} |\n",
                off.case,
                off.plan,
                duration(measured),
                duration(simulated),
                simulated / measured,
                off.cause
            ))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n## Known to be off\n\nTimes that are far from the measured ones, with the suspected causes.\n\n| case | plan | \
         measured | simulated | simulated / measured | suspected cause |\n|---|---|---|---|---|---|\n{}",
        rows.concat()
    )
}

fn by(what: &str, origin: &Origin) -> String {
    let driver = origin
        .driver
        .as_ref()
        .map_or(String::new(), |driver| format!(", driver {driver}"));
    format!(
        "- {what} on {}{driver}, {}: `{}`\n",
        origin.device, origin.date, origin.command
    )
}

/// Simulated over measured speedup, by strategy.
fn by_strategy(judgements: &[Judgement]) -> String {
    let mut kinds: std::collections::BTreeMap<String, Vec<f64>> = std::collections::BTreeMap::new();
    for plan in judgements.iter().flat_map(|own| &own.plans) {
        kinds.entry(kind(&plan.plan)).or_default().push(plan.ratio());
    }
    let mut text = format!(
        "\n## By strategy\n\nSimulated speedup over measured speedup: above 1, the simulator is too optimistic.\n\n| plans | \
         how many | lowest tenth | median | highest tenth | within {:.0} % |\n|---|---|---|---|---|---|\n",
        100.0 * GAIN_BAR
    );
    for (kind, mut ratios) in kinds {
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
        let within = ratios
            .iter()
            .filter(|ratio| (*ratio - 1.0).abs() <= GAIN_BAR)
            .count();
        let _ = writeln!(
            text,
            "| `{kind}` | {} | {:.2} | {:.2} | {:.2} | {:.0} % |",
            ratios.len(),
            at(0.1),
            at(0.5),
            at(0.9),
            100.0 * within as f64 / ratios.len() as f64
        );
    }
    text
}

/// A plan without its loads and distances: `unroll, rolling-async`.
fn kind(plan: &str) -> String {
    let mut kinds: Vec<&str> = plan
        .split(',')
        .map(|part| {
            let strategy = part.split_once('=').map_or(part, |(_, strategy)| strategy);
            match strategy.split(':').collect::<Vec<_>>()[..] {
                ["cache", "L1", ..] => "cache:L1",
                ["cache", ..] => "cache:L2",
                [first, ..] => first,
                [] => "",
            }
        })
        .collect();
    kinds.dedup();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{judge, record::Record};
    use super::*;

    #[test]
    fn plans_are_told_apart_by_what_they_do() {
        assert_eq!(
            kind("unroll:8,v=rolling-async:16/interleaved"),
            "unroll, rolling-async"
        );
        assert_eq!(kind("a=cache:L2:4,b=cache:L2:4"), "cache:L2");
        assert_eq!(kind("unroll:4"), "unroll");
    }

    /// `HEADSTART_BLESS=1` makes the page anew.
    #[test]
    fn the_page_says_what_the_record_says() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the repository");
        for (model, page_of) in [("h200", "docs/accuracy.md"), ("h100", "docs/accuracy-h100.md")] {
            let record =
                Record::open(&repository.join(format!("results/accuracy-{model}.json"))).expect("a record");
            let judgements = judge::of(&record).expect("plans");
            assert!(judgements.len() >= 56, "{model}: {} cases", judgements.len());
            let made = page(&record, &judgements);
            known_faults_are_faults(&record, model);
            let path = repository.join(page_of);
            if std::env::var_os("HEADSTART_BLESS").is_some() {
                fs::write(&path, &made).expect("the page can be written");
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                found == made,
                "{page_of} is not what the results say; HEADSTART_BLESS=1 makes it anew"
            );
        }
    }

    /// The page's known errors are in its record, and exceed a tenth.
    fn known_faults_are_faults(record: &Record, model: &str) {
        for off in known::OFF.iter().filter(|off| off.models.contains(&model)) {
            let (measured, simulated) = off
                .times(record)
                .unwrap_or_else(|| panic!("{model}: no times of {} under {}", off.case, off.plan));
            assert!(
                (simulated / measured - 1.0).abs() > 0.1,
                "{model}: {} under {} is off no more: {measured} and {simulated} ns",
                off.case,
                off.plan
            );
        }
    }
}
