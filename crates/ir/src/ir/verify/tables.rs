//! Rules about everything outside the body: parameters, arrays, geometry, values, places, names.

use std::collections::HashSet;

use super::violation::{Check, Rule};
use crate::ir::kernel::{ArrayData, Kernel, Param, PointerFacts, Value};
use crate::ir::limits;
use crate::ir::types::{Space, Type};

/// Checks the tables of a kernel.
pub(super) fn check(kernel: &Kernel) -> Check {
    check_sizes(kernel)?;
    check_places(kernel)?;
    check_values(kernel)?;
    check_params(kernel)?;
    for array in kernel.arrays.values() {
        check_array(array)?;
    }
    // After each array's own check: offsets rely on alignments.
    check_array_bytes(kernel)?;
    check_geometry(kernel)
}

fn check_sizes(kernel: &Kernel) -> Check {
    let most = |count: usize, limit: usize, what: &str| {
        Rule::Size.check(count <= limit, || {
            format!("the kernel has {count} {what}; at most {limit} are possible")
        })
    };
    most(kernel.params.len(), limits::PARAMETERS, "parameters")?;
    most(kernel.arrays.len(), limits::ARRAYS, "arrays")?;

    let params = kernel.params.iter().map(|param| param.name.as_str());
    let arrays = kernel.arrays.values().map(|array| array.name.as_str());
    let loads = kernel.loads.values().map(|load| load.name.as_str());
    let values = kernel.values.values().filter_map(|value| value.name.as_deref());
    let labels = kernel.labels.values().filter_map(|label| label.name.as_deref());
    let files = kernel.places.values().map(|place| place.file.as_str());
    let names = std::iter::once(kernel.name.as_str())
        .chain(params)
        .chain(arrays)
        .chain(loads)
        .chain(values)
        .chain(labels)
        .chain(files);
    for name in names {
        most(name.len(), limits::NAME_BYTES, "bytes in a name")?;
    }
    Ok(())
}

fn check_places(kernel: &Kernel) -> Check {
    Rule::Tables.check(!kernel.places.is_empty(), || "place 0 is missing".to_owned())?;
    // Calls around each place; a call's place stands before what was inlined there.
    let mut calls: Vec<usize> = Vec::with_capacity(kernel.places.len());
    for (place, data) in &kernel.places {
        let around = match data.inlined_at {
            None => 0,
            Some(call) if call < place => calls[call.as_u32() as usize] + 1,
            Some(call) => {
                let what = format!("{place:?} is inlined at {call:?}, which does not come before it");
                return Err(Rule::Tables.broken(what));
            }
        };
        Rule::Size.check(around <= limits::INLINED_CALLS, || {
            format!(
                "a place is inlined through more than {} calls",
                limits::INLINED_CALLS
            )
        })?;
        calls.push(around);
    }
    for (id, load) in &kernel.loads {
        Rule::Tables.check(kernel.places.is_valid(load.place), || {
            format!("the place of {id:?} does not exist")
        })?;
    }
    Ok(())
}

fn check_values(kernel: &Kernel) -> Check {
    for (value, data) in &kernel.values {
        let Some(bits) = data.constant else { continue };
        Rule::Constants.check(bits & !data.ty.mask() == 0, || {
            format!("the constant {value:?} has bits that an {} has not", data.ty)
        })?;
        Rule::Constants.check(data.ty != Type::Token || bits == 0, || {
            format!("the only constant token is 0, not {bits}")
        })?;
    }
    Ok(())
}

fn check_params(kernel: &Kernel) -> Check {
    let (mut names, mut values) = (HashSet::new(), HashSet::new());
    for param in &kernel.params {
        let Param { name, value, .. } = param;
        Rule::Params.check(!name.is_empty(), || "a parameter has no name".to_owned())?;
        Rule::Params.check(names.insert(name), || {
            format!("two parameters are called `{name}`")
        })?;
        Rule::Tables.check(kernel.values.is_valid(*value), || {
            format!("the value of parameter `{name}` does not exist")
        })?;
        Rule::Params.check(values.insert(*value), || {
            format!("parameter `{name}` has the value of another one")
        })?;
        Rule::Params.check(kernel.as_constant(*value).is_none(), || {
            format!("parameter `{name}` is a constant")
        })?;
        let ty = kernel.ty(*value);
        let passable = !matches!(ty, Type::Token | Type::Ptr(Space::Shared | Space::Private));
        Rule::Params.check(passable, || {
            format!("parameter `{name}` is a {ty}; pointers are global or generic, and tokens stay inside")
        })?;
    }
    for param in &kernel.params {
        if let Some(facts) = &param.facts {
            check_facts(kernel, param, facts, &values)?;
        }
    }
    Ok(())
}

