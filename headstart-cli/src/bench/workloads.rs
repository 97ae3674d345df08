//! The workloads that `headstart bench` measures: their data at full size, the geometries that the plain kernel is
//! tried at, and what stands beside it.

use headstart::ir::CacheLevel;
use headstart::ir::Kernel;
use headstart::prefetch::Plan;
use headstart::prefetch::plan::LoadName;
use headstart::tune::search::main_loads;
use headstart::tune::space::likely_plans;
use headstart::{Result, tune};

/// One workload.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Settings of all geometries, as `--set` takes them.
    pub settings: Vec<String>,
    /// A trace for the indices.
    pub trace: Option<&'static str>,
    /// Kernels of the gallery, each with the settings of a geometry: the fastest plain one is compared.
    pub shapes: Vec<(&'static str, Vec<String>)>,
    /// What it is compared with.
    pub peers: Vec<Program>,
    /// Which bytes have to be moved.
    pub bytes: Bytes,
}

/// A program that does the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// PyTorch, `peers/gallery.py`.
    Torch,
    /// CUDA as one writes it, `peers/gallery.cu`.
    Cuda,
}

/// Which bytes a workload has to move, to say which share of the bandwidth it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// Nobody says: caches decide.
    Unknown,
    /// All of its buffers, once.
    Buffers,
    /// The rows that an embedding bag's indices name, the indices, and the results.
    Rows,
}

fn case(name: &str, settings: &[&str], peers: &[Program]) -> Case {
    Case {
        name: name.to_owned(),
        settings: settings.iter().map(ToString::to_string).collect(),
        trace: None,
        shapes: Vec::new(),
        peers: peers.to_vec(),
        bytes: Bytes::Unknown,
    }
}

impl Case {
    /// Tried with each of these settings, which stand apart by spaces.
    fn shaped(mut self, kernel: &'static str, shapes: &[&str]) -> Case {
        let words = |shape: &&str| shape.split_whitespace().map(str::to_owned).collect();
        self.shapes
            .extend(shapes.iter().map(|shape| (kernel, words(shape))));
        self
    }

    fn moving(self, bytes: Bytes) -> Case {
        Case { bytes, ..self }
    }

    fn traced(self, trace: &'static str) -> Case {
        Case {
            trace: Some(trace),
            ..self
        }
    }
}

const GROUPS: [&str; 4] = ["group=64", "group=128", "group=256", "group=512"];

/// Every workload, in the order that it is measured.
pub fn all() -> Vec<Case> {
    let mut cases = embedding_bags();
    cases.extend(products());
    cases.extend(moves());
    cases.extend(searches());
    cases.extend(graphs());
    cases.extend(physics());
    cases.extend(controls());
    cases
}

fn embedding_bags() -> Vec<Case> {
    let bag = |settings: &[&str]| {
        // A table of four gigabytes whatever the dimension.
        let rows = match settings.iter().find_map(|setting| setting.strip_prefix("dim=")) {
            Some("64") => "rows=2^24",
            Some("256") => "rows=2^22",
            _ => "rows=2^23",
        };
        let settings = [settings, &[rows]].concat();
        let name = format!("embedding bag, {}", settings.join(" "));
        case(&name, &settings, &[Program::Torch])
            .shaped(
                "embedding-bag",
                &["group=32", "group=64", "group=128", "group=256", "group=512"],
            )
            .moving(match settings.contains(&"skew=zipf") {
                true => Bytes::Unknown,
                false => Bytes::Rows,
            })
    };
    let mut cases = Vec::new();
    for bags in ["bags=256", "bags=2048", "bags=16384"] {
        cases.push(bag(&[bags, "bag=150"]));
    }
    for bags in ["bags=2048", "bags=16384"] {
        cases.push(bag(&[bags, "bag=20"]));
        cases.push(bag(&[bags, "bag=150", "lengths=ragged"]));
        cases.push(bag(&[bags, "bag=150", "skew=zipf"]));
        cases.push(bag(&[bags, "bag=150", "dim=64"]));
        cases.push(bag(&[bags, "bag=150", "dim=256"]));
        cases.push(bag(&[bags, "bag=150", "element=f16"]));
    }
    cases.push(bag(&["bags=2048", "bag=150", "mode=mean"]));
    cases.push(bag(&["bags=2048", "bag=150", "element=f16", "dim=64"]));
    cases.push(bag(&["bags=2048", "bag=150", "element=f16", "dim=256"]));
    cases
}

