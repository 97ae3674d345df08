//! The cases of all workloads but the embedding bag.
//!
//! The names without a size came first, and keep their data: measurements are compared over time.

use super::{Case, Moves};

/// In the order of the documentation: products, moves, searches, graphs, physics, and the controls.
pub(super) fn cases() -> Vec<Case> {
    let parts = [products(), moves(), searches(), graphs(), physics(), controls()];
    parts.concat()
}

/// A case's name: that of its workload, and the size if it has one.
fn named(workload: &str, size: &str) -> String {
    match size {
        "" => workload.to_owned(),
        size => format!("{workload}, {size}"),
    }
}

/// The same work by few work-items or many: `groups` work-groups where each work-item does one.
fn shares(groups: u32, items: &[u32]) -> Vec<String> {
    let share = |items: &u32| format!("groups={} items={items}", groups / items);
    items.iter().map(share).collect()
}

/// The fixed list of matrices: the work-items of a row that are tried; then rows for about 2 MB, as much as the L2 cache
/// holds, 64 million entries, and gigabytes.
fn products() -> Vec<Case> {
    let list: [(&'static str, &str, &[u32], [u32; 4]); 6] = [
        (
            "spmv, random16",
            "random16",
            &[4, 8, 16],
            [1 << 14, 360_000, 1 << 22, 25_165_824],
        ),
        (
            "spmv, banded",
            "banded",
            &[4, 8, 16],
            [1 << 14, 360_000, 1 << 22, 25_165_824],
        ),
        (
            "spmv, power-law",
            "power-law",
            &[8, 16, 32],
            [1 << 14, 360_000, 1 << 22, 25_165_824],
        ),
        (
            "spmv, stencil27",
            "stencil27",
            &[4, 8, 16],
            [8_000, 216_000, 1 << 21, 14_886_936],
        ),
        (
            "spmv, random4",
            "random4",
            &[1, 2, 4],
            [1 << 16, 1_200_000, 1 << 24, 1 << 26],
        ),
        (
            "spmv, random256",
            "random256",
            &[16, 32],
            [1 << 10, 22_000, 1 << 18, 1_572_864],
        ),
    ];
    let mut cases = Vec::new();
    for (workload, matrix, lanes, rows) in list {
        let lanes: Vec<String> = lanes
            .iter()
            .map(|lanes| format!("lanes={lanes} group=256"))
            .collect();
        let matrix = format!("matrix={matrix}");
        for (size, rows) in ["small", "middle", "", "large"].into_iter().zip(rows) {
            let rows = format!("rows={rows}");
            cases.push(
                Case::new(&named(workload, size), workload, &[&matrix, &rows])
                    .shaped("spmv", &lanes)
                    .shaped("spmv-blocks", &["group=128", "group=256"])
                    .moving(Moves::Buffers),
            );
        }
    }
    cases
}

fn moves() -> Vec<Case> {
    let shapes = |groups| shares(groups, &[1, 4, 16, 64]);
    let select = |size: &str, bits: &str, groups| {
        let workload = "index select, random";
        Case::new(&named(workload, size), workload, &[bits]).shaped("index-select", &shapes(groups))
    };
    let scatter = |size: &str, bits: &str, groups| {
        let workload = "scatter, random";
        Case::new(&named(workload, size), workload, &[bits]).shaped("scatter", &shapes(groups))
    };
    let traced = |workload, kernel, trace| {
        Case::new(workload, workload, &[])
            .shaped(kernel, &shapes(67_584))
            .traced(trace)
    };
    let few = "gather, few work-groups";
    vec![
        select("small", "bits=18", 1024),
        select("middle", "bits=23", 8192),
        select("", "bits=28", 67_584),
        select("large", "bits=30", 67_584),
        traced("index select, AMG", "index-select", "amg_gpu"),
        traced("index select, PENNANT", "index-select", "pennant_gpu"),
        traced("index select, LULESH", "index-select", "lulesh_gpu"),
        traced("index select, Nekbone", "index-select", "nekbone_gpu"),
        scatter("small", "bits=18", 1024),
        scatter("middle", "bits=23", 8192),
        scatter("", "bits=28", 67_584),
        // Each plan's result is read and compared, all of it.
        scatter("large", "bits=29", 67_584),
        traced("scatter, LULESH", "scatter-shared", "lulesh_gpu"),
        traced("scatter, PENNANT", "scatter-shared", "pennant_gpu"),
        Case::new(few, few, &["bits=28"])
            .shaped("index-select", &["groups=132 group=128 items=1024"])
            .alone("`index select, random` by few work-items: that has the sizes"),
    ]
}

fn searches() -> Vec<Case> {
    let search = |workload: &'static str, kernel, size: &str, settings: &[&str], groups| {
        let items: &[u32] = match kernel {
            "hash-probe" => &[1, 4, 16, 64],
            _ => &[1, 8, 32],
        };
        Case::new(&named(workload, size), workload, settings).shaped(kernel, &shares(groups, items))
    };
    // Groups of 256 keys: fewer where the table is small, or the keys would be most of the bytes.
    let sizes = [("small", 1024), ("middle", 8192), ("", 33_792), ("large", 33_792)];
    let mut cases = Vec::new();
    for (workload, load) in [
        ("hash probe, load=50", "load=50"),
        ("hash probe, load=90", "load=90"),
    ] {
        for ((size, groups), bits) in sizes
            .into_iter()
            .zip(["bits=17", "bits=22", "bits=27", "bits=28"])
        {
            cases.push(search(workload, "hash-probe", size, &[bits, load], groups));
        }
    }
    for ((size, groups), levels) in
        sizes
            .into_iter()
            .zip(["levels=17", "levels=23", "levels=28", "levels=30"])
    {
        cases.push(search("binary search", "binary-search", size, &[levels], groups));
    }
    let trees: [&[&str]; 4] = [
        &["levels=4"],
        &["levels=6", "root=8"],
        &["levels=7"],
        &["levels=8", "root=2"],
    ];
    for ((size, groups), tree) in sizes.into_iter().zip(trees) {
        cases.push(search("B+ tree search", "btree", size, tree, groups));
    }
    cases
}

