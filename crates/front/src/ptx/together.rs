//! What work-items do together: `atom`, `red`, fences, shuffles, votes; and launches: `griddepcontrol`.
//!
//! Masks are kept as they are, constant or computed: they become the masks of the IR's operations. PTX instructions that the IR
//! lacks (`match`, `elect`, `vote.uni`) are built from votes with the same mask.

use super::float::half_of;
use super::memory::parts;
use super::translator::{At, Translator};
use super::tree::{Instruction, Operand};
use super::values::{last_type, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, Dependency, GroupVoteOp, Id, Meeting, MemoryOrder, MemoryScope,
    OpKind, ReduceOp, ShuffleOp, Space, Type, UnaryOp, Value, VoteOp,
};
use crate::middle::Values;

/// Words that say how an atomic operation orders, its scope, and its memory.
const ORDERING: &[&str] = &[
    "relaxed",
    "acquire",
    "release",
    "acq_rel",
    "cta",
    "gpu",
    "sys",
    "cluster",
    "global",
    "shared",
    "shared::cta",
];

/// Hints for caches and numbers of values of an atomic load or store.
const VECTORS: &[&str] = &[
    "v2",
    "v4",
    "L1::no_allocate",
    "L1::evict_first",
    "L1::evict_last",
    "L2::128B",
    "L2::256B",
    "L2::64B",
];

/// The order that an instruction names, or else this one.
fn order(instruction: &Instruction<'_>, otherwise: MemoryOrder) -> MemoryOrder {
    let named = instruction.modifiers.iter().find_map(|word| match *word {
        "relaxed" => Some(MemoryOrder::Relaxed),
        "acquire" => Some(MemoryOrder::Acquire),
        "release" => Some(MemoryOrder::Release),
        "acq_rel" => Some(MemoryOrder::AcquireRelease),
        "sc" => Some(MemoryOrder::SequentiallyConsistent),
        _ => None,
    });
    named.unwrap_or(otherwise)
}

fn scope(instruction: &Instruction<'_>) -> MemoryScope {
    // Guarantees for a cluster hold for a device, too.
    match (instruction.has("cta"), instruction.has("sys")) {
        (true, _) => MemoryScope::WorkGroup,
        (_, true) => MemoryScope::System,
        _ => MemoryScope::Device,
    }
}

