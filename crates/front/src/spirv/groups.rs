//! What work-items of a sub-group or a work-group do together: votes, exchanges, sums and scans, block accesses.
//!
//! ```text
//! %s = OpGroupIAdd %int Subgroup Reduce %x            reduce add %x
//! %s = OpGroupFAdd %float Subgroup InclusiveScan %x   loop over the sub-group's work-items: shuffle, add where not above
//! %s = OpGroupIAdd %int Workgroup Reduce %x           shared array; barrier; loop over it; barrier
//! ```

use rspirv::spirv::{GroupOperation, Op, Scope};

use super::translate::{At, Here, Translator};
use super::words::refused;
use crate::error::{Error, Result};
use crate::ir::{
    Array, ArrayData, BinaryOp, Builder, CacheHint, CacheLevel, CacheUse, CompareOp, ConvertOp, GroupVoteOp,
    HintSource, Id, LoopWishes, OpKind, PrefetchScope, ReduceOp, ShuffleOp, Space, Type, UnrollWish, Value,
    VoteOp,
};
use crate::middle::Values;

/// Most work-items of a work-group that exchange through an array.
const MOST_ITEMS: u32 = 1024;

/// Who works together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    SubGroup,
    WorkGroup,
}

impl Translator<'_, '_> {
    /// Whether an instruction is one of a sub-group or a work-group.
    pub(crate) fn is_of_group(&self, op: Op) -> bool {
        let name = format!("{op:?}");
        name.starts_with("Group") && !name.starts_with("GroupAsync") && name != "GroupWaitEvents"
            || name.starts_with("Subgroup") && !name.contains("Image") && !name.contains("Avc")
    }

    /// Refuses what is not of the whole work-group.
    pub(crate) fn of_the_work_group(&self, at: &At<'_, '_>, number: usize) -> Result<()> {
        match self.who(at, number)? {
            Who::WorkGroup => Ok(()),
            Who::SubGroup => Err(refused(&at.instruction).accepted("the scope of a work-group")),
        }
    }

    fn who(&self, at: &At<'_, '_>, number: usize) -> Result<Who> {
        let scope = self.number(at.operand(number)?)?;
        match u32::try_from(scope).ok().and_then(Scope::from_u32) {
            Some(Scope::Subgroup) => Ok(Who::SubGroup),
            Some(Scope::Workgroup) => Ok(Who::WorkGroup),
            _ => Err(
                Error::input(format!("work-items of scope {scope} do nothing together"))
                    .accepted("scope 2, the work-group, or 3, the sub-group"),
            ),
        }
    }

