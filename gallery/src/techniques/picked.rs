//! The article's rolling prefetch in its own code shape: values on their way in named registers, of which a `switch` over the counter
//! picks one, where the ring that a plan derives is unrolled or shifted.

use headstart::Result;
use headstart::device::{Fill, Pattern};
use headstart::ir::{Kernel, Type};
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare, Workload};

use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings, launch};

/// The two shapes of the loop with `distance` of these registers.
macro_rules! rolling {
    ($($slot:literal $register:ident),+) => {
        /// The value that comes next is loaded first, and then put into its register.
        #[kernel(work_group = group)]
        pub fn picked(
            arr: &[f64],
            result: &mut [f64],
            elements: u32,
            #[constant] group: u32,
            #[constant] distance: u32,
        ) {
            let start = group_id() * elements as usize;
            $(let mut $register = 0.0;
            if $slot < distance && local_id() + $slot * (group as usize) < elements as usize {
                $register = arr[start + local_id() + $slot * group as usize];
            })+
            let mut acc = 0.0;
            let mut ctr = 0u32;
            #[unroll(0)]
            for i in (local_id()..elements as usize).step_by(group as usize) {
                let ctr_mod = ctr % distance;
                let mut x = 0.0;
                $(if $slot < distance && ctr_mod == $slot { x = $register; })+
                let ahead = i + distance as usize * group as usize;
                if ahead < elements as usize {
                    let next = arr[start + ahead];
                    $(if $slot < distance && ctr_mod == $slot { $register = next; })+
                }
                acc += (-x * x).exp() * x;
                ctr += 1;
            }
            result[global_id()] = acc;
        }

        /// The load stands in each case of the `switch`.
        #[kernel(work_group = group)]
        pub fn cased(
            arr: &[f64],
            result: &mut [f64],
            elements: u32,
            #[constant] group: u32,
            #[constant] distance: u32,
        ) {
            let start = group_id() * elements as usize;
            $(let mut $register = 0.0;
            if $slot < distance && local_id() + $slot * (group as usize) < elements as usize {
                $register = arr[start + local_id() + $slot * group as usize];
            })+
            let mut acc = 0.0;
            let mut ctr = 0u32;
            #[unroll(0)]
            for i in (local_id()..elements as usize).step_by(group as usize) {
                let ctr_mod = ctr % distance;
                let ahead = i + distance as usize * group as usize;
                let mut x = 0.0;
                $(if $slot < distance && ctr_mod == $slot {
                    x = $register;
                    if ahead < elements as usize {
                        $register = arr[start + ahead];
                    }
                })+
                acc += (-x * x).exp() * x;
                ctr += 1;
            }
            result[global_id()] = acc;
        }
    };
}

rolling!(0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 j, 9 k, 10 l, 11 m, 12 n, 13 o, 14 p, 15 q);

static PARAMETERS: [Parameter; 5] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
    Parameter::number("elements", "elements of a work-group's part", 51_200, 1..=1 << 31),
    Parameter::number("distance", "registers for values on their way", 4, 1..=16),
    Parameter::choice(
        "load",
        "behind the `switch`, or in each case of it",
        &["behind", "cases"],
    ),
];

/// `article-picked`.
pub(crate) static PICKED: GalleryKernel = GalleryKernel {
    name: "article-picked",
    summary: "the article's rolling prefetch to registers that a switch over the counter picks",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::ShareOfGroup("elements"),
    workload: |settings, _| {
        let (group, distance) = (settings.small("group"), settings.small("distance"));
        with_data(
            settings,
            match settings.word("load") {
                "cases" => cased::kernel(group, distance)?,
                _ => picked::kernel(group, distance)?,
            },
        )
    },
};

fn with_data(settings: &Settings, kernel: Kernel) -> Result<Workload> {
    let (groups, elements) = (settings.get("groups"), settings.get("elements"));
    let arr = ArgumentSpec::Input {
        element: Type::F64,
        length: (groups * elements).max(1),
        fill: Fill::Pattern(Pattern::Fractions { low: 0.0 }),
    };
    let result = ArgumentSpec::Output {
        element: Type::F64,
        length: groups * settings.get("group"),
        fill: Fill::Uninitialized,
        compare: Compare::Bits,
    };
    launch(settings, kernel)
        .with("arr", arr)?
        .with("result", result)?
        .with("elements", ArgumentSpec::Scalar(Type::I32, elements))
}

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn both_shapes_compute_what_the_plain_loop_does() {
        let settings = ["groups=2", "group=32", "elements=200"];
        let plain = run("article", &settings).f64s("result");
        for distance in ["distance=1", "distance=3", "distance=16"] {
            for load in ["load=behind", "load=cases"] {
                let all = [&settings[..], &[distance, load]].concat();
                assert_eq!(
                    run("article-picked", &all).f64s("result"),
                    plain,
                    "{distance} {load}"
                );
            }
        }
    }
}
