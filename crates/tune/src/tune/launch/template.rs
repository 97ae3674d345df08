//! A launch file to edit: a kernel's parameters, with the defaults written out.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::analysis::definitions::Definitions;
use crate::analysis::effects::Effect;
use crate::analysis::roots::{Root, root};
use crate::ir::{Kernel, OpKind, Param, PointerFacts, Type, Value};
use crate::names;
use crate::tune::launch::file::given::is_used;
use crate::tune::launch::moved::{Elements, elements};

/// Elements of a buffer whose length the kernel does not say.
const LENGTH: u64 = 1 << 20;

/// Pointers of a table, and most elements that they lead to.
const POINTERS: u64 = 1 << 10;
const MOST_REACHED: u64 = 1 << 24;

/// Work-items of a work-group of a kernel that requires none.
const GROUP: u64 = 128;

/// Work-groups of a kernel that goes through its data in a loop.
const GROUPS: u64 = 4;

/// The text of a launch file for a kernel: every parameter with a value, length or fill that suits its type, and, as comments,
/// the further statements that a kernel in PTX allows. `shared_bytes` is included if given.
pub fn launch_template(kernel: &Kernel, shared_bytes: Option<u32>) -> String {
    written(kernel, shared_bytes, &Values::default())
}

/// What stands in a template where the kernel does not say.
#[derive(Clone, Debug)]
pub(in crate::tune) struct Values {
    /// Elements of a buffer whose length the kernel does not say.
    pub length: u64,
    /// Elements of buffers by name, where they are others.
    pub lengths: BTreeMap<String, u64>,
    /// Integers.
    pub number: u64,
    /// Integers by name, where they are others.
    pub numbers: BTreeMap<String, u64>,
    /// Integers of a byte, where they are others: flags, or parts of a structure.
    pub byte: Option<u64>,
    /// Where what looks like indices ends.
    pub below: Option<u64>,
    /// What looks like indices has each number once.
    pub permutation: bool,
    /// The names of parameters in the source, by the kernel's.
    pub fields: BTreeMap<String, String>,
    /// Work-groups.
    pub groups: Option<u64>,
    /// Work-items of a work-group, where the kernel requires none, as a launch file says it.
    pub group: String,
}

impl Default for Values {
    fn default() -> Values {
        Values {
            length: LENGTH,
            lengths: BTreeMap::new(),
            number: 1024,
            numbers: BTreeMap::new(),
            byte: None,
            below: None,
            permutation: false,
            fields: BTreeMap::new(),
            groups: None,
            group: GROUP.to_string(),
        }
    }
}

/// The text of a launch file with these values.
pub(in crate::tune) fn written(kernel: &Kernel, shared_bytes: Option<u32>, values: &Values) -> String {
    let mut text = geometry(kernel, shared_bytes, values);
    let written = written_to(kernel);
    let only_read = |number: usize| match kernel.params[number].facts {
        Some(facts) => facts.read_only || !written[number],
        None => false,
    };
    text.push_str(&statements(kernel, &only_read));
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
             # [tables.NAME]; pointers `of` a [buffers.NAME]. `file = \"x.npy\"` (or .npz\n\
             # with `array`, or raw bytes).\n",
        );
    }
    let mut told = Vec::new();
    for (number, param) in kernel.params.iter().enumerate() {
        if let Some((structure, _)) = member(&param.name)
            && !told.contains(&structure)
        {
            told.push(structure);
            text.push_str(&members(kernel, structure, &values.fields));
        }
        // By its name in the source, where that is known.
        let field = values.fields.get(&param.name);
        let _ = write!(text, "\n[parameters.{:?}]", field.unwrap_or(&param.name));
        text.push_str(&match param.facts {
            Some(facts) => {
                let reads = only_read(number);
                let elements = match reads && facts.element.is_integer() {
                    true => elements(kernel, number, facts.element),
                    false => Elements::Own,
                };
                buffer(kernel, param, &facts, (reads, elements), values)
            }
            None => scalar(kernel, param, values),
        });
    }
    text
}

