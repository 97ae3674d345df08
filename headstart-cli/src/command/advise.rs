//! `headstart advise`: should this kernel be prefetched, and why?

use headstart::advise::{self, Advice};
use headstart::report::advice;
use headstart::{Error, Result};

use crate::arguments::Advise;
use crate::device::Chosen;
use crate::kernel::{self, Places};
use crate::output::{Destination, json_line, print};
use crate::progress::Bar;

/// Runs the command.
pub fn run(options: &Advise) -> Result<()> {
    // Whatever can be wrong is found before the long work starts.
    check_share(options.share)?;
    let json = options
        .json
        .as_deref()
        .map(|path| Destination::check("--json", path))
        .transpose()?;
    let mut advice = of_kernel(options)?;
    if let Some(share) = options.share {
        advice = advice.within_program(share)?;
    }
    match json {
        Some(destination) => destination.write(&json_line(&advice)?),
        None => print(&advice::text(&advice)),
    }
}

fn check_share(share: Option<f64>) -> Result<()> {
    match share {
        Some(share) if !(share > 0.0 && share <= 1.0) => Err(Error::usage(format!(
            "`--share {share}` is no share of a program's time"
        ))
        .accepted("a number above 0, and at most 1")),
        _ => Ok(()),
    }
}

/// The advice from a run of the kernel, and of the plans that are likely to help.
fn of_kernel(options: &Advise) -> Result<Advice> {
    let subject = kernel::find(&options.kernel, Places::Filled)?;
    let device = Chosen::find(&options.device)?;
    let bench = device.bench()?;
    let bar = Bar::new();
    advise::advise(subject.as_ref(), bench.as_ref(), &bar)
}
