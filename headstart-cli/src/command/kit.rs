//! `headstart kit`: measurements that an owner of a GPU runs once and sends back, and their evaluation.

use std::time::Duration;

use headstart::{Error, Result};

use super::calibrate::begin;
use crate::arguments;
use crate::device;
use crate::kit::collect::{self, Plan};
use crate::kit::file::Kit;
use crate::kit::read;
use crate::output::{Destination, print};

/// Runs the command.
pub fn run(options: &arguments::Kit) -> Result<()> {
    match (&options.device, &options.from) {
        (Some(device), None) => measure(options, device),
        (None, Some(path)) => {
            let kit = Kit::open(path)?.ok_or_else(|| {
                Error::usage("there is no such file").accepted("a file that `headstart kit DEVICE -o FILE` wrote")
            })?;
            make(options, kit)
        }
        _ => Err(Error::usage("neither a device nor a file is given").accepted(
            "`headstart kit opencl:0 -o FILE.json` on the machine with the GPU, `headstart kit --from FILE.json -o MODEL.toml` \
             wherever the file is read",
        )),
    }
}

fn measure(options: &arguments::Kit, device: &str) -> Result<()> {
    let path = options
        .output
        .as_deref()
        .ok_or_else(|| Error::usage("the measurements need an output file").accepted("`-o FILE.json`"))?;
    let device = device::find(device, &[])?;
    let (blank, _) = begin(&*device)?;
    let mut kit = match Kit::open(path)? {
        Some(kit) => {
            kit.goes_on(&*device)?;
            kit
        }
        None => Kit::new(&*device, blank),
    };
    let destination = Destination::check("--output", path)?;
    let is_quiet = matches!(destination, Destination::Standard);
    if !is_quiet {
        print(&format!(
            "Measuring {} for at most about {} minutes. It can be stopped at any time; the same command resumes.\n",
            kit.calibration.device,
            options.budget.div_ceil(60)
        ))?;
    }
    let plan = Plan {
        device: &*device,
        budget: Duration::from_secs(options.budget),
        only: &options.case,
    };
    let progress = collect::collect(&mut kit, &plan, &destination)?;
    if is_quiet {
        return Ok(());
    }
    print(&collect::summary(&kit, &progress))?;
    print(match progress.is_whole() {
        true => "Complete: please send the file back.\n",
        false => "The same command measures more. The file can be sent back as it is.\n",
    })
}

fn make(options: &arguments::Kit, mut kit: Kit) -> Result<()> {
    read::check(&kit)?;
    let output = options
        .output
        .as_deref()
        .map(|path| Destination::check("--output", path))
        .transpose()?;
    let is_quiet = matches!(output, Some(Destination::Standard));
    if !is_quiet {
        print(&read::described(&kit))?;
    }
    let made = read::model_of(&kit, options.base.as_deref(), options.output.as_deref())?;
    if let Some(output) = output {
        output.write(&made.text)?;
    }
    let judgements = read::held_against(&mut kit, &made.model, Duration::from_secs(options.budget))?;
    match is_quiet {
        true => Ok(()),
        false => print(&read::told_of(&made, &judgements)),
    }
}