/// Which kernel in which geometry.
fn geometry(kernel: &Kernel, shared_bytes: Option<u32>, values: &Values) -> String {
    let groups = values.groups.unwrap_or_else(|| groups(kernel));
    let mut text = format!(
        "# The launch of `{}`.\nkernel = {:?}\n# Work-groups times work-items must cover the kernel's work.\n{:<30}# or [{groups}, 1, 1]\n",
        names::shown(&kernel.name),
        kernel.name,
        format!("groups = {groups}"),
    );
    let _ = match kernel.group_size {
        Some([x, y, z]) => writeln!(
            text,
            "group = [{x}, {y}, {z}]            # the kernel requires it"
        ),
        None => writeln!(text, "group = {:<24}# or [16, 8, 1]", values.group),
    };
    if let Some(bytes) = shared_bytes {
        let _ = writeln!(
            text,
            "shared_bytes = {bytes}           # dynamic shared memory of a work-group"
        );
    }
    text
}

/// Statements that would allow more plans, as comments.
fn statements(kernel: &Kernel, only_read: &dyn Fn(usize) -> bool) -> String {
    let named = |wanted: &dyn Fn(usize) -> bool| {
        let numbers = (0..kernel.params.len()).filter(|&number| {
            kernel.params[number].facts.is_some_and(|facts| !facts.read_only) && wanted(number)
        });
        let names: Vec<String> = numbers
            .map(|number| format!("{:?}", kernel.params[number].name))
            .collect();
        names.join(", ")
    };
    let open = named(&|_| true);
    if open.is_empty() {
        return String::new();
    }
    format!(
        "\n# Of a kernel in PTX or SPIR-V one may say, and more plans are possible then:\n\
         # readonly = [{}]      # those of them that nothing writes while the kernel runs\n\
         # unaliased = [{open}]     # those that share no memory with another parameter\n\
         # no_overflow = true          # the module's signed loop counters do not overflow\n",
        named(only_read)
    )
}

/// The lines of a buffer of known elements.
fn buffer(
    kernel: &Kernel,
    param: &Param,
    facts: &PointerFacts,
    (only_read, elements): (bool, Elements),
    values: &Values,
) -> String {
    let element = facts.element;
    let reads = if only_read { ", only read" } else { "" };
    let known = facts.length.and_then(|length| kernel.as_constant(length));
    let fitted = values.lengths.get(&param.name).copied();
    let length = known.or(fitted).unwrap_or(values.length);
    let mut text = format!("        # a buffer of `{element}`{reads}\nlength = {length}\n");
    if known.is_some() {
        text.push_str("# a variable of the module: `fill` replaces the module's initial contents\n");
        return text;
    }
    match elements {
        Elements::Own => {}
        Elements::Pointers(to) => return pointers(param, to, fitted.unwrap_or(POINTERS), values),
        Elements::Bits(own) => {
            text = text.replace(
                &format!("`{element}`"),
                &format!("`{own}`, loaded as `{element}`"),
            );
            text.push_str(&format!(
                "as = \"{own}\"\nfill = \"fractions\"            # or \"zero\", \"sequence\", \"bits\"\n"
            ));
            return text;
        }
    }
    if let (true, true, Some(line)) = (only_read, element.is_integer(), values.indices()) {
        text.push_str(&line);
        return text;
    }
    text.push_str(match (only_read, element.is_float(), element.is_integer()) {
        (true, true, _) => "fill = \"fractions\"            # or \"zero\", \"sequence\", \"bits\"\n",
        (true, _, true) => "fill = \"indices\"              # or \"zero\", \"sequence\", \"bits\"\n",
        (true, ..) => "fill = \"zero\"\n",
        (false, ..) => {
            "fill = \"zero\"                 # its contents before the launch\noutput = \"bits\"               # or \
             \"multiset\", or a tolerance such as 1e-6\n"
        }
    });
    text
}

