//! A launch file to start from that runs: lengths and numbers to which the kernel's accesses fit.
//!
//! A kernel says neither how long its buffers are nor which numbers it can take. What the functional engine complains of says
//! it: an access beyond a buffer's end asks for a longer one, one that is far beyond for smaller numbers, work-items that
//! write one place for indices that differ; a read of shared memory that is not written, for other work-groups. So a template is
//! tried, and mended, until its launch runs and writes something.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::file::LaunchFile;
use super::template::{Values, has_loop, written};
use crate::device::sim::Simulator;
use crate::device::sim::functional::{BufferMemory, CompiledKernel, Groups, Options};
use crate::device::{Description, Device};
use crate::error::{Error, Result};
use crate::front::ptx::{Original, is_member};
use crate::ir::{Id, Kernel, OpKind, Type};
use crate::violation::{Element, Violation};

/// Most bytes of a buffer.
const MOST_BYTES: u64 = 1 << 28;
/// Operations of a sub-group after which a launch counts as endless.
const LONGEST: u64 = 1 << 20;
/// How often lengths are mended for one choice of numbers.
const ROUNDS: usize = 24;
/// Elements of a buffer of a launch of few work-groups, until an access asks for more.
const FEW_ELEMENTS: u64 = 1 << 12;
/// Scalars that are tried alone.
const MOST_SCALARS: usize = 12;
/// How long templates are tried.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a launch of a template ended.
enum Outcome {
    /// It ran, and changed an output.
    Works,
    /// It ran, and left all as it was.
    Idle,
}

/// A template for the kernel, mended until its launch runs on the simulator. A comment at the top says how the launch ended.
pub fn fitted_launch_template(
    kernel: &Arc<Kernel>,
    original: Option<&Arc<Original>>,
    shared_bytes: Option<u32>,
    device: &Description,
) -> String {
    let started = Instant::now();
    let trial = Trial {
        kernel,
        original,
        compiled: CompiledKernel::new(Arc::clone(kernel)),
        device,
    };
    let usual = Values {
        group: original
            .and_then(|original| largest_group(original))
            .unwrap_or_else(|| Values::default().group),
        fields: original.map_or_else(BTreeMap::new, |original| fields(kernel, original)),
        ..Values::default()
    };
    let mut idle = None;
    let mut first_refusal = None;
    let others = other_groups(kernel, original.map(|original| &**original));
    let groups = std::iter::once(usual.group.clone()).chain(others);
    let all = groups.flat_map(|group| {
        let usual = Values {
            group,
            ..usual.clone()
        };
        choices(kernel, &usual)
    });
    for choice in all {
        // Other work-groups are for launches that end in an error with the usual ones.
        if idle.is_some() && choice.group != usual.group {
            break;
        }
        let mut values = choice;
        for _ in 0..ROUNDS {
            if started.elapsed() > PATIENCE {
                break;
            }
            let text = written(kernel, shared_bytes, &values);
            match trial.run(&text) {
                Ok(Outcome::Works) => {
                    return format!(
                        "# Its numbers are made up. The simulator ran this launch: it ends, stays in its memory, and writes.\n{text}"
                    );
                }
                Ok(Outcome::Idle) => {
                    // A number of zero may only have left no work.
                    if values.numbers.is_empty() {
                        idle.get_or_insert(text);
                    }
                    break;
                }
                Err(error) => {
                    let mended = mend(kernel, &mut values, &error);
                    first_refusal.get_or_insert(error);
                    if !mended {
                        break;
                    }
                }
            }
        }
    }
    match (idle, first_refusal) {
        (Some(text), _) => format!(
            "# Its numbers are made up. The simulator ran this launch: it ends, and leaves every output as it was.\n{text}"
        ),
        (None, Some(error)) => {
            let text = written(kernel, shared_bytes, &usual);
            let why = error.what();
            format!(
                "# Its numbers are made up, and do not suit the kernel: on the simulator\n# {why}\n{text}"
            )
        }
        (None, None) => written(kernel, shared_bytes, &usual),
    }
}

/// The names of parameters in the source, by the kernel's.
fn fields(kernel: &Kernel, original: &Original) -> BTreeMap<String, String> {
    // Where names were given, the module's own stand in their place.
    let has_names = !original.facts.names.is_empty();
    let is_own = |field: &str| kernel.params.iter().any(|param| param.name == field);
    let named = kernel.params.iter().zip(&original.fields);
    let named = named.filter_map(|(param, field)| Some((param.name.clone(), field.clone()?)));
    let is_known = |field: &String| !is_own(field) && (!has_names || is_member(field));
    named.filter(|(_, field)| is_known(field)).collect()
}

