//! Advice as text for a terminal: the procedure's questions and answers, what could be done, how much there is to gain.

use std::fmt::Write;

use super::number::{duration, percent, speedup};
use super::table::{align_numbers, on_one_line, plain_table, wrapped};
use super::{Verdict, explain};
use crate::advise::{Advice, Answer, Bounds, Choice, Step};

/// Roofs that are listed.
const ROOFS: usize = 4;

/// The whole advice, ending with a line break.
pub fn text(advice: &Advice) -> String {
    // Writing to a String cannot fail.
    let mut text = String::new();
    let mut heading = format!("{} on {}", advice.kernel, advice.device);
    if let Some(geometry) = advice.geometry {
        let _ = write!(heading, ", {geometry}");
    }
    for (name, value) in &advice.parameters {
        let _ = write!(heading, ", {name}={value}");
    }
    let _ = writeln!(text, "{}: {}\n", on_one_line(&heading), duration(advice.time_ns));
    let _ = writeln!(text, "Should it be prefetched?");
    for step in &advice.steps {
        text.push_str(&one_step(step));
    }
    if !advice.choices.is_empty() {
        let _ = writeln!(
            text,
            "\nWhat could be done, the cheapest first; * is the advice\n{}",
            choices(&advice.choices)
        );
    }
    let _ = writeln!(text, "\nVerdict: {}", advice.verdict);
    text.push_str(&wrapped(&advice.conclusion, "  ", "  "));
    if let Some(plan) = &advice.plan {
        let _ = writeln!(text, "  plan: {plan}");
        for (part, meaning) in explain::plan(plan) {
            let _ = writeln!(text, "    {part}");
            text.push_str(&wrapped(&meaning, "      ", "      "));
        }
    }
    if let Some(bounds) = &advice.bounds {
        text.push_str(&gains(bounds, advice));
    }
    if !advice.instead.is_empty() {
        let _ = writeln!(text, "\nWhat else would help");
        for remedy in &advice.instead {
            let place = remedy
                .place
                .as_ref()
                .map_or(String::new(), |place| format!("{place}: "));
            text.push_str(&wrapped(&format!("{place}{}", remedy.finding), "  - ", "    "));
        }
    }
    for note in &advice.notes {
        text.push('\n');
        text.push_str(&wrapped(note, "", ""));
    }
    text
}

fn one_step(step: &Step) -> String {
    let answer = match step.answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Unknown => "?",
    };
    let mut text = wrapped(step.question, &format!("  {answer:<5}"), "       ");
    let place = step
        .place
        .as_ref()
        .map_or(String::new(), |place| format!(" ({place})"));
    text.push_str(&wrapped(
        &format!("{}{place}", step.finding),
        "        ",
        "        ",
    ));
    text
}

fn choices(choices: &[Choice]) -> String {
    let mut table = plain_table();
    table.set_header(["", "time", "speedup", "how"]);
    for choice in choices {
        let mark = if choice.chosen { "* " } else { "  " };
        let how = match (&choice.plan, choice.geometry) {
            (Some(plan), _) => plan.to_string(),
            (None, Some(geometry)) if choice.what == Verdict::MoreWorkGroups => {
                let condition = choice
                    .condition
                    .map_or(String::new(), |condition| format!(", {condition}"));
                format!("as {geometry}{condition}")
            }
            _ => String::new(),
        };
        table.add_row([
            format!("{mark}{}", choice.what),
            duration(choice.time_ns),
            speedup(choice.speedup),
            how,
        ]);
    }
    align_numbers(&mut table);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    table.trim_fmt()
}

/// How much there is to gain at most, and because of what.
fn gains(bounds: &Bounds, advice: &Advice) -> String {
    let mut text = "\nHow much there is to gain\n".to_owned();
    let reached = advice
        .choices
        .iter()
        .find(|choice| choice.chosen)
        .map_or(String::new(), |choice| {
            format!(
                "; the advice reaches {} of it",
                percent((choice.speedup / bounds.best_speedup).min(1.0))
            )
        });
    if let Some(roof) = bounds.roofs.first() {
        let sentence = format!(
            "At most {}: {} alone takes {}{reached}.",
            speedup(bounds.best_speedup),
            roof.name,
            duration(roof.least_ns)
        );
        text.push_str(&wrapped(&sentence, "  - ", "    "));
    }
    let others: Vec<String> = bounds
        .roofs
        .iter()
        .skip(1)
        .take(ROOFS - 1)
        .map(|roof| format!("{} {}", roof.name, duration(roof.least_ns)))
        .collect();
    if !others.is_empty() {
        text.push_str(&wrapped(
            &format!("The next limits: {}.", others.join(", ")),
            "  - ",
            "    ",
        ));
    }
    if let Some(factor) = bounds.without_waiting {
        let sentence = format!(
            "If no sub-group waited for a load and nothing else changed: {} (Amdahl).",
            speedup(factor)
        );
        text.push_str(&wrapped(&sentence, "  - ", "    "));
    }
    if let Some(distance) = bounds.distance {
        let iterations = if distance == 1 { "iteration" } else { "iterations" };
        let sentence = format!("A load has to start {distance} {iterations} ahead to be there in time.");
        text.push_str(&wrapped(&sentence, "  - ", "    "));
    }
    if let Some(program) = advice.program {
        let sentence = format!(
            "A program that spends {} of its time in this kernel becomes {} as fast with the advice, and at most {} \
             (Amdahl).",
            percent(program.share),
            speedup(program.speedup),
            speedup(program.at_most)
        );
        text.push_str(&wrapped(&sentence, "  - ", "    "));
    }
    text
}
