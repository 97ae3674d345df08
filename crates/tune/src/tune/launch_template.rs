//! A launch file to edit: a kernel's parameters, with the defaults written out.

use std::fmt::Write;

use crate::ir::{Kernel, OpKind, Type, Value};
use crate::names;

/// Elements of a buffer whose length the kernel does not say.
const LENGTH: u64 = 1 << 20;

/// Work-items of a work-group of a kernel that requires none.
const GROUP: u64 = 128;

/// Work-groups of a kernel that goes through its data in a loop.
const GROUPS: u64 = 4;

/// The text of a launch file for a kernel: every parameter with a value, length or fill that suits its type, and, as comments,
/// the further statements that a kernel in PTX allows. `shared_bytes` is included if given.
pub fn launch_template(kernel: &Kernel, shared_bytes: Option<u32>) -> String {
    let groups = groups(kernel);
    let mut text = format!(
        "# The launch of `{}`.\nkernel = {:?}\n# Work-groups times work-items must cover the kernel's work.\n{:<30}# or [{groups}, 1, 1]\n",
        names::shown(&kernel.name),
        kernel.name,
        format!("groups = {groups}"),
    );
    match kernel.group_size {
        Some([x, y, z]) => {
            let _ = writeln!(
                text,
                "group = [{x}, {y}, {z}]            # the kernel requires it"
            );
        }
        None => {
            let _ = writeln!(text, "group = {GROUP}                   # or [16, 8, 1]");
        }
    }
    if let Some(bytes) = shared_bytes {
        let _ = writeln!(
            text,
            "shared_bytes = {bytes}           # dynamic shared memory of a work-group"
        );
    }
    let written = kernel
        .params
        .iter()
        .filter(|param| param.facts.is_some_and(|facts| !facts.read_only));
    let written: Vec<String> = written.map(|param| format!("{:?}", param.name)).collect();
    let written = written.join(", ");
    if !written.is_empty() {
        let _ = write!(
            text,
            "\n# Facts that PTX and SPIR-V do not state, and that make more plans possible.\n\
             # Parameters whose memory nothing writes while the kernel runs:\n\
             # readonly = [{written}]\n\
             # Parameters that share no memory with another one:\n\
             # unaliased = [{written}]\n\
             # Signed loop counters do not overflow:\n\
             # no_overflow = true\n"
        );
    }
    if kernel
        .params
        .iter()
        .any(|param| kernel.ty(param.value).is_pointer())
    {
        text.push_str(
            "\n# Instead of its own buffer a pointer can have `null = true`,\n\
             # `buffer = \"NAME\"` with `offset = 16`, or `end_of = \"NAME\"`.\n\
             # Fills: zero, sequence, indices, sorted, permutation, zipf, fractions,\n\
             # random, bits; rows and columns of a [graphs.NAME]; slots and keys of a\n\
             # [tables.NAME]. `file = \"x.npy\"` (or .npz with `array`, or raw bytes).\n",
        );
    }
    let mut told = Vec::new();
    for param in &kernel.params {
        let ty = kernel.ty(param.value);
        if let Some((structure, _)) = member(&param.name)
            && !told.contains(&structure)
        {
            told.push(structure);
            text.push_str(&members(kernel, structure));
        }
        let _ = write!(text, "\n[parameters.{:?}]", param.name);
        match param.facts {
            Some(facts) => {
                let element = facts.element;
                let reads = if facts.read_only { ", only read" } else { "" };
                let known = facts.length.and_then(|length| kernel.as_constant(length));
                let length = known.unwrap_or(LENGTH);
                let _ = writeln!(
                    text,
                    "        # a buffer of `{element}`{reads}\nlength = {length}"
                );
                if known.is_some() {
                    text.push_str(
                        "# a variable of the module: `fill` replaces the module's initial contents\n",
                    );
                    continue;
                }
                text.push_str(match (facts.read_only, element.is_float(), element.is_integer()) {
                    (true, true, _) => "fill = \"fractions\"            # or \"zero\", \"sequence\", \"bits\"\n",
                    (true, _, true) => "fill = \"indices\"              # or \"zero\", \"sequence\", \"bits\"\n",
                    (true, ..) => "fill = \"zero\"\n",
                    (false, ..) => {
                        "fill = \"zero\"                 # its contents before the launch\noutput = \"bits\"               # or \
                         \"multiset\", or a tolerance such as 1e-6\n"
                    }
                });
            }
            None if ty.is_pointer() => {
                let _ = writeln!(text, "        # a buffer\nlength = {LENGTH}");
            }
            None if !measured_by(kernel, param.value).is_empty() => {
                let buffers = measured_by(kernel, param.value).join("`, `");
                let _ = writeln!(
                    text,
                    "        # a scalar `{ty}`: the length of `{buffers}`\nvalue = {LENGTH}"
                );
            }
            None => {
                let value = match ty {
                    Type::Bool => "true",
                    ty if ty.is_float() => "1.0",
                    Type::I8 => "100",
                    _ => "1024",
                };
                let _ = writeln!(text, "        # a scalar `{ty}`\nvalue = {value}");
            }
        }
    }
    text
}

