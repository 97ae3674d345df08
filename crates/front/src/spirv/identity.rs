//! A work-item's ids and sizes: the built-in variables, and Intel's functions that are known by name.

use rspirv::spirv::BuiltIn;

use super::translate::{At, Translator};
use super::types::Part;
use crate::error::{Error, Result};
use crate::ir::{
    Builder, CompareOp, ConvertOp, HintSource, Id, LscControl, NoWrapOp, OpKind, PrefetchScope, Type, Value,
    Wrap,
};
use crate::middle::Values;
use crate::suggest::quoted;

impl Translator<'_, '_> {
    /// What a built-in variable holds, as numbers of these types.
    pub(crate) fn identity(
        &mut self,
        b: &mut Builder<'_>,
        built_in: u32,
        parts: &[Part],
    ) -> Result<Vec<Value>> {
        let which = BuiltIn::from_u32(built_in);
        let mut made = Vec::with_capacity(parts.len());
        for (dimension, &(_, ty)) in (0u8..).zip(parts) {
            let dimension = dimension.min(2);
            let one = match which {
                Some(BuiltIn::WorkDim) => self.work_dimensions(b),
                Some(BuiltIn::GlobalSize) => {
                    let (count, size) = (b.id(Id::GroupCount(dimension)), b.id(Id::GroupSize(dimension)));
                    b.no_wrap(NoWrapOp::Mul, Wrap::Neither, count, size)
                }
                // Launches start at the origin.
                Some(BuiltIn::GlobalOffset) => b.i32(0),
                Some(BuiltIn::WorkgroupSize | BuiltIn::EnqueuedWorkgroupSize) => {
                    b.id(Id::GroupSize(dimension))
                }
                Some(BuiltIn::NumWorkgroups) => b.id(Id::GroupCount(dimension)),
                Some(BuiltIn::WorkgroupId) => b.id(Id::Group(dimension)),
                Some(BuiltIn::LocalInvocationId) => b.id(Id::Local(dimension)),
                Some(BuiltIn::GlobalInvocationId) => global_id(b, dimension),
                Some(BuiltIn::LocalInvocationIndex) => super::groups::linear(b),
                Some(BuiltIn::GlobalLinearId) => self.global_linear(b),
                Some(BuiltIn::SubgroupSize) => b.id(Id::SubGroupSize),
                Some(BuiltIn::SubgroupMaxSize) => b.id(Id::MaxSubGroupSize),
                Some(BuiltIn::NumSubgroups | BuiltIn::NumEnqueuedSubgroups) => b.id(Id::SubGroupCount),
                Some(BuiltIn::SubgroupId) => b.id(Id::SubGroup),
                Some(BuiltIn::SubgroupLocalInvocationId) => b.id(Id::Lane),
                _ => {
                    let name = which.map_or(format!("{built_in}"), |which| format!("{which:?}"));
                    return Err(Error::input(format!(
                        "built-in variable {} is not supported",
                        quoted(&name)
                    ))
                    .accepted(
                        "those of OpenCL: ids, sizes and counts of work-items, sub-groups and work-groups",
                    ));
                }
            };
            made.push(self.widened(b, one, ty)?);
        }
        Ok(made)
    }

    /// A number of 32 bits as one of the type that the module wants, which is known in both.
    fn widened(&mut self, b: &mut Builder<'_>, one: Value, ty: Type) -> Result<Value> {
        Ok(match ty {
            Type::I32 => one,
            Type::I64 => {
                let wide = b.convert(ConvertOp::ExtendU, Type::I64, one);
                self.narrow.insert(wide, one);
                wide
            }
            _ => {
                return Err(Error::input(
                    "a built-in variable is not a 32-bit or 64-bit number",
                ));
            }
        })
    }

    fn work_dimensions(&mut self, b: &mut Builder<'_>) -> Value {
        // The module says no more than how far each dimension goes.
        let mut made = b.i32(1);
        for (dimension, number) in [(1, 2), (2, 3)] {
            let (count, size) = (b.id(Id::GroupCount(dimension)), b.id(Id::GroupSize(dimension)));
            let all = b.mul(count, size);
            let one = b.i32(1);
            let more = b.compare(CompareOp::LtU, one, all);
            let number = b.i32(number);
            made = b.select(more, number, made);
        }
        made
    }

