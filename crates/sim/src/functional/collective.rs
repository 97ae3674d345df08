//! Shuffles, votes, block loads and stores: operations that a sub-group runs together.
//!
//! A mask names the group of a lane: the named lanes that are here. [`sub_group`](super::sub_group) decides which lanes wait for which:
//! when an operation with a mask runs, absent lanes have ended.

use super::fault::Access;
use super::lane_op::{LaneOp, LaneOpKind};
use super::lanes::{LANES, Lanes, Mask, Registers};
use super::work_group::{Runners, SubGroup, WorkGroup};
use crate::Result;
use crate::ir::limits::EXCHANGING_ITEMS;
use crate::ir::{CacheUse, ReduceOp, ShuffleOp, Type, VoteOp, eval};

/// The lane that each lane's value comes from, in a sub-group of `size` lanes.
#[doc(hidden)]
pub fn sources(op: ShuffleOp, by: &[u64], size: u32) -> [usize; LANES] {
    let by = |lane: usize| by.get(lane).map_or(0, |&by| by as u32);
    std::array::from_fn(|lane| op.source(lane as u32, by(lane), size) as usize)
}

/// The vote of each lane's group, or of all lanes of `mask` if there are no groups.
fn voted(op: VoteOp, value: &[u64], parties: Option<&[Mask; LANES]>, mask: Mask) -> Lanes {
    let votes = mask
        .lanes()
        .fold(0, |votes, lane| votes | (value[lane] & 1) << lane);
    let result = |party: Mask| match op {
        VoteOp::Any => u64::from(votes & party.0 != 0),
        VoteOp::All => u64::from(votes & party.0 == party.0),
        VoteOp::Ballot => votes & party.0,
    };
    match parties {
        None => [result(mask); LANES],
        Some(parties) => parties.map(result),
    }
}

/// The reduction over each lane's group, or over all lanes of `mask` if there are no groups.
fn reduced(op: ReduceOp, value: &[u64], parties: Option<&[Mask; LANES]>, mask: Mask) -> Lanes {
    let result = |party: Mask| {
        let mut values = party.lanes().map(|lane| value[lane]);
        let first = values.next().unwrap_or(0);
        values.fold(first, |sum, value| {
            eval::binary(op.binary(), Type::I32, sum, value)
        })
    };
    match parties {
        None => [result(mask); LANES],
        Some(parties) => parties.map(result),
    }
}

/// The lanes here that each lane's mask names.
#[doc(hidden)]
pub fn named(masks: &[u64], here: Mask) -> [Mask; LANES] {
    std::array::from_fn(|lane| Mask(masks.get(lane).copied().unwrap_or(0)).and(here))
}

