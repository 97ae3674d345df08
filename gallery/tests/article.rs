//! NVIDIA's article in its own code shape: rolling through named registers that a `switch` over the counter picks, where Headstart's
//! own ring is unrolled or shifted. The article's figures show scalar rolling far below the plain kernel; its shape does that here.

use headstart::device::model;
use headstart::prefetch::{self, Plan, PlanTarget};
use headstart::tune::{Bench, SimulatedBench, Subject};
use headstart_gallery::kernels;

const SETTINGS: [&str; 3] = ["groups=108", "group=128", "elements=51200"];

/// Time on the A100's model under a plan, and what the kernel computes.
fn timed(name: &str, more: &[&str], plan: &str) -> (f64, Vec<Vec<u8>>) {
    let settings: Vec<String> = SETTINGS.iter().chain(more).map(ToString::to_string).collect();
    let chosen = kernels::find(name).and_then(|kernel| kernel.with(&settings, None));
    let workload = chosen.expect("there").workload().expect("a workload");
    let bench = SimulatedBench::new(model::find("a100", &[]).expect("a model"));
    let bound = workload.bind(bench.device()).expect("fits");
    let plain = headstart::tune::plain(&bench, &workload).expect("a kernel");
    let plan: Plan = plan.parse().expect("a plan");
    let kernel = prefetch::apply(&plain, &plan, &PlanTarget::default())
        .expect("it is legal")
        .kernel;
    let kernel = std::sync::Arc::new(kernel);
    let time = bench.time(&bound, &kernel).expect("a time").time_ns;
    (time, bound.run(bench.device(), &kernel).expect("runs").1)
}

/// In the article's figures scalar rolling falls to 60 % below the plain kernel. Here its shape loses, too, the more the further ahead,
/// though less: a register that the counter picks has to be found by 2 × D comparisons and moves in each iteration, and what was just
/// loaded is moved there, which waits for it. Headstart's own ring has neither, and gains.
#[test]
fn a_register_that_the_counter_picks_takes_the_gain_away() {
    let (base, right) = timed("article", &[], "none");
    for load in ["load=behind", "load=cases"] {
        let speedups = [2, 4, 8, 16].map(|distance| {
            let distance = format!("distance={distance}");
            let (time, found) = timed("article-picked", &[load, &distance], "none");
            assert_eq!(found, right, "{load} {distance}");
            base / time
        });
        println!("{load}, distances 2, 4, 8, 16: {speedups:.2?}");
        assert!(speedups.windows(2).all(|pair| pair[1] < pair[0]), "{speedups:?}");
        assert!(speedups[0] < 1.0 && speedups[3] < 0.8, "{speedups:?}");
    }
    // The same loop, the ring unrolled: 2.4 times at a distance of 4.
    let (ring, found) = timed("article", &[], "arr=rolling-registers:4");
    assert_eq!(found, right);
    assert!(base / ring > 2.0, "{}", base / ring);
}
