//! `headstart merge`: the logs of several searches, or of the parts of one, as one log.

use headstart::Result;
use headstart::report::number::grouped;
use headstart::tune::log;

use crate::arguments::Merge;
use headstart_cli::output::{Destination, print};

/// Runs the command.
pub fn run(options: &Merge) -> Result<()> {
    let destination = Destination::check("--log", &options.log)?;
    let merged = log::merge(&options.files)?;
    destination.write(&merged.text)?;
    match destination {
        Destination::Standard => Ok(()),
        _ => print(&format!(
            "{} trials of {} searches\n",
            grouped(merged.trials as u64),
            grouped(merged.searches as u64)
        )),
    }
}
