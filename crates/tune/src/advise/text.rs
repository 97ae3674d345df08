//! Advice as text for a terminal: the checklist's questions and answers, the options, the possible gain.

use std::fmt::Write;

use super::{Advice, Answer, ChecklistStep, Choice, HintsAlone};
use crate::evidence::Bounds;
use crate::names;
use crate::report::Verdict;
use crate::report::columns::{Columns, broken, on_one_line};
use crate::report::number::{duration, interval, percent, speedup};
use crate::report::table::{Stated, align_numbers, plain_table, remedies};

/// The whole advice, ending with a line break.
pub fn text(advice: &Advice, columns: Columns) -> String {
    // Writing to a String cannot fail.
    let mut text = String::new();
    let mut heading = format!("{} on {}", names::shown(&advice.kernel), advice.device);
    if let Some(geometry) = advice.geometry {
        let _ = write!(heading, ", {geometry}");
    }
    for (name, value) in &advice.parameters {
        let _ = write!(heading, ", {name}={value}");
    }
    let heading = format!("{}: {}", on_one_line(&heading), duration(advice.time_ns));
    let _ = writeln!(text, "{}\n", columns.fitted(&heading));
    let verdict = Stated {
        warnings: &advice.warnings,
        verdict: advice.verdict,
        conclusion: &advice.conclusion,
        plan: advice.plan.as_ref(),
    };
    text.push_str(&verdict.text(columns));
    if !advice.first.is_empty() {
        let _ = writeln!(text, "\nBefore any plan");
        text.push_str(&remedies(&advice.first, columns));
    }
    let _ = writeln!(text, "\nShould it be prefetched?");
    for step in &advice.steps {
        text.push_str(&one_step(step, columns));
    }
    if !advice.choices.is_empty() {
        let title = "Options, the cheapest first; * is the advice, which depends on no condition";
        let _ = writeln!(
            text,
            "\n{}\n{}",
            columns.fitted(title),
            choices(&advice.choices, advice.hints_alone.as_ref(), columns)
        );
    }
    if let Some(alone) = &advice.hints_alone {
        text.push_str(&hints_alone(alone, columns));
    }
    if let Some(bounds) = &advice.bounds {
        text.push_str(&gains(bounds, advice, columns));
    }
    if !advice.instead.is_empty() {
        let _ = writeln!(text, "\nWhat else would help");
        text.push_str(&remedies(&advice.instead, columns));
    }
    for note in &advice.notes {
        text.push('\n');
        text.push_str(&columns.wrapped(note, "", ""));
    }
    text
}

/// What hints alone gain, and how Intel's programs write them.
fn hints_alone(alone: &HintsAlone, columns: Columns) -> String {
    let other = alone.other_level.as_ref();
    let other = other.map_or(String::new(), |other| {
        format!("; {} with `{}`", speedup(other.speedup), other.plan)
    });
    let found = format!(
        "Hints alone: {} with `{}`, in {}{other}",
        speedup(alone.speedup),
        alone.plan,
        duration(alone.time_ns)
    );
    let mut text = format!("\n{}", columns.wrapped(&found, "", "  "));
    for hint in &alone.hints {
        let what = format!(
            "`{}` to {}, {} ahead:",
            hint.load,
            hint.level,
            iterations(hint.ahead)
        );
        text.push_str(&columns.wrapped(&what, "  ", "    "));
        for call in [&hint.sycl].into_iter().chain(&hint.lsc) {
            text.push_str(&columns.wrapped(call, "    ", "      "));
        }
    }
    text
}

fn iterations(count: u32) -> String {
    match count {
        1 => "1 iteration".to_owned(),
        count => format!("{count} iterations"),
    }
}

fn one_step(step: &ChecklistStep, columns: Columns) -> String {
    let answer = match step.answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Unknown => "?",
    };
    let mut text = columns.wrapped(step.question, &format!("  {answer:<5}"), "       ");
    let place = step
        .place
        .as_ref()
        .map_or(String::new(), |place| format!(" ({place})"));
    text.push_str(&columns.wrapped(&format!("{}{place}", step.finding), "        ", "        "));
    text
}

fn choices(choices: &[Choice], alone: Option<&HintsAlone>, columns: Columns) -> String {
    let with_interval = choices.iter().any(|choice| choice.between.is_some());
    let of_interval = if with_interval {
        "1.00–1.10×".chars().count() + 3
    } else {
        0
    };
    // Verdict, time, speedup and its interval stand in front of how.
    let others = 2 + "* more work-groups".len() + "1,000 µs".len() + "speedup".len() + 9 + of_interval;
    let width = columns.width().saturating_sub(others);
    let mut table = plain_table();
    let named = ["", "time", "speedup", "interval", "how"].into_iter();
    table.set_header(named.filter(|name| with_interval || *name != "interval"));
    for choice in choices {
        let mark = if choice.chosen { "* " } else { "  " };
        let how = match (&choice.plan, choice.geometry) {
            (plan, Some(geometry)) if choice.what.is_of_geometry() => {
                let condition = choice
                    .condition
                    .map_or(String::new(), |condition| format!(", {condition}"));
                let plan = plan.as_ref().map_or(String::new(), |plan| format!("{plan}, "));
                format!("{plan}as {geometry}{condition}")
            }
            (plan, _) => {
                let way = (!choice.way.is_usual()).then(|| choice.way.to_string());
                let plan = plan.as_ref().map(ToString::to_string);
                let parts: Vec<String> = plan.into_iter().chain(way).collect();
                parts.join(", ")
            }
        };
        let between = with_interval.then(|| choice.between.map_or(String::new(), interval));
        let numbers = [
            columns.said(&format!("{mark}{}", choice.what)),
            duration(choice.time_ns),
            speedup(choice.speedup),
        ];
        let how = broken(&columns.said(&how), width, &[',', ' ']);
        table.add_row(numbers.into_iter().chain(between).chain([how]));
    }
    if let Some(alone) = alone {
        let numbers = [
            "  hints alone".to_owned(),
            duration(alone.time_ns),
            speedup(alone.speedup),
        ];
        let between = with_interval.then(String::new);
        let how = broken(&alone.plan.to_string(), width, &[',', ' ']);
        table.add_row(numbers.into_iter().chain(between).chain([how]));
    }
    align_numbers(&mut table);
    if let Some(column) = table.column_mut(3 + usize::from(with_interval)) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    table.trim_fmt()
}

/// The largest possible gain, and the limit behind it.
fn gains(bounds: &Bounds, advice: &Advice, columns: Columns) -> String {
    let chosen = advice.choices.iter().find(|choice| choice.chosen);
    let advised = chosen
        .filter(|choice| choice.what != Verdict::LeaveIt)
        .map(|choice| choice.speedup);
    let fastest = advice
        .choices
        .iter()
        .map(|choice| choice.speedup)
        .fold(1.0, f64::max);
    let mut sentences = crate::report::gains::sentences(bounds, fastest, advised);
    sentences.extend(advice.program.map(|program| {
        format!(
            "A program that spends {} of its time in this kernel becomes {} as fast with the advice, and at most {} \
             (Amdahl).",
            percent(program.share),
            speedup(program.speedup),
            speedup(program.at_most)
        )
    }));
    let lines = sentences
        .iter()
        .map(|sentence| columns.wrapped(sentence, "  - ", "    "));
    format!("\nHow much there is to gain\n{}", lines.collect::<String>())
}
