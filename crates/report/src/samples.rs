//! Sample evidence and reports for tests, also of other crates.

use headstart_model::occupancy::Occupancy;

use crate::evidence::Evidence;
use crate::report::*;

/// The gather kernel with one work-group of 128 on each core of an H200, measured by hand at 1.273 ms.
pub fn starved() -> Evidence {
    Evidence {
        cores: 132,
        places: 64,
        groups: 132,
        group: 128,
        fits: Some(Occupancy {
            groups_per_core: 16,
            sub_groups_per_group: 4,
            sub_groups_per_core: 64,
            occupancy: 1.0,
            limits: Vec::new(),
            registers_per_group: 0,
            shared_per_group: 0,
        }),
        achieved: None,
        time_ns: 1_273_000.0,
        launch_ns: None,
        starts_ns: None,
        cache: None,
        memory_bytes: Some(132.0 * 128.0 * 1024.0 * 36.0),
        bandwidth: Some(4540.0),
        bandwidth_counted: None,
        scattered_bandwidth: Some(2690.0),
        latency_ns: Some(324.0),
        saturating_bytes: None,
        bytes_in_flight: None,
        waiting_for_loads: Some(0.83),
        issued: Some(0.05),
    }
}

/// A report with every kind of trial, in the shape of the `gather` kernel's.
pub fn sample() -> Report {
    let ok = |plan: &str, time_ns: f64| Trial {
        takes: None,
        between: None,
        plan: plan.parse().expect("a plan"),
        outcome: Outcome::Ok {
            time_ns,
            speedup: 1_273_000.0 / time_ns,
            outputs: Outputs::Identical,
        },
    };
    let mut trials = vec![ok("none", 1_273_000.0)];
    for (distance, interleaved, plain, hint) in [
        (1, 729e3, 729e3, 886e3),
        (2, 539e3, 560e3, 902e3),
        (4, 535e3, 600e3, 945e3),
        (8, 537e3, 820e3, 1185e3),
    ] {
        trials.push(ok(
            &format!("values=rolling-async:{distance}/interleaved,indices=rolling-registers:5"),
            interleaved,
        ));
        trials.push(ok(
            &format!("values=rolling-async:{distance}/plain,indices=rolling-registers:5"),
            plain,
        ));
        trials.push(ok(&format!("values=cache:L2:{distance}"), hint));
        trials.push(ok(
            &format!("unroll:{},values=rolling-async:16", 2 * distance),
            420e3 + 10e3 * f64::from(distance),
        ));
    }
    trials.push(ok("unroll:4", 1_005_000.0));
    trials.push(ok("unroll:8", 958_000.0));
    trials.push(Trial {
        takes: None,
        between: None,
        plan: "unroll:64".parse().expect("a plan"),
        outcome: Outcome::Rejected {
            reason: "needs 300 registers <at most 255>".to_owned(),
        },
    });
    let best = trials
        .iter()
        .find(|trial| trial.measured().is_some_and(|(time, _)| time == 430e3))
        .expect("above");
    let best = Best {
        plan: best.plan.clone(),
        way: LaunchSettings::default(),
        time_ns: 430e3,
        speedup: 1_273_000.0 / 430e3,
        between: None,
    };
    Report {
        kernel: "gather".to_owned(),
        device: "sim:h200".to_owned(),
        baseline_ns: 1_273_000.0,
        trials,
        best,
        warnings: Vec::new(),
        is_in_module: false,
        verdict: Verdict::Prefetch,
        doubt: None,
        launch_ns: None,
        first: Vec::new(),
        reasons: vec!["4 warps a core are too few.".to_owned()],
        geometry: Some(Geometry {
            groups: 132,
            group: 128,
        }),
        parameters: vec![("items".to_owned(), "1024".to_owned())],
        plain_best_geometry: Some(PlainBest {
            geometry: Geometry {
                groups: 1056,
                group: 256,
            },
            parameters: vec![("items".to_owned(), "64".to_owned())],
            time_ns: 423_000.0,
            speedup: 3.01,
            between: None,
        }),
        best_elsewhere: Some(Elsewhere {
            geometry: Geometry {
                groups: 1056,
                group: 256,
            },
            parameters: vec![("items".to_owned(), "64".to_owned())],
            plan: "unroll:4".parse().expect("a plan"),
            time_ns: 410_000.0,
            speedup: 3.10,
            between: None,
            perturbed: None,
        }),
        ways: None,
        counters: vec![Counter {
            name: "bandwidth".to_owned(),
            unit: "GB/s".to_owned(),
            plain: 489.0,
            best: Some(1448.0),
        }],
        bounds: None,
        roofline: None,
        detail: None,
        perturbed: None,
        checked: None,
        notes: vec!["simulated".to_owned()],
        waits: Vec::new(),
        taken_for_granted: Vec::new(),
        unlocking: Vec::new(),
        partial: None,
    }
}
