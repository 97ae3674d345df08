//! Shuffles, votes, block loads and stores: operations that a sub-group runs together.

use super::fault::Access;
use super::lanes::{LANES, Lanes, Mask};
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::ir::{CacheUse, Place, ShuffleOp, Type, VoteOp};

/// The lane that each lane's value comes from.
pub(crate) fn sources(op: ShuffleOp, by: &Lanes, mask: Mask) -> [usize; LANES] {
    let size = mask.count();
    std::array::from_fn(|lane| op.source(lane as u32, by[lane] as u32, size) as usize)
}

impl WorkGroup<'_> {
    /// What each lane gets from the others.
    ///
    /// # Errors
    /// Not all work-items of the sub-group are here; a number is that of no lane of the largest sub-group.
    pub(super) fn shuffle(
        &self,
        op: ShuffleOp,
        value: &Lanes,
        by: &Lanes,
        sub_group: &SubGroup,
        mask: Mask,
        place: Place,
    ) -> Result<Lanes> {
        self.all_are_here("shuffle", sub_group, mask, place)?;
        if let Some(lane) = mask.lanes().find(|&lane| by[lane] >= LANES as u64) {
            return Err(self.shuffled_too_far(sub_group, lane, op, by[lane], place));
        }
        let sources = sources(op, by, mask);
        Ok(sources.map(|source| value[source]))
    }

    /// What a truth value is for the sub-group.
    ///
    /// # Errors
    /// Not all work-items of the sub-group are here.
    pub(super) fn vote(
        &self,
        op: VoteOp,
        value: &Lanes,
        sub_group: &SubGroup,
        mask: Mask,
        place: Place,
    ) -> Result<u64> {
        self.all_are_here("vote", sub_group, mask, place)?;
        let ballot = mask
            .lanes()
            .fold(0, |ballot, lane| ballot | (value[lane] & 1) << lane);
        Ok(match op {
            VoteOp::Any => u64::from(ballot != 0),
            VoteOp::All => u64::from(ballot == u64::from(mask.0)),
            VoteOp::Ballot => ballot,
        })
    }

    /// A load or store of a block: all are here, the elements follow each other, and the first is aligned.
    ///
    /// # Errors
    /// One of that is not so.
    pub(super) fn check_block(
        &self,
        access: Access,
        addresses: &Lanes,
        ty: Type,
        sub_group: &SubGroup,
        mask: Mask,
        place: Place,
    ) -> Result<()> {
        let Some(lowest) = mask.lanes().next() else {
            return Ok(());
        };
        let writes = access == Access::Write;
        let what = if writes { "block store" } else { "block load" };
        self.all_are_here(what, sub_group, mask, place)?;
        let (first, align) = (addresses[lowest], CacheUse::block_alignment(writes));
        let expected = (0..).map(|number: u64| first.wrapping_add(number * u64::from(ty.bytes())));
        let mut lanes = mask.lanes().zip(expected);
        if let Some((lane, _)) = lanes.find(|&(lane, expected)| addresses[lane] != expected) {
            return Err(self.scattered_block(what, sub_group, lane, [first, addresses[lane]], place));
        }
        match first.is_multiple_of(align) {
            true => Ok(()),
            false => Err(self.misaligned_block(what, sub_group, lowest, first, align, place)),
        }
    }

    pub(super) fn all_are_here(
        &self,
        what: &str,
        sub_group: &SubGroup,
        mask: Mask,
        place: Place,
    ) -> Result<()> {
        match sub_group.mask().without(mask).lanes().next() {
            // Nobody runs it at all: a machine program steps over what it need not jump over.
            _ if mask.is_empty() => Ok(()),
            None => Ok(()),
            Some(missing) => Err(self.divergent_collective(what, sub_group, mask, missing, place)),
        }
    }
}
