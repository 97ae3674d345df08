//! A lower bound of a loop's time on a device.
//!
//! A call is copied in, launched, computed and copied out, without overlap. Where a model does not know what a launch costs, it costs
//! nothing at least and `core.slowest-launch` at most; a loop whose answer depends on it is not decided. The computation takes the longest of three times:
//! its bytes at the bandwidth that its work-items can sustain (Little's law: one eight-byte load in flight per resident
//! work-item), its operations on the cores that its work-items fill, and one load's latency.

use serde::Serialize;

use super::loops::HostLoop;
use crate::model::{CopyDirection, DeviceModel};

/// Whether a loop is worth the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Worth {
    /// Also where its data are copied at every call.
    Yes,
    /// Where its data stay on the device between calls, and with those of other loops.
    IfDataStay,
    /// Not at all.
    No,
    /// It depends on the cost of a launch, which is not modelled.
    NotDecided,
}

/// The limiting part on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Copies between host and device.
    Copies,
    /// Launches.
    Launches,
    /// Bytes of device memory.
    Memory,
    /// Arithmetic.
    Arithmetic,
    /// Too few work-items for the device: its latency.
    Latency,
}

/// A loop on the device, all calls together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopEstimate {
    /// Its name.
    pub name: String,
    /// On the host, in nanoseconds.
    pub(crate) host_ns: f64,
    /// Copies, in nanoseconds.
    pub(crate) copies_ns: f64,
    /// Launches, in nanoseconds, at least.
    pub(crate) launches_ns: f64,
    /// Launches, in nanoseconds, at most: the same where the model knows what one costs.
    pub(crate) launches_at_most_ns: f64,
    /// The loop itself, in nanoseconds, at least.
    pub(crate) kernel_ns: f64,
    /// The limiting part.
    pub limit: Limit,
    /// Host over device, where data are copied at every call; at most.
    pub speedup: f64,
    /// The same where they stay.
    pub(crate) speedup_if_data_stay: f64,
    /// The answer.
    pub(crate) worth: Worth,
}

/// The loops of a program, those that gain most first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offload {
    /// The device.
    pub device: String,
    /// The loops.
    pub loops: Vec<LoopEstimate>,
    /// The program on the host, in nanoseconds.
    pub(crate) program_ns: f64,
    /// How many times as fast it is at most, with the loops on the device that are worth it with their copies.
    pub speedup: f64,
    /// The same where data stay on the device.
    pub(crate) speedup_if_data_stay: f64,
}

/// A loop is worth offloading from this factor on: the estimate omits losses of a real kernel.
const WORTH: f64 = 1.5;

/// Bytes that a work-item has on its way.
const LOAD: f64 = 8.0;

/// The estimated gain of a device for a program's loops. `program_seconds` is all of the program's time; without it, the loops
/// are assumed to be everything.
pub fn offload(model: &DeviceModel, loops: &[HostLoop], program_seconds: Option<f64>) -> Offload {
    let mut all: Vec<LoopEstimate> = loops.iter().map(|own| of_loop(model, own)).collect();
    let in_loops: f64 = all.iter().map(|own| own.host_ns).sum();
    let program_ns = program_seconds.map_or(in_loops, |seconds| (seconds * 1e9).max(in_loops));
    let with = |device_ns: &dyn Fn(&LoopEstimate) -> Option<f64>| {
        let saved: f64 = all
            .iter()
            .filter_map(|own| Some(own.host_ns - device_ns(own)?))
            .sum();
        match program_ns > saved {
            true => program_ns / (program_ns - saved),
            false => 1.0,
        }
    };
    let speedup =
        with(&|own| (own.worth == Worth::Yes).then_some(own.copies_ns + own.launches_ns + own.kernel_ns));
    let speedup_if_data_stay = with(&|own| {
        matches!(own.worth, Worth::Yes | Worth::IfDataStay).then_some(own.launches_ns + own.kernel_ns)
    });
    let gain = |own: &LoopEstimate| own.host_ns * (1.0 - 1.0 / own.speedup_if_data_stay.max(1.0));
    all.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
    Offload {
        device: model.title.clone(),
        loops: all,
        program_ns,
        speedup,
        speedup_if_data_stay,
    }
}

