//! `headstart launch-template`: a launch file to start from.

use headstart::Result;
use headstart::tune::launch_template;

use crate::arguments::LaunchTemplate;
use crate::kernel;
use crate::output::print_as_it_is;

/// Runs the command.
pub fn run(options: &LaunchTemplate) -> Result<()> {
    let (kernel, shared_bytes) = kernel::read_for_template(&options.kernel)?;
    print_as_it_is(&launch_template(&kernel, shared_bytes))
}
