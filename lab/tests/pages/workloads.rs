//! What README.md says of the workloads is what `results/workloads.md` says.

use headstart::report::columns::Columns;
use headstart::report::number::duration;

use crate::documents::compare;
use crate::read;

/// A case of the page that lists the workloads.
struct WorkloadRow<'p> {
    name: &'p str,
    is_full: bool,
    /// Milliseconds of the plain kernel, and of the chosen plan.
    plain: f64,
    best: f64,
    speedup: f64,
    /// The programs beside it, the fastest first: name and milliseconds.
    others: Vec<(&'p str, f64)>,
}

fn workload_rows(page: &str) -> Vec<WorkloadRow<'_>> {
    let rows = page
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let number = |cell: &str| cell.parse::<f64>().expect("a number");
    rows.filter(|row| row.len() > 11 && row[4].ends_with('%'))
        .map(|row| WorkloadRow {
            name: row[1],
            is_full: row[4] == "100 %",
            plain: number(row[5]),
            best: number(row[7]),
            speedup: number(row[8]),
            others: row[9]
                .split("; ")
                .filter_map(|other| other.rsplit_once(' '))
                .filter_map(|(name, time)| Some((name, time.parse().ok()?)))
                .collect(),
        })
        .collect()
}

/// What launches gain that fill the GPU.
fn full_launches(rows: &[WorkloadRow<'_>]) -> String {
    let full = || rows.iter().filter(|row| row.is_full);
    let gain = full().filter(|row| row.speedup >= 1.1).count();
    format!(
        "Of the {} [workloads](results/workloads.md) whose launches fill it, {gain} gain 10 % or more: irregular kernels gain \
         there,\ntoo, and streams do not.\n",
        full().count()
    )
}

/// What other programs do with the same data: a sentence of README.md, and what the page says in short.
fn beside_others(page: &str) -> String {
    let mut text = "**No plan replaces a better algorithm.** Attention that splits each sequence over work-groups and combines \
                    the parts ([Flash-Decoding](https://pytorch.org/blog/flash-decoding/)) fills a GPU without prefetching"
        .to_owned();
    let rows = workload_rows(page);
    let shown = rows.iter().find(|row| row.name == "attention, 16 sequences");
    let shown = shown.expect("the case that README.md opens with");
    let milliseconds = |time: f64| duration(time * 1e6);
    if let Some((name, time)) = shown.others.iter().find(|(name, _)| *name != "plain CUDA") {
        text.push_str(&format!(
            ": that of 16 sequences takes {} as a plain kernel, {} with the chosen plan, and {} in {name}",
            milliseconds(shown.plain),
            milliseconds(shown.best),
            milliseconds(*time)
        ));
    }
    text.push('.');
    let in_short = [
        "- Compared with the fastest other program",
        "- Where it is slower",
    ];
    for line in page
        .lines()
        .filter(|line| in_short.iter().any(|start| line.starts_with(start)))
    {
        text.push_str(&line[1..]);
    }
    Columns::new(120).wrapped(&text, "", "")
}

pub fn are_on_the_first_page() {
    let page = read("results/workloads.md");
    for (name, wanted) in [
        (
            "workloads-h200.json of full launches",
            full_launches(&workload_rows(&page)),
        ),
        ("workloads-h200.json beside other programs", beside_others(&page)),
    ] {
        compare("README.md", name, &wanted);
    }
}

#[test]
fn what_others_need_is_said_where_it_is_known() {
    let page = |others: &str| {
        format!(
            "- Sparse products: 2.\n- Compared with the fastest other program: 2×.\n- Where it is slower, 3 times.\n\n\
             | attention, 16 sequences | 1 MB | k, 1 × 32 | 6 % | 7.051 | `none` | 0.714 | 9.88 | {others} | 9.67 | – |\n"
        )
    };
    let said = |others: &str| beside_others(&page(others)).replace('\n', " ");
    let short = "Compared with the fastest other program: 2×. Where it is slower, 3 times. ";
    let alone = said("plain CUDA 6.900");
    assert!(
        alone.ends_with(&format!("without prefetching. {short}")),
        "{alone}"
    );
    let beside = said("a guess 0.001 (other results!); FlashInfer 0.119; plain CUDA 6.900");
    let wanted = "7.05 ms as a plain kernel, 714 µs with the chosen plan, and 119 µs in FlashInfer. ";
    assert!(beside.ends_with(&format!("{wanted}{short}")), "{beside}");
}