/// The fixed list. Rows so that each matrix has about 64 million entries.
fn products() -> Vec<Case> {
    let list = [
        ("random16", "rows=4194304", "4 8 16"),
        ("banded", "rows=4194304", "4 8 16"),
        ("power-law", "rows=4194304", "8 16 32"),
        ("stencil27", "rows=2097152", "4 8 16"),
        ("random4", "rows=16777216", "1 2 4"),
        ("random256", "rows=262144", "16 32"),
    ];
    let product = |(matrix, rows, lanes): (&str, &str, &str)| {
        let setting = format!("matrix={matrix}");
        let lanes: Vec<String> = lanes
            .split(' ')
            .map(|lanes| format!("lanes={lanes} group=256"))
            .collect();
        let lanes: Vec<&str> = lanes.iter().map(String::as_str).collect();
        case(&format!("spmv, {matrix}"), &[&setting, rows], &[Program::Torch])
            .shaped("spmv", &lanes)
            .shaped("spmv-blocks", &["group=128", "group=256"])
            .moving(Bytes::Buffers)
    };
    list.into_iter().map(product).collect()
}

fn moves() -> Vec<Case> {
    let both = [Program::Torch, Program::Cuda];
    let shapes = [
        "groups=67584 items=1",
        "groups=16896 items=4",
        "groups=4224 items=16",
        "groups=1056 items=64",
    ];
    vec![
        case("index select, random", &["bits=28"], &both).shaped("index-select", &shapes),
        case("index select, AMG", &[], &both)
            .shaped("index-select", &shapes)
            .traced("amg_gpu"),
        case("index select, PENNANT", &[], &both)
            .shaped("index-select", &shapes)
            .traced("pennant_gpu"),
        case("index select, LULESH", &[], &both)
            .shaped("index-select", &shapes)
            .traced("lulesh_gpu"),
        case("index select, Nekbone", &[], &both)
            .shaped("index-select", &shapes)
            .traced("nekbone_gpu"),
        case("scatter, random", &["bits=28"], &[Program::Cuda]).shaped("scatter", &shapes),
        case("scatter, LULESH", &[], &[Program::Cuda])
            .shaped("scatter-shared", &shapes)
            .traced("lulesh_gpu"),
        case("scatter, PENNANT", &[], &[Program::Cuda])
            .shaped("scatter-shared", &shapes)
            .traced("pennant_gpu"),
        case("gather, few work-groups", &["bits=28"], &both)
            .shaped("index-select", &["groups=132 group=128 items=1024"]),
    ]
}

fn searches() -> Vec<Case> {
    let probe = |load: &str| {
        case(
            &format!("hash probe, {load}"),
            &["bits=27", load],
            &[Program::Cuda],
        )
        .shaped(
            "hash-probe",
            &[
                "groups=33792 items=1",
                "groups=8448 items=4",
                "groups=2112 items=16",
                "groups=528 items=64",
            ],
        )
    };
    let shapes = [
        "groups=33792 items=1",
        "groups=4224 items=8",
        "groups=1056 items=32",
    ];
    vec![
        probe("load=50"),
        probe("load=90"),
        case("binary search", &["levels=28"], &[Program::Cuda]).shaped("binary-search", &shapes),
        case("B+ tree search", &["levels=7"], &[Program::Cuda]).shaped("btree", &shapes),
    ]
}

fn graphs() -> Vec<Case> {
    let lanes = ["lanes=4", "lanes=8", "lanes=16", "lanes=32"];
    let graph = ["scale=22", "degree=16"];
    vec![
        case(
            "BFS, after 1 step",
            &[&graph[..], &["steps=1"]].concat(),
            &[Program::Cuda],
        )
        .shaped("bfs", &lanes),
        case(
            "BFS, after 2 steps",
            &[&graph[..], &["steps=2"]].concat(),
            &[Program::Cuda],
        )
        .shaped("bfs", &lanes),
        case("PageRank", &graph, &[Program::Cuda]).shaped("pagerank", &lanes),
    ]
}

fn physics() -> Vec<Case> {
    let lookups = [
        "groups=8192 group=32",
        "groups=4096 group=64",
        "groups=2048 group=128",
        "groups=1024 group=256",
    ];
    let paths = |groups: u64| -> Vec<String> {
        [32, 64, 128, 256]
            .map(|group| format!("groups={} group={group}", groups * 128 / group))
            .into()
    };
    let priced = |name: &str, groups: u64, steps: &str| {
        let shapes = paths(groups);
        let shapes: Vec<&str> = shapes.iter().map(String::as_str).collect();
        case(name, &[steps], &[Program::Cuda]).shaped("option-pricing", &shapes)
    };
    let decode = |name: &str, settings: &[&str]| {
        case(name, settings, &[Program::Cuda])
            .shaped("attention", &["group=32", "group=64", "group=128", "group=256"])
    };
    vec![
        case(
            "cross sections, particles as they come",
            &["grid=2^21"],
            &[Program::Cuda],
        )
        .shaped("cross-section", &lookups),
        case(
            "cross sections, particles by material",
            &["grid=2^21", "order=by-material"],
            &[Program::Cuda],
        )
        .shaped("cross-section", &lookups),
        priced("option pricing, few paths", 132, "steps=504"),
        priced("option pricing, many paths", 1056, "steps=252"),
        decode(
            "attention, 4 sequences",
            &["sequences=4", "tokens=32768", "pool=2^15"],
        ),
        decode(
            "attention, 16 sequences",
            &["sequences=16", "tokens=8192", "pool=2^15"],
        ),
        decode(
            "attention, 128 sequences",
            &["sequences=128", "tokens=2048", "pool=2^15"],
        ),
    ]
}

