//! `headstart occupancy`: work-groups per core for a geometry, and the limit.

use headstart::device::model::occupancy::{Footprint, Limit, Occupancy};
use headstart::device::model::{self, Registers};
use headstart::report::number;
use headstart::{Error, Result};
use serde_json::{Value, json};

use crate::arguments;
use headstart_cli::output::{Destination, json_line, print};

/// Runs the command.
pub fn run(options: &arguments::Occupancy) -> Result<()> {
    let model = model::find(&options.device, &options.model)?;
    let json = Destination::asked("--json", options.json.as_deref())?;
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
    let most = model.registers_per_work_item(&footprint);
    if matches!(&model.registers, Registers::Pooled(_)) && options.registers > most {
        return Err(Error::device(format!(
            "{} does not give a work-item {} registers",
            model.name, options.registers
        ))
        .accepted(format!("at most {most}")));
    }
    let occupancy = model.occupancy(&footprint);
    if occupancy.groups_per_core == 0 {
        return Err(Error::device(format!(
            "no such work-group fits into a core of {}, because of {}",
            model.name,
            occupancy.limit()
        ))
        .accepted(match occupancy.limits[..] {
            [Limit::GroupSize, ..] => format!("at most {} work-items", *model.core.work_group_size),
            _ => "smaller work-groups, fewer registers or less shared memory".to_owned(),
        }));
    }
    let spilled = (options.registers > most).then_some(most);
    let recommended = model.recommended_group(&footprint);
    if let Some(destination) = json {
        let mut value = as_json(&occupancy);
        value["device"] = json!(model.description().name);
        if let Some(range) = &recommended {
            value["recommended_group"] = json!([range.start(), range.end()]);
            value["registers_per_work_item"] = json!(spilled.unwrap_or(options.registers));
        }
        return destination.write(&json_line(&value)?);
    }
    let mut text = format!("On a model of the {}:\n{}", model.modelled(), text(&occupancy));
    if let Some(range) = recommended {
        text.push_str(&format!(
            "Recommended with sub-groups of {sub_group}: work-groups of {} to {} work-items.\n",
            range.start(),
            range.end()
        ));
    }
    if let Some(own) = spilled {
        text.push_str(&format!(
            "A work-item has {own} registers; {} of {} are spilled to memory.\n",
            options.registers - own,
            options.registers
        ));
    }
    print(&text)
}

fn as_json(occupancy: &Occupancy) -> Value {
    json!({
        "groups_per_core": occupancy.groups_per_core,
        "occupancy": occupancy.occupancy,
        "limit": occupancy.limit(),
        "limits": occupancy.limits,
        "sub_groups_per_group": occupancy.sub_groups_per_group,
        "sub_groups_per_core": occupancy.sub_groups_per_core,
        "registers_per_group": occupancy.registers_per_group,
        "shared_per_group": occupancy.shared_per_group,
    })
}

fn text(occupancy: &Occupancy) -> String {
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