    /// An instruction of a group.
    pub(super) fn group(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        at: &At<'_, '_>,
        op: Op,
    ) -> Result<()> {
        let made = match op {
            Op::SubgroupBlockWriteINTEL => return self.block_write((b, values, at)),
            Op::SubgroupBlockPrefetchINTEL => return self.block_prefetch((b, values, at)),
            Op::SubgroupBlockReadINTEL => self.block_read((b, values, at))?,
            Op::SubgroupShuffleINTEL | Op::SubgroupShuffleXorINTEL => {
                let code = match op {
                    Op::SubgroupShuffleINTEL => ShuffleOp::Index,
                    _ => ShuffleOp::Xor,
                };
                self.exchanged((b, values, at), code, 2)?
            }
            Op::SubgroupShuffleDownINTEL | Op::SubgroupShuffleUpINTEL => self.shifted((b, values, at), op)?,
            Op::GroupAll | Op::GroupAny | Op::GroupNonUniformAll | Op::GroupNonUniformAny => {
                let who = self.who(at, 2)?;
                let value = self.value(b, values, at.operand(3)?)?;
                let any = matches!(op, Op::GroupAny | Op::GroupNonUniformAny);
                vec![match (who, any) {
                    (Who::SubGroup, true) => b.vote(VoteOp::Any, value),
                    (Who::SubGroup, false) => b.vote(VoteOp::All, value),
                    (Who::WorkGroup, true) => b.group_vote(GroupVoteOp::Any, value),
                    (Who::WorkGroup, false) => b.group_vote(GroupVoteOp::All, value),
                }]
            }
            Op::GroupNonUniformAllEqual => {
                let own = self.value(b, values, at.operand(3)?)?;
                let zero = b.i32(0);
                let first = b.shuffle(ShuffleOp::Index, own, zero);
                let ty = b.kernel.ty(own);
                let code = if ty.is_float() {
                    CompareOp::FEq
                } else {
                    CompareOp::Eq
                };
                let same = b.compare(code, own, first);
                vec![b.vote(VoteOp::All, same)]
            }
            Op::GroupNonUniformElect => {
                let lane = b.id(Id::Lane);
                let zero = b.i32(0);
                vec![b.compare(CompareOp::Eq, lane, zero)]
            }
            Op::GroupNonUniformBallot => {
                let value = self.value(b, values, at.operand(3)?)?;
                let mask = b.vote(VoteOp::Ballot, value);
                let zero = b.i32(0);
                vec![mask, zero, zero, zero]
            }
            Op::GroupBroadcast | Op::GroupNonUniformBroadcast => match self.who(at, 2)? {
                Who::SubGroup => self.exchanged((b, values, at), ShuffleOp::Index, 3)?,
                Who::WorkGroup => self.broadcast((b, values, at))?,
            },
            Op::GroupNonUniformBroadcastFirst => {
                let own = self.values(b, values, at.operand(3)?)?;
                let zero = b.i32(0);
                own.into_iter()
                    .map(|own| b.shuffle(ShuffleOp::Index, own, zero))
                    .collect()
            }
            Op::GroupNonUniformShuffle => self.exchanged((b, values, at), ShuffleOp::Index, 3)?,
            Op::GroupNonUniformShuffleXor => self.exchanged((b, values, at), ShuffleOp::Xor, 3)?,
            Op::GroupNonUniformShuffleUp => self.exchanged((b, values, at), ShuffleOp::Up, 3)?,
            Op::GroupNonUniformShuffleDown => self.exchanged((b, values, at), ShuffleOp::Down, 3)?,
            _ => self.combined((b, values, at), op)?,
        };
        self.set(values, at, made)
    }

    /// A value of another work-item of the sub-group.
    fn exchanged(
        &mut self,
        (b, values, at): Here<'_, '_, '_>,
        op: ShuffleOp,
        first: usize,
    ) -> Result<Vec<Value>> {
        let own = self.values(b, values, at.operand(first)?)?;
        let by = self.values(b, values, at.operand(first + 1)?)?;
        let by = *by.first().ok_or_else(|| refused(&at.instruction))?;
        let by = super::arithmetic::resized(b, by, Type::I32);
        Ok(own.into_iter().map(|own| b.shuffle(op, own, by)).collect())
    }

    /// Intel's shuffles up and down, which go on in a second value.
    fn shifted(&mut self, (b, values, at): Here<'_, '_, '_>, op: Op) -> Result<Vec<Value>> {
        let first = self.values(b, values, at.operand(2)?)?;
        let second = self.values(b, values, at.operand(3)?)?;
        let by = self.value(b, values, at.operand(4)?)?;
        let lane = b.id(Id::Lane);
        let size = b.id(Id::MaxSubGroupSize);
        // Up: below the first work-item come the last ones of the value before. Down: above the last one come the first
        // ones of the value behind.
        let from = match op {
            Op::SubgroupShuffleDownINTEL => b.add(lane, by),
            _ => b.sub(lane, by),
        };
        let inside = b.compare(CompareOp::LtU, from, size);
        let around = match op {
            Op::SubgroupShuffleDownINTEL => b.sub(from, size),
            _ => b.add(from, size),
        };
        let mut made = Vec::new();
        for (&first, &second) in first.iter().zip(&second) {
            let (own, other) = match op {
                Op::SubgroupShuffleDownINTEL => (first, second),
                _ => (second, first),
            };
            let near = b.shuffle(ShuffleOp::Index, own, from);
            let far = b.shuffle(ShuffleOp::Index, other, around);
            made.push(b.select(inside, near, far));
        }
        Ok(made)
    }

