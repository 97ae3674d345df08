//! A kernel: its parameters, arrays, values, labels, source places, loads, and its body.

use std::borrow::Cow;

use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap, entity_impl};

use super::hint::{CacheLevel, HintSource};
use super::op::{Op, OpKind};
use super::types::{Space, Type};
use crate::names;

/// A value: a parameter, a constant, or the result of one operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// A target of `Break` and `Continue`: a block, `if` or loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);
entity_impl!(Label, "label");

/// A shared or private array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Array(u32);
entity_impl!(Array, "array");

/// A load of the source. Copies of it that passes make keep its identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(u32);
entity_impl!(LoadId, "load");

/// A place in the source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(u32);
entity_impl!(Place, "place");

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// Its shared and private arrays.
    pub arrays: PrimaryMap<Array, ArrayData>,
    /// The work-group size that a launch must have, if it must; `[x, 1, 1]` for one dimension.
    pub group_size: Option<[u32; 3]>,
    /// The sub-group size that a launch must have, if it must.
    pub sub_group_size: Option<u32>,
    /// The most 32-bit registers that the compiler may give a work-item, where that is not left to the compiler. It changes
    /// no result.
    pub max_registers: Option<u32>,
    /// The plan that it was derived with, if it was.
    pub derivation: Option<Derivation>,
    /// What devices may do with its floats; Rust kernels permit nothing unless they say so.
    pub float_mode: FloatMode,
    /// Every value, with its type.
    pub values: PrimaryMap<Value, ValueData>,
    /// Every label, with its name.
    pub labels: PrimaryMap<Label, LabelData>,
    /// Every source place. [`Kernel::NOWHERE`] is always there.
    pub places: PrimaryMap<Place, PlaceData>,
    /// Every load of the source.
    pub loads: PrimaryMap<LoadId, LoadData>,
    /// The code of each work-item. Its terminator is `Return`.
    pub body: Region,
}

/// How a kernel was derived from a plain one: the same can be done where the plain one came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    /// The plan's spelling.
    pub plan: String,
    /// The work-group size that it was carried out for, if that was known.
    pub group_size: Option<[u32; 3]>,
    /// Bytes of a cache line.
    pub line: u32,
}

/// A list of operations that ends with a terminator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// The operations, in order.
    pub ops: Vec<Op>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name in the source.
    pub name: String,
    /// Its value inside the kernel.
    pub value: Value,
    /// The facts about a pointer.
    pub facts: Option<PointerFacts>,
}

/// The facts about a pointer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerFacts {
    /// Type of the elements.
    pub element: Type,
    /// Alignment of the first element, in bytes.
    pub align: u32,
    /// The value (an `I64` parameter or constant) that says how many elements there are.
    pub length: Option<Value>,
    /// Nothing writes, while the kernel runs, the memory that is read through this pointer.
    pub read_only: bool,
    /// Memory accessed through this pointer is accessed through no other parameter (unless both only read).
    pub unaliased: bool,
    /// It lies where only loads of a kind of their own read it, through a cache of their own: CUDA's constant memory, or a
    /// structure that is passed by value. Nothing can be prefetched there, or copied from there asynchronously.
    pub is_constant: bool,
    /// The intended races on memory accessed through this pointer.
    pub races: Races,
}

/// Which races for some memory are meant, beyond writes of the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Races {
    /// None.
    #[default]
    None,
    /// A reader may see the old contents or concurrent writes: either is correct.
    Reads,
    /// Any, of different values, too: whichever is left is right.
    Any,
}

impl Races {
    /// All of them.
    pub(crate) const ALL: &'static [Races] = &[Races::None, Races::Reads, Races::Any];

    /// How the text form says it; nothing for none.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Races::None => "",
            Races::Reads => "racing_reads",
            Races::Any => "racing",
        }
    }
}

/// A shared or private array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayData {
    /// Its name in the source.
    pub name: String,
    /// `Shared` or `Private`.
    pub space: Space,
    /// Type of the elements.
    pub element: Type,
    /// Number of elements.
    pub length: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// Its bits, if it is a constant; a constant needs no operation and may be used anywhere.
    pub constant: Option<u64>,
    /// A name from the source, for readers only.
    pub name: Option<String>,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelData {
    /// A name from the source; plans name loops by it.
    pub name: Option<String>,
    /// The types of a `Break`'s values.
    pub results: Vec<Type>,
    /// The edge of a loop that is to be cut out, for a block that does nothing but pass values over it.
    pub edge: Option<CutEdge>,
    /// Of a loop: loads that a test in front lets cross its stores into the same memory, as far as strides decide, up to this many
    /// iterations early. It lasts as long as a plan is carried out, and is no part of the text form.
    pub apart: Vec<(LoadId, u32)>,
    /// Of a loop: the entry's own text does not have it, as in a function that it calls, and no plan changes it. No part of the
    /// text form.
    pub is_called: bool,
}