/// The largest work-group that an entry is compiled for, which is mostly the one that it is launched with.
fn largest_group(original: &Original) -> Option<String> {
    let header = original.text.get(original.start..original.body.start)?;
    let behind = header.split(".maxntid").nth(1)?;
    let extents = behind.lines().next()?.split(',');
    let extents: Vec<u32> = extents
        .map(|extent| extent.trim().parse().ok())
        .collect::<Option<_>>()?;
    match extents[..] {
        [x] | [x, 1] | [x, 1, 1] => Some(x.to_string()),
        _ => Some(format!("{extents:?}")),
    }
}

/// Work-groups to try beside the usual ones, as a launch file says them.
fn other_groups(kernel: &Kernel, original: Option<&Original>) -> Vec<String> {
    let largest = original.and_then(largest_group);
    let largest = largest.as_deref().map(str::parse::<u32>);
    let mut is_plane = false;
    kernel
        .body
        .walk(&mut |op| is_plane |= matches!(op.kind, OpKind::Id(Id::Local(1))));
    match (kernel.group_size, largest) {
        (Some(_), _) | (_, Some(Err(_))) => Vec::new(),
        // Launch bounds are a number of work-items, in one dimension.
        (None, Some(Ok(items))) if is_plane && items > 32 && items.is_multiple_of(32) => {
            vec![format!("[32, {}]", items / 32), format!("[{}, 32]", items / 32)]
        }
        (None, Some(Ok(_))) => Vec::new(),
        (None, None) => {
            let planes: &[&str] = if is_plane {
                &["[32, 8]", "[16, 16]", "[32, 4]", "[8, 8]"]
            } else {
                &[]
            };
            let lines = &["256", "32", "512", "64", "1024"];
            planes
                .iter()
                .chain(lines)
                .map(|&group| group.to_owned())
                .collect()
        }
    }
}

/// Numbers to try, the usual ones first.
fn choices(kernel: &Kernel, usual: &Values) -> Vec<Values> {
    let with = |number, below, permutation, groups: Option<u64>| Values {
        length: if groups.is_some() {
            FEW_ELEMENTS
        } else {
            usual.length
        },
        number,
        below,
        permutation,
        groups,
        ..usual.clone()
    };
    // Where each element has a work-item of its own, as many elements as the buffers have leave none without work.
    let all = Values {
        number: usual.length,
        ..usual.clone()
    };
    let mut choices = vec![
        usual.clone(),
        with(1024, Some(1024), false, None),
        with(1024, None, true, Some(4)),
        with(64, Some(64), false, Some(4)),
        with(16, None, true, Some(1)),
        with(8, Some(8), false, Some(1)),
        with(1, Some(1), false, Some(1)),
    ];
    let unusual: Vec<Values> = choices[1..4].to_vec();
    if !has_loop(kernel) {
        choices.insert(0, all);
    }
    let scalars = |wanted: fn(Type) -> bool| {
        let params = kernel.params.iter();
        let wanted = params.filter(move |param| param.facts.is_none() && wanted(kernel.ty(param.value)));
        wanted.map(|param| param.name.clone()).take(MOST_SCALARS)
    };
    // A flag that is not set, a pointer in a structure that leads nowhere.
    if scalars(|ty| ty == Type::I8).next().is_some() {
        choices.extend(unusual.iter().map(|values| Values {
            byte: Some(0),
            ..values.clone()
        }));
    }
    // One of the numbers is where the work begins.
    for name in scalars(|ty| ty.is_integer() && ty != Type::I8) {
        choices.extend(unusual.iter().skip(1).map(|values| Values {
            numbers: BTreeMap::from([(name.clone(), 0)]),
            ..values.clone()
        }));
    }
    choices
}

/// Gives a buffer the length that an access asks for. Says whether that is all that there is to do.
fn mend(kernel: &Kernel, values: &mut Values, error: &Error) -> bool {
    let Some(Violation::OutOfBounds { element, .. }) = error.cause() else {
        return false;
    };
    let (Element::Index(name, element) | Element::Byte(name, element)) = element else {
        return false;
    };
    let param = kernel.params.iter().find(|param| param.name == *name);
    let Some(facts) = param.and_then(|param| param.facts) else {
        return false;
    };
    let is_told = facts
        .length
        .is_some_and(|length| kernel.as_constant(length).is_some());
    let Some(length) = u64::try_from(*element)
        .ok()
        .and_then(|element| (element + 1).checked_next_power_of_two())
    else {
        return false;
    };
    let bytes = length.saturating_mul(u64::from(facts.element.bytes().max(1)));
    let grows = values.lengths.get(name).is_none_or(|&known| known < length);
    if is_told || bytes > MOST_BYTES || !grows {
        return false;
    }
    values.lengths.insert(name.to_owned(), length);
    true
}

/// What templates are tried with.
struct Trial<'a> {
    kernel: &'a Arc<Kernel>,
    original: Option<&'a Arc<Original>>,
    compiled: CompiledKernel,
    device: &'a Description,
}