    // Sums, scans.

    fn combined(&mut self, (b, values, at): Here<'_, '_, '_>, op: Op) -> Result<Vec<Value>> {
        let (code, neutral) = combination(op).ok_or_else(|| refused(&at.instruction))?;
        let who = self.who(at, 2)?;
        let operation = GroupOperation::from_u32(at.instruction.word(3)?);
        if at.instruction.words.len() > 5 {
            return Err(refused(&at.instruction).accepted("whole sub-groups, and no clusters of them"));
        }
        let x = self.values(b, values, at.operand(4)?)?;
        let mut made = Vec::with_capacity(x.len());
        for x in x {
            let ty = b.kernel.ty(x);
            if ty.is_float() && matches!(code, BinaryOp::FAdd | BinaryOp::FMul) {
                self.leave_undecided(
                    at,
                    format!("in which order `Op{op:?}` adds is left to the device, and a rewritten entry would have another"),
                );
            }
            let neutral = neutral_of(b, ty, neutral);
            let reduce = reduction(code).filter(|_| ty == Type::I32);
            made.push(match (who, operation, reduce) {
                (Who::SubGroup, Some(GroupOperation::Reduce), Some(reduce)) => {
                    b.reduce_among(reduce, x, None)
                }
                (_, Some(operation), _) if is_plain(operation) => match who {
                    Who::SubGroup => self.over_sub_group(b, code, operation, x, neutral),
                    Who::WorkGroup => self.over_work_group(b, code, operation, x, neutral)?,
                },
                _ => {
                    return Err(
                        refused(&at.instruction).accepted("reductions, inclusive and exclusive scans")
                    );
                }
            });
        }
        Ok(made)
    }

    /// Goes over the sub-group's work-items, from the first on.
    fn over_sub_group(
        &mut self,
        b: &mut Builder<'_>,
        code: BinaryOp,
        operation: GroupOperation,
        x: Value,
        neutral: Value,
    ) -> Value {
        let (lane, count) = (b.id(Id::Lane), b.id(Id::SubGroupSize));
        counted(b, count, neutral, |b, index, so_far| {
            let other = b.shuffle(ShuffleOp::Index, x, index);
            let sum = b.binary(code, so_far, other);
            taken(b, operation, index, lane, sum, so_far)
        })
    }

    /// Goes over the work-group's work-items, from the first on, whose values an array has.
    fn over_work_group(
        &mut self,
        b: &mut Builder<'_>,
        code: BinaryOp,
        operation: GroupOperation,
        x: Value,
        neutral: Value,
    ) -> Result<Value> {
        let ty = b.kernel.ty(x);
        let array = self.exchange_array(b, ty);
        let (own, count) = (linear(b), group_items(b));
        let base = b.array_address(array);
        b.barrier();
        let at = element(b, base, own, ty);
        b.store(at, x);
        b.barrier();
        let id = self.new_load(b);
        Ok(counted(b, count, neutral, |b, index, so_far| {
            let at = element(b, base, index, ty);
            let other = b.load(ty, at, id);
            let sum = b.binary(code, so_far, other);
            taken(b, operation, index, own, sum, so_far)
        }))
    }