/// An edge of a loop that is to be [cut out](crate::cut).
///
/// ```text
/// %1, %2 = block 'enter { break 'enter (%r, %p) }        in front of the loop: all that it reads of the code around
/// loop 'l (%i = %1, …) { … }                             what a plan made of it
/// block 'leave { break 'leave () }                       behind it: the way to the loop as it was
/// ```
///
/// Such a block and its results stay, whatever is known of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutEdge {
    /// In front of the loop of this number.
    Enter(u32),
    /// Behind what was made of the loop of this number.
    Leave(u32),
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlaceData {
    /// The file, as the compiler names it; empty if unknown.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Where the function that this place lies in was called, if it was inlined.
    pub inlined_at: Option<Place>,
}

/// A load of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadData {
    /// The parameter (or array) it reads, as plans name it.
    pub name: String,
    /// Where it is written.
    pub place: Place,
    /// The program states that nothing writes this load's source while the kernel runs, as `ld.global.nc` does. It says nothing
    /// about other loads of the same memory.
    pub constant: bool,
}

impl LoadData {
    /// A load of which the program says no more than that it is there.
    pub fn new(name: impl Into<String>, place: Place) -> LoadData {
        LoadData {
            name: name.into(),
            place,
            constant: false,
        }
    }
}

/// Permissions for the whole kernel. Rounding and flushing belong to each operation
/// ([`FloatRule`](super::FloatRule)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// Which bits a NaN has that arithmetic makes is left to the device; the simulator makes the canonical one.
    pub any_nan: bool,
    /// How far plain divisions and square roots of `f32` may be off; the simulator rounds them.
    pub accuracy: Accuracy,
}

/// The accuracy of divisions and square roots of `f32` that round to nearest and keep subnormal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Accuracy {
    /// Rounded correctly, as Rust and CUDA have them, and OpenCL's `-cl-fp32-correctly-rounded-divide-sqrt`.
    #[default]
    Rounded,
    /// Within 2.5 and 3 units in the last place, as OpenCL and DPC++ build without an option.
    OpenCl,
    /// The same, and x / y may be x × (1 / y), as `-cl-fast-relaxed-math` and SPIR-V's fast-math decorations allow.
    Fast,
}

impl Accuracy {
    /// Every accuracy, from the strictest on.
    pub(crate) const ALL: [Accuracy; 3] = [Accuracy::Rounded, Accuracy::OpenCl, Accuracy::Fast];

    /// As `--accuracy` and the text form spell it.
    pub fn name(self) -> &'static str {
        match self {
            Accuracy::Rounded => "rounded",
            Accuracy::OpenCl => "opencl",
            Accuracy::Fast => "fast",
        }
    }
}

