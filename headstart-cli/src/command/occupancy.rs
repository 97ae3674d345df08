//! `headstart occupancy`: work-groups per core for a geometry, and what limits it.

use headstart::device::model::occupancy::intel::IntelCore;
use headstart::device::model::occupancy::nvidia::NvidiaCore;
use headstart::device::model::occupancy::{Footprint, Occupancy};
use headstart::report::number;
use headstart::suggest::{accepted, quoted};
use headstart::{Error, Result};

use crate::arguments;
use crate::output::{Destination, print};

/// A core, by the rules of its maker.
enum Core {
    Nvidia(NvidiaCore),
    Intel(IntelCore),
}

const DEVICES: [&str; 5] = ["h200", "a100", "pvc-1550", "xe-lp", "gen11"];

fn core(device: &str) -> Result<Core> {
    match device.strip_prefix("sim:").unwrap_or(device) {
        "h200" => Ok(Core::Nvidia(NvidiaCore::sm_90())),
        "a100" => Ok(Core::Nvidia(NvidiaCore::sm_80())),
        "pvc-1550" | "pvc-1550-documented" => Ok(Core::Intel(IntelCore::pvc())),
        "xe-lp" => Ok(Core::Intel(IntelCore::gen12())),
        "gen11" => Ok(Core::Intel(IntelCore::gen11())),
        unknown => Err(Error::usage(format!("there is no device {}", quoted(unknown)))
            .accepted(accepted(unknown, "devices", DEVICES))),
    }
}

/// Runs the command.
pub fn run(options: &arguments::Occupancy) -> Result<()> {
    let core = core(&options.device)?;
    let json = options
        .json
        .as_deref()
        .map(|path| Destination::check("--json", path))
        .transpose()?;
    let sub_groups = match &core {
        Core::Nvidia(core) => vec![core.sub_group],
        Core::Intel(core) => core.sub_groups.clone(),
    };
    let sub_group = options.sub_group.unwrap_or(sub_groups[0]);
    if !sub_groups.contains(&sub_group) {
        let sizes: Vec<String> = sub_groups.iter().map(u32::to_string).collect();
        return Err(Error::device(format!(
            "{} has no sub-groups of {sub_group} work-items",
            options.device
        ))
        .accepted(format!("it has {}", sizes.join(", "))));
    }
    let footprint = Footprint {
        registers: options.registers,
        shared: options.shared,
        barrier: options.barrier,
        large_register_file: options.large_grf,
        ..Footprint::new(options.group, sub_group)
    };
    let (occupancy, disagreement) = match &core {
        Core::Nvidia(core) => (core.occupancy(&footprint), None),
        Core::Intel(core) => {
            let both = core.occupancy(&footprint);
            let disagreement = both.disagreement();
            (both.calculator, disagreement)
        }
    };
    match json {
        Some(destination) => {
            let text = serde_json::to_string_pretty(&occupancy)
                .map_err(|error| Error::bug(format!("an occupancy does not become JSON: {error}")))?;
            destination.write(&format!("{text}\n"))
        }
        None => print(&text(&occupancy, disagreement.as_deref())),
    }
}

fn text(occupancy: &Occupancy, disagreement: Option<&str>) -> String {
    let mut text = if occupancy.groups_per_core == 0 {
        format!(
            "No work-group fits into a core; the limit is {}.\n",
            occupancy.limit()
        )
    } else {
        format!(
            "{} work-groups per core, {} sub-groups in all: {} occupancy.\nOne more does not fit because of {}.\n",
            occupancy.groups_per_core,
            occupancy.sub_groups_per_core,
            number::percent(occupancy.occupancy),
            occupancy.limit(),
        )
    };
    if let Some(disagreement) = disagreement {
        text.push_str(disagreement);
        text.push('\n');
    }
    text
}