impl WorkGroup<'_> {
    /// Runs one operation of a sub-group, or of the parties in it.
    ///
    /// # Errors
    /// Those of [`parties`](Self::parties) and [`shuffle`](Self::shuffle).
    pub(super) fn together(&mut self, op: &LaneOp, registers: &mut Registers, by: Runners<'_>) -> Result<()> {
        let Runners { sub_group, mask, .. } = by;
        let parties = self.parties(op, registers, by)?;
        let parties = parties.as_ref();
        let (to, result) = match op.kind {
            LaneOpKind::Shuffle {
                op,
                to,
                value,
                by: from,
                ..
            } => {
                let (value, from) = (registers.get(value), registers.get(from));
                (to, self.shuffle(op, value, from, parties, by)?)
            }
            LaneOpKind::Vote { op, to, value } => (to, voted(op, registers.get(value), parties, mask)),
            LaneOpKind::Reduce { op, to, value } => (to, reduced(op, registers.get(value), parties, mask)),
            _ => {
                self.met(&[(sub_group, mask)]);
                return Ok(());
            }
        };
        registers.set(to, &result);
        Ok(())
    }

    /// Each lane's party; none where the operation is the whole sub-group's.
    ///
    /// # Errors
    /// It is the whole sub-group's, and not all of it are here; a lane is not in its own party.
    fn parties(&self, op: &LaneOp, registers: &Registers, by: Runners<'_>) -> Result<Option<[Mask; LANES]>> {
        let Some(party) = op.party else {
            self.all_are_here(op.kind.of_sub_group(), by)?;
            return Ok(None);
        };
        let masks = registers.get(party);
        // In timing mode lanes do not wait, so some of a party may be missing, and masks that it made be smaller.
        if self.state.is_checking() {
            self.are_in_their_parties(op, masks, by.sub_group, by.mask)?;
        }
        Ok(Some(named(masks, by.mask)))
    }

    /// Each lane's mask names it.
    ///
    /// # Errors
    /// One does not.
    pub(super) fn are_in_their_parties(
        &self,
        op: &LaneOp,
        masks: &[u64],
        sub_group: &SubGroup,
        mask: Mask,
    ) -> Result<()> {
        match mask.lanes().find(|&lane| masks[lane] >> lane & 1 == 0) {
            Some(lane) => {
                let what = op.kind.of_sub_group();
                Err(self.outside_its_party(what, sub_group.work_item(lane), masks[lane] as u32, op.place))
            }
            None => Ok(()),
        }
    }

    /// The value that each lane gets from the others.
    ///
    /// # Errors
    /// A number is that of no lane of a sub-group, or of 32; in checking mode, the lane of that number has ended or is
    /// not in the party.
    fn shuffle(
        &self,
        op: ShuffleOp,
        value: &[u64],
        by: &[u64],
        parties: Option<&[Mask; LANES]>,
        Runners {
            sub_group,
            mask,
            place,
        }: Runners<'_>,
    ) -> Result<Lanes> {
        let most = self.state.sub_group_size.max(EXCHANGING_ITEMS);
        if let Some(lane) = mask.lanes().find(|&lane| by[lane] >= u64::from(most)) {
            return Err(self.shuffled_too_far(sub_group.work_item(lane), op, by[lane], most, place));
        }
        let of = |lane: usize| value.get(lane).copied().unwrap_or(0);
        let Some(parties) = parties else {
            return Ok(sources(op, by, mask.count()).map(of));
        };
        let sources = sources(op, by, self.state.sub_group_size);
        let absent = |&lane: &usize| !parties[lane].contains(sources[lane]);
        if self.state.is_checking()
            && let Some(lane) = mask.lanes().find(absent)
        {
            return Err(self.shuffled_from_absent(sub_group.work_item(lane), sources[lane], place));
        }
        Ok(std::array::from_fn(|lane| match absent(&lane) {
            true => of(lane),
            false => of(sources[lane]),
        }))
    }

    /// A load or store of a block: all are here, the elements follow each other, and the first is aligned.
    ///
    /// # Errors
    /// One of that is not so.
    pub(super) fn check_block(
        &self,
        access: Access,
        addresses: &[u64],
        ty: Type,
        by: Runners<'_>,
    ) -> Result<()> {
        let Some(lowest) = by.mask.lanes().next() else {
            return Ok(());
        };
        let writes = access == Access::Write;
        let what = if writes { "block store" } else { "block load" };
        self.all_are_here(what, by)?;
        let (first, align) = (addresses[lowest], CacheUse::block_alignment(writes));
        let expected = (0..).map(|number: u64| first.wrapping_add(number * u64::from(ty.bytes())));
        let mut lanes = by.mask.lanes().zip(expected);
        if let Some((lane, _)) = lanes.find(|&(lane, expected)| addresses[lane] != expected) {
            let item = by.sub_group.work_item(lane);
            return Err(self.scattered_block(what, item, [first, addresses[lane]], by.place));
        }
        match first.is_multiple_of(align) {
            true => Ok(()),
            false => Err(self.misaligned_block(what, by.first(), first, align, by.place)),
        }
    }

    pub(super) fn all_are_here(&self, what: &str, by: Runners<'_>) -> Result<()> {
        match by.sub_group.mask().without(by.mask).lanes().next() {
            // No lane runs it: a machine program steps over operations that it need not jump over.
            _ if by.mask.is_empty() => Ok(()),
            None => Ok(()),
            Some(missing) => Err(self.divergent_collective(what, by, missing)),
        }
    }
}
