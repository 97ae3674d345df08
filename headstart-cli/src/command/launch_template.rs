//! `headstart launch-template`: a launch file to start from.

use std::sync::Arc;

use headstart::Result;
use headstart::device::Device;
use headstart::device::sim::Simulator;
use headstart::tune::{fitted_launch_template, launch_template};

use crate::arguments::LaunchTemplate;
use crate::kernel;
use headstart_cli::output::print_as_it_is;

/// Runs the command.
pub fn run(options: &LaunchTemplate) -> Result<()> {
    let read = kernel::read_for_template(&options.kernel)?;
    let (kernel, original) = (Arc::new(read.kernel), read.original.map(Arc::new));
    let text = match read.is_spirv {
        // What its variables hold, and its arrays of the work-group, are not at hand here.
        true => launch_template(&kernel, read.shared_bytes),
        false => {
            let simulator = Simulator::new("h200")?;
            fitted_launch_template(
                &kernel,
                original.as_ref(),
                read.shared_bytes,
                simulator.description(),
            )
        }
    };
    print_as_it_is(&text)
}
