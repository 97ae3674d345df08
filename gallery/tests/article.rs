//! NVIDIA's article in its own code shape: rolling through named registers that a `switch` over the counter picks, where Headstart's
//! own ring is unrolled or shifted. The article's figures show scalar rolling far below the plain kernel; its shape does that here.

use std::sync::Arc;

use headstart::device::model;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Bench, Compare, SimulatedBench, Workload};

/// The loop with D values on their way in registers; the register is picked by the counter modulo D, as in the article's `switch`.
/// The value that comes next is loaded first and then put into its register.
macro_rules! picked {
    ($name:ident, $distance:literal, $($slot:literal $register:ident),+) => {
        #[kernel(work_group = group)]
        fn $name(arr: &[f64], result: &mut [f64], elements: u32, #[constant] group: u32) {
            let start = group_id() * elements as usize;
            $(let mut $register = arr[start + local_id() + $slot * group as usize];)+
            let mut acc = 0.0;
            let mut ctr = 0u32;
            #[unroll(0)]
            for i in (local_id()..elements as usize).step_by(group as usize) {
                let ctr_mod = ctr % $distance;
                let mut x = 0.0;
                $(if ctr_mod == $slot { x = $register; })+
                if i + $distance * (group as usize) < elements as usize {
                    let next = arr[start + i + $distance * group as usize];
                    $(if ctr_mod == $slot { $register = next; })+
                }
                acc += (-x * x).exp() * x;
                ctr += 1;
            }
            result[global_id()] = acc;
        }
    };
}

/// The same, with the load inside each case of the `switch`.
macro_rules! in_each_case {
    ($name:ident, $distance:literal, $($slot:literal $register:ident),+) => {
        #[kernel(work_group = group)]
        fn $name(arr: &[f64], result: &mut [f64], elements: u32, #[constant] group: u32) {
            let start = group_id() * elements as usize;
            $(let mut $register = arr[start + local_id() + $slot * group as usize];)+
            let mut acc = 0.0;
            let mut ctr = 0u32;
            #[unroll(0)]
            for i in (local_id()..elements as usize).step_by(group as usize) {
                let ctr_mod = ctr % $distance;
                let mut x = 0.0;
                $(if ctr_mod == $slot {
                    x = $register;
                    if i + $distance * (group as usize) < elements as usize {
                        $register = arr[start + i + $distance * group as usize];
                    }
                })+
                acc += (-x * x).exp() * x;
                ctr += 1;
            }
            result[global_id()] = acc;
        }
    };
}

picked!(picked_2, 2, 0 a, 1 b);
picked!(picked_4, 4, 0 a, 1 b, 2 c, 3 d);
picked!(picked_8, 8, 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h);
picked!(picked_16, 16, 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 j, 9 k, 10 l, 11 m, 12 n, 13 o, 14 p, 15 q);
in_each_case!(cased_2, 2, 0 a, 1 b);
in_each_case!(cased_4, 4, 0 a, 1 b, 2 c, 3 d);
in_each_case!(cased_8, 8, 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h);
in_each_case!(cased_16, 16, 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 j, 9 k, 10 l, 11 m, 12 n, 13 o, 14 p, 15 q);

/// The loop as it is.
#[kernel(work_group = group)]
fn plain(arr: &[f64], result: &mut [f64], elements: u32, #[constant] group: u32) {
    let start = group_id() * elements as usize;
    let mut acc = 0.0;
    #[unroll(0)]
    for i in (local_id()..elements as usize).step_by(group as usize) {
        let x = arr[start + i];
        acc += (-x * x).exp() * x;
    }
    result[global_id()] = acc;
}

const GROUPS: u32 = 108;
const GROUP: u32 = 128;
const ELEMENTS: u64 = 51_200;

/// Time on the A100's model, and what the kernel computes.
fn timed(kernel: headstart::Result<headstart::ir::Kernel>, device: &str) -> (f64, Vec<Vec<u8>>) {
    let values = Arc::new(|i: u64| ((i * 2_654_435_761 % 1000) as f64 / 1000.0).to_bits());
    let workload = Workload::new(Arc::new(kernel.expect("a kernel")), GROUPS, GROUP)
        .with(
            "arr",
            ArgumentSpec::Input {
                element: Type::F64,
                length: u64::from(GROUPS) * ELEMENTS,
                fill: headstart::device::Fill::Pattern(headstart::device::Pattern::Function(values)),
            },
        )
        .and_then(|workload| {
            workload.with(
                "result",
                ArgumentSpec::Output {
                    element: Type::F64,
                    length: u64::from(GROUPS * GROUP),
                    fill: headstart::device::Fill::Uninitialized,
                    compare: Compare::Bits,
                },
            )
        })
        .and_then(|workload| workload.with("elements", ArgumentSpec::Scalar(Type::I32, ELEMENTS)))
        .expect("fits");
    let bench = SimulatedBench::new(model::find(device, &[]).expect("a model"));
    let bound = workload.bind(bench.device()).expect("fits");
    let kernel = headstart::tune::plain(&bench, &workload).expect("a kernel");
    let time = bench.time(&bound, &kernel).expect("a time").time_ns;
    (time, bound.run(bench.device(), &kernel).expect("runs").1)
}

/// In the article's figures scalar rolling falls to 60 % below the plain kernel. Here its shape loses, too, the more the further ahead,
/// though less: a register that the counter picks has to be found by 2 × D comparisons and moves in each iteration, and what was just
/// loaded is moved there, which waits for it. Headstart's own ring has neither, and gains.
#[test]
fn a_register_that_the_counter_picks_takes_the_gain_away() {
    let (base, right) = timed(plain::kernel(GROUP), "a100");
    let speedups = |name: &str, kernels: [headstart::Result<headstart::ir::Kernel>; 4]| -> Vec<f64> {
        let times = kernels.map(|kernel| {
            let (time, found) = timed(kernel, "a100");
            assert_eq!(found, right, "{name}");
            base / time
        });
        println!("{name}, distances 2, 4, 8, 16: {times:.2?}");
        times.to_vec()
    };
    let picked = speedups(
        "picked behind the load",
        [
            picked_2::kernel(GROUP),
            picked_4::kernel(GROUP),
            picked_8::kernel(GROUP),
            picked_16::kernel(GROUP),
        ],
    );
    let cased = speedups(
        "loaded in each case",
        [
            cased_2::kernel(GROUP),
            cased_4::kernel(GROUP),
            cased_8::kernel(GROUP),
            cased_16::kernel(GROUP),
        ],
    );
    for speedups in [picked, cased] {
        assert!(speedups.windows(2).all(|pair| pair[1] < pair[0]), "{speedups:?}");
        assert!(speedups[0] < 1.0 && speedups[3] < 0.8, "{speedups:?}");
    }
    // The same loop, the ring unrolled: 2.4 times at a distance of 4.
    let loads = headstart::prefetch::apply(
        &plain::kernel(GROUP).expect("a kernel"),
        &"arr=rolling-registers:4".parse().expect("a plan"),
        &headstart::prefetch::PlanTarget::default(),
    );
    let (ring, found) = timed(loads.map(|applied| applied.kernel), "a100");
    assert_eq!(found, right);
    assert!(base / ring > 2.0, "{}", base / ring);
}