fn of_loop(model: &DeviceModel, own: &HostLoop) -> LoopEstimate {
    let copy = |bytes: f64, way| match bytes > 0.0 {
        true => model.copy_ns(bytes as u64, way),
        false => 0.0,
    };
    let copies_ns =
        own.calls * (copy(own.bytes_in, CopyDirection::In) + copy(own.bytes_out, CopyDirection::Out));
    let launches = |each: u32| own.calls * model.nanoseconds(f64::from(each));
    let launches_ns = launches(*model.core.launch);
    let launches_at_most_ns = match *model.core.launch {
        0 => launches(*model.core.slowest_launch),
        _ => launches_ns,
    };
    let (kernel_ns, of_kernel) = kernel(model, own);
    let kernel_ns = own.calls * kernel_ns;
    let parts = [
        (Limit::Copies, copies_ns),
        (Limit::Launches, launches_ns),
        (of_kernel, kernel_ns),
    ];
    let longest = parts.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
    let host_ns = own.seconds * 1e9;
    let over = |device_ns: f64| if device_ns > 0.0 { host_ns / device_ns } else { 0.0 };
    let speedups = |launches_ns: f64| {
        (
            over(copies_ns + launches_ns + kernel_ns),
            over(launches_ns + kernel_ns),
        )
    };
    let worth = |(speedup, stays): (f64, f64)| match () {
        () if speedup >= WORTH => Worth::Yes,
        () if stays >= WORTH => Worth::IfDataStay,
        () => Worth::No,
    };
    let (speedup, stays) = speedups(launches_ns);
    let (best, worst) = (worth((speedup, stays)), worth(speedups(launches_at_most_ns)));
    LoopEstimate {
        name: own.name.clone(),
        host_ns,
        copies_ns,
        launches_ns,
        launches_at_most_ns,
        kernel_ns,
        limit: longest.map_or(of_kernel, |(limit, _)| *limit),
        speedup,
        speedup_if_data_stay: stays,
        worth: match best == worst {
            true => best,
            false => Worth::NotDecided,
        },
    }
}

