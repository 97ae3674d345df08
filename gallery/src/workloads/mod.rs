//! Work that people really run and that waits for memory, and three kernels that should be left alone.
//!
//! Each file is one workload: the plain kernel, its data, and a check of its results against a few lines of ordinary Rust.
//! [`cases`] has the measured sizes.

pub mod attention;
pub mod bfs;
pub mod binary_search;
pub mod btree;
pub mod cases;
pub mod chase;
pub mod cross_section;
pub mod embedding_bag;
pub mod hash_probe;
pub mod nbody;
pub mod option_pricing;
pub mod pagerank;
pub mod select;
pub mod spmv;
pub mod triad;

use headstart::{Error, Result};

use crate::kernels::divided;
use crate::settings::Settings;

/// Work-groups for this many work-items.
fn groups_for(items: u64, group: u32) -> Result<u32> {
    u32::try_from(items.div_ceil(u64::from(group)).max(1)).map_err(|_| {
        Error::usage(format!(
            "{items} work-items are too many for work-groups of {group}"
        ))
        .accepted("larger work-groups, or less to do")
    })
}

/// As many searches, in other shares of a work-item and in work-groups of other sizes.
fn divided_searches(settings: &Settings) -> Vec<Settings> {
    let shares = divided(settings, "items", &[1, 4, 16]);
    [shares, divided(settings, "group", &[64, 128, 256, 512, 1024])].concat()
}

/// Refuses a setting that is no power of two.
fn power_of_two(name: &str, value: u32) -> Result<u32> {
    match value.is_power_of_two() {
        true => Ok(value),
        false => Err(Error::usage(format!("`{name}` cannot be {value}")).accepted("a power of two")),
    }
}

/// Refuses a setting that is no multiple of a sub-group.
fn whole_sub_groups(group: u32) -> Result<u32> {
    match group.is_multiple_of(32) {
        true => Ok(group),
        false => Err(Error::usage(format!("`group` cannot be {group}")).accepted("a multiple of 32")),
    }
}

/// Common code of the workloads' tests: running a kernel on the functional engine, and reading its data.
#[cfg(test)]
pub(crate) mod testing {
    use std::ops::Range;
    use std::sync::Arc;

    use headstart::device::sim::Simulator;
    use headstart::device::{Fill, Pattern};
    use headstart::ir::Type;
    use headstart::prefetch;
    use headstart::tune::{ArgumentSpec, Subject, Workload};

    use crate::kernels::{self, Chosen};

    /// A workload that ran, with its inputs and outputs by name.
    pub struct Ran {
        kernel: &'static str,
        parameters: Vec<(String, String)>,
        workload: Workload,
        outputs: Vec<Vec<u8>>,
    }