fn check_facts(kernel: &Kernel, param: &Param, facts: &PointerFacts, params: &HashSet<Value>) -> Check {
    let name = &param.name;
    Rule::Facts.check(kernel.ty(param.value).is_pointer(), || {
        format!("parameter `{name}` is not a pointer but has pointer facts")
    })?;
    Rule::Facts.check(facts.element != Type::Token, || {
        format!("parameter `{name}` points to tokens")
    })?;
    Rule::Facts.check(is_alignment(facts.align), || {
        format!(
            "the alignment of parameter `{name}` is {}, no power of two",
            facts.align
        )
    })?;
    let Some(length) = facts.length else { return Ok(()) };
    Rule::Tables.check(kernel.values.is_valid(length), || {
        format!("the length of parameter `{name}` does not exist")
    })?;
    let known = match kernel.as_constant(length) {
        Some(bits) => bits <= i64::MAX as u64,
        None => params.contains(&length),
    };
    Rule::Facts.check(known && kernel.ty(length) == Type::I64, || {
        format!("the length of parameter `{name}` is neither an i64 parameter nor an i64 constant from 0 on")
    })
}

fn is_alignment(align: u32) -> bool {
    align.is_power_of_two() && align <= limits::ALIGNMENT
}

fn check_array(array: &ArrayData) -> Check {
    let ArrayData {
        name,
        space,
        element,
        length,
        align,
    } = array;
    Rule::Arrays.check(matches!(space, Space::Shared | Space::Private), || {
        format!("array `{name}` is {space}; arrays are shared or private")
    })?;
    Rule::Arrays.check(*element != Type::Token, || format!("array `{name}` holds tokens"))?;
    Rule::Arrays.check(*length > 0, || format!("array `{name}` has no elements"))?;
    Rule::Arrays.check(is_alignment(*align) && *align >= element.bytes(), || {
        format!(
            "array `{name}` is aligned to {align}; possible are powers of two from its element's size to {}",
            limits::ALIGNMENT
        )
    })
}

fn check_array_bytes(kernel: &Kernel) -> Check {
    let most = |bytes: u64, limit: u64, what: &str| {
        Rule::Size.check(bytes <= limit, || {
            format!("the kernel's {what} arrays take {bytes} bytes; at most {limit} are possible")
        })
    };
    most(kernel.shared_bytes(), limits::SHARED_BYTES, "shared")?;
    most(kernel.private_bytes(), limits::PRIVATE_BYTES, "private")
}

fn check_geometry(kernel: &Kernel) -> Check {
    if let Some([x, y, z]) = kernel.group_size {
        let items = [x, y, z]
            .iter()
            .try_fold(1u64, |items, &size| items.checked_mul(u64::from(size)));
        let fits = items.is_some_and(|items| (1..=limits::GROUP_ITEMS).contains(&items));
        Rule::Geometry.check(fits, || {
            format!(
                "a work-group of {x} × {y} × {z} is not possible; 1 to {} work-items are",
                limits::GROUP_ITEMS
            )
        })?;
    }
    if let Some(size) = kernel.sub_group_size {
        let fits = size.is_power_of_two() && size <= limits::SUB_GROUP_ITEMS;
        Rule::Geometry.check(fits, || {
            format!(
                "a sub-group of {size} is not possible; powers of two up to {} are",
                limits::SUB_GROUP_ITEMS
            )
        })?;
    }
    if let Some(registers) = kernel.max_registers {
        Rule::Geometry.check(limits::REGISTERS.contains(&registers), || {
            format!(
                "a work-item cannot have {registers} registers; {} to {} are possible",
                limits::REGISTERS.start(),
                limits::REGISTERS.end()
            )
        })?;
    }
    Ok(())
}