fn controls() -> Vec<Case> {
    vec![
        case("control: pointer chase", &["bits=28", "steps=256"], &[])
            .shaped("chase", &["groups=1056 group=128"]),
        case("control: triad", &["quads=2^24"], &[])
            .shaped("triad", &["items=1", "items=4", "items=4 group=512", "items=8"])
            .moving(Bytes::Buffers),
        case("control: n-body", &["bodies=2^16"], &[]).shaped("nbody", &GROUPS),
    ]
}

/// The plans that are tried for a workload: those that win most often, and the small groups that suit short loops.
///
/// # Errors
/// There are more loads than a plan can name.
pub fn plans(plain: &Kernel) -> Result<Vec<Plan>> {
    let loads: Vec<LoadName> = main_loads(plain);
    let mut plans = vec!["unroll:2".parse()?];
    plans.extend(likely_plans(&loads, &[CacheLevel::L1, CacheLevel::L2])?);
    if loads.is_empty() {
        return Ok(plans);
    }
    for template in [
        "unroll:2,LOAD=rolling-registers:2",
        "unroll:4,LOAD=rolling-registers:4",
        "unroll:4,LOAD=rolling-async:16",
        "LOAD=rolling-registers:1",
        "LOAD=rolling-async:8",
    ] {
        let (start, strategy) = template.split_once("LOAD=").unwrap_or((template, ""));
        let named: Vec<String> = loads.iter().map(|load| format!("{load}={strategy}")).collect();
        plans.push(format!("{start}{}", named.join(",")).parse()?);
    }
    // One of several loads alone.
    for load in loads.iter().filter(|_| loads.len() > 1) {
        for strategy in ["rolling-registers:4", "rolling-async:8"] {
            plans.push(format!("unroll:4,{load}={strategy}").parse()?);
        }
    }
    plans.dedup();
    Ok(plans)
}

/// The bytes that a workload has to move.
pub fn bytes(case: &Case, workload: &tune::Workload) -> Option<u64> {
    let length = |name: &str| {
        let given = workload.given.iter().zip(&workload.kernel.params);
        given.into_iter().find_map(|(given, param)| match given {
            tune::Given::Input { element, length, .. } | tune::Given::Output { element, length, .. } => {
                (param.name == name).then_some((*length, u64::from(element.bytes())))
            }
            tune::Given::Scalar(..) => None,
        })
    };
    match case.bytes {
        Bytes::Unknown => None,
        Bytes::Buffers => Some(workload.bytes()),
        Bytes::Rows => {
            let ((indices, index), (results, size)) = (length("indices")?, length("result")?);
            let (bags, offset) = length("offsets")?;
            let dim = results / (bags - 1).max(1);
            Some(indices * (dim * size + index) + results * size + bags * offset)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_gallery::kernels;

    #[test]
    fn every_shape_can_be_set_and_every_workload_has_plans() {
        for case in all() {
            assert!(!case.shapes.is_empty(), "{}", case.name);
            for (kernel, shape) in &case.shapes {
                let settings = [case.settings.clone(), shape.clone()].concat();
                let kernel = kernels::find(kernel).expect("in the gallery");
                kernel
                    .with(&settings, None)
                    .unwrap_or_else(|error| panic!("{}: {error}", case.name));
            }
        }
        let small = ["bags=2".to_owned(), "rows=10".to_owned()];
        let bag = kernels::find("embedding-bag")
            .and_then(|kernel| kernel.with(&small, None))
            .expect("a kernel");
        let workload = tune::Subject::workload(&bag).expect("a workload");
        let plans = plans(&workload.kernel).expect("plans");
        assert!(plans.len() > 20, "{}", plans.len());
        assert!(plans.contains(&"unroll:8,table=rolling-registers:8".parse().expect("a plan")));
        // Two bags of 150 indices of 4 bytes, rows of 512, results and three offsets.
        let case = &all()[0];
        assert_eq!(bytes(case, &workload), Some(300 * (512 + 4) + 2 * 512 + 3 * 4));
    }
}
