//! The gallery's kernels by name.

use headstart::suggest::{accepted, quoted};
use headstart::tune::{Reshaped, Subject, Workload};
use headstart::{Error, Result};

use crate::micro::MICRO;
use crate::settings::{Parameter, Settings};
use crate::spatter::{Access, Entry};
use crate::techniques::{
    article as article_ways, atomics, blocks, divergence, order, picked, reduction, shared_memory,
    sub_group_sizes, sub_groups,
};
use crate::workloads::{
    attention, bfs, binary_search, btree, chase, cross_section, embedding_bag, hash_probe, nbody,
    option_pricing, pagerank, select, spmv, triad,
};
use crate::{article, extension, gather, latency};

/// A kernel of the gallery.
#[derive(Debug)]
pub struct GalleryKernel {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description, in one line.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Which entries of a trace it takes its indices from, if any.
    pub takes_trace: Option<Access>,
    /// The parameter that determines the trip count of its loop, and the factor between them.
    pub(crate) iterations: Iterations,
    /// Its kernel and data for settings.
    pub(crate) workload: fn(&Settings, Option<&Entry>) -> Result<Workload>,
}

/// How the number of iterations of a kernel's loop follows from its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Iterations {
    /// It is this parameter.
    Are(&'static str),
    /// It is this parameter divided by the work-items of a work-group, rounded up for some of them.
    ShareOfGroup(&'static str),
    /// The kernel says it itself.
    Given {
        /// The settings at which a few work-groups go through this many iterations; some may go through fewer.
        small: fn(&Settings, u64) -> Settings,
        /// The same work in other geometries.
        shapes: fn(&Settings) -> Vec<Settings>,
    },
}

/// The settings with one parameter at each of these values but its own: the same work in other geometries.
pub(crate) fn others(settings: &Settings, name: &str, values: &[u64]) -> Vec<Settings> {
    let own = settings.get(name);
    let other = values.iter().filter(|&&value| value != own);
    other.map(|&value| settings.with(name, value)).collect()
}

/// The settings with another parameter at each of these values but its own, and as many work-groups as make the same product of
/// both, where it divides: as many work-items in work-groups of other sizes, or as many elements in other shares.
pub(crate) fn divided(settings: &Settings, name: &str, values: &[u64]) -> Vec<Settings> {
    let own = settings.get(name);
    let all = settings.get("groups") * own;
    let fitting = values
        .iter()
        .filter(|&&value| value != own && all > 0 && all.is_multiple_of(value));
    fitting
        .map(|&value| settings.with("groups", all / value).with(name, value))
        .collect()
}

/// Every kernel of the gallery but the [microbenchmarks](crate::micro).
pub static KERNELS: [&GalleryKernel; 61] = [
    &gather::PLAIN,
    &gather::POINTER,
    &gather::HINT_L3,
    &gather::HINT_L1,
    &gather::SAMPLE,
    &article::ARTICLE,
    &extension::EXAMPLES,
    &latency::LATENCY,
    &embedding_bag::KERNEL,
    &spmv::KERNEL,
    &spmv::BLOCKS,
    &select::SELECT,
    &select::SCATTER,
    &select::SCATTER_SHARED,
    &hash_probe::KERNEL,
    &binary_search::KERNEL,
    &btree::KERNEL,
    &bfs::KERNEL,
    &pagerank::KERNEL,
    &cross_section::KERNEL,
    &option_pricing::KERNEL,
    &attention::KERNEL,
    &chase::KERNEL,
    &triad::KERNEL,
    &nbody::KERNEL,
    &article_ways::SHORT,
    &article_ways::TOGETHER,
    &picked::PICKED,
    &reduction::ATOMIC,
    &reduction::CHUNKS,
    &reduction::VECTORS,
    &reduction::OCCUPANCY,
    &reduction::TREE,
    &reduction::STAGE,
    &reduction::BUILT_IN,
    &reduction::IN_SHARED,
    &reduction::BLOCKED,
    &reduction::SUB_GROUP_LOADS,
    &sub_groups::OWN,
    &sub_groups::SIDE,
    &sub_groups::BLOCK,
    &sub_groups::SHUFFLE,
    &sub_groups::SHARED,
    &blocks::ONE,
    &blocks::EIGHT,
    &sub_group_sizes::FEW,
    &sub_group_sizes::MANY,
    &shared_memory::BANKS,
    &shared_memory::CACHED,
    &shared_memory::SHARED,
    &shared_memory::BARRIERS,
    &divergence::BRANCHES,
    &divergence::SELECTION,
    &divergence::CHECKED,
    &divergence::PADDED,
    &order::ONE_BY_ONE,
    &order::LOADS_FIRST,
    &order::UNALIASED,
    &atomics::GLOBAL,
    &atomics::SHARED,
    &atomics::FENCED,
];

/// Every kernel of the gallery, the microbenchmarks last.
pub fn all() -> impl Iterator<Item = &'static GalleryKernel> {
    KERNELS
        .into_iter()
        .chain(MICRO.into_iter().map(|micro| &micro.kernel))
}

