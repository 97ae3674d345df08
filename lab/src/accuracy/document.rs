//! A record in words: a summary for the terminal. A test makes `results/accuracy.md` of the records there.

use std::fmt::Write as _;

use headstart::report::number::speedup;

use super::judge::{JudgedVerdict, Judgement, Standing, median, rank_correlation};

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
fn standing(standing: Standing) -> &'static str {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use headstart::prefetch::plan::{CacheLevel, Plan};

    use super::super::record::{Origin, Record};
    use super::super::{errors, judge};
    use super::*;

    /// An expected speedup within this share of the measured one is called right in the table of strategies.
    const GAIN_BAR: f64 = 0.15;

    const BEGIN: &str = "# Accuracy of the simulator\n\nEvery plan of a fixed list of cases, measured and simulated. This page is \
        generated from `results/accuracy-*.json`, which have every case and plan. The model of the H200 was fitted to microbenchmarks on \
        that GPU, and its rules were found on it, many of them on kernels of this list; for the H100 `headstart calibrate` fitted \
        microbenchmarks alone, so that it is the independent test.\n\nMeasured speedups are medians of ratios to the plain kernel's time \
        in the same round, with alternating launches and L2 flushed before each. *On the GPU* is the verdict of `tune` there, with twenty \
        measured plans; *from simulation alone* that of `--device sim:NAME`. *Wrong*: the recommended plan is more than 3 % slower \
        than the plain kernel in every round, or none is recommended although one is 10 % faster in every round. *Within 3 % either \
        way*: no plan is 3 % faster than the plain kernel, and the recommended one is not 3 % slower.\n";

    fn section(record: &Record, judgements: &[Judgement]) -> String {
        let measured = record.measured_by.as_ref().expect("it was measured");
        let mut text = format!("\n## {}\n\n{}", measured.device, by("Measured", measured));
        let simulated = record.simulated_by.as_ref().expect("it was simulated");
        text.push_str(&by("Simulated", simulated));
        text.push_str("\n| quantity | result |\n|---|---|\n");
        for (what, found) in totals(judgements) {
            let _ = writeln!(text, "| {what} | {found} |");
        }
        let (held, of, width) = errors::held(record).expect("plans");
        let _ = writeln!(
            text,
            "| measured speedups within the simulated ones' intervals, which are made of this record and the other GPU's | {:.1} % of \
             {of}; ± {:.1} % wide in the median |",
            100.0 * held as f64 / of.max(1) as f64,
            100.0 * width
        );
        text.push_str(&by_strategy(judgements));
        text
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
        let mut kinds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for plan in judgements.iter().flat_map(|own| &own.plans) {
            kinds.entry(kind(&plan.plan)).or_default().push(plan.ratio());
        }
        let mut text = format!(
            "\nSimulated speedup over measured speedup, by strategy: above 1, the simulator is too optimistic.\n\n| plans | \
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
        let plan: Plan = plan.parse().expect("a plan");
        let unrolled = plan.unroll().map(|_| "unroll".to_owned());
        let loads = plan.loads().iter().map(|(_, strategy)| match strategy.level() {
            Some(CacheLevel::L1) => format!("{}:L1", strategy.name()),
            Some(_) => format!("{}:L2", strategy.name()),
            None => strategy.name().to_owned(),
        });
        let mut kinds: Vec<String> = unrolled.into_iter().chain(loads).collect();
        kinds.dedup();
        kinds.join(", ")
    }

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
        let mut made = BEGIN.to_owned();
        for model in ["h200", "h100"] {
            let record =
                Record::open(&repository.join(format!("results/accuracy-{model}.json"))).expect("a record");
            let judgements = judge::of(&record).expect("plans");
            assert!(judgements.len() >= 56, "{model}: {} cases", judgements.len());
            made += &section(&record, &judgements);
        }
        let path = repository.join("results/accuracy.md");
        if std::env::var_os("HEADSTART_BLESS").is_some() {
            fs::write(&path, &made).expect("the page can be written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == made,
            "results/accuracy.md is not what the results say; HEADSTART_BLESS=1 makes it anew"
        );
    }
}