impl<'t> Translator<'_, 't> {
    /// One of the instructions of this file.
    pub(crate) fn together(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        match instruction.opcode {
            "atom" | "red" => self.atomic((b, values, instruction)),
            "membar" | "fence" => fence(b, instruction),
            "griddepcontrol" => {
                let dependency = match instruction.modifiers[..] {
                    ["launch_dependents"] => Dependency::Launch,
                    ["wait"] => Dependency::Wait,
                    _ => return Err(refused(instruction)),
                };
                let [] = operands::<0>(instruction)?;
                b.push(OpKind::Depend(dependency), &[]);
                Ok(())
            }
            "shfl" => self.shuffle((b, values, instruction)),
            "match" => self.match_((b, values, instruction)),
            "activemask" => {
                let [to] = operands::<1>(instruction)?;
                let active = b.active();
                self.set(b, values, to, active, false)
            }
            "elect" => self.elect((b, values, instruction)),
            "redux" => self.reduce((b, values, instruction)),
            "vote" => self.vote((b, values, instruction)),
            _ => Err(refused(instruction)),
        }
    }

    /// `atom.global.add.u32 d, [a], b` and `red.global.add.u32 [a], b`; sums of floats also as `atom.global.v4.f32.add` has
    /// them, of several at once.
    fn atomic(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let ty = last_type(instruction)?;
        let names = [
            "and", "or", "xor", "cas", "exch", "add", "min", "max", "inc", "dec",
        ];
        let name = instruction
            .modifiers
            .iter()
            .copied()
            .find(|word| names.contains(word));
        let name = name.ok_or_else(|| refused(instruction))?;
        only(instruction, &[ORDERING, &[name, "noftz", "v2", "v4"]].concat())?;
        let (to, address, arguments) = match (&instruction.operands[..], instruction.opcode) {
            ([to, address, arguments @ ..], "atom") => (Some(to), address, arguments),
            ([address, arguments @ ..], "red") => (None, address, arguments),
            _ => return Err(refused(instruction)),
        };
        let op = match (name, ty.signed, ty.ty.is_float()) {
            ("and", ..) => AtomicOp::And,
            ("or", ..) => AtomicOp::Or,
            ("xor", ..) => AtomicOp::Xor,
            ("cas", ..) => AtomicOp::CompareExchange,
            ("exch", ..) => AtomicOp::Exchange,
            ("inc", ..) => AtomicOp::IncrementU,
            ("dec", ..) => AtomicOp::DecrementU,
            ("add", ..) if instruction.last() == "f16x2" => AtomicOp::FAddHalves,
            ("add", ..) if instruction.last() == "bf16x2" => AtomicOp::FAddBrainHalves,
            (_, _, false) if half_of(instruction.last()).is_some() => return Err(refused(instruction)),
            (_, _, true) if name != "add" && !matches!(name, "exch" | "cas") => {
                return Err(refused(instruction));
            }
            ("add", _, true) => AtomicOp::FAdd,
            ("add", ..) => AtomicOp::Add,
            ("min", true, _) => AtomicOp::MinS,
            ("min", ..) => AtomicOp::MinU,
            (_, true, _) => AtomicOp::MaxS,
            _ => AtomicOp::MaxU,
        };
        let width = match (instruction.has("v2"), instruction.has("v4")) {
            (true, _) => 2,
            (_, true) => 4,
            _ => 1,
        };
        let has_right_number = |arguments: &[Operand<'t>]| match width {
            1 => arguments.len() == op.operands(),
            _ => op.can_be_several() && arguments.len() == 1 && parts(&arguments[0]).len() == width,
        };
        if !has_right_number(arguments) || !op.takes(ty.ty) {
            return Err(refused(instruction));
        }
        let pointer = self.shared_by_all(b, values, instruction, address)?;
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments.iter().flat_map(parts) {
            given.push(self.value(b, values, argument, ty.ty)?);
        }
        let kind = OpKind::Atomic {
            op,
            ptr: pointer,
            values: given,
            order: order(instruction, MemoryOrder::Relaxed),
            scope: scope(instruction),
        };
        let before = b.push(kind, &vec![ty.ty; width]);
        for (to, before) in to.into_iter().flat_map(parts).zip(before) {
            self.set(b, values, to, before, false)?;
        }
        Ok(())
    }

    /// The address of an access that others see: not private memory.
    fn shared_by_all(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        instruction: &Instruction<'t>,
        address: &Operand<'t>,
    ) -> Result<Value> {
        let pointer = self.access(b, values, instruction, address)?;
        match b.kernel.ty(pointer) {
            Type::Ptr(Space::Private) => Err(Error::input(format!(
                "`{}` goes to local memory",
                instruction.spelling()
            ))),
            _ => Ok(pointer),
        }
    }

    /// `ld.acquire.gpu.u32` and its like: a load that is an atomic operation.
    pub(crate) fn atomic_load(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[ORDERING, VECTORS].concat())?;
        let [to, from] = operands::<2>(instruction)?;
        self.atomic_access((b, values, instruction), AtomicOp::Load, from, to)
    }

    /// `st.release.gpu.u32` and its like.
    pub(crate) fn atomic_store(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[ORDERING, VECTORS].concat())?;
        let [to, from] = operands::<2>(instruction)?;
        self.atomic_access((b, values, instruction), AtomicOp::Store, to, from)
    }

    fn atomic_access(
        &mut self,
        (b, values, instruction): At<'_, '_, 't>,
        op: AtomicOp,
        address: &Operand<'t>,
        other: &Operand<'t>,
    ) -> Result<()> {
        let ty = last_type(instruction)?;
        let order = order(instruction, MemoryOrder::Relaxed);
        if !op.takes(ty.ty) || !op.can_be(order) {
            return Err(refused(instruction));
        }
        let pointer = self.shared_by_all(b, values, instruction, address)?;
        let registers = parts(other);
        let mut given = Vec::new();
        if op == AtomicOp::Store {
            for part in registers {
                given.push(self.value(b, values, part, ty.ty)?);
            }
        }
        let results = vec![ty.ty; if op.has_result() { registers.len() } else { 0 }];
        let kind = OpKind::Atomic {
            op,
            ptr: pointer,
            values: given,
            order,
            scope: scope(instruction),
        };
        for (register, loaded) in registers.iter().zip(b.push(kind, &results)) {
            self.set(b, values, register, loaded, ty.signed)?;
        }
        Ok(())
    }

    /// `shfl.sync.down.b32 d|p, a, b, c, mask`. The number of the source is computed as PTX defines it; between all lanes
    /// of a sub-group that is one of the IR's own ways.
    fn shuffle(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["sync", "up", "down", "bfly", "idx"])?;
        let [to, from, by, limits, mask] = operands::<5>(instruction)?;
        let party = self.party(b, values, instruction, mask)?;
        let (to, within) = match to {
            Operand::Pair(to, within) => (&**to, Some(&**within)),
            to => (to, None),
        };
        let limits = self.value(b, values, limits, Type::I32)?;
        let value = match from {
            Operand::Register(register) => self.get(b, values, *register)?,
            other => self.value(b, values, other, Type::I32)?,
        };
        let value = match b.kernel.ty(value) {
            Type::I32 | Type::F32 => value,
            _ => self.retyped(b, value, Type::I32)?,
        };
        let by = self.value(b, values, by, Type::I32)?;
        let low = b.i32(31);
        let by = b.and(by, low);
        let up = instruction.has("up");
        let how = instruction
            .modifiers
            .iter()
            .find(|word| !matches!(**word, "sync" | "b32"));
        let op = match how.copied() {
            Some("up") => ShuffleOp::Up,
            Some("down") => ShuffleOp::Down,
            Some("bfly") => ShuffleOp::Xor,
            Some("idx") => ShuffleOp::Index,
            _ => return Err(refused(instruction)),
        };
        let clamp = b.and(limits, low);
        let eight = b.i32(8);
        let segment = b.binary(BinaryOp::ShrU, limits, eight);
        let segment = b.and(segment, low);
        let below = b.binary(BinaryOp::Xor, segment, low);
        let known = |b: &Builder<'_>, value: Value| b.kernel.as_constant(value);
        let last_of_all = if up { 0 } else { 31 };
        let whole = known(b, segment) == Some(0) && known(b, clamp) == Some(last_of_all);
        let lane = b.id(Id::Lane);
        // The numbers of PTX: the first and last of the lane's own part.
        let first = b.and(lane, segment);
        let rest = b.and(clamp, below);
        let last = b.binary(BinaryOp::Or, first, rest);
        let source = match op {
            ShuffleOp::Up => b.sub(lane, by),
            ShuffleOp::Down => b.add(lane, by),
            ShuffleOp::Xor => b.binary(BinaryOp::Xor, lane, by),
            ShuffleOp::Index => {
                let own = b.and(by, below);
                b.binary(BinaryOp::Or, first, own)
            }
        };
        let is_there = match up {
            true => b.compare(CompareOp::LeS, last, source),
            false => b.compare(CompareOp::LeS, source, last),
        };
        let result = match whole {
            true => b.shuffle_among(op, value, by, Some(party)),
            false => {
                let source = b.select(is_there, source, lane);
                b.shuffle_among(ShuffleOp::Index, value, source, Some(party))
            }
        };
        if let Some(within) = within {
            self.set(b, values, within, is_there, false)?;
        }
        self.set(b, values, to, result, false)
    }

    /// The mask of who takes part.
    fn party(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        instruction: &Instruction<'t>,
        mask: &Operand<'t>,
    ) -> Result<Value> {
        if !instruction.has("sync") {
            return Err(Error::input(format!(
                "`{}` does not name the participating work-items",
                instruction.spelling()
            ))
            .accepted("`.sync` with a mask"));
        }
        self.value(b, values, mask, Type::I32)
    }

    /// `bar.warp.sync mask`.
    pub(crate) fn meet(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, &["warp", "sync"])?;
        let [mask] = operands::<1>(instruction)?;
        let party = self.party(b, values, instruction, mask)?;
        b.meet(Meeting::SubGroup(Some(party)));
        Ok(())
    }

    /// `redux.sync.add.s32 d, a, mask`.
    fn reduce(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let names = ["add", "and", "or", "xor", "min", "max"];
        let name = names.into_iter().find(|name| instruction.has(name));
        let name = name.ok_or_else(|| refused(instruction))?;
        only(instruction, &["sync", name])?;
        let [to, from, mask] = operands::<3>(instruction)?;
        let ty = last_type(instruction)?;
        let op = match (name, ty.signed) {
            _ if ty.ty != Type::I32 => return Err(refused(instruction)),
            ("add", _) => ReduceOp::Add,
            ("and", _) => ReduceOp::And,
            ("or", _) => ReduceOp::Or,
            ("xor", _) => ReduceOp::Xor,
            ("min", true) => ReduceOp::MinS,
            ("min", false) => ReduceOp::MinU,
            (_, true) => ReduceOp::MaxS,
            (_, false) => ReduceOp::MaxU,
        };
        let party = self.party(b, values, instruction, mask)?;
        let value = self.value(b, values, from, Type::I32)?;
        let result = b.reduce_among(op, value, Some(party));
        self.set(b, values, to, result, ty.signed)
    }

    /// `bar.red.popc.u32 d, 0, p`, `barrier.red.aligned.or.pred q, 0, p`.
    pub(crate) fn group_vote(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["red", "popc", "and", "or", "aligned", "cta"])?;
        let (to, asked) = match &instruction.operands[..] {
            [to, Operand::Integer(0), asked] => (to, asked),
            _ => {
                return Err(Error::input(format!(
                    "`{}`: a barrier of this number, or for some of the work-items, is not supported",
                    instruction.spelling()
                ))
                .accepted("barrier 0 of the whole work-group"));
            }
        };
        let op = match instruction
            .modifiers
            .iter()
            .find(|word| ["popc", "and", "or"].contains(word))
        {
            Some(&"popc") => GroupVoteOp::Count,
            Some(&"and") => GroupVoteOp::All,
            Some(&"or") => GroupVoteOp::Any,
            _ => return Err(refused(instruction)),
        };
        let asked = self.value(b, values, asked, Type::Bool)?;
        let result = b.group_vote(op, asked);
        self.set(b, values, to, result, false)
    }

    /// `vote.sync.any.pred p, q, mask`.
    fn vote(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["sync", "all", "any", "uni", "ballot"])?;
        let [to, from, mask] = operands::<3>(instruction)?;
        let party = Some(self.party(b, values, instruction, mask)?);
        let asked = self.value(b, values, from, Type::Bool)?;
        // `.sync` may stand on either side.
        let how = instruction
            .modifiers
            .iter()
            .find(|word| !matches!(**word, "sync" | "pred" | "b32"));
        let result = match how.copied() {
            Some("all") => b.vote_among(VoteOp::All, asked, party),
            Some("any") => b.vote_among(VoteOp::Any, asked, party),
            Some("ballot") => b.vote_among(VoteOp::Ballot, asked, party),
            Some("uni") => {
                let all = b.vote_among(VoteOp::All, asked, party);
                let any = b.vote_among(VoteOp::Any, asked, party);
                b.compare(CompareOp::Eq, all, any)
            }
            _ => return Err(refused(instruction)),
        };
        self.set(b, values, to, result, false)
    }

    /// Who of those that a mask names takes part: the others have ended.
    fn here(&self, b: &mut Builder<'_>, party: Value) -> Value {
        let yes = b.bool(true);
        b.vote_among(VoteOp::Ballot, yes, Some(party))
    }

    /// `match.sync.any.b32 d, a, mask`: the work-items of the mask with the same value. Each work-item in the mask is queried
    /// in turn; for those outside, a work-item queries itself. (Votes on each bit would do, but ptxas 13.0 runs out of
    /// predicate registers if there are a hundred.)
    fn match_(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["sync", "any", "all"])?;
        let [to, from, mask] = operands::<3>(instruction)?;
        let party = self.party(b, values, instruction, mask)?;
        let ty = last_type(instruction)?.ty;
        let own = self.value(b, values, from, ty)?;
        let here = self.here(b, party);
        let (lane, one, none) = (b.id(Id::Lane), b.i32(1), b.i32(0));
        let mut same = none;
        for number in 0..32 {
            let number = b.i32(number);
            let is_here = b.binary(BinaryOp::ShrU, here, number);
            let is_here = b.and(is_here, one);
            let all_bits = b.sub(none, is_here);
            let other = b.binary(BinaryOp::Xor, lane, number);
            let other = b.and(other, all_bits);
            let asked = b.binary(BinaryOp::Xor, lane, other);
            let other = b.shuffle_among(ShuffleOp::Index, own, asked, Some(party));
            let equal = b.compare(CompareOp::Eq, own, other);
            let bit = b.binary(BinaryOp::Shl, one, number);
            let bit = b.select(equal, bit, none);
            same = b.binary(BinaryOp::Or, same, bit);
        }
        let same = b.and(same, here);
        if instruction.has("any") {
            return self.set(b, values, to, same, false);
        }
        let everybody = b.compare(CompareOp::Eq, same, here);
        let found = b.select(everybody, here, none);
        match to {
            Operand::Pair(to, holds) => {
                self.set(b, values, to, found, false)?;
                self.set(b, values, holds, everybody, false)
            }
            to => self.set(b, values, to, found, false),
        }
    }

    /// `elect.sync d|p, mask`: the first of the party.
    fn elect(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let [to, mask] = operands::<2>(instruction)?;
        let party = self.party(b, values, instruction, mask)?;
        let here = self.here(b, party);
        let reversed = b.unary(UnaryOp::ReverseBits, here);
        let first = b.unary(UnaryOp::CountLeadingZeros, reversed);
        let Operand::Pair(to, chosen) = to else {
            return Err(refused(instruction));
        };
        let lane = b.id(Id::Lane);
        let is_it = b.compare(CompareOp::Eq, lane, first);
        self.set(b, values, to, first, false)?;
        self.set(b, values, chosen, is_it, false)
    }
}

/// `membar.gl`, `fence.acq_rel.gpu`.
fn fence(b: &mut Builder<'_>, instruction: &Instruction<'_>) -> Result<()> {
    only(
        instruction,
        &[
            "sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "gl", "sys",
        ],
    )?;
    b.fence(
        order(instruction, MemoryOrder::SequentiallyConsistent),
        scope(instruction),
    );
    Ok(())
}
