//! The statements of five documents, and ours: three of Intel (its GPUs' memory system, prefetching, notes on optimizing for its
//! GPUs), SYCL's extension for prefetching, and NVIDIA's article on prefetching.

mod article;
mod atomics;
mod blocks;
mod controls;
mod copies;
mod extension;
mod hints;
mod latencies;
mod memory;
mod notes;
mod page;
mod prefetching;
mod spills;

use std::sync::Arc;

use headstart::device::CacheState;
use headstart::device::model::{self, DeviceModel};
use headstart::ir::Kernel;
use headstart::prefetch::{self, Plan, PlanTarget};
use headstart::tune::{Bench, SimulatedBench, Subject, Workload};
use headstart_gallery::{kernels, micro};

/// A model, some of whose numbers are changed.
fn model(name: &str, changes: &[&str]) -> DeviceModel {
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    model::find(name, &changes).expect("a model")
}

/// A kernel of the gallery with settings.
fn workload(name: &str, settings: &str) -> Workload {
    let settings: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
    let chosen = kernels::find(name).and_then(|kernel| kernel.with(&settings, None));
    chosen.expect("there").workload().expect("a workload")
}

/// The kernel as its author wished for it, under a plan.
fn planned(workload: &Workload, plan: &str, line: u32) -> Arc<Kernel> {
    let target = PlanTarget {
        group_size: Some(workload.group),
        line,
    };
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes can be carried out");
    let plan: Plan = plan.parse().expect("a plan");
    Arc::new(
        prefetch::apply(&plain, &plan, &target)
            .expect("it is legal")
            .kernel,
    )
}

/// Nanoseconds of a launch under a plan, with cold or warm caches.
fn time(model: &DeviceModel, name: &str, settings: &str, plan: &str, cache: CacheState) -> f64 {
    let workload = workload(name, settings);
    let line = u32::try_from(*model.l2.line).expect("a line");
    let kernel = planned(&workload, plan, line);
    let bench = SimulatedBench::new(model.clone()).with_cache(cache);
    let bound = workload.bind(bench.device()).expect("fits");
    bench.time(&bound, &kernel).expect("a time").time_ns
}

/// A microbenchmark's number on a model without its own instructions, as `headstart run` prints it.
fn net(name: &str, settings: &str, model: &DeviceModel) -> f64 {
    let settings: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
    let (micro, settings) = micro::with(name, &settings).expect("right settings");
    let model = Arc::new(model.clone());
    let own = micro.own_on_model(&settings, &model).expect("the model runs it");
    micro.on_model(&settings, &model).expect("the model runs it") - own.unwrap_or(0.0)
}
