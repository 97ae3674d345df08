//! A launch file to start from: what a kernel takes, with the defaults written out.

use std::fmt::Write;

use crate::ir::{Kernel, Type, Value};

/// Elements of a buffer whose length the kernel does not say.
const LENGTH: u64 = 1 << 20;

/// The text of a launch file for a kernel: every parameter with a value, length or fill that suits its type, and, as
/// comments, what may be said of a kernel in PTX beyond that. `shared_bytes` stands there if it is given.
pub fn launch_template(kernel: &Kernel, shared_bytes: Option<u32>) -> String {
    let mut text = format!(
        "# How `{}` is launched.\ngroups = 4                    # or [4, 1, 1]\n",
        kernel.name
    );
    match kernel.group_size {
        Some([x, y, z]) => {
            let _ = writeln!(
                text,
                "group = [{x}, {y}, {z}]            # the kernel requires it"
            );
        }
        None => text.push_str("group = 128                   # or [16, 8, 1]\n"),
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
            "\n# Of a kernel in PTX one may say, and more plans are possible then:\n\
             # readonly = [{written}]      # those of them that nothing writes while the kernel runs\n\
             # unaliased = [{written}]     # those that share no memory with another parameter\n\
             # no_overflow = true          # the module's signed loop counters do not overflow\n"
        );
    }
    for param in &kernel.params {
        let ty = kernel.ty(param.value);
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
                    text.push_str("# a variable of the module: it holds what the module says, unless `fill` says otherwise\n");
                    continue;
                }
                text.push_str(match (facts.read_only, element.is_float(), element.is_integer()) {
                    (true, true, _) => "fill = \"fractions\"            # or \"zero\", \"sequence\", \"bits\"\n",
                    (true, _, true) => "fill = \"indices\"              # or \"zero\", \"sequence\", \"bits\"\n",
                    (true, ..) => "fill = \"zero\"\n",
                    (false, ..) => {
                        "fill = \"zero\"                 # what it holds before the launch\noutput = \"bits\"               # or \
                         \"multiset\", or a relative tolerance such as 1e-6\n"
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
    }
}