/// The least time of a call, and its limit.
fn kernel(model: &DeviceModel, own: &HostLoop) -> (f64, Limit) {
    let core = &model.core;
    let cores = f64::from(*core.count);
    let resident = cores * f64::from(*core.sub_groups) * f64::from(*core.sub_group_size);
    // A profile without iterations: assume that the device is full.
    let items = if own.iterations > 0.0 {
        own.iterations
    } else {
        resident
    };
    let latency = model.nanoseconds(f64::from(*model.dram.latency));
    let at_once = items.min(resident);
    let bandwidth = (*model.dram.bandwidth).min(at_once * LOAD / latency);
    let memory = own.bytes / bandwidth;
    // Cores that have work at all, as full as a work-group of four sub-groups makes them.
    let busy = (items / f64::from(4 * *core.sub_group_size))
        .ceil()
        .clamp(1.0, cores);
    let clock = *core.clock / 1000.0;
    let rate = |lanes: f64| lanes * busy * clock;
    let arithmetic =
        own.flops / rate(*model.instructions.fp32.rate) + own.flops_64 / rate(*model.instructions.fp64.rate);
    let least = if own.bytes > 0.0 { latency } else { 0.0 };
    let is_starved = bandwidth < *model.dram.bandwidth;
    match () {
        () if arithmetic >= memory && arithmetic >= least => (arithmetic, Limit::Arithmetic),
        () if memory >= least && !is_starved => (memory, Limit::Memory),
        () => (memory.max(least), Limit::Latency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::built_in;

    fn of(own: HostLoop) -> LoopEstimate {
        let model = built_in("h200", &[]).expect("built in");
        let found = offload(&model, &[own], None);
        found.loops.into_iter().next().expect("one")
    }

    /// A gigabyte read once on the host in a tenth of a second: the link alone takes 18 ms each way, memory a quarter of one.
    fn streamed() -> HostLoop {
        HostLoop {
            name: "stream".into(),
            seconds: 0.1,
            calls: 1.0,
            iterations: 1e8,
            bytes_in: 1e9,
            bytes_out: 0.0,
            bytes: 1e9,
            flops: 1e8,
            flops_64: 0.0,
        }
    }

    #[test]
    fn a_stream_is_bound_by_the_link_and_worth_it_where_its_data_stay() {
        let once = of(streamed());
        assert_eq!((once.limit, once.worth), (Limit::Copies, Worth::Yes));
        assert!((5.0..6.0).contains(&once.speedup), "{once:?}");
        assert!((0.2e6..0.3e6).contains(&once.kernel_ns), "{once:?}");
        let faster_host = of(HostLoop {
            seconds: 0.02,
            ..streamed()
        });
        assert_eq!(faster_host.worth, Worth::IfDataStay, "{faster_host:?}");
        assert!(faster_host.speedup_if_data_stay > 50.0);
    }

    #[test]
    fn small_calls_are_bound_by_launches_and_few_items_by_latency() {
        let small = of(HostLoop {
            seconds: 1e-6 * 1e4,
            calls: 1e4,
            iterations: 1e4,
            bytes_in: 0.0,
            bytes: 8e4,
            flops: 0.0,
            ..streamed()
        });
        assert_eq!(
            (small.limit, small.worth),
            (Limit::Launches, Worth::No),
            "{small:?}"
        );
        let few = of(HostLoop {
            seconds: 1e-3,
            iterations: 32.0,
            bytes_in: 0.0,
            bytes: 1e6,
            flops: 0.0,
            ..streamed()
        });
        assert_eq!((few.limit, few.worth), (Limit::Latency, Worth::No), "{few:?}");
    }

    /// 100,000 launches are not free because a model does not know what one costs.
    #[test]
    fn where_a_launch_is_not_modelled_what_depends_on_it_is_not_decided() {
        let loops = [
            HostLoop {
                name: "small".into(),
                seconds: 1.0,
                calls: 1e5,
                iterations: 1e4,
                bytes_in: 0.0,
                bytes: 8e4,
                flops: 0.0,
                ..streamed()
            },
            streamed(),
            HostLoop {
                name: "slow anyway".into(),
                seconds: 1e-6,
                ..streamed()
            },
        ];
        let of = |changes: &[String]| {
            let model = built_in("pvc-1550", changes).expect("built in");
            let found = offload(&model, &loops, None);
            let worth = |name: &str| {
                found
                    .loops
                    .iter()
                    .find(|own| own.name == name)
                    .map(|own| own.worth)
            };
            (
                worth("small"),
                worth("stream"),
                worth("slow anyway"),
                found.speedup,
            )
        };
        let (small, stream, slow, speedup) = of(&[]);
        assert_eq!(small, Some(Worth::NotDecided));
        assert_eq!(
            (stream, slow),
            (Some(Worth::Yes), Some(Worth::No)),
            "the cost of a launch does not matter"
        );
        assert!(speedup < 1.2, "what is not decided gains nothing: {speedup}");
        // A user who has measured a launch gets an answer.
        assert_eq!(of(&["core.launch=1000".into()]).0, Some(Worth::Yes));
        assert_eq!(of(&["core.launch=16000".into()]).0, Some(Worth::No));
    }

    #[test]
    fn the_rest_of_the_program_is_not_faster() {
        let model = built_in("h200", &[]).expect("built in");
        let all = offload(&model, &[streamed()], Some(0.2));
        // Amdahl: half of it stays.
        assert!(all.speedup < 2.0 && all.speedup > 1.6, "{all:?}");
        assert!(all.speedup_if_data_stay > all.speedup && all.speedup_if_data_stay < 2.0);
    }
}
