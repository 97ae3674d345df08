//! Shuffles and votes of a sub-group: a warp.
//!
//! All lanes take part, or those that a mask names. If all do and a work-group may end within a warp, a shuffle from an absent
//! lane is undefined in PTX; the IR returns the lane's own value, so it is selected. With a mask the IR requires, as PTX does,
//! that the lane is in it.

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{GroupVoteOp, Id, ReduceOp, ShuffleOp, Type, Value, VoteOp};

/// Every lane of a warp.
const EVERYBODY: &str = "0xffffffff";

impl Emitter<'_> {
    /// Who takes part: a mask's register or number.
    pub(super) fn party(&mut self, mask: Option<Value>) -> String {
        match mask {
            None => EVERYBODY.to_owned(),
            Some(mask) => self.operand(mask),
        }
    }

    /// The value of another lane.
    pub(super) fn shuffle(
        &mut self,
        result: Value,
        op: ShuffleOp,
        value: Value,
        by: Value,
        mask: Option<Value>,
    ) {
        let party = self.party(mask);
        let r = self.register(result);
        let operand = match self.nans.at_use(value) {
            true => self.canonical(value),
            false => self.operand(value),
        };
        let distance = self.operand(by);
        let ty = self.ty(value);
        let shuffled = match Class::of(ty) {
            Some(Class::Predicate) => {
                let (word, other) = (self.temporary(Class::B32), self.temporary(Class::B32));
                self.ins(format!("selp.u32 {word}, 1, 0, {operand}"));
                self.shuffle_word(&other, op, &word, &distance, &party);
                let shuffled = self.temporary(Class::Predicate);
                self.ins(format!("setp.ne.u32 {shuffled}, {other}, 0"));
                shuffled
            }
            Some(Class::B16) => {
                let (word, other) = (self.temporary(Class::B32), self.temporary(Class::B32));
                self.ins(format!("mov.b32 {word}, {{{operand}, {operand}}}"));
                self.shuffle_word(&other, op, &word, &distance, &party);
                let (shuffled, rest) = (self.temporary(Class::B16), self.temporary(Class::B16));
                self.ins(format!("mov.b32 {{{shuffled}, {rest}}}, {other}"));
                shuffled
            }
            Some(class @ (Class::B64 | Class::F64)) => {
                let words = [self.temporary(Class::B32), self.temporary(Class::B32)];
                let others = [self.temporary(Class::B32), self.temporary(Class::B32)];
                self.ins(format!("mov.b64 {{{}, {}}}, {operand}", words[0], words[1]));
                for (word, other) in words.iter().zip(&others) {
                    self.shuffle_word(other, op, word, &distance, &party);
                }
                let shuffled = self.temporary(class);
                self.ins(format!("mov.b64 {shuffled}, {{{}, {}}}", others[0], others[1]));
                shuffled
            }
            Some(class @ (Class::B32 | Class::F32)) => {
                let shuffled = self.temporary(class);
                self.shuffle_word(&shuffled, op, &operand, &distance, &party);
                shuffled
            }
            None => return,
        };
        let class = Class::of(ty).map_or("b32", Class::ptx);
        let inside = match mask {
            Some(_) => None,
            None => self.stays_inside(op, &distance),
        };
        match inside {
            None => self.ins(format!("mov.{class} {r}, {shuffled}")),
            Some(inside) if ty == Type::Bool => {
                let [own, other] = [Class::Predicate; 2].map(|class| self.temporary(class));
                self.ins(format!("and.pred {other}, {inside}, {shuffled}"));
                self.ins(format!("not.pred {own}, {inside}"));
                self.ins(format!("and.pred {own}, {own}, {operand}"));
                self.ins(format!("or.pred {r}, {own}, {other}"));
            }
            Some(inside) => self.ins(format!("selp.{class} {r}, {shuffled}, {operand}, {inside}")),
        }
    }

    /// 32 bits of another lane. If there is no such lane in a warp, `shfl` returns the lane's own.
    fn shuffle_word(&mut self, to: &str, op: ShuffleOp, word: &str, distance: &str, party: &str) {
        let (mode, clamp) = match op {
            ShuffleOp::Index => ("idx", 31),
            ShuffleOp::Up => ("up", 0),
            ShuffleOp::Down => ("down", 31),
            ShuffleOp::Xor => ("bfly", 31),
        };
        self.ins(format!(
            "shfl.sync.{mode}.b32 {to}, {word}, {distance}, {clamp}, {party}"
        ));
    }

    /// A predicate that holds if the source lane is present; none if all lanes always are.
    fn stays_inside(&mut self, op: ShuffleOp, distance: &str) -> Option<String> {
        let items = self.kernel.group_size.map(|size| size.iter().product::<u32>());
        // Lower lanes are always there.
        if items.is_some_and(|items| items % 32 == 0) || op == ShuffleOp::Up {
            return None;
        }
        let size = self.temporary(Class::B32);
        self.id_into(&size, Id::SubGroupSize);
        let source = self.temporary(Class::B32);
        match op {
            ShuffleOp::Index => self.ins(format!("mov.u32 {source}, {distance}")),
            _ => {
                self.ins(format!("mov.u32 {source}, %laneid"));
                let combine = if op == ShuffleOp::Xor {
                    "xor.b32"
                } else {
                    "add.u32"
                };
                self.ins(format!("{combine} {source}, {source}, {distance}"));
            }
        }
        let inside = self.temporary(Class::Predicate);
        self.ins(format!("setp.lt.u32 {inside}, {source}, {size}"));
        Some(inside)
    }

    /// A vote of the warp, or of a part of it.
    pub(super) fn vote(&mut self, result: Value, op: VoteOp, value: Value, mask: Option<Value>) {
        let party = self.party(mask);
        let (r, operand) = (self.register(result), self.operand(value));
        let how = match op {
            VoteOp::Any => "any.pred",
            VoteOp::All => "all.pred",
            VoteOp::Ballot => "ballot.b32",
        };
        self.ins(format!("vote.sync.{how} {r}, {operand}, {party}"));
    }

    /// The reduction of the warp's values, or of those of a part of it.
    pub(super) fn reduce(&mut self, result: Value, op: ReduceOp, value: Value, mask: Option<Value>) {
        let party = self.party(mask);
        let (r, operand) = (self.register(result), self.operand(value));
        let how = match op {
            ReduceOp::Add => "add.u32",
            ReduceOp::And => "and.b32",
            ReduceOp::Or => "or.b32",
            ReduceOp::Xor => "xor.b32",
            ReduceOp::MinS => "min.s32",
            ReduceOp::MinU => "min.u32",
            ReduceOp::MaxS => "max.s32",
            ReduceOp::MaxU => "max.u32",
        };
        self.ins(format!("redux.sync.{how} {r}, {operand}, {party}"));
    }

    /// A vote of the work-group, which waits here for each other.
    pub(super) fn group_vote(&mut self, result: Value, op: GroupVoteOp, value: Value) {
        let (r, operand) = (self.register(result), self.operand(value));
        let how = match op {
            GroupVoteOp::Any => "or.pred",
            GroupVoteOp::All => "and.pred",
            GroupVoteOp::Count => "popc.u32",
        };
        self.ins(format!("bar.red.{how} {r}, 0, {operand}"));
    }
}