/// The lines of a table of pointers, and of what they lead to.
fn pointers(param: &Param, to: Type, length: u64, values: &Values) -> String {
    let stride = values.number.clamp(1, (MOST_REACHED / length.max(1)).max(1));
    let name = format!("of_{}", param.name);
    format!(
        "        # a table of pointers to `{to}`, only read\nlength = {length}\nfill = \"pointers\"\nof = {name:?}\n\
         stride = {stride:<22}# elements from one to the next\n\n[buffers.{name:?}]        # what they lead to\n\
         length = {}\nas = \"{to}\"\n",
        length * stride
    )
}

/// The lines of a number, or of a pointer to unknown elements.
fn scalar(kernel: &Kernel, param: &Param, values: &Values) -> String {
    let ty = kernel.ty(param.value);
    if ty.is_pointer() {
        let length = values.lengths.get(&param.name).unwrap_or(&values.length);
        return format!("        # a buffer\nlength = {length}\n");
    }
    let buffers = measured_by(kernel, param.value);
    if !buffers.is_empty() {
        let buffers = buffers.join("`, `");
        return format!("        # a scalar `{ty}`: the length of `{buffers}`\nvalue = {LENGTH}\n");
    }
    if ty == Type::I64 && !is_used(kernel, param) {
        return "        # a scalar `i64`, or a pointer: not used\nvalue = 0\n".to_owned();
    }
    let value = match ty {
        _ if values.numbers.contains_key(&param.name) => values.numbers[&param.name].to_string(),
        Type::Bool => "true".to_owned(),
        ty if ty.is_float() => "1.0".to_owned(),
        Type::I8 => values.byte.unwrap_or_else(|| values.number.min(100)).to_string(),
        _ => values.number.to_string(),
    };
    format!("        # a scalar `{ty}`\nvalue = {value}\n")
}

impl Values {
    /// How a buffer of indices is filled, if not as usual.
    fn indices(&self) -> Option<String> {
        match (self.permutation, self.below) {
            (true, _) => {
                Some("fill = \"permutation\"          # each number below `length` once\n".to_owned())
            }
            (false, Some(below)) => Some(format!(
                "fill = \"indices\"              # or \"zero\", \"sequence\", \"permutation\", \"bits\"\nbelow = {below}\n"
            )),
            (false, None) => None,
        }
    }
}

/// Whether a kernel goes through its data in a loop.
pub(in crate::tune) fn has_loop(kernel: &Kernel) -> bool {
    let mut has_loop = false;
    kernel
        .body
        .walk(&mut |op| has_loop |= matches!(op.kind, OpKind::Loop { .. }));
    has_loop
}

/// Work-groups for all of the work: one work-item for each element where no loop goes through a buffer.
fn groups(kernel: &Kernel) -> u64 {
    let facts = kernel.params.iter().filter_map(|param| param.facts);
    let lengths = facts.filter(|facts| !facts.is_constant).map(|facts| {
        let known = facts.length.and_then(|length| kernel.as_constant(length));
        known.unwrap_or(LENGTH)
    });
    let size = |[x, y, z]: [u32; 3]| u64::from(x) * u64::from(y) * u64::from(z);
    let group = kernel.group_size.map_or(GROUP, size).max(1);
    match (has_loop(kernel), lengths.max()) {
        (false, Some(elements)) => elements.div_ceil(group).max(1),
        _ => GROUPS,
    }
}

/// For each parameter whether the kernel may write the memory behind it: through a pointer that comes from it, or from nowhere
/// known.
fn written_to(kernel: &Kernel) -> Vec<bool> {
    let definitions = Definitions::of(kernel);
    let mut written = vec![false; kernel.params.len()];
    for effect in definitions.effects() {
        match effect {
            Effect::Write(pointer, ..) => match root(kernel, &definitions, *pointer) {
                Some(Root::Param(number)) => written[number] = true,
                Some(Root::Array(_)) => {}
                None => written.fill(true),
            },
            Effect::Carried(_) => written.fill(true),
            _ => {}
        }
    }
    written
}