/// The kernel of this name, a microbenchmark's with `micro/` in front.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static GalleryKernel> {
    all().find(|kernel| kernel.name == name).ok_or_else(|| {
        let names = all().map(|kernel| kernel.name);
        Error::usage(format!("there is no kernel {}", quoted(name))).accepted(format!(
            "{}, or a file FILE.hsir",
            accepted(name, "kernels", names)
        ))
    })
}

/// A kernel of the gallery with settings, in the words of a command line: `gather groups=132 items=1024`.
///
/// # Errors
/// There is no such kernel, or it has no such setting.
pub fn case(words: &str) -> Result<Chosen> {
    let mut words = words.split_whitespace();
    let kernel = find(words.next().unwrap_or_default())?;
    kernel.with(&words.map(str::to_owned).collect::<Vec<_>>(), None)
}

/// A gallery kernel with its settings, ready to run and tune.
#[derive(Clone, Debug)]
pub struct Chosen {
    kernel: &'static GalleryKernel,
    settings: Settings,
    trace: Option<Entry>,
}

impl GalleryKernel {
    /// The kernel with these settings (`items=512`) and, for those that take one, the indices of a trace.
    ///
    /// # Errors
    /// A setting is wrong, or the kernel takes no trace.
    pub fn with(&'static self, assignments: &[String], trace: Option<Entry>) -> Result<Chosen> {
        let mut settings = Settings::defaults(self.parameters);
        for assignment in assignments {
            settings
                .set(assignment)
                .map_err(|error| error.at(format!("kernel `{}`", self.name)))?;
        }
        if trace.is_some() && self.takes_trace.is_none() {
            let takers: Vec<&str> = KERNELS
                .iter()
                .filter(|kernel| kernel.takes_trace.is_some())
                .map(|kernel| kernel.name)
                .collect();
            return Err(Error::usage(format!("`{}` takes no trace", self.name))
                .accepted(format!("kernels that do: {}", takers.join(", "))));
        }
        Ok(Chosen {
            kernel: self,
            settings,
            trace,
        })
    }
}

impl Chosen {
    /// The kernel's name in the gallery.
    pub fn gallery_name(&self) -> &'static str {
        self.kernel.name
    }

    /// The settings it has.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn workload_with(&self, settings: &Settings) -> Result<Workload> {
        (self.kernel.workload)(settings, self.trace.as_ref())
            .map_err(|error| error.at(format!("kernel `{}`", self.kernel.name)))
    }

    /// The work of another geometry.
    fn reshaped(&self, settings: &Settings) -> Result<Reshaped> {
        let workload = self.workload_with(settings)?;
        let before: Vec<(String, String)> = self.settings.all();
        let differs = |after: &(String, String)| !before.contains(after) && !is_geometry(&after.0);
        Ok(Reshaped {
            geometry: workload.geometry(),
            parameters: settings.all().into_iter().filter(differs).collect(),
            workload,
        })
    }
}

/// Parameters that reports show as the geometry.
fn is_geometry(name: &str) -> bool {
    name == "groups" || name == "group"
}

impl Subject for Chosen {
    fn name(&self) -> &str {
        self.kernel.name
    }

    fn parameters(&self) -> Vec<(String, String)> {
        self.settings
            .all()
            .into_iter()
            .filter(|(name, _)| !is_geometry(name))
            .collect()
    }

    fn workload(&self) -> Result<Workload> {
        self.workload_with(&self.settings)
    }

    fn small(&self, iterations: u64) -> Result<Option<Workload>> {
        let few = || self.settings.with("groups", 2);
        let settings = match self.kernel.iterations {
            Iterations::Are(parameter) => few().with(parameter, iterations),
            // Half of the work-items get one iteration fewer, so that the last one is not the same for all.
            Iterations::ShareOfGroup(parameter) => {
                let group = self.settings.get("group");
                few().with(parameter, (iterations * group).saturating_sub(group / 2))
            }
            Iterations::Given { small, .. } => small(&self.settings, iterations),
        };
        self.workload_with(&settings).map(Some)
    }

    fn regrouped(&self) -> Result<Vec<Reshaped>> {
        // Each work-item has work of its own there.
        if !matches!(self.kernel.iterations, Iterations::Are(_)) {
            return Ok(Vec::new());
        }
        let (groups, group) = (self.settings.get("groups"), self.settings.get("group"));
        let sizes = [32, 64, 128, 256, 512, 1024].into_iter();
        let others = sizes.filter(|&size| size != group && (groups * group).is_multiple_of(size));
        let settings = others.map(|size| {
            let settings = self.settings.with("group", size);
            self.reshaped(&settings.with("groups", groups * group / size))
        });
        // Some kernels take some sizes only.
        Ok(settings.filter_map(Result::ok).collect())
    }

