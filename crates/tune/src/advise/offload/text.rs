//! The answer for a terminal.

use std::fmt::Write;

use super::estimate::{Limit, LoopEstimate, Offload, Worth};
use crate::report::columns::Columns;
use crate::report::number::{duration, speedup};
use crate::report::table::matrix;

/// The whole answer, ending with a line break.
pub fn text(found: &Offload, columns: Columns) -> String {
    let header: Vec<String> = [
        "host",
        "copies",
        "launches",
        "kernel",
        "at most",
        "if data stay",
        "limit",
        "worth it",
    ]
    .map(str::to_owned)
    .to_vec();
    let rows: Vec<(String, Vec<String>)> = found
        .loops
        .iter()
        .map(|own| (own.name.clone(), cells(own)))
        .collect();
    let mut text = format!(
        "On the {}, at least\n{}\n\n",
        found.device,
        matrix("loop", &header, &rows, columns)
    );
    let count = |worth: Worth| found.loops.iter().filter(|own| own.worth == worth).count();
    let sentence = format!(
        "Worth offloading: {} of {} loops even if data are copied at every call, and {} more if data stay on the device. The program \
         takes {} on the host; offloading the former makes it at most {} as fast, offloading both at most {}. `headstart tune` shows \
         how much of that a kernel reaches.",
        count(Worth::Yes),
        found.loops.len(),
        count(Worth::IfDataStay),
        duration(found.program_ns),
        speedup(found.speedup),
        speedup(found.speedup_if_data_stay)
    );
    // Writing to a String cannot fail.
    let _ = write!(text, "{}", columns.wrapped(&sentence, "", ""));
    let undecided = found.loops.iter().find(|own| own.worth == Worth::NotDecided);
    if let Some(own) = undecided {
        let sentence = format!(
            "Undecided: {} of {} loops, since the cost of a launch is not modelled on this device: the launches of `{}` take up to {}. \
             `--model core.launch=CYCLES` decides.",
            count(Worth::NotDecided),
            found.loops.len(),
            own.name,
            duration(own.launches_at_most_ns)
        );
        let _ = write!(text, "\n{}", columns.wrapped(&sentence, "", ""));
    }
    text
}

fn cells(own: &LoopEstimate) -> Vec<String> {
    let limit = match own.limit {
        Limit::Copies => "copies",
        Limit::Launches => "launches",
        Limit::Memory => "memory",
        Limit::Arithmetic => "arithmetic",
        Limit::Latency => "latency",
    };
    let worth = match own.worth {
        Worth::Yes => "yes",
        Worth::IfDataStay => "if data stay",
        Worth::No => "no",
        Worth::NotDecided => "not decided",
    };
    let launches = match own.launches_at_most_ns > own.launches_ns {
        true => "not modelled".to_owned(),
        false => duration(own.launches_ns),
    };
    vec![
        duration(own.host_ns),
        duration(own.copies_ns),
        launches,
        duration(own.kernel_ns),
        speedup(own.speedup),
        speedup(own.speedup_if_data_stay),
        limit.to_owned(),
        worth.to_owned(),
    ]
}