    fn global_linear(&mut self, b: &mut Builder<'_>) -> Value {
        let [x, y, z] = [0, 1, 2].map(|dimension| global_id(b, dimension));
        let [width, height] = [0, 1].map(|dimension| {
            let (count, size) = (b.id(Id::GroupCount(dimension)), b.id(Id::GroupSize(dimension)));
            b.mul(count, size)
        });
        let plane = b.mul(z, height);
        let row = b.add(plane, y);
        let row = b.mul(row, width);
        b.add(row, x)
    }

    /// The cache control that a pointer's prefetches are decorated with.
    pub(crate) fn controlled_prefetch(&self, pointer: u32) -> Option<LscControl> {
        use crate::ir::CacheUse;
        match self.controlled(pointer) {
            Some(CacheUse::Control(control)) => Some(control),
            _ => None,
        }
    }

    /// A call of a function that is known by name: `__builtin_IB_lsc_prefetch_global_uint4(base, offset, control)`.
    pub(crate) fn builtin(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        at: &At<'_, '_>,
    ) -> Result<()> {
        let callee = at.instruction.word(2)?;
        let name = self.module.imported(callee).or_else(|| self.module.name(callee));
        let name = name.unwrap_or_else(|| format!("%{callee}"));
        let known = [
            ("__builtin_IB_lsc_prefetch_global_", true),
            ("__builtin_IB_lsc_load_global_", false),
        ];
        let found = known
            .into_iter()
            .find_map(|(start, is_hint)| Some((name.strip_prefix(start)?, is_hint)));
        let Some((element, is_hint)) = found else {
            let shown = crate::names::shown(&name);
            return Err(
                Error::input(format!("it calls {}, which has no body in this module", quoted(&shown))).accepted(
                    "functions with a body; `__builtin_IB_lsc_prefetch_global_…` and `__builtin_IB_lsc_load_global_…`",
                ),
            );
        };
        let (bytes, count) = lsc_element(element)
            .ok_or_else(|| Error::input(format!("{} has no element that is known", quoted(&name))))?;
        let from = at.operand(3)?;
        let base = self.value(b, values, from)?;
        let offset = self.value(b, values, at.operand(4)?)?;
        let offset = b.convert(ConvertOp::ExtendS, Type::I64, offset);
        let number = self.number(at.operand(5)?)?;
        let control = LscControl::ALL
            .iter()
            .copied()
            .find(|control| u64::from(control.number()) == number)
            .ok_or_else(|| {
                Error::input(format!("{number} is not a cache control"))
                    .accepted("0 to 7, as the oneAPI optimization guide numbers them")
            })?;
        let ptr = self.shapes.address(b, base, offset, bytes * count, 0);
        if is_hint {
            let kind = OpKind::Prefetch {
                ptr,
                bytes: bytes * count,
                count: None,
                hint: control.nearest(),
                source: HintSource::Control(control),
                scope: PrefetchScope::WorkItem,
                id: None,
            };
            b.push(kind, &[]);
            return Ok(());
        }
        let id = self.new_load(b);
        let parts = self.module.parts(at.ty()?)?;
        let mut made = Vec::with_capacity(parts.len());
        for &(offset, ty) in &parts {
            let own = self.shapes.offset(b, ptr, offset as i64);
            let cache = control.load();
            made.extend(b.push(OpKind::Load { ptr: own, id, cache }, &[ty]));
        }
        self.set(values, at, made)
    }
}

/// Bytes of a word, and how many words, of a name such as `uint4`.
fn lsc_element(name: &str) -> Option<(u32, u32)> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let (word, count) = (&name[..name.len() - digits.len()], digits);
    // `uchar_from_uint` and the like are numbers that are widened.
    let bytes = match word {
        "uchar" => 1,
        "ushort" => 2,
        "uint" => 4,
        "ulong" => 8,
        _ => return None,
    };
    match count {
        "" => Some((bytes, 1)),
        _ => Some((
            bytes,
            count.parse().ok().filter(|count| (1..=64).contains(count))?,
        )),
    }
}

/// The work-item's position in the launch: no launch has more in a dimension than 32 bits count.
fn global_id(b: &mut Builder<'_>, dimension: u8) -> Value {
    let (group, size) = (b.id(Id::Group(dimension)), b.id(Id::GroupSize(dimension)));
    let local = b.id(Id::Local(dimension));
    let start = b.no_wrap(NoWrapOp::Mul, Wrap::Neither, group, size);
    b.no_wrap(NoWrapOp::Add, Wrap::Neither, start, local)
}
