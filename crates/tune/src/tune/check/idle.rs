//! Launches that do nothing: their loops never run, or no output changes.
//!
//! A new launch file often has counts of zero, a null pointer, or indices that lead nowhere. Then the time of an empty launch
//! is measured, and a verdict about it is meaningless for the kernel.

use std::sync::Arc;

use crate::device::Device;
use crate::device::sim::functional::{BufferMemory, CompiledKernel, Groups, Options};
use crate::ir::Kernel;
use crate::tune::subject::workload::{Bound, Output};

/// How many work-groups are looked at.
const GROUPS: u64 = 8;
/// Operations of a sub-group after which a launch is left alone.
const LONGEST: u64 = 1 << 20;

/// The notes on a meaningless launch, a sentence each. None if it cannot be determined: a work-group faults, or waits for
/// others.
pub(in crate::tune) fn warnings(
    bound: &Bound,
    device: &dyn Device,
    kernel: &Arc<Kernel>,
    options: Options,
) -> Vec<String> {
    told(bound, device, kernel, options).unwrap_or_default()
}

fn told(bound: &Bound, device: &dyn Device, kernel: &Arc<Kernel>, options: Options) -> Option<Vec<String>> {
    let compiled = CompiledKernel::new(Arc::clone(kernel));
    if compiled.may_wait_for_others() {
        return None;
    }
    let mut prepared = bound.prepare(device).ok()?;
    prepared.launch.operation_limit = Some(LONGEST);
    prepared.launch.check(kernel, device.description()).ok()?;
    let memory = |output: &Output| output.buffer.implementation::<BufferMemory>().ok();
    let before: Option<Vec<BufferMemory>> = prepared
        .outputs
        .iter()
        .map(|output| memory(output).map(|memory| memory.snapshot()))
        .collect();
    let before = before?;

    let all = prepared.launch.group_count();
    let chosen: Vec<u64> = match all {
        ..=GROUPS => (0..all).collect(),
        _ => (0..GROUPS)
            .map(|number| number * (all - 1) / (GROUPS - 1))
            .collect(),
    };
    let (sites, size) = (
        compiled.sites(),
        prepared.launch.sub_group_size(kernel, device.description()),
    );
    let groups = Groups::Some(chosen.clone());
    let (ran, covered) = compiled.run_covering(&sites, &prepared.launch, size, options, &groups);
    ran.ok()?;

    let which = match all {
        ..=GROUPS => String::new(),
        _ => format!(" in {} of {all} work-groups that were looked at", chosen.len()),
    };
    let mut warnings = Vec::new();
    let reading = sites.loops.iter().zip(&covered.trips);
    let mut reading = reading.filter(|(site, _)| !site.loads.is_empty()).peekable();
    if reading.peek().is_some() && reading.all(|(_, trips)| trips.0.iter().all(|&count| count == 0)) {
        warnings.push(format!(
            "No loop with loads ran a single iteration{which}: the report is about an empty launch. Check the scalars and buffer contents that bound the loops."
        ));
    }
    let after = prepared.outputs.iter().zip(&before);
    let mut unchanged =
        after.map(|(output, before)| memory(output).is_some_and(|after| after.is_same(before)));
    if !before.is_empty() && unchanged.all(|is_same| is_same) {
        warnings.push(format!(
            "The launch left every output as it was{which}: a plan that computes nothing would pass for right. Do the \
             geometry, the scalars and the pointers let the kernel write?"
        ));
    }
    Some(warnings)
}
