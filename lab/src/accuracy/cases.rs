//! The fixed list of cases on which the simulator's answers are held against a GPU's.
//!
//! `gather` and `article` at eight geometries each, from a fraction of the cores busy to all of them full; three
//! workloads at four geometries each; every other workload once; the traces of Spatter, with few work-groups and with
//! many; and three launches whose work-groups do not divide evenly among a GPU's cores.

use headstart::ir::{CacheLevel, Kernel};
use headstart::prefetch::{self, Plan};
use headstart::tune::Subject;
use headstart::tune::search::main_loads;
use headstart::tune::space::{default_plans, likely_plans_of, without_shared_copies};
use headstart::{Error, Result};
use headstart_gallery::kernels::{self, Chosen};
use headstart_gallery::spatter::{Access, Trace};

use crate::workloads;

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// A kernel of the gallery.
    pub kernel: &'static str,
    /// Its settings, as `--set` takes them, apart by spaces.
    pub settings: &'static str,
    /// A shipped trace for its indices.
    pub trace: Option<&'static str>,
    /// Which plans are tried.
    pub space: Space,
}

/// Which plans are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// All that `headstart tune` tries.
    Default,
    /// Those that `headstart advise` tries, and some for short loops.
    Likely,
}

impl Case {
    /// Its name, as on a command line.
    pub fn name(&self) -> String {
        let trace = self.trace.map(|trace| format!("--trace {trace}"));
        let words = [Some(self.kernel), Some(self.settings), trace.as_deref()].map(Option::unwrap_or_default);
        words
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The kernel with its settings.
    ///
    /// # Errors
    /// It is not in the gallery, or a setting is wrong.
    pub fn chosen(&self) -> Result<Chosen> {
        let settings: Vec<String> = self.settings.split_whitespace().map(str::to_owned).collect();
        let kernel = kernels::find(self.kernel)?;
        let access = kernel.takes_trace.unwrap_or(Access::Gather);
        let trace = self
            .trace
            .map(|trace| Trace::open(trace)?.entry(access, None).cloned());
        kernel.with(&settings, trace.transpose()?)
    }

    /// The plans of the list that a search tries.
    ///
    /// # Errors
    /// As for [`Case::chosen`].
    pub fn searched(&self) -> Result<Vec<Plan>> {
        let plain = self.plain()?;
        Ok(without_shared_copies(&plain, self.plans(&plain)?))
    }

    /// The plans of a search that are likely to help.
    ///
    /// # Errors
    /// As for [`Case::chosen`].
    pub fn likely(&self) -> Result<Vec<Plan>> {
        likely_plans_of(&self.plain()?, &LEVELS)
    }

    /// The plain kernel.
    fn plain(&self) -> Result<Kernel> {
        // A kernel is the same at every size, and small data are made at once.
        let chosen = self.chosen()?;
        let small = chosen
            .small(8)?
            .ok_or_else(|| Error::bug("a kernel is never small"))?;
        let target = prefetch::PlanTarget::of(small.group);
        prefetch::carry_out_wishes(&small.kernel, &target)
    }

    /// The plans that are tried, none of them the plain kernel.
    ///
    /// # Errors
    /// There are more loads than a plan can name.
    pub fn plans(&self, plain: &Kernel) -> Result<Vec<Plan>> {
        match self.space {
            Space::Default => default_plans(&main_loads(plain), &LEVELS),
            Space::Likely => workloads::plans(plain),
        }
    }
}

/// The levels that NVIDIA's GPUs tell apart.
const LEVELS: [CacheLevel; 2] = [CacheLevel::L1, CacheLevel::L2];

/// From one sub-group a core on a quarter of the cores to as many as fit.
const GATHER: [&str; 8] = [
    "groups=33 group=128 items=1024",
    "groups=132 group=32 items=1024",
    "groups=132 group=128 items=1024",
    "groups=132 group=512 items=256",
    "groups=264 group=128 items=512",
    "groups=528 group=128 items=256",
    "groups=528 group=256 items=128",
    "groups=1056 group=256 items=128",
];

const ARTICLE: [&str; 8] = [
    "groups=33 group=128 elements=400000",
    "groups=132 group=32 elements=100000",
    "groups=132 group=128 elements=400000",
    "groups=132 group=512 elements=400000",
    "groups=264 group=128 elements=200000",
    "groups=528 group=128 elements=100000",
    "groups=528 group=256 elements=100000",
    "groups=2112 group=128 elements=25000",
];

/// Kernels at several geometries each.
const SHAPED: [(&str, [&str; 4]); 3] = [
    (
        "index-select",
        [
            "groups=132 group=128 items=256 bits=28",
            "groups=264 group=256 items=64 bits=28",
            "groups=1056 group=256 items=16 bits=28",
            "groups=8448 group=256 items=2 bits=28",
        ],
    ),
    (
        "embedding-bag",
        [
            "bags=256 bag=150 group=32",
            "bags=256 bag=150 group=128",
            "bags=2048 bag=150 group=64",
            "bags=16384 bag=20 group=128",
        ],
    ),
    (
        "spmv",
        [
            "matrix=random16 rows=1048576 lanes=4",
            "matrix=random16 rows=1048576 lanes=16",
            "matrix=banded rows=1048576 lanes=8",
            "matrix=random256 rows=65536 lanes=32",
        ],
    ),
];

/// The other workloads, once each.
const WORKLOADS: [(&str, &str); 16] = [
    ("gather-pointer", "groups=132 group=128 items=512"),
    ("spmv-blocks", "matrix=random16 rows=1048576 group=128"),
    ("scatter", "groups=1056 group=256 items=16 bits=28"),
    ("hash-probe", "groups=528 group=256 items=16 bits=27 load=50"),
    ("hash-probe", "groups=132 group=128 items=64 bits=27 load=50"),
    ("binary-search", "groups=528 group=256 items=8 levels=28"),
    ("btree", "groups=528 group=256 items=8 levels=7"),
    ("bfs", "scale=18 degree=16 steps=2 lanes=16"),
    ("pagerank", "scale=18 degree=16 lanes=8"),
    ("cross-section", "grid=2^18 groups=1024 group=64"),
    ("option-pricing", "steps=252 groups=132 group=128"),
    ("option-pricing", "steps=252 groups=1056 group=128"),
    ("attention", "sequences=4 tokens=8192 pool=2^13 group=128"),
    ("chase", "bits=28 steps=256 groups=132 group=128"),
    ("triad", "quads=2^24 items=4 group=256"),
    ("nbody", "bodies=2^14 group=256"),
];

/// Launches that were not used while the simulator was fitted. Of 132 cores some have a work-group more than others, and the
/// first one's reads of its table fit into L2, although the table does not.
const UNEVEN: [(&str, &str); 3] = [
    ("embedding-bag", "bags=700 bag=90 dim=64 rows=2^22 group=64"),
    ("hash-probe", "groups=300 group=192 items=48 bits=26 load=80"),
    ("gather", "groups=200 group=96 items=700 table=2^26 work=20"),
];

const TRACES: [&str; 4] = ["amg_gpu", "lulesh_gpu", "nekbone_gpu", "pennant_gpu"];

/// Every case, in the order that they are measured.
pub fn all() -> Vec<Case> {
    let case = |kernel, settings, trace, space| Case {
        kernel,
        settings,
        trace,
        space,
    };
    let mut cases = Vec::new();
    for (kernel, shapes) in [("gather", GATHER), ("article", ARTICLE)] {
        cases.extend(shapes.map(|shape| case(kernel, shape, None, Space::Default)));
    }
    for trace in TRACES {
        for shape in ["groups=132 group=128 items=256", "groups=1056 group=256 items=64"] {
            cases.push(case("gather", shape, Some(trace), Space::Likely));
        }
        let shape = "groups=1056 group=256 items=16";
        cases.push(case("index-select", shape, Some(trace), Space::Likely));
    }
    for (kernel, shapes) in SHAPED {
        cases.extend(shapes.map(|shape| case(kernel, shape, None, Space::Likely)));
    }
    for (kernel, settings) in WORKLOADS.into_iter().chain(UNEVEN) {
        cases.push(case(kernel, settings, None, Space::Likely));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_case_can_be_set_and_has_a_name_of_its_own() {
        let cases = all();
        let names: HashSet<String> = cases.iter().map(Case::name).collect();
        assert_eq!(names.len(), cases.len());
        for kernel in ["gather", "article"] {
            let geometries = cases
                .iter()
                .filter(|case| case.kernel == kernel && case.space == Space::Default);
            assert_eq!(geometries.count(), 8, "{kernel}");
        }
        for case in &cases {
            case.chosen()
                .unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        }
    }

    #[test]
    fn what_all_work_items_share_is_not_copied_by_each() {
        let named = |kernel: &str| {
            let case = all()
                .into_iter()
                .find(|case| case.kernel == kernel)
                .expect("in the list");
            let plans = case.searched().expect("plans");
            plans.iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        // Each step of a path has one volatility, and each path noise of its own.
        let plans = named("option-pricing");
        assert!(
            plans
                .iter()
                .any(|plan| plan.contains("volatilities=rolling-registers")),
            "{plans:?}"
        );
        assert!(
            !plans
                .iter()
                .any(|plan| plan.contains("volatilities=rolling-async")),
            "{plans:?}"
        );
        assert!(
            named("gather")
                .iter()
                .any(|plan| plan.contains("values=rolling-async"))
        );
    }
}