/// The structure that a parameter is a member of, by its name, and where the member starts: `param_1_8` at byte 8.
fn member(name: &str) -> Option<(&str, u64)> {
    let (structure, offset) = name.rsplit_once('_')?;
    let is_parameter = structure.strip_prefix("param_")?.parse::<u32>().is_ok();
    Some((structure, offset.parse().ok().filter(|_| is_parameter)?))
}

/// A table of the members of a structure that the kernel reads.
fn members(kernel: &Kernel, structure: &str, fields: &BTreeMap<String, String>) -> String {
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
        let field = fields
            .get(name)
            .map_or(String::new(), |field| format!("   {field}"));
        let _ = writeln!(text, "#   {offset:>3}-{last:<3}   {what:<12} {name}{field}");
    }
    text
}

/// The buffers whose length a parameter is.
fn measured_by(kernel: &Kernel, length: Value) -> Vec<&str> {
    let is_measured = |facts: &PointerFacts| facts.length == Some(length);
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
    fn what_is_never_written_is_an_input() {
        let text = "hsir 1\nkernel @k(%from: ptr.global f32[] align 4, %to: ptr.global f32[] align 4) {\nload @from\n\
                    %x = load f32 %from, @from\nstore %to, %x\nreturn\n}\n";
        let kernel = crate::ir::parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        let template = launch_template(&kernel, None);
        assert!(template.contains("# readonly = [\"from\"] "), "{template}");
        assert!(
            template.contains("# unaliased = [\"from\", \"to\"] "),
            "{template}"
        );
        assert_eq!(template.matches("fill = \"fractions\"").count(), 1, "{template}");
        assert_eq!(template.matches("fill = \"zero\" ").count(), 1, "{template}");
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
        let with_unused = text.replace("%n: i32", "%n: i32, %unused: i64");
        let kernel = crate::ir::parse(&with_unused, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        let unused = launch_template(&kernel, None);
        assert!(unused.contains("or a pointer: not used\nvalue = 0\n"), "{unused}");
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

    #[test]
    fn what_is_loaded_as_integers_is_told_by_what_is_done_with_it() {
        let kernel = |body: &str| {
            let text = format!(
                "hsir 1\nkernel @k(%rows: ptr.global i64[] align 8, %in: ptr.global i32[] align 4, \
                 %out: ptr.global f32[] align 4) {{\nshared @t: i32[128] align 4\nload @row\nload @x\nload @y\n\
                 %i32 = id.local.x\n%i = extend.u %i32 to i64\n%to = address %out + %i * 4\n%t = array @t\n\
                 %own = address %t + %i * 4\n{body}\nreturn\n}}\n"
            );
            let kernel = crate::ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
            launch_template(&Arc::new(kernel), None)
        };
        let table = kernel(
            "%at = address %rows + %i * 8\n%row = load i64 %at, @row\n%later = add %row, 8:i64\n\
             %p = bits %later to ptr.global\n%x = load f32 %p, @x\nstore %to, %x",
        );
        assert!(
            table.contains("a table of pointers to `f32`") && table.contains("of = \"of_rows\""),
            "{table}"
        );
        assert!(table.contains("[buffers.\"of_rows\"]"), "{table}");
        let moved = kernel(
            "%at = address %in + %i * 4\n%x = load i32 %at, @x\nstore %own, %x\nbarrier\n\
             %y = load f32 %own, @y\nstore %to, %y",
        );
        assert!(moved.contains("a buffer of `f32`, loaded as `i32`"), "{moved}");
        assert!(moved.contains("as = \"f32\"\nfill = \"fractions\""), "{moved}");
        let numbers = kernel(
            "%at = address %in + %i * 4\n%x = load i32 %at, @x\nstore %own, %x\n%z = add %x, 1:i32\n\
             %y = bits %z to f32\nstore %to, %y",
        );
        assert!(numbers.contains("a buffer of `i32`, only read"), "{numbers}");
    }
}
