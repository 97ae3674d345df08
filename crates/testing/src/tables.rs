//! The parameters of a random kernel, and the data that fits them.

use std::sync::Arc;

use crate::device::{Fill, Pattern};
use crate::ir::{Kernel, Param, PointerFacts, Races, Space, Type, Value};
use crate::random::Random;
use crate::tune::{ArgumentSpec, Compare};

/// Elements that all work-items change.
pub(super) const TALLIES: u64 = 8;

/// A global array.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub name: &'static str,
    pub pointer: Value,
    pub element: Type,
    pub length: u64,
    /// Its elements are indices below this.
    pub below: Option<u64>,
}

/// Everything that a random kernel is given.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Read only, of any index below their length.
    pub inputs: Vec<Table>,
    /// The work-items' trip counts, one each.
    pub counts: Table,
    /// An element each, read and written.
    pub kept: Table,
    /// A few elements that all change by atomic operations.
    pub tallies: Table,
    /// An element each, written.
    pub outputs: Vec<Table>,
    /// Scalars that are trip counts, and what they are: an `I32` and an `I64`.
    pub trips: [(Value, u64); 2],
    /// A `Bool`.
    pub flag: Value,
    /// A float of each size.
    pub scalars: [Value; 2],
    pub groups: u32,
    pub group: u32,
    /// Elements of an input that belong to one work-item.
    pub row: u64,
    given: Vec<ArgumentSpec>,
}

/// Declares parameters.
struct Declaring<'a> {
    kernel: &'a mut Kernel,
    random: &'a mut Random,
    given: Vec<ArgumentSpec>,
}

impl Tables {
    /// Declares the parameters; no trip count is above `trips`.
    pub fn declare(kernel: &mut Kernel, random: &mut Random, trips: u64) -> Tables {
        let groups = random.between(1, 2) as u32;
        let group = *random.choose(&[16, 32, 40, 64]);
        let items = u64::from(groups * group);
        let row = trips + 1;
        // No element more than the plain kernel may read, so that one too early or too far is noticed.
        let length = items * row;
        let below = *random.choose(&[40, 64, 100, 128]).min(&length);
        kernel.group_size = Some([group, 1, 1]);
        if random.chance(30) {
            kernel.sub_group_size = Some(32);
        }
        let mut declaring = Declaring {
            kernel,
            random,
            given: Vec::new(),
        };
        let mut inputs = Vec::new();
        for (name, element, indices) in [
            ("near", Type::I32, true),
            ("far", Type::I32, true),
            ("wide", Type::I64, true),
            ("flags", Type::I8, false),
            ("halves", Type::F16, false),
            ("floats", Type::F32, false),
            ("doubles", Type::F64, false),
        ] {
            inputs.push(declaring.input(name, element, length, indices.then_some(below)));
        }
        let counts = declaring.input("counts", Type::I32, items, Some(trips + 1));
        let kept = declaring.output(
            "kept",
            Type::F32,
            items,
            Fill::Pattern(Pattern::Fractions { low: 1.0 }),
        );
        let zero = Fill::Pattern(Pattern::Constant(0));
        let tallies = declaring.output("tallies", Type::I32, TALLIES, zero);
        let outputs = [Type::F32, Type::F64, Type::I32, Type::I64]
            .map(|element| {
                let fill = Fill::Pattern(Pattern::Constant(0));
                declaring.output(output_name(element), element, items, fill)
            })
            .to_vec();
        let trips = [("n", Type::I32), ("m", Type::I64)].map(|(name, ty)| {
            let trip = declaring.random.between(0, trips);
            (declaring.scalar(name, ty, trip), trip)
        });
        let truth = declaring.random.below(2);
        let flag = declaring.scalar("flag", Type::Bool, truth);
        let scalars = [
            declaring.scalar("scale", Type::F32, u64::from(0.75f32.to_bits())),
            declaring.scalar("offset", Type::F64, 1.25f64.to_bits()),
        ];
        let given = declaring.given;
        Tables {
            inputs,
            counts,
            kept,
            tallies,
            outputs,
            trips,
            flag,
            scalars,
            groups,
            group,
            row,
            given,
        }
    }

    /// Work-items of the launch.
    pub fn items(&self) -> u64 {
        u64::from(self.groups * self.group)
    }

    /// The launch of the finished kernel.
    pub fn workload(self, kernel: Kernel) -> crate::tune::Workload {
        crate::tune::Workload {
            kernel: Arc::new(kernel),
            groups: [self.groups, 1, 1],
            group: [self.group, 1, 1],
            given: self.given,
            original: None,
            placed: None,
            divides: None,
        }
    }
}

fn output_name(element: Type) -> &'static str {
    match element {
        Type::F32 => "out_f32",
        Type::F64 => "out_f64",
        Type::I32 => "out_i32",
        _ => "out_i64",
    }
}

impl Declaring<'_> {
    fn param(&mut self, name: &str, ty: Type, facts: Option<PointerFacts>) -> Value {
        let value = self.kernel.value(ty);
        self.kernel.params.push(Param {
            name: name.to_owned(),
            value,
            facts,
        });
        value
    }

    fn scalar(&mut self, name: &str, ty: Type, bits: u64) -> Value {
        self.given.push(ArgumentSpec::Scalar(ty, bits));
        self.param(name, ty, None)
    }

    /// A pointer and, mostly, its length.
    fn pointer(
        &mut self,
        name: &str,
        element: Type,
        length: u64,
        read_only: bool,
        given: ArgumentSpec,
    ) -> Value {
        self.given.push(given);
        let facts = |length| PointerFacts {
            element,
            align: 16,
            length,
            read_only,
            unaliased: true,
            is_constant: false,
            races: Races::None,
        };
        let value = self.param(name, Type::Ptr(Space::Global), Some(facts(None)));
        if self.random.chance(80) {
            let length = self.scalar(&format!("{name}_len"), Type::I64, length);
            let known = self.kernel.params.iter_mut().find(|param| param.value == value);
            if let Some(param) = known {
                param.facts = Some(facts(Some(length)));
            }
        }
        value
    }

    fn input(&mut self, name: &'static str, element: Type, length: u64, below: Option<u64>) -> Table {
        let seed = self.random.bits();
        let pattern = match below {
            Some(bound) => Pattern::Below { bound, seed },
            None if element == Type::I8 => Pattern::Below { bound: 4, seed },
            None => Pattern::Fractions { low: 1.0 },
        };
        let given = ArgumentSpec::Input {
            element,
            length,
            fill: Fill::Pattern(pattern),
        };
        Table {
            name,
            pointer: self.pointer(name, element, length, true, given),
            element,
            length,
            below,
        }
    }

    fn output(&mut self, name: &'static str, element: Type, length: u64, fill: Fill) -> Table {
        let given = ArgumentSpec::Output {
            element,
            length,
            fill,
            compare: Compare::Bits,
        };
        Table {
            name,
            pointer: self.pointer(name, element, length, false, given),
            element,
            length,
            below: None,
        }
    }
}