impl Trial<'_> {
    /// Runs the first and the last work-group of a template's launch.
    fn run(&self, text: &str) -> Result<Outcome> {
        let launch = LaunchFile::parse(text, "template")?;
        let workload = launch.workload_in(self.kernel, self.original)?;
        let simulator = Simulator::custom(self.device.clone(), Options::CHECKING, None);
        let bound = workload.bind(&simulator)?;
        let mut prepared = bound.prepare(&simulator)?;
        prepared.launch.operation_limit = Some(LONGEST);
        prepared.launch.check(self.kernel, simulator.description())?;
        let size = prepared
            .launch
            .sub_group_size(self.kernel, simulator.description());
        let all = prepared.launch.group_count();
        let groups = match self.compiled.may_wait_for_others() {
            true => Groups::All,
            false => Groups::Some(if all > 1 { vec![0, all - 1] } else { vec![0] }),
        };
        self.compiled
            .run(&prepared.launch, size, Options::CHECKING, &groups)?;
        let untouched = bound.prepare(&simulator)?;
        let mut changed = false;
        for (after, before) in prepared.outputs.iter().zip(&untouched.outputs) {
            let after = after.buffer.implementation::<BufferMemory>()?;
            let before = before.buffer.implementation::<BufferMemory>()?;
            changed |= !after.is_same(&before);
        }
        Ok(if changed || prepared.outputs.is_empty() {
            Outcome::Works
        } else {
            Outcome::Idle
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    fn fitted(text: &str) -> String {
        let kernel = Arc::new(parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}")));
        let simulator = Simulator::new("h200").expect("a model");
        fitted_launch_template(&kernel, None, None, simulator.description())
    }

    #[test]
    fn a_kernel_gets_the_work_group_that_fills_its_memory() {
        let template = fitted(
            "hsir 1\nkernel @k(%out: ptr.global i32[] align 4) {\nload @x\nshared @tile: i32[256] align 4\n%i = id.local.x\n\
             %wide = extend.u %i to i64\n%tile = array @tile\n%mine = address %tile + %wide * 4\nstore %mine, %i\nbarrier\n\
             %back = sub 255:i64, %wide\n%its = address %tile + %back * 4\n%x = load i32 %its, @x\n\
             %at = address %out + %wide * 4\nstore %at, %x\nreturn\n}\n",
        );
        assert!(
            template.contains("ran this launch: it ends, stays in its memory, and writes"),
            "{template}"
        );
        assert!(template.contains("\ngroup = 256 "), "{template}");
    }

    #[test]
    fn numbers_cover_the_grid_where_nothing_is_done_in_a_loop() {
        let template = fitted(
            "hsir 1\nkernel @k(%out: ptr.global i32[] align 4, %n: i32) {\n%group = id.group.x\n%size = id.group_size.x\n\
             %i = id.local.x\n%first = mul %group, %size\n%at = add %first, %i\n%is = lt.s %at, %n\nif %is {\n\
             %wide = extend.u %at to i64\n%to = address %out + %wide * 4\nstore %to, %n\nyield\n} else { yield }\nreturn\n}\n",
        );
        assert!(template.contains("\ngroups = 8192 "), "{template}");
        assert!(
            template.contains("a scalar `i32`\nvalue = 1048576\n"),
            "{template}"
        );
    }

    #[test]
    fn work_may_have_to_begin_at_zero() {
        let template = fitted(
            "hsir 1\nkernel @k(%out: ptr.global i32[] align 4, %n: i32, %first: i32) {\n%set = ne %first, 0:i32\n\
             if %set { trap } else { yield }\n%i = id.local.x\n%j = extend.u %i to i64\n\
             %at = address %out + %j * 4\nstore %at, %n\nreturn\n}\n",
        );
        assert!(
            template.contains("ran this launch: it ends, stays in its memory, and writes"),
            "{template}"
        );
        let first = "[parameters.\"first\"]        # a scalar `i32`\nvalue = 0\n";
        assert!(template.contains(first), "{template}");
        assert!(template.matches("value = 0\n").count() == 1, "{template}");
    }

    #[test]
    fn flags_may_have_to_be_unset() {
        let template = fitted(
            "hsir 1\nkernel @k(%out: ptr.global i32[] align 4, %flag: i8, %n: i32) {\n%wide = extend.u %flag to i32\n\
             %set = ne %wide, 0:i32\nif %set { trap } else { yield }\n%i = id.local.x\n%j = extend.u %i to i64\n\
             %at = address %out + %j * 4\nstore %at, %n\nreturn\n}\n",
        );
        assert!(
            template.contains("ran this launch: it ends, stays in its memory, and writes"),
            "{template}"
        );
        assert!(template.contains("a scalar `i8`\nvalue = 0\n"), "{template}");
    }
}
