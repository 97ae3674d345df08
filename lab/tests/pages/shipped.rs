//! What README.md and `docs/shipped.md` say of kernels as their projects ship them is what `results/shipped-h200.txt` says.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::documents::compare;
use crate::read;

/// Gains from here on are named, and from here on shown on the first page.
const GAIN: f64 = 1.05;
const LARGE: f64 = 2.0;

/// A line of the results.
struct Kernel {
    project: String,
    name: String,
    case: String,
    us: String,
    gain: Option<f64>,
    /// The plan, or why there is none.
    plan: String,
}

impl Kernel {
    fn gain(&self) -> f64 {
        self.gain.unwrap_or(1.0)
    }
}

/// The kernels, the largest gain first.
fn kernels() -> Vec<Kernel> {
    let text = read("results/shipped-h200.txt");
    let kernel = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [project, name, case, _, us, gain, plan] = fields[..] else {
            return None;
        };
        (project != "project").then(|| Kernel {
            project: project.to_owned(),
            name: name.to_owned(),
            case: case.to_owned(),
            us: us.to_owned(),
            gain: gain.parse().ok(),
            plan: plan.to_owned(),
        })
    };
    let mut kernels: Vec<Kernel> = text.lines().filter_map(kernel).collect();
    kernels.sort_by(|one, other| other.gain().total_cmp(&one.gain()));
    kernels
}

#[test]
fn the_page_of_shipped_kernels_quotes_the_results() {
    let kernels = kernels();
    let mut table =
        "| project | kernel | case | a launch | gain | plan, or why not |\n|---|---|---|---:|---:|---|\n"
            .to_owned();
    for kernel in &kernels {
        let gain = kernel.gain.map_or("–".to_owned(), |gain| format!("{gain:.2}×"));
        let plan = match kernel.gain {
            Some(_) => format!("`{}`", kernel.plan),
            None => kernel.plan.clone(),
        };
        let Kernel {
            project,
            name,
            case,
            us,
            ..
        } = kernel;
        let _ = writeln!(
            table,
            "| {project} | `{name}` | {case} | {us} µs | {gain} | {plan} |"
        );
    }
    compare("docs/shipped.md", "shipped-h200.txt", &table);
}

/// The part of README.md that is about them.
pub fn are_on_the_first_page() {
    let kernels = kernels();
    let projects: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.project.as_str()).collect();
    let gaining = kernels.iter().filter(|kernel| kernel.gain() >= GAIN).count();
    let mut table = format!(
        "Of {} kernels of {} projects, [as they are shipped](docs/shipped.md) and launched, {} gain 5 % or more on an H200, with the\n\
         same bits; the largest:\n\n| project | kernel and case | a launch | gain |\n|---|---|---:|---:|\n",
        kernels.len(),
        projects.len(),
        gaining
    );
    for kernel in kernels.iter().filter(|kernel| kernel.gain() >= LARGE) {
        let Kernel {
            project, name, us, ..
        } = kernel;
        let case = kernel
            .case
            .split(": ")
            .next()
            .and_then(|case| case.split(", ").next())
            .unwrap_or(&kernel.case);
        let _ = writeln!(
            table,
            "| {project} | `{name}`: {case} | {us} µs | {:.2}× |",
            kernel.gain()
        );
    }
    compare("README.md", "shipped-h200.txt", &table);
}