fn graphs() -> Vec<Case> {
    let lanes = ["lanes=4", "lanes=8", "lanes=16", "lanes=32"];
    let list: [(&'static str, &'static str, &[&str]); 3] = [
        ("BFS, after 1 step", "bfs", &["degree=16", "steps=1"]),
        ("BFS, after 2 steps", "bfs", &["degree=16", "steps=2"]),
        ("PageRank", "pagerank", &["degree=16"]),
    ];
    let sizes = [
        ("small", "scale=14"),
        ("middle", "scale=19"),
        ("", "scale=22"),
        ("large", "scale=25"),
    ];
    let mut cases = Vec::new();
    for (workload, kernel, settings) in list {
        for (size, scale) in sizes {
            let settings = [&[scale], settings].concat();
            cases.push(Case::new(&named(workload, size), workload, &settings).shaped(kernel, &lanes));
        }
    }
    cases
}

fn physics() -> Vec<Case> {
    let lookup = |workload: &'static str, size: &str, settings: &[&str], particles: u32| {
        let shape = |group: u32| format!("groups={} group={group}", particles / group);
        Case::new(&named(workload, size), workload, settings)
            .shaped("cross-section", &[32, 64, 128, 256].map(shape))
    };
    // Where it is not large: fewer nuclides, as in XSBench's small problem, and points.
    let sizes: [(&str, &[&str], u32); 3] = [
        ("small", &["grid=256", "nuclides=68", "points=1000"], 1 << 14),
        ("middle", &["grid=2^17", "nuclides=68"], 1 << 16),
        ("", &["grid=2^21"], 1 << 18),
    ];
    let mut cases = Vec::new();
    for (workload, order) in [
        ("cross sections, particles as they come", "order=mixed"),
        ("cross sections, particles by material", "order=by-material"),
    ] {
        for (size, settings, particles) in sizes {
            cases.push(lookup(workload, size, &[settings, &[order]].concat(), particles));
        }
    }
    let priced = |name: &str, groups: u32, steps: &str| {
        let shape = |group: u32| format!("groups={} group={group}", groups * 128 / group);
        Case::new(name, "option pricing", &[steps]).shaped("option-pricing", &[32, 64, 128, 256].map(shape))
    };
    let decode = |name: &str, settings: &[&str]| {
        Case::new(name, "attention", settings)
            .shaped("attention", &["group=32", "group=64", "group=128", "group=256"])
    };
    cases.extend([
        priced("option pricing, few paths, small", 132, "steps=8"),
        priced("option pricing, few paths, middle", 132, "steps=46"),
        priced("option pricing, few paths", 132, "steps=504"),
        priced("option pricing, few paths, large", 132, "steps=2016"),
        priced("option pricing, many paths", 1056, "steps=252"),
        decode(
            "attention, 16 sequences, small",
            &["sequences=16", "tokens=256", "pool=64"],
        ),
        decode(
            "attention, 16 sequences, middle",
            &["sequences=16", "tokens=2048", "pool=768"],
        ),
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
    ]);
    cases
}

fn controls() -> Vec<Case> {
    let chase = |size: &str, bits: &str| {
        let workload = "control: pointer chase";
        Case::new(&named(workload, size), workload, &[bits, "steps=256"])
            .shaped("chase", &["groups=1056 group=128"])
    };
    let triad = |size: &str, quads: &str| {
        let workload = "control: triad";
        Case::new(&named(workload, size), workload, &[quads])
            .shaped("triad", &["items=1", "items=4", "items=4 group=512", "items=8"])
            .moving(Moves::Buffers)
    };
    let bodies = "control: n-body";
    vec![
        chase("small", "bits=18"),
        chase("middle", "bits=24"),
        chase("", "bits=28"),
        chase("large", "bits=29"),
        triad("small", "quads=2^14"),
        triad("middle", "quads=2^20"),
        triad("", "quads=2^24"),
        triad("large", "quads=2^26"),
        Case::new(bodies, bodies, &["bodies=2^16"])
            .shaped("nbody", &["group=64", "group=128", "group=256", "group=512"])
            .alone("each body meets every other: gigabytes of them would take hours"),
    ]
}
