//! `headstart occupancy`: work-groups per core for a geometry, and what limits it.

use headstart::device::model::occupancy::{Footprint, Occupancy};
use headstart::device::model::{self, Registers};
use headstart::report::number;
use headstart::{Error, Result};

use crate::arguments;
use crate::output::{Destination, json_line, print};

/// Runs the command.
pub fn run(options: &arguments::Occupancy) -> Result<()> {
    let model = model::find(&options.device, &[])?;
    let json = options
        .json
        .as_deref()
        .map(|path| Destination::check("--json", path))
        .transpose()?;
    let sizes: &[u32] = &model.core.sub_group_sizes;
    let sub_group = options.sub_group.unwrap_or(*model.core.sub_group_size);
    if !sizes.contains(&sub_group) {
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        return Err(Error::device(format!(
            "{} has no sub-groups of {sub_group} work-items",
            model.name
        ))
        .accepted(format!("it has {}", sizes.join(", "))));
    }
    if options.large_grf
        && !matches!(&model.registers, Registers::Fixed(registers) if registers.has_large_mode)
    {
        return Err(
            Error::device(format!("{} has no large register file", model.name)).accepted("leave it out"),
        );
    }
    let footprint = Footprint {
        registers: options.registers,
        shared: options.shared,
        barrier: options.barrier,
        large_register_file: options.large_grf,
        ..Footprint::new(options.group, sub_group)
    };
    let occupancy = model.occupancy(&footprint);
    match json {
        Some(destination) => destination.write(&json_line(&occupancy)?),
        None => print(&text(&occupancy)),
    }
}

fn text(occupancy: &Occupancy) -> String {
    if occupancy.groups_per_core == 0 {
        return format!(
            "No work-group fits into a core; the limit is {}.\n",
            occupancy.limit()
        );
    }
    let groups = match occupancy.groups_per_core {
        1 => "1 work-group".to_owned(),
        groups => format!("{groups} work-groups"),
    };
    format!(
        "{groups} per core, {} sub-groups in all: {} occupancy.\nOne more does not fit because of {}.\n",
        occupancy.sub_groups_per_core,
        number::percent(occupancy.occupancy),
        occupancy.limit(),
    )
}
