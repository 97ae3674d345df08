//! The gallery on a device whose sub-groups have 64 work-items: the H200's model but for that. The widths of sub-groups are
//! data, so that a device with other ones is a model, and no change of code.

use std::sync::Arc;

use headstart::device::model::{self, DeviceModel};
use headstart::device::{Fill, Pattern};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::report::Verdict;
use headstart::tune::check::compare;
use headstart::tune::{
    ArgumentSpec, Bench, Compare, SearchSettings, SimulatedBench, Subject, Workload, plain, search,
};
use headstart_gallery::kernels::{self, KERNELS};

/// The same registers and work-items of a core in sub-groups of twice the size.
fn wide() -> DeviceModel {
    let (text, _) = model::text("h200").expect("a model of ours");
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some(("name", _)) => "name = \"wide\"".to_owned(),
        Some(("sub-groups", _)) => line.replacen("value = 64", "value = 32", 1),
        Some(("sub-group-sizes", _)) => line.replacen("[32]", "[32, 64]", 1),
        Some(("sub-group-size", _)) => line.replacen("value = 32", "value = 64", 1),
        _ => line.to_owned(),
    });
    let text: Vec<String> = lines.collect();
    let model = model::parse(&text.join("\n"), "wide.toml", &[]).expect("a model");
    assert_eq!(*model.core.sub_group_size, 64);
    model
}

/// Each kernel leaves what it leaves with sub-groups of 32, or asks for these. Which work-items add up together may follow the
/// size: then the results are the same within the kernel's tolerance.
#[test]
fn the_gallery_computes_the_same() {
    let wide = SimulatedBench::new(wide());
    let narrow = SimulatedBench::new(model::built_in("h200", &[]).expect("a model of ours"));
    let mut ran = 0;
    for kernel in KERNELS {
        let chosen = kernel.with(&[], None).expect("defaults");
        let Some(workload) = chosen.small(9).expect("a small workload") else {
            continue;
        };
        let outputs = |bench: &SimulatedBench| {
            let kernel = plain(bench, &workload)?;
            let device = bench.device();
            Ok::<_, headstart::Error>(workload.bind(device)?.run(device, &kernel)?.1)
        };
        let [on_wide, on_narrow] = [&wide, &narrow].map(outputs);
        let right = on_narrow.unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        let found = on_wide.unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        compare(&workload, &right, &found).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        ran += 1;
    }
    assert!(ran > 20, "{ran} of {} kernels", KERNELS.len());
}

#[test]
fn plans_are_checked_timed_and_chosen() {
    let bench = SimulatedBench::new(wide());
    for (name, settings, expected) in [
        (
            "gather",
            ["items=24", "table=65536"].as_slice(),
            Verdict::Prefetch,
        ),
        ("article", &["elements=4096"], Verdict::Prefetch),
    ] {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let subject = kernels::find(name)
            .and_then(|kernel| kernel.with(&settings, None))
            .expect("a kernel");
        let report = search(&subject, &bench, &SearchSettings::default(), &())
            .expect("a report")
            .report;
        assert_eq!(report.verdict, expected, "{name}");
        let failed = report
            .trials
            .iter()
            .find(|trial| trial.reason().is_some_and(|reason| reason.contains("bug")));
        assert!(failed.is_none(), "{name}: {failed:?}");
    }
}

/// The sum of 64 values at once, where the kernel requires sub-groups of as many.
#[kernel(work_group = 128, sub_group = 64)]
fn add_up(values: &[u32], sums: &mut [u32], sizes: &mut [u32]) {
    let i = global_id();
    sums[i] = sub_group_reduce_add(values[i]);
    sizes[i] = max_sub_group_size() as u32;
}

#[test]
fn a_kernel_can_require_64() {
    let kernel = Arc::new(add_up::kernel().expect("a kernel"));
    let bench = SimulatedBench::new(wide());
    let device = bench.device();
    let words = |length| ArgumentSpec::output(Type::I32, length, Fill::Uninitialized, Compare::Bits);
    let numbers = ArgumentSpec::Input {
        element: Type::I32,
        length: 256,
        fill: Fill::Pattern(Pattern::Steps { first: 0, step: 1 }),
    };
    let workload = Workload::new(Arc::clone(&kernel), 2, 128)
        .with("values", numbers)
        .and_then(|workload| workload.with("sums", words(256)))
        .and_then(|workload| workload.with("sizes", words(256)))
        .expect("they fit");
    let bound = workload.bind(device).expect("it fits");
    let (_, outputs) = bound.run(device, &kernel).expect("it runs");
    let [found, sizes] = [0, 1].map(|index| -> Vec<u32> {
        let words = outputs[index].as_chunks().0.iter();
        words.copied().map(u32::from_le_bytes).collect()
    });
    let expected: Vec<u32> = (0..256).map(|i| (i / 64 * 64..i / 64 * 64 + 64).sum()).collect();
    assert_eq!(found, expected);
    assert_eq!(sizes, [64; 256]);
}