/// Work-groups for all of the work: one work-item for each element where no loop goes through a buffer.
fn groups(kernel: &Kernel) -> u64 {
    let mut has_loop = false;
    kernel
        .body
        .walk(&mut |op| has_loop |= matches!(op.kind, OpKind::Loop { .. }));
    let facts = kernel.params.iter().filter_map(|param| param.facts);
    let lengths = facts.filter(|facts| !facts.is_constant).map(|facts| {
        let known = facts.length.and_then(|length| kernel.as_constant(length));
        known.unwrap_or(LENGTH)
    });
    let size = |[x, y, z]: [u32; 3]| u64::from(x) * u64::from(y) * u64::from(z);
    let group = kernel.group_size.map_or(GROUP, size).max(1);
    match (has_loop, lengths.max()) {
        (false, Some(elements)) => elements.div_ceil(group).max(1),
        _ => GROUPS,
    }
}

/// The structure that a parameter is a member of, by its name, and where the member starts: `param_1_8` at byte 8.
fn member(name: &str) -> Option<(&str, u64)> {
    let (structure, offset) = name.rsplit_once('_')?;
    let is_parameter = structure.strip_prefix("param_")?.parse::<u32>().is_ok();
    Some((structure, offset.parse().ok().filter(|_| is_parameter)?))
}

/// A table of the members of a structure that the kernel reads.
fn members(kernel: &Kernel, structure: &str) -> String {
    let mut rows: Vec<(u64, &str, Type, Option<Type>)> = kernel
        .params
        .iter()
        .filter_map(|param| {
            let (of, offset) = member(&param.name)?;
            let element = param.facts.map(|facts| facts.element);
            (of == structure).then_some((offset, param.name.as_str(), kernel.ty(param.value), element))
        })
        .collect();
    rows.sort_unstable_by_key(|&(offset, ..)| offset);
    let mut text =
        format!("\n# `{structure}` is a structure; the kernel reads\n#   bytes     what         as\n");
    for (offset, name, ty, element) in rows {
        let last = offset + u64::from(ty.bytes()) - 1;
        let what = element.map_or(ty.to_string(), |element| format!("{element} *"));
        let _ = writeln!(text, "#   {offset:>3}-{last:<3}   {what:<12} {name}");
    }
    text
}

/// The buffers whose length a parameter is.
fn measured_by(kernel: &Kernel, length: Value) -> Vec<&str> {
    let is_measured = |facts: &crate::ir::PointerFacts| facts.length == Some(length);
    kernel
        .params
        .iter()
        .filter(|param| param.facts.as_ref().is_some_and(is_measured))
        .map(|param| param.name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tune::LaunchFile;

    #[test]
    fn a_template_is_a_launch_file() {
        let text = "hsir 1\nkernel @k(%from: ptr.global f32[] align 4 readonly, %at: ptr.global i32[] align 4 readonly,\n\
                    %to: ptr.global f64[] align 8, %n: i32, %b: i8, %x: f32) group 64,1,1 {\nreturn\n}\n";
        let kernel = Arc::new(crate::ir::parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}")));
        let template = launch_template(&kernel, Some(2048));
        let launch =
            LaunchFile::parse(&template, "launch.toml").unwrap_or_else(|error| panic!("{error}\n{template}"));
        let workload = launch
            .workload(&kernel)
            .unwrap_or_else(|error| panic!("{error}\n{template}"));
        assert_eq!(workload.group, [64, 1, 1]);
        assert_eq!(launch.facts().dynamic_shared_bytes, Some(2048));
        assert_eq!(workload.output_names().collect::<Vec<_>>(), ["to"]);
    }

    #[test]
    fn the_bytes_of_a_structure_are_listed() {
        let text = "hsir 1\nkernel @_Z6fields1PPf(%param_0_8: ptr.global f32[] align 4 readonly, %param_0_0: f32,\n\
                    %param_1: ptr.global f32[] align 4) {\nreturn\n}\n";
        let kernel = crate::ir::parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        let template = launch_template(&kernel, None);
        assert!(
            template.starts_with("# The launch of `fields`.\nkernel = \"_Z6fields1PPf\"\n"),
            "{template}"
        );
        assert!(
            template.contains("#     0-3     f32          param_0_0\n#     8-15    f32 *        param_0_8\n"),
            "{template}"
        );
        assert_eq!(template.matches("is a structure").count(), 1, "{template}");
        LaunchFile::parse(&template, "launch.toml").unwrap_or_else(|error| panic!("{error}\n{template}"));
    }

    #[test]
    fn a_length_is_that_of_its_buffer() {
        let text = "hsir 1\nkernel @k(%x: ptr.global f32[%x_length] align 4 readonly, %x_length: i64, %n: i32) {\nreturn\n}\n";
        let kernel = crate::ir::parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        let template = launch_template(&kernel, None);
        assert!(template.contains("length = 1048576\n"), "{template}");
        assert!(
            template.contains("the length of `x`\nvalue = 1048576\n"),
            "{template}"
        );
        assert!(
            template.contains("# a scalar `i32`\nvalue = 1024\n"),
            "{template}"
        );
        // Without a loop each element has a work-item of its own.
        assert!(template.contains("\ngroups = 8192 "), "{template}");
        let in_a_loop = text.replace(
            "return\n",
            "%r = loop 'l (%j = 0:i64) -> i64 {\nbreak %j\n}\nreturn\n",
        );
        let kernel = crate::ir::parse(&in_a_loop, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        let template = launch_template(&kernel, None);
        assert!(template.contains("\ngroups = 4 "), "{template}");
    }
}