    /// A parameter's contents. Elements that follow from their index are computed on demand, however large the rest is.
    pub struct Held<'r> {
        element: Type,
        length: u64,
        contents: Contents<'r>,
    }

    enum Contents<'r> {
        Bytes(&'r [u8]),
        Pattern(&'r Pattern),
    }

    pub fn run(kernel: &str, settings: &[&str]) -> Ran {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let chosen = kernels::find(kernel).and_then(|kernel| kernel.with(&settings, None));
        let chosen = chosen.expect("settings");
        let workload = chosen.workload().expect("a workload");
        run_data(&chosen, workload)
    }

    /// The same with data that are there already.
    pub fn run_data(chosen: &Chosen, workload: Workload) -> Ran {
        let target = prefetch::PlanTarget::of(workload.group);
        let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes");
        let device = Simulator::untimed();
        let bound = workload.bind(&device).expect("it fits");
        let (_, outputs) = bound
            .run(&device, &Arc::new(plain))
            .unwrap_or_else(|error| panic!("{}: {error}", chosen.gallery_name()));
        Ran {
            kernel: chosen.gallery_name(),
            parameters: chosen.parameters(),
            workload,
            outputs,
        }
    }

    impl Ran {
        /// The kernel's name.
        pub fn kernel(&self) -> &'static str {
            self.kernel
        }

        /// Bytes of all buffers.
        pub fn bytes(&self) -> u64 {
            self.workload.bytes()
        }

        /// A setting as it is written.
        pub fn word(&self, name: &str) -> &str {
            let found = self.parameters.iter().find(|(known, _)| known == name);
            found.map_or("", |(_, value)| value)
        }

        /// A scalar's value.
        pub fn scalar(&self, name: &str) -> usize {
            let mut given = self.workload.given.iter().zip(&self.workload.kernel.params);
            let found = given.find_map(|(given, param)| match given {
                ArgumentSpec::Scalar(_, bits) if param.name == name => Some(*bits as usize),
                _ => None,
            });
            found.unwrap_or_else(|| panic!("there is no scalar `{name}`"))
        }

        /// A parameter's contents, after the launch if it is an output.
        pub fn of(&self, name: &str) -> Held<'_> {
            let mut outputs = self.outputs.iter();
            for (given, param) in self.workload.given.iter().zip(&self.workload.kernel.params) {
                let (element, length, contents) = match given {
                    ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. } => continue,
                    ArgumentSpec::Output { element, length, .. } => {
                        let bytes = outputs.next().expect("one each");
                        (*element, *length, Contents::Bytes(bytes))
                    }
                    ArgumentSpec::Input {
                        element,
                        length,
                        fill,
                    } => match fill {
                        Fill::Bytes(bytes) => (*element, *length, Contents::Bytes(bytes)),
                        Fill::Pattern(pattern) => (*element, *length, Contents::Pattern(pattern)),
                        Fill::Uninitialized => panic!("`{name}` holds nothing"),
                    },
                };
                if param.name == name {
                    return Held {
                        element,
                        length,
                        contents,
                    };
                }
            }
            panic!("there is no `{name}`");
        }

        pub fn u32s(&self, name: &str) -> Vec<u32> {
            self.of(name).all(Held::u32)
        }

        pub fn indices(&self, name: &str) -> Vec<usize> {
            self.of(name).all(Held::index)
        }

        pub fn f32s(&self, name: &str) -> Vec<f32> {
            self.of(name).all(Held::f32)
        }

        pub fn f64s(&self, name: &str) -> Vec<f64> {
            self.of(name).all(Held::f64)
        }
    }

    impl Held<'_> {
        pub fn len(&self) -> usize {
            self.length as usize
        }

        pub fn bits(&self, index: usize) -> u64 {
            match self.contents {
                Contents::Pattern(pattern) => pattern.bits(self.element, index as u64),
                Contents::Bytes(bytes) => {
                    let size = self.element.bytes() as usize;
                    let mut own = [0; 8];
                    own[..size].copy_from_slice(&bytes[index * size..][..size]);
                    u64::from_le_bytes(own)
                }
            }
        }

        pub fn u32(&self, index: usize) -> u32 {
            self.bits(index) as u32
        }

        pub fn index(&self, index: usize) -> usize {
            self.bits(index) as usize
        }

        /// A half float or a float.
        pub fn f32(&self, index: usize) -> f32 {
            match self.element {
                Type::F16 => half::f16::from_bits(self.bits(index) as u16).to_f32(),
                _ => f32::from_bits(self.u32(index)),
            }
        }

        pub fn f64(&self, index: usize) -> f64 {
            f64::from_bits(self.bits(index))
        }

        /// How many of these integers, which are sorted, are smaller than a number.
        pub fn smaller(&self, places: Range<usize>, number: u32) -> u32 {
            let (mut low, mut high) = (places.start, places.end);
            while low < high {
                let middle = low + (high - low) / 2;
                match self.u32(middle) < number {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            (low - places.start) as u32
        }

        fn all<T>(&self, of: impl Fn(&Self, usize) -> T) -> Vec<T> {
            (0..self.len()).map(|index| of(self, index)).collect()
        }
    }

    /// Numbers that differ by no more than this share of the larger one.
    pub fn close(found: &[f32], expected: &[f32], share: f32) {
        assert_eq!(found.len(), expected.len());
        for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            let apart = (found - expected).abs();
            assert!(
                apart <= share * found.abs().max(expected.abs()),
                "element {index}: {found} is not {expected}"
            );
        }
    }
}