impl Kernel {
    /// Its name as people read it.
    pub fn shown(&self) -> Cow<'_, str> {
        names::shown(&self.name)
    }

    /// The place of operations whose source is unknown.
    pub const NOWHERE: Place = Place(0);

    /// An empty kernel, to be filled.
    pub fn new(name: impl Into<String>) -> Kernel {
        let mut places = PrimaryMap::new();
        places.push(PlaceData {
            file: String::new(),
            line: 0,
            column: 0,
            inlined_at: None,
        });
        Kernel {
            name: name.into(),
            params: Vec::new(),
            arrays: PrimaryMap::new(),
            group_size: None,
            sub_group_size: None,
            max_registers: None,
            derivation: None,
            float_mode: FloatMode::default(),
            values: PrimaryMap::new(),
            labels: PrimaryMap::new(),
            places,
            loads: PrimaryMap::new(),
            body: Region::default(),
        }
    }

    /// A new value of a type, not yet defined by anything.
    pub fn value(&mut self, ty: Type) -> Value {
        self.values.push(ValueData {
            ty,
            constant: None,
            name: None,
        })
    }

    /// A new value like another: its type and name.
    pub fn value_like(&mut self, other: Value) -> Value {
        let ValueData { ty, name, .. } = self.values[other].clone();
        self.values.push(ValueData {
            ty,
            constant: None,
            name,
        })
    }

    /// A constant. `bits` beyond the type's width are dropped.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.values.push(ValueData {
            ty,
            constant: Some(bits & ty.mask()),
            name: None,
        })
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// The bits of a constant.
    pub fn as_constant(&self, value: Value) -> Option<u64> {
        self.values[value].constant
    }

    /// A new label whose `Break` passes values of these types.
    pub fn label(&mut self, name: Option<String>, results: Vec<Type>) -> Label {
        let edge = None;
        self.labels.push(LabelData {
            name,
            results,
            edge,
            apart: Vec::new(),
            is_called: false,
        })
    }

    /// Whether the block of this label is an [edge](CutEdge).
    pub(crate) fn is_edge(&self, label: Label) -> bool {
        self.labels[label].edge.is_some()
    }

    /// The parameter whose value this is.
    pub fn param_of(&self, value: Value) -> Option<&Param> {
        self.params.iter().find(|param| param.value == value)
    }

    /// The parameter of this name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// Whether it has prefetches to whichever level a launch says.
    pub fn has_default_level(&self) -> bool {
        let mut found = false;
        self.body.walk(&mut |op| {
            found |= matches!(&op.kind, OpKind::Prefetch { source, .. } if *source == HintSource::Default);
        });
        found
    }

    /// The kernel for launches whose prefetches without a level go to `level`.
    #[must_use]
    pub fn with_default_level(&self, level: CacheLevel) -> Kernel {
        let mut kernel = self.clone();
        kernel.body.walk_mut(&mut |op| {
            if let OpKind::Prefetch { hint, source, .. } = &mut op.kind
                && *source == HintSource::Default
            {
                hint.level = level;
            }
        });
        kernel
    }

    /// Bytes of shared memory that the arrays of one work-group take, each at its alignment, in order.
    pub fn shared_bytes(&self) -> u64 {
        self.space_bytes(Space::Shared)
    }

    /// Bytes of private memory that the arrays of one work-item take.
    pub fn private_bytes(&self) -> u64 {
        self.space_bytes(Space::Private)
    }

    fn space_bytes(&self, space: Space) -> u64 {
        let arrays = self
            .arrays
            .keys()
            .filter(|&array| self.arrays[array].space == space);
        arrays
            .map(|array| self.array_offset(array) + self.arrays[array].bytes())
            .max()
            .unwrap_or(0)
    }

    /// Where an array starts in its space, in bytes: arrays lie in order, each at its alignment.
    pub fn array_offset(&self, array: Array) -> u64 {
        let space = self.arrays[array].space;
        let mut end = 0u64;
        for (other, data) in self.arrays.iter().filter(|(_, data)| data.space == space) {
            let start = end.next_multiple_of(u64::from(data.align.max(1)));
            if other == array {
                return start;
            }
            end = start + data.bytes();
        }
        end
    }

    /// What a value is called in messages.
    pub fn describe_value(&self, value: Value) -> String {
        match &self.values[value].name {
            Some(name) => format!("`{name}`"),
            None => "a value".to_owned(),
        }
    }

    /// A place as people read it: `gather.rs:41:9`, with the calls it was inlined through.
    pub fn describe_place(&self, place: Place) -> String {
        let data = &self.places[place];
        let mut text = match (data.file.is_empty(), data.line, data.column) {
            (true, 0, _) => format!("kernel `{}`", self.name),
            (true, line, 0) => format!("line {line}"),
            (true, line, column) => format!("line {line}:{column}"),
            (false, 0, _) => data.file.clone(),
            (false, line, 0) => format!("{}:{line}", data.file),
            (false, line, column) => format!("{}:{line}:{column}", data.file),
        };
        if let Some(call) = data.inlined_at {
            text.push_str(" (called at ");
            text.push_str(&self.describe_place(call));
            text.push(')');
        }
        text
    }
}

impl ArrayData {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.length) * u64::from(self.element.bytes())
    }
}

impl Region {
    /// The terminator, if the region has one already.
    pub fn terminator(&self) -> Option<&Op> {
        self.ops.last().filter(|op| op.kind.is_terminator())
    }

    /// Calls `visit` on each operation, outer ones first, in order.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Op)) {
        for op in &self.ops {
            visit(op);
            for region in op.kind.regions() {
                region.walk(visit);
            }
        }
    }

    /// The operation that makes each value that one in here makes.
    pub fn makers(&self) -> SecondaryMap<Value, Option<&Op>> {
        let mut makers = SecondaryMap::new();
        self.walk(&mut |op| op.results.iter().for_each(|&result| makers[result] = Some(op)));
        makers
    }

    /// These parameters of a loop whose body this is, and everything that is defined in here.
    pub fn defined(&self, params: &[Value]) -> EntitySet<Value> {
        let mut defined = EntitySet::new();
        defined.extend(params.iter().copied());
        self.walk(&mut |op| {
            defined.extend(op.results.iter().copied());
            if let OpKind::Loop { params, .. } = &op.kind {
                defined.extend(params.iter().copied());
            }
        });
        defined
    }

    /// How many ways there are from here around the loop of a label.
    pub fn continues(&self, label: Label) -> usize {
        let mut count = 0;
        self.walk(&mut |op| {
            count += usize::from(matches!(&op.kind, OpKind::Continue(to, _) if *to == label))
        });
        count
    }

    /// Whether a jump in here leaves for the code behind a label's operation.
    pub fn breaks_to(&self, label: Label) -> bool {
        let mut found = false;
        self.walk(&mut |op| found |= matches!(&op.kind, OpKind::Break(to, _) if *to == label));
        found
    }

    /// Calls `visit` on each operation, outer ones first, in order, to change it.
    pub fn walk_mut(&mut self, visit: &mut impl FnMut(&mut Op)) {
        for op in &mut self.ops {
            visit(op);
            for region in op.kind.regions_mut() {
                region.walk_mut(visit);
            }
        }
    }
}
