//! The techniques that the documents name, each as a kernel beside the variant that it replaces: `results/techniques.md`
//! shows them with their times.

pub mod article;
pub mod atomics;
pub mod blocks;
pub mod divergence;
pub mod order;
pub mod picked;
pub mod reduction;
pub mod shared_memory;
pub mod sub_group_sizes;
pub mod sub_groups;

use headstart::Result;
use headstart::device::Pattern;
use headstart::ir::{Kernel, Type};
use headstart::tune::{ArgumentSpec, Workload};

use crate::data::input;
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings, launch};

/// The common arguments of all techniques.
static PARAMETERS: [Parameter; 3] = [
    Parameter::number("groups", "work-groups", 1056, 1..=1 << 20),
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of 32",
        256,
        32..=1024,
    ),
    Parameter::number("elements", "elements, a multiple of 1024", 1 << 24, 0..=1 << 30),
];

/// Entries of kernels from `values`, the elements, to as many of `result`.
macro_rules! entries {
    ($($entry:ident $kernel:ident $name:literal $summary:literal;)*) => {$(
        pub(crate) static $entry: $crate::kernels::GalleryKernel =
            $crate::techniques::technique($name, $summary, |settings, _| {
                let kernel = $kernel::kernel(settings.small("group"))?;
                let elements = $crate::techniques::elements(settings);
                let result = $crate::data::output(headstart::ir::Type::I32, elements);
                $crate::techniques::over_elements(settings, kernel, "values")?.with("result", result)
            });
    )*};
}
use entries;

/// A technique's entry in the gallery.
const fn technique(
    name: &'static str,
    summary: &'static str,
    workload: fn(&Settings, Option<&crate::spatter::Entry>) -> Result<Workload>,
) -> GalleryKernel {
    GalleryKernel {
        name,
        summary,
        parameters: &PARAMETERS,
        takes_trace: None,
        iterations: Iterations::Given {
            small: |settings, iterations| {
                let elements = 2 * iterations * settings.get("group");
                settings
                    .with("groups", 2)
                    .with("elements", elements.next_multiple_of(1024))
            },
            shapes: |_| Vec::new(),
        },
        workload,
    }
}

/// A launch of the settings' geometry whose first parameter has the elements, numbers below 200.
fn over_elements(settings: &Settings, kernel: Kernel, name: &str) -> Result<Workload> {
    launch(settings, kernel).with(name, numbers(settings))
}

/// The elements: numbers below 200.
fn numbers(settings: &Settings) -> ArgumentSpec {
    let bound = Pattern::Below { bound: 200, seed: 43 };
    input(Type::I32, elements(settings), bound)
}

/// How many elements there are; at least as many as are read at once.
fn elements(settings: &Settings) -> u64 {
    settings.get("elements").next_multiple_of(1024).max(1024)
}

/// Work-items of the launch.
fn items(settings: &Settings) -> u64 {
    settings.get("groups") * settings.get("group")
}

/// A line of a page: a kernel with the settings and the plan that it is shown with.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// A kernel of the gallery.
    pub kernel: &'static str,
    /// As `--set` takes them.
    pub settings: &'static [&'static str],
    /// As `--plan` takes it.
    pub plan: &'static str,
}

/// A kernel as it is written.
const fn shown(kernel: &'static str, settings: &'static [&'static str]) -> Shown {
    Shown {
        kernel,
        settings,
        plan: "none",
    }
}

/// The device of a page that was measured, too.
const H200: &str = "h200";

/// A family of techniques, as its page shows it.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The model of the device that its times are for; on an H200 they are measured, too.
    pub device: &'static str,
    /// Its anchor in `results/techniques.md`.
    pub page: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its subject, and how to read the numbers: a paragraph each.
    pub text: [&'static str; 2],
    /// The kernels, in the order of the page.
    pub kernels: &'static [Shown],
}

impl Family {
    /// The names of its kernels, each once.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let name = |at: usize| self.kernels[at].kernel;
        let is_first = move |at: &usize| (0..*at).all(|before| name(before) != name(*at));
        (0..self.kernels.len()).filter(is_first).map(name)
    }
}

/// Every family, in the order of the pages.
pub static FAMILIES: [&Family; 9] = [
    &article::FAMILY,
    &reduction::FAMILY,
    &sub_groups::FAMILY,
    &blocks::FAMILY,
    &sub_group_sizes::FAMILY,
    &shared_memory::FAMILY,
    &divergence::FAMILY,
    &order::FAMILY,
    &atomics::FAMILY,
];
