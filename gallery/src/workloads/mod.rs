//! Work that people really run and that waits for memory, and three kernels that should be left alone.
//!
//! Each file is one workload: the plain kernel, its data, and a check of what it computes against a few lines of
//! ordinary Rust.

pub mod attention;
pub mod bfs;
pub mod binary_search;
pub mod btree;
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

/// Work-groups for so many work-items.
fn groups_for(items: u64, group: u32) -> Result<u32> {
    u32::try_from(items.div_ceil(u64::from(group)).max(1)).map_err(|_| {
        Error::usage(format!(
            "{items} work-items are too many for work-groups of {group}"
        ))
        .accepted("larger work-groups, or less to do")
    })
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

/// What the tests of the workloads share: run a kernel on the functional engine, see its data.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::Arc;

    use headstart::device::Fill;
    use headstart::device::sim::Simulator;
    use headstart::ir::Type;
    use headstart::prefetch;
    use headstart::tune::{Given, Subject, Workload};

    use crate::kernels;

    /// A workload that ran, with its inputs and outputs by name.
    pub struct Ran {
        workload: Workload,
        outputs: Vec<Vec<u8>>,
    }

    pub fn run(kernel: &str, settings: &[&str]) -> Ran {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let chosen = kernels::find(kernel).and_then(|kernel| kernel.with(&settings, None));
        let workload = chosen.and_then(|chosen| chosen.workload()).expect("a workload");
        let target = prefetch::Target {
            group_size: Some(workload.group),
            ..prefetch::Target::default()
        };
        let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes");
        let device = Simulator::untimed();
        let bound = workload.bind(&device).expect("it fits");
        let (_, outputs) = bound
            .run(&device, &Arc::new(plain))
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        Ran { workload, outputs }
    }

    impl Ran {
        /// The bits of every element of a parameter.
        pub fn bits(&self, name: &str) -> Vec<u64> {
            let given = self.workload.given.iter().zip(&self.workload.kernel.params);
            let mut outputs = self.outputs.iter();
            for (given, param) in given {
                let (element, bytes): (Type, Vec<u8>) = match given {
                    Given::Scalar(..) => continue,
                    Given::Output { element, .. } => (*element, outputs.next().expect("one each").clone()),
                    Given::Input {
                        element,
                        length,
                        fill,
                    } if param.name == name => match fill {
                        Fill::Bytes(bytes) => (*element, bytes.to_vec()),
                        Fill::Pattern(pattern) => (*element, pattern.bytes(*element, 0, *length)),
                        Fill::Uninitialized => panic!("`{name}` holds nothing"),
                    },
                    Given::Input { .. } => continue,
                };
                if param.name == name {
                    let number = |bytes: &[u8]| {
                        bytes
                            .iter()
                            .rev()
                            .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
                    };
                    return bytes.chunks_exact(element.bytes() as usize).map(number).collect();
                }
            }
            panic!("there is no `{name}`");
        }

        pub fn u32s(&self, name: &str) -> Vec<u32> {
            self.bits(name).into_iter().map(|bits| bits as u32).collect()
        }

        pub fn indices(&self, name: &str) -> Vec<usize> {
            self.bits(name).into_iter().map(|bits| bits as usize).collect()
        }

        pub fn f32s(&self, name: &str) -> Vec<f32> {
            self.u32s(name).into_iter().map(f32::from_bits).collect()
        }

        pub fn f64s(&self, name: &str) -> Vec<f64> {
            self.bits(name).into_iter().map(f64::from_bits).collect()
        }

        pub fn f16s(&self, name: &str) -> Vec<f32> {
            let float = |bits: u64| half::f16::from_bits(bits as u16).to_f32();
            self.bits(name).into_iter().map(float).collect()
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
