//! The lines of global memory that the sub-groups of some work-groups ask for, in order.
//!
//! Only a part of the lines is noted, by a hash of their numbers; of these every request, so that a cache with that part of the
//! sets can be filled by them as the whole one is filled by all.

use super::footprint::{Footprint, Touching};
use super::lane_op::LaneOp;
use super::lanes::{Mask, Registers};
use super::options::Options;
use super::run::{CompiledKernel, Totals, run_group};
use super::sample::{are_there, each_of};
use super::sub_group::Observer;
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::device::Launch;
use crate::ir::Space;

/// One line of an access of a sub-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The accesses of its sub-group before.
    pub after: u32,
    /// The line's number, its sectors, and whether it writes.
    what: u64,
}

/// Which lines are noted, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    /// Bytes of a line: a power of two.
    pub line: u64,
    /// Bytes of a sector: a power of two, an eighth of a line or more.
    pub sector: u64,
    /// Whether the line of this number is noted.
    pub is_noted: fn(line: u64, one_in: u64) -> bool,
    /// The sampling interval: about every n-th line is noted.
    pub one_in: u64,
    /// The steps of a sub-group after which no more of its iterations are looked at.
    pub most_steps: u64,
}

impl Request {
    pub(crate) fn new(after: u32, line: u64, sectors: u8, writes: bool) -> Request {
        Request {
            after,
            what: line << 9 | u64::from(sectors) << 1 | u64::from(writes),
        }
    }

    /// The number of the line: its address over its size.
    pub(crate) fn line(self) -> u64 {
        self.what >> 9
    }

    /// A bit for each sector.
    pub(crate) fn sectors(self) -> u8 {
        (self.what >> 1) as u8
    }

    /// Whether it writes.
    pub(crate) fn writes(self) -> bool {
        self.what & 1 == 1
    }
}

impl CompiledKernel {
    /// Runs these work-groups of a launch that has passed [`Launch::check`], up to [`Noted::most_steps`]. Returns the steps of each
    /// one's sub-groups and their requests, in the given order. Their accesses are noted in `footprint`, too.
    ///
    /// # Errors
    /// As those of [`CompiledKernel::steps_of`].
    pub(crate) fn requests_of(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &[u64],
        noted: Noted,
        footprint: Option<&Footprint>,
    ) -> Result<Vec<(u64, Vec<Vec<Request>>)>> {
        let state = self.bind(launch, sub_group_size, options)?;
        are_there(launch, groups)?;
        let run = |worker: &mut Option<_>, number: u64| {
            let mut noting = Noting {
                noted,
                footprint: Touching(footprint),
                requests: Vec::new(),
                made: Vec::new(),
            };
            let totals = Totals::default();
            match run_group(worker, &state, self.tape(), number, &mut noting, &totals) {
                Some(error) => Err(error),
                None => Ok((totals.steps(), noting.requests)),
            }
        };
        each_of(&state, groups, run)
    }
}

/// Notes the requests of a work-group.
struct Noting<'f> {
    noted: Noted,
    footprint: Touching<'f>,
    /// By sub-group, and how many accesses it has made.
    requests: Vec<Vec<Request>>,
    made: Vec<u32>,
}

impl Observer for Noting<'_> {
    fn has_enough(&self, steps: u64) -> bool {
        steps > self.noted.most_steps
    }

    fn op(
        &mut self,
        op: &LaneOp,
        registers: &Registers,
        mask: Mask,
        sub_group: &SubGroup,
        group: &WorkGroup<'_>,
    ) {
        let Some(touches) = op.kind.touches() else { return };
        self.footprint.op(op, registers, mask, sub_group, group);
        let number = sub_group.number() as usize;
        if self.requests.len() <= number {
            self.requests.resize_with(number + 1, Vec::new);
            self.made.resize(number + 1, 0);
        }
        let after = self.made[number];
        self.made[number] += 1;
        let requests = &mut self.requests[number];
        let first = requests.len();
        let (line, sector) = (
            self.noted.line.trailing_zeros(),
            self.noted.sector.trailing_zeros(),
        );
        let addresses = registers.get(touches.ptr);
        let mut last = u64::MAX;
        for lane in mask.lanes() {
            let (Space::Global, from) = group.state.resolve(touches.space, addresses[lane]) else {
                continue;
            };
            for at in from >> sector..=(from + u64::from(touches.bytes.max(1)) - 1) >> sector {
                if at == last {
                    continue;
                }
                last = at;
                let number = at >> (line - sector);
                if !(self.noted.is_noted)(number, self.noted.one_in) {
                    continue;
                }
                let bit = 1 << (at & ((1 << (line - sector)) - 1));
                let known = requests[first..]
                    .iter_mut()
                    .find(|request| request.line() == number);
                let sectors = known.as_ref().map_or(0, |known| known.sectors()) | bit;
                let request = Request::new(after, number, sectors, touches.writes);
                match known {
                    Some(known) => *known = request,
                    None => requests.push(request),
                }
            }
        }
    }
}
