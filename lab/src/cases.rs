//! The cases of `headstart-lab bench`: a kernel, its settings, and the plans to try.

use headstart::device::CacheState;

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// A kernel of the gallery.
    pub kernel: &'static str,
    /// Its settings, as `--set` takes them.
    pub settings: &'static [&'static str],
    /// The plans, besides none.
    pub plans: Vec<String>,
    /// The state of the L2 cache before each launch.
    pub cache: CacheState,
}

/// The distances of NVIDIA's article.
const ARTICLE_DISTANCES: [u32; 5] = [2, 4, 6, 8, 12];

/// Every case.
pub fn all() -> Vec<Case> {
    let case = |name, kernel, settings, plans| Case {
        name,
        kernel,
        settings,
        plans,
        cache: CacheState::Kept,
    };
    vec![
        case(
            "article",
            "article",
            &[],
            [article_strategies(), groups_of("arr")].concat(),
        ),
        case(
            "article, more work-groups",
            "article",
            &["groups=2112", "elements=25000"],
            few("arr"),
        ),
        case(
            "gather",
            "gather",
            &[],
            [gather_strategies(), groups_of("values")].concat(),
        ),
        case(
            "gather, more work",
            "gather",
            &["work=64"],
            [few("values"), groups_of_few("values")].concat(),
        ),
        case(
            "gather, full occupancy",
            "gather",
            &["groups=1056", "group=256", "items=512"],
            [few("values"), hints("values")].concat(),
        ),
        case(
            "gather, more work-groups",
            "gather",
            &["groups=528", "group=256", "items=128"],
            few("values"),
        ),
        Case {
            cache: CacheState::Flushed,
            ..case("latency", "latency", &[], latency_hints())
        },
        case("latency, no load", "latency", &["stride=0"], Vec::new()),
    ]
}

fn article_strategies() -> Vec<String> {
    let mut plans = Vec::new();
    for distance in ARTICLE_DISTANCES {
        plans.push(format!("unroll:{distance}"));
        plans.push(format!("arr=batched-registers:{distance}"));
        plans.push(format!("arr=rolling-registers:{distance}"));
        for strategy in ["batched-shared", "rolling-shared", "rolling-async"] {
            for layout in ["plain", "padded", "interleaved"] {
                plans.push(format!("arr={strategy}:{distance}/{layout}"));
            }
        }
    }
    plans
}

fn gather_strategies() -> Vec<String> {
    let mut plans: Vec<String> = [4, 8, 16].map(|by| format!("unroll:{by}")).into();
    for distance in [1, 2, 4, 8, 16] {
        plans.push(format!("values=rolling-async:{distance}/interleaved"));
        plans.push(format!("values=rolling-registers:{distance}"));
        plans.push(format!("indices=cache:L1:{distance}"));
        plans.push(format!("indices=cache:L2:{distance}"));
    }
    for distance in [2, 4, 8, 16] {
        plans.push(format!("values=batched-registers:{distance}"));
    }
    [plans, hints("values")].concat()
}

/// Hints one step ahead, nontemporal ones included.
fn latency_hints() -> Vec<String> {
    let hints = ["L1:1", "L1:2", "L2:1", "L2:2", "L1:2/nt", "L2:2/nt"];
    hints.map(|hint| format!("table=cache:{hint}")).into()
}

fn hints(load: &str) -> Vec<String> {
    let levels = ["L1", "L2"];
    let distances = [1, 2, 4, 8, 16];
    levels
        .iter()
        .flat_map(|level| distances.map(|distance| format!("{load}=cache:{level}:{distance}")))
        .collect()
}

/// Groups of iterations over rings: the fastest plans if cores have too few warps.
fn groups_of(load: &str) -> Vec<String> {
    let mut plans = Vec::new();
    for by in [2_u32, 4, 8, 16, 32] {
        plans.push(format!("unroll:{by},{load}=rolling-registers:{by}"));
        for groups in [1, 2, 3, 4, 8] {
            if by * groups <= 64 {
                plans.push(format!("unroll:{by},{load}=rolling-async:{}", by * groups));
            }
        }
    }
    plans
}

fn groups_of_few(load: &str) -> Vec<String> {
    let mut plans = Vec::new();
    for by in [2_u32, 4, 8] {
        plans.push(format!("unroll:{by},{load}=rolling-registers:{by}"));
        for groups in [2, 4] {
            plans.push(format!("unroll:{by},{load}=rolling-async:{}", by * groups));
        }
    }
    plans
}

fn few(load: &str) -> Vec<String> {
    let plans = [
        "unroll:2",
        "unroll:4",
        "LOAD=rolling-registers:1",
        "LOAD=rolling-registers:4",
        "LOAD=batched-registers:4",
        "LOAD=rolling-async:2/interleaved",
        "LOAD=rolling-async:4/interleaved",
        "LOAD=rolling-async:8/interleaved",
        "unroll:2,LOAD=rolling-registers:2",
        "unroll:4,LOAD=rolling-registers:4",
        "unroll:2,LOAD=rolling-async:8",
        "unroll:4,LOAD=rolling-async:16",
        "LOAD=cache:L1:4",
        "LOAD=cache:L2:4",
    ];
    plans.iter().map(|plan| plan.replace("LOAD", load)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart::prefetch::Plan;

    #[test]
    fn every_plan_is_one_and_every_case_has_its_kernel() {
        for case in all() {
            headstart_gallery::kernels::find(case.kernel).expect("in the gallery");
            for plan in &case.plans {
                plan.parse::<Plan>()
                    .unwrap_or_else(|error| panic!("{plan}: {error}"));
            }
        }
    }
}