    fn same_work(&self) -> Result<Vec<Reshaped>> {
        let (parameter, least) = match self.kernel.iterations {
            // Each work-group still has some iterations left.
            Iterations::Are(parameter) => (parameter, 8),
            Iterations::ShareOfGroup(parameter) => (parameter, 8 * self.settings.get("group")),
            Iterations::Given { shapes, .. } => {
                return shapes(&self.settings)
                    .iter()
                    .map(|settings| self.reshaped(settings))
                    .collect();
            }
        };
        let (groups, data) = (self.settings.get("groups"), self.settings.get(parameter));
        let factors = [2, 4, 8, 16, 32]
            .into_iter()
            .filter(|factor| data.is_multiple_of(*factor) && data / factor >= least);
        factors
            .map(|factor| {
                let settings = self.settings.with("groups", groups * factor);
                self.reshaped(&settings.with(parameter, data / factor))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart::tune::ArgumentSpec;

    #[test]
    fn every_kernel_builds_at_every_size_that_checks_ask_for() {
        for kernel in KERNELS {
            let chosen = kernel.with(&[], None).expect("defaults");
            let workload = chosen.workload().expect("a workload");
            assert_eq!(
                workload.given.len(),
                workload.kernel.params.len(),
                "{}",
                kernel.name
            );
            headstart::ir::verify(&workload.kernel).expect("a kernel keeps the rules");
            for iterations in [0, 1, 7] {
                let small = chosen
                    .small(iterations)
                    .expect("a small workload")
                    .expect("iterations can be chosen");
                assert_eq!(small.given.len(), workload.given.len());
                // One kernel is checked at all sizes.
                let [one, other] = [&workload, &small].map(|of| headstart::ir::print(&of.kernel));
                assert_eq!(one, other, "{}", kernel.name);
                assert!(
                    small.geometry().groups <= 16,
                    "{}: {:?}",
                    kernel.name,
                    small.geometry()
                );
            }
        }
    }

    /// What a launch writes is its work: neither more nor less of it may be left for other geometries.
    #[test]
    fn other_geometries_write_as_much() {
        let written = |workload: &Workload| -> u64 {
            let given = workload.given.iter();
            given
                .map(|given| match given {
                    ArgumentSpec::Output { element, length, .. } => length * u64::from(element.bytes()),
                    _ => 0,
                })
                .sum()
        };
        let mut shapes = 0;
        for kernel in KERNELS {
            if !matches!(kernel.iterations, Iterations::Given { .. }) {
                continue;
            }
            let chosen = kernel.with(&[], None).expect("defaults");
            let bytes = written(&chosen.workload().expect("a workload"));
            for shape in chosen.same_work().expect("others") {
                shapes += 1;
                assert_eq!(
                    written(&shape.workload),
                    bytes,
                    "{}: {:?}",
                    kernel.name,
                    shape.geometry
                );
            }
        }
        assert!(shapes > 50);
    }

    #[test]
    fn the_same_work_is_as_much_work() {
        let chosen = find("gather").expect("there").with(&[], None).expect("defaults");
        let bytes = chosen.workload().expect("a workload").bytes();
        let shapes = chosen.same_work().expect("others");
        assert_eq!(shapes.last().map(|shape| shape.geometry.groups), Some(132 * 32));
        for shape in shapes {
            // Each work-item writes a result; the rest is the same.
            let more = (shape.geometry.groups - 132) * 128 * 4;
            assert_eq!(shape.workload.bytes(), bytes + more);
        }
    }

    #[test]
    fn a_trace_gives_the_indices() {
        let trace = crate::spatter::Trace::open("amg_gpu").expect("shipped");
        let entry = trace.entry(Access::Gather, None).expect("a gather").clone();
        let settings = ["groups=1".to_owned(), "items=4".to_owned()];
        let chosen = find("gather")
            .expect("there")
            .with(&settings, Some(entry.clone()))
            .expect("it takes traces");
        let workload = chosen.workload().expect("a workload");
        let ArgumentSpec::Input {
            element,
            length,
            fill: headstart::device::Fill::Pattern(pattern),
        } = &workload.given[0]
        else {
            panic!("indices are an input");
        };
        let expected: Vec<u64> = entry.indices().take(*length as usize).collect();
        let found: Vec<u64> = (0..*length)
            .map(|access| pattern.bits(*element, access))
            .collect();
        assert_eq!(found, expected);
        let refused = find("article")
            .expect("there")
            .with(&[], Some(entry))
            .expect_err("it takes none");
        assert!(refused.to_string().contains("gather"));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let chosen = find("gather")
            .expect("there")
            .with(&["group=100".to_owned()], None)
            .expect("in range");
        assert!(
            chosen
                .workload()
                .expect_err("refused")
                .to_string()
                .contains("a multiple of 32")
        );
        assert!(
            find("gathr")
                .expect_err("unknown")
                .to_string()
                .contains("did you mean `gather`?")
        );
    }
}