    /// `OpGroupBroadcast` of a work-group: who has this number writes, and all read.
    fn broadcast(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Vec<Value>> {
        let x = self.values(b, values, at.operand(3)?)?;
        let who = self.values(b, values, at.operand(4)?)?;
        let mut is = b.bool(true);
        for (dimension, &wanted) in (0u8..3).zip(&who) {
            let own = b.id(Id::Local(dimension));
            let wanted = super::arithmetic::resized(b, wanted, Type::I32);
            let same = b.compare(CompareOp::Eq, own, wanted);
            is = b.and(is, same);
        }
        let mut made = Vec::new();
        for x in x {
            let ty = b.kernel.ty(x);
            let array = self.exchange_array(b, ty);
            let base = b.array_address(array);
            b.barrier();
            let label = b.kernel.label(None, Vec::new());
            let before = b.begin_region();
            b.store(base, x);
            b.break_(label, Vec::new());
            let then = b.end_region(before);
            let before = b.begin_region();
            b.break_(label, Vec::new());
            let otherwise = b.end_region(before);
            let kind = OpKind::if_(label, is, then, otherwise);
            b.push(kind, &[]);
            b.barrier();
            let id = self.new_load(b);
            made.push(b.load(ty, base, id));
        }
        Ok(made)
    }

    /// An array through which the work-group exchanges values of a type.
    fn exchange_array(&mut self, b: &mut Builder<'_>, ty: Type) -> Array {
        let name = format!("exchange_{}", ty.name().replace('.', "_"));
        let known = b.kernel.arrays.iter().find(|(_, data)| data.name == name);
        if let Some((array, _)) = known {
            return array;
        }
        let length = match b.kernel.group_size {
            Some(size) => size.iter().product(),
            None => MOST_ITEMS,
        };
        b.kernel.arrays.push(ArrayData {
            name,
            space: Space::Shared,
            element: ty,
            length,
            align: ty.bytes(),
        })
    }

    // Blocks.

    /// The elements of a block: where the first one of this work-item is, and how far the next.
    fn block_place(&mut self, b: &mut Builder<'_>, pointer: Value, part: u32, bytes: u32) -> Value {
        let lane = b.id(Id::Lane);
        let mut index = b.convert(ConvertOp::ExtendU, Type::I64, lane);
        if part > 0 {
            let size = b.id(Id::MaxSubGroupSize);
            let size = b.convert(ConvertOp::ExtendU, Type::I64, size);
            let part = b.i64(i64::from(part));
            let before = b.mul(size, part);
            index = b.add(index, before);
        }
        self.shapes.address(b, pointer, index, bytes, 0)
    }

    fn block_read(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Vec<Value>> {
        let from = at.operand(2)?;
        let pointer = self.value(b, values, from)?;
        let parts = self.module.parts(at.ty()?)?;
        let id = self.new_load(b);
        let mut made = Vec::new();
        for (part, &(_, ty)) in (0..).zip(&parts) {
            let ptr = self.block_place(b, pointer, part, ty.bytes());
            let cache = block_of(b, ptr);
            made.extend(b.push(OpKind::Load { ptr, id, cache }, &[ty]));
        }
        Ok(made)
    }

    fn block_write(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<()> {
        let pointer = self.value(b, values, at.operand(0)?)?;
        let held = self.values(b, values, at.operand(1)?)?;
        for (part, value) in (0..).zip(held) {
            let bytes = b.kernel.ty(value).bytes();
            let ptr = self.block_place(b, pointer, part, bytes);
            let cache = block_of(b, ptr);
            let kind = OpKind::store(ptr, vec![value], cache);
            b.push(kind, &[]);
        }
        Ok(())
    }

    /// `OpSubgroupBlockPrefetchINTEL`: this many bytes for each work-item, one after the other.
    fn block_prefetch(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<()> {
        let pointer = at.operand(0)?;
        let bytes = self.number(at.operand(1)?)?;
        let size = b.kernel.sub_group_size.unwrap_or(1);
        let (level, source) = match self.controlled_prefetch(pointer.id) {
            Some(control) => (control.nearest().level, HintSource::Control(control)),
            None => (CacheLevel::L1, HintSource::Named),
        };
        let ptr = self.value(b, values, pointer)?;
        let bytes = bytes.saturating_mul(u64::from(size)).min(4096) as u32;
        let kind = OpKind::Prefetch {
            ptr,
            bytes: bytes.max(1),
            count: None,
            hint: CacheHint::to(level),
            source,
            scope: PrefetchScope::SubGroup,
            id: None,
        };
        b.push(kind, &[]);
        Ok(())
    }
}

/// Block accesses are of global memory; elsewhere they are accesses like any other.
fn block_of(b: &Builder<'_>, pointer: Value) -> CacheUse {
    match b.kernel.ty(pointer) {
        Type::Ptr(Space::Global) => CacheUse::Block,
        _ => CacheUse::Default,
    }
}

fn is_plain(operation: GroupOperation) -> bool {
    matches!(
        operation,
        GroupOperation::Reduce | GroupOperation::InclusiveScan | GroupOperation::ExclusiveScan
    )
}

/// The sum with one more, if that one counts for this work-item.
fn taken(
    b: &mut Builder<'_>,
    operation: GroupOperation,
    index: Value,
    own: Value,
    sum: Value,
    so_far: Value,
) -> Value {
    let counts = match operation {
        GroupOperation::InclusiveScan => b.compare(CompareOp::LeU, index, own),
        GroupOperation::ExclusiveScan => b.compare(CompareOp::LtU, index, own),
        _ => return sum,
    };
    b.select(counts, sum, so_far)
}

/// A loop from 0 to a count, an `I32` that is not 0, which carries one value.
fn counted(
    b: &mut Builder<'_>,
    count: Value,
    initial: Value,
    body: impl FnOnce(&mut Builder<'_>, Value, Value) -> Value,
) -> Value {
    let ty = b.kernel.ty(initial);
    let label = b.kernel.label(None, vec![ty]);
    let (index, so_far) = (b.kernel.value(Type::I32), b.kernel.value(ty));
    let zero = b.i32(0);
    let place = b.place();
    let before = b.begin_region();
    let next = body(b, index, so_far);
    let one = b.i32(1);
    let more = b.add(index, one);
    let goes_on = b.compare(CompareOp::LtU, more, count);
    let inner = b.kernel.label(None, Vec::new());
    let outside = b.begin_region();
    b.break_(inner, Vec::new());
    let then = b.end_region(outside);
    let outside = b.begin_region();
    b.break_(label, vec![next]);
    let otherwise = b.end_region(outside);
    let kind = OpKind::if_(inner, goes_on, then, otherwise);
    b.push(kind, &[]);
    b.continue_(label, vec![more, next]);
    let region = b.end_region(before);
    b.at(place);
    let kind = OpKind::Loop {
        label,
        params: vec![index, so_far],
        initial: vec![zero, initial],
        body: region,
        wishes: LoopWishes {
            unroll: Some(UnrollWish::Keep),
            plan: None,
        },
    };
    b.push(kind, &[ty])[0]
}

/// The work-item's number in its work-group.
pub(super) fn linear(b: &mut Builder<'_>) -> Value {
    let [x, y, z] = [0, 1, 2].map(|dimension| b.id(Id::Local(dimension)));
    let [width, height] = [0, 1].map(|dimension| b.id(Id::GroupSize(dimension)));
    let plane = b.mul(z, height);
    let row = b.add(plane, y);
    let row = b.mul(row, width);
    b.add(row, x)
}

/// How many work-items the work-group has.
pub(super) fn group_items(b: &mut Builder<'_>) -> Value {
    let [x, y, z] = [0, 1, 2].map(|dimension| b.id(Id::GroupSize(dimension)));
    let plane = b.mul(x, y);
    b.mul(plane, z)
}

fn element(b: &mut Builder<'_>, base: Value, index: Value, ty: Type) -> Value {
    let index = b.convert(ConvertOp::ExtendU, Type::I64, index);
    b.address(base, index, ty.bytes(), 0)
}

/// What changes nothing in a combination.
#[derive(Clone, Copy)]
enum Neutral {
    Zero,
    One,
    All,
    LeastSigned,
    MostSigned,
    LeastFloat,
    MostFloat,
}

fn neutral_of(b: &mut Builder<'_>, ty: Type, neutral: Neutral) -> Value {
    let float = |number: f64| match ty {
        Type::F64 => number.to_bits(),
        Type::F32 => u64::from((number as f32).to_bits()),
        _ if number.is_infinite() => 0x7c00 | u64::from(number < 0.0) << 15,
        _ => 0x3c00,
    };
    let bits = match neutral {
        Neutral::Zero if ty.is_float() => 1 << (ty.bits() - 1),
        Neutral::Zero => 0,
        Neutral::One if ty.is_float() => float(1.0),
        Neutral::One => 1,
        Neutral::All => ty.mask(),
        Neutral::LeastSigned => 1 << (ty.bits() - 1),
        Neutral::MostSigned => ty.mask() >> 1,
        Neutral::LeastFloat => float(f64::NEG_INFINITY),
        Neutral::MostFloat => float(f64::INFINITY),
    };
    b.constant(ty, bits)
}

/// The combination of two values by an instruction, and its neutral element.
fn combination(op: Op) -> Option<(BinaryOp, Neutral)> {
    Some(match op {
        Op::GroupIAdd | Op::GroupNonUniformIAdd => (BinaryOp::Add, Neutral::Zero),
        Op::GroupNonUniformIMul | Op::GroupIMulKHR => (BinaryOp::Mul, Neutral::One),
        // The sum of nothing is a zero that changes no other one: the negative one.
        Op::GroupFAdd | Op::GroupNonUniformFAdd => (BinaryOp::FAdd, Neutral::Zero),
        Op::GroupNonUniformFMul | Op::GroupFMulKHR => (BinaryOp::FMul, Neutral::One),
        Op::GroupSMin | Op::GroupNonUniformSMin => (BinaryOp::MinS, Neutral::MostSigned),
        Op::GroupUMin | Op::GroupNonUniformUMin => (BinaryOp::MinU, Neutral::All),
        Op::GroupFMin | Op::GroupNonUniformFMin => (BinaryOp::FMin, Neutral::MostFloat),
        Op::GroupSMax | Op::GroupNonUniformSMax => (BinaryOp::MaxS, Neutral::LeastSigned),
        Op::GroupUMax | Op::GroupNonUniformUMax => (BinaryOp::MaxU, Neutral::Zero),
        Op::GroupFMax | Op::GroupNonUniformFMax => (BinaryOp::FMax, Neutral::LeastFloat),
        Op::GroupNonUniformBitwiseAnd
        | Op::GroupNonUniformLogicalAnd
        | Op::GroupBitwiseAndKHR
        | Op::GroupLogicalAndKHR => (BinaryOp::And, Neutral::All),
        Op::GroupNonUniformBitwiseOr
        | Op::GroupNonUniformLogicalOr
        | Op::GroupBitwiseOrKHR
        | Op::GroupLogicalOrKHR => (BinaryOp::Or, Neutral::Zero),
        Op::GroupNonUniformBitwiseXor
        | Op::GroupNonUniformLogicalXor
        | Op::GroupBitwiseXorKHR
        | Op::GroupLogicalXorKHR => (BinaryOp::Xor, Neutral::Zero),
        _ => return None,
    })
}

/// The reduction of the IR that makes the same of `I32`.
fn reduction(code: BinaryOp) -> Option<ReduceOp> {
    Some(match code {
        BinaryOp::Add => ReduceOp::Add,
        BinaryOp::And => ReduceOp::And,
        BinaryOp::Or => ReduceOp::Or,
        BinaryOp::Xor => ReduceOp::Xor,
        BinaryOp::MinS => ReduceOp::MinS,
        BinaryOp::MinU => ReduceOp::MinU,
        BinaryOp::MaxS => ReduceOp::MaxS,
        BinaryOp::MaxU => ReduceOp::MaxU,
        _ => return None,
    })
}
