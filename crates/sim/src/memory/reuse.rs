//! How often a core finds in L2 a line that another one has brought, by the requests of all work-groups.
//!
//! What L2 holds is decided by the addresses, hardly by the time. So it is found out once for a launch, without time: resident
//! sub-groups take turns, some accesses each, and L1 and L2 are as large and as associative as the device's. Only some lines take
//! part, by a hash of their numbers, and the caches have that part of their sets. A sample of the cores, which sees its own
//! requests alone, takes the others' from here.
//!
//! Where L2 keeps what the same launch has left in it, the requests come twice, and only those of the second time count: lines
//! from before were brought by others.
//!
//! Requests of a core for lines that it has brought itself, and that no other one asks for, are left out: the sample sees those
//! itself. Where most of its requests for its own lines are for such as others ask for, too, they count: of lines that all ask
//! for, a sample brings many that another core brings in the whole.
//!
//! The stores of all cores meet in L2, too: what several of them write to a sector goes to device memory once, when its line has to
//! make room. Where that matters, the sample's stores are charged as often as those of the whole.

use std::ops::Range;
use std::sync::Arc;

use super::cache::{Cache, Replaces, Slot};
use super::l2::halves;
use super::lines::LineShape;
use super::port::spread;
use crate::functional::{Noted, Request};
use crate::model::DeviceModel;

/// Regions of a buffer, at most, and their lines, at least.
const REGIONS: u64 = 4096;
const REGION: u64 = 128;

/// The least number of sampled lines in a region, where not all lines are sampled. (With fewer, most regions of a sorted list have
/// none of the few lines that all searches ask for. `binary-search groups=4209 group=64 items=10 levels=25` takes 365 us on an H200:
/// simulated with eight sampled lines in a region 648, with 128 lines 495, with 512 lines 443. With eight it found 47 % in L2, where
/// 72 % of all noted requests do.)
const SAMPLED: u64 = 512;

/// Requests from which the hit rate of a stage follows; that of a region with fewer is its buffer's.
const LEAST: usize = 16;

/// Stages of a region, at most: its first requests find less than the last ones, and where all cores read one part of a buffer
/// after the other, each part's lines are brought while few ask for them, and found while many do.
const STAGES: usize = 32;

/// A sample counts its own write-backs in a buffer of which a smaller part of the written sectors had been written by another core.
const MET: f64 = 0.05;

/// The hit rates of a launch's buffers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reuse {
    buffers: Vec<Arc<OfBuffer>>,
    /// Whether L2 has what the same launch has left there.
    is_kept: bool,
}

/// The requests of cores for lines of one buffer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OfBuffer {
    /// The numbers of its lines.
    pub lines: Range<u64>,
    /// Lines of a region.
    region: u64,
    regions: Vec<Course>,
    /// For regions with few requests.
    all: Course,
    /// The part of the hits in the far half of which the near one has a copy.
    pub copied: f64,
    /// None where hardly any sector is written by two cores.
    written: Option<WrittenParts>,
}

/// What happens to sectors for each one that is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WrittenParts {
    /// It is not in L2, and read if only a part of it is written.
    pub absent: f64,
    /// It is written back.
    pub written_back: f64,
}

/// The hits among requests, as a launch goes on.
#[derive(Clone, Debug, Default, PartialEq)]
struct Course {
    /// Requests of the whole launch.
    asked: f64,
    /// The part that hits, in as many stages with as many requests each; none where there are too few.
    hit_rates: Vec<f32>,
    /// Whether those count which hit a core's own lines.
    counts_own: bool,
}

impl Course {
    fn of(answers: &[LookupResult], one_in: u64) -> Course {
        let own = answers
            .iter()
            .filter(|&&found| found == LookupResult::Own)
            .count();
        let shared = answers
            .iter()
            .filter(|&&found| found == LookupResult::Shared)
            .count();
        let counts_own = shared > own;
        let counted: Vec<bool> = answers
            .iter()
            .filter(|found| counts_own || matches!(found, LookupResult::Nothing | LookupResult::Others))
            .map(|&found| found != LookupResult::Nothing)
            .collect();
        let stages = (counted.len() / LEAST).min(STAGES);
        let part = |stage: usize| {
            let stage = &counted[stage * counted.len() / stages..(stage + 1) * counted.len() / stages];
            stage.iter().filter(|&&found| found).count() as f32 / stage.len() as f32
        };
        Course {
            asked: counted.len() as f64 * one_in as f64,
            hit_rates: (0..stages).map(part).collect(),
            counts_own,
        }
    }

    /// The hit rate after `asked` requests of the launch.
    fn hit_rate(&self, asked: f64) -> f64 {
        let stage = asked / self.asked * self.hit_rates.len() as f64;
        let last = self.hit_rates.len().saturating_sub(1);
        self.hit_rates
            .get((stage as usize).min(last))
            .map_or(0.0, |&part| f64::from(part))
    }
}

/// The launch whose requests they are.
pub(crate) struct Requests {
    /// By work-group, in order, and by sub-group.
    pub groups: Vec<Vec<Vec<Request>>>,
    /// The sampling interval: about every n-th line is among them. A power of two.
    pub one_in: u64,
    /// The addresses of each buffer.
    pub buffers: Vec<Range<u64>>,
    /// Busy cores, and the work-groups that each holds at once.
    pub cores: usize,
    /// See above.
    pub places: usize,
    /// Bytes of L1 in each core.
    pub l1_bytes: u64,
}

/// Whether a line is sampled, at an interval that is a power of two.
fn takes_part(line: u64, one_in: u64) -> bool {
    // The lowest bit chooses the half of L2, other ones the slice and the tag.
    spread(line) >> 8 & (one_in - 1) == 0
}

/// Which lines of a device are noted, at a sampling interval.
pub(crate) fn noted(model: &DeviceModel, one_in: u64) -> Noted {
    Noted {
        line: *model.l2.line,
        sector: *model.l2.sector,
        is_noted: takes_part,
        one_in,
        most_steps: u64::MAX,
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookupResult {
    /// The line is not there.
    Nothing,
    /// Another core has brought it.
    Others,
    /// The core has brought it itself; no other one has asked for it, or one has.
    Own,
    /// See above.
    Shared,
}

/// The line numbers of a buffer; `line` is the size of a line in bytes.
fn lines_of(buffer: &Range<u64>, line: u64) -> Range<u64> {
    buffer.start / line..buffer.end.div_ceil(line)
}

/// A buffer while it is counted.
struct Counting {
    lines: Range<u64>,
    region: u64,
    /// By region, in order.
    regions: Vec<Vec<LookupResult>>,
    all: Vec<LookupResult>,
    /// Hits in the far half, and those of them with a copy in the near one.
    far: u64,
    copied: u64,
    /// Sectors that were written, those of them that another core had written since their line came, those that were not there,
    /// and those written back.
    written: u64,
    met: u64,
    absent: u64,
    written_back: u64,
}

impl Counting {
    fn new(buffer: &Range<u64>, line: u64, one_in: u64) -> Counting {
        let lines = lines_of(buffer, line);
        let count = (lines.end - lines.start).max(1);
        let least = if one_in > 1 { SAMPLED * one_in } else { REGION };
        let region = count.div_ceil(REGIONS).max(least);
        Counting {
            lines,
            region,
            regions: vec![Vec::new(); count.div_ceil(region) as usize],
            all: Vec::new(),
            far: 0,
            copied: 0,
            written: 0,
            met: 0,
            absent: 0,
            written_back: 0,
        }
    }

    fn add(&mut self, line: u64, found: LookupResult) {
        self.regions[((line - self.lines.start) / self.region) as usize].push(found);
        self.all.push(found);
    }

    fn done(self, one_in: u64) -> OfBuffer {
        OfBuffer {
            lines: self.lines,
            region: self.region,
            regions: self
                .regions
                .iter()
                .map(|answers| Course::of(answers, one_in))
                .collect(),
            all: Course::of(&self.all, one_in),
            copied: self.copied as f64 / self.far.max(1) as f64,
            written: (self.met as f64 > self.written as f64 * MET).then(|| WrittenParts {
                absent: self.absent as f64 / self.written as f64,
                written_back: self.written_back as f64 / self.written as f64,
            }),
        }
    }
}

impl OfBuffer {
    /// A buffer with one region, of which this many requests hit as often, stage by stage.
    #[cfg(test)]
    pub(super) fn uniform(lines: Range<u64>, hit_rates: &[f32], asked: f64) -> OfBuffer {
        let all = Course {
            asked,
            hit_rates: hit_rates.to_vec(),
            counts_own: false,
        };
        OfBuffer {
            region: lines.end - lines.start,
            lines,
            regions: vec![all.clone()],
            all,
            copied: 0.0,
            written: None,
        }
    }

    /// The region of a line.
    pub(super) fn region(&self, line: u64) -> usize {
        ((line - self.lines.start) / self.region) as usize
    }

    /// How many regions it has.
    pub(super) fn regions(&self) -> usize {
        self.regions.len()
    }

    /// The hit rate of a region when this many requests of the launch for lines of it, and of the buffer, have been made.
    pub(super) fn hit_rate(&self, region: usize, of_region: f64, of_buffer: f64) -> f64 {
        let course = &self.regions[region];
        match course.hit_rates.is_empty() {
            true => self.all.hit_rate(of_buffer),
            false => course.hit_rate(of_region),
        }
    }

    /// Whether requests of a core for lines of a region that it has brought itself count, too.
    pub(super) fn counts_own(&self, region: usize) -> bool {
        self.regions[region].counts_own
    }
}

impl Reuse {
    /// What the requests of a launch find in a device's L2, which is empty at first, or has `kept` what the same launch has left.
    pub(crate) fn of(model: &DeviceModel, requests: &Requests, kept: bool) -> Reuse {
        let mut walk = Walk::new(model, requests);
        if kept {
            walk.launch(requests);
            walk.begin_again(model, requests);
        }
        walk.launch(requests);
        let buffers = walk.buffers.into_iter();
        Reuse {
            buffers: buffers
                .map(|buffer| Arc::new(buffer.done(requests.one_in)))
                .collect(),
            is_kept: kept,
        }
    }

    /// Whether L2 has what the same launch has left there.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether all buffers with hits are among these; `line` is the size of a line in bytes.
    pub(crate) fn is_of(&self, buffers: &[Range<u64>], line: u64) -> bool {
        let lines: Vec<Range<u64>> = buffers.iter().map(|buffer| lines_of(buffer, line)).collect();
        self.buffers().all(|buffer| lines.contains(&buffer.lines))
    }

    /// Whether anything is found of a buffer.
    pub(super) fn has(&self, buffer: &Range<u64>, line: u64) -> bool {
        let lines = lines_of(buffer, line);
        self.buffers().any(|found| found.lines == lines)
    }

    /// The buffers of which any is found.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Arc<OfBuffer>> {
        let is_found = |buffer: &&Arc<OfBuffer>| buffer.all.hit_rates.iter().any(|&part| part > 0.0);
        self.buffers.iter().filter(is_found)
    }

    /// The buffers that several cores write, by the numbers of their lines.
    pub(super) fn written(&self) -> impl Iterator<Item = (Range<u64>, WrittenParts)> {
        let written = |buffer: &Arc<OfBuffer>| Some((buffer.lines.clone(), buffer.written?));
        self.buffers.iter().filter_map(written)
    }
}

/// A work-group that a core holds: the requests of its sub-groups, and the next one of each.
struct Resident<'r> {
    core: usize,
    /// The accesses that each of its sub-groups has made.
    until: u32,
    sub_groups: Vec<(&'r [Request], usize)>,
}

impl<'r> Resident<'r> {
    fn new(group: &'r [Vec<Request>], core: usize) -> Resident<'r> {
        Resident {
            core,
            until: 0,
            sub_groups: group.iter().map(|requests| (requests.as_slice(), 0)).collect(),
        }
    }
}

/// The buffer that has a line.
fn buffer_of(buffers: &mut [Counting], line: u64) -> Option<&mut Counting> {
    buffers.iter_mut().find(|buffer| buffer.lines.contains(&line))
}

/// The answer for a line that is there.
fn found_in(is_own: bool, is_shared: bool) -> LookupResult {
    match (is_own, is_shared) {
        (true, false) => LookupResult::Own,
        (true, true) => LookupResult::Shared,
        (false, _) => LookupResult::Others,
    }
}

/// The caches, and the counts so far.
struct Walk {
    l1: Vec<Cache>,
    halves: Vec<Cache>,
    /// Of each half, whether a core has asked for a line that another one brought.
    shared: Vec<Vec<bool>>,
    /// Of each half, the core that wrote to a line last.
    writers: Vec<Vec<u32>>,
    shape: LineShape,
    granule: u64,
    buffers: Vec<Counting>,
}

impl Walk {
    fn new(model: &DeviceModel, requests: &Requests) -> Walk {
        let l2 = &model.l2;
        let shape = LineShape::new(*l2.line, *l2.sector);
        let part = |bytes: u64| bytes as f64 / requests.one_in as f64;
        let l1 = model.l1.as_ref().filter(|_| requests.l1_bytes > 0);
        let halves = vec![Cache::new(part(*l2.effective_size), *l2.ways, *l2.line, shape); halves(model)];
        Walk {
            shared: halves.iter().map(|half| vec![false; half.lines()]).collect(),
            writers: halves.iter().map(|half| vec![0; half.lines()]).collect(),
            l1: l1.map_or_else(Vec::new, |l1| {
                vec![Cache::new(part(requests.l1_bytes), *l1.ways, *l2.line, shape); requests.cores]
            }),
            halves,
            shape,
            granule: *model.dram.granule,
            buffers: requests
                .buffers
                .iter()
                .map(|buffer| Counting::new(buffer, *l2.line, requests.one_in))
                .collect(),
        }
    }

    /// The work-groups of a launch make their requests.
    fn launch(&mut self, requests: &Requests) {
        let mut groups = requests.groups.iter();
        let mut resident: Vec<Option<Resident>> = (0..requests.cores * requests.places)
            .map(|place| {
                groups
                    .next()
                    .map(|group| Resident::new(group, place % requests.cores))
            })
            .collect();
        // All advance by as many accesses at a time as one request that is noted stands for.
        let turn = requests.one_in.min(u64::from(u32::MAX)) as u32;
        while !resident.is_empty() {
            for place in &mut resident {
                let Some(group) = place else { continue };
                group.until += turn;
                let mut is_over = true;
                for (requests, at) in &mut group.sub_groups {
                    while let Some(&request) = requests.get(*at).filter(|request| request.after < group.until)
                    {
                        *at += 1;
                        self.ask(request, group.core);
                    }
                    is_over &= *at == requests.len();
                }
                if is_over {
                    let core = group.core;
                    *place = groups.next().map(|group| Resident::new(group, core));
                }
            }
            resident.retain(Option::is_some);
        }
    }

    /// The same launch comes again: L1 is empty, L2 is as it is, and nothing was counted.
    fn begin_again(&mut self, model: &DeviceModel, requests: &Requests) {
        let fresh = Walk::new(model, requests);
        self.halves.iter_mut().for_each(Cache::asked_for_before);
        (self.l1, self.buffers) = (fresh.l1, fresh.buffers);
    }

    /// A core makes a request.
    fn ask(&mut self, request: Request, core: usize) {
        let (line, hash) = (request.line(), spread(request.line()));
        let mut sectors = request.sectors();
        if !request.writes()
            && let Some(l1) = self.l1.get_mut(core)
        {
            let key = l1.key(line, hash);
            let slot = match l1.find(key) {
                Some(slot) => slot,
                None => l1.insert(key, Replaces::LeastRecent).0,
            };
            sectors &= !l1.present(slot, sectors).0;
            l1.fill(slot, sectors, 0.0);
            if sectors == 0 {
                return;
            }
        }
        let of_two = self.halves.len() - 1;
        let (home, near) = (hash as usize & 1 & of_two, core & 1 & of_two);
        let key = self.halves[home].key(line, hash);
        if request.writes() {
            self.write(home, line, sectors, core);
            return;
        }
        let Some(buffer) = buffer_of(&mut self.buffers, line) else {
            self.bring(home, line, hash, sectors);
            return;
        };
        if home != near
            && let Some(slot) = self.halves[near].find(key)
            && self.halves[near].present(slot, sectors).0 == sectors
        {
            let is_own = self.halves[near].first_asker(slot, core) == core;
            let is_shared = &mut self.shared[near][slot.number()];
            *is_shared |= !is_own;
            buffer.add(line, found_in(is_own, *is_shared));
            buffer.far += u64::from(!is_own);
            buffer.copied += u64::from(!is_own);
            return;
        }
        let mut found = LookupResult::Nothing;
        if let Some(slot) = self.halves[home].find(key) {
            let is_own = self.halves[home].first_asker(slot, core) == core;
            let is_shared = &mut self.shared[home][slot.number()];
            *is_shared |= !is_own;
            if self.halves[home].present(slot, sectors).0 == sectors {
                found = found_in(is_own, *is_shared);
            }
        }
        buffer.add(line, found);
        buffer.far += u64::from(found == LookupResult::Others && home != near);
        let whole = self.shape.widen(sectors, self.granule);
        self.bring(home, line, hash, whole);
        self.first(home, line, hash, core);
        if home != near {
            self.bring(near, line, hash, whole);
            self.first(near, line, hash, core);
        }
    }

    /// Sectors of a line are in a half from now on: where.
    fn bring(&mut self, half: usize, line: u64, hash: u64, sectors: u8) -> Slot {
        let cache = &mut self.halves[half];
        let key = cache.key(line, hash);
        let slot = match cache.find(key) {
            Some(slot) => slot,
            None => {
                let (slot, victim) = cache.insert(key, Replaces::LeastRecent);
                self.shared[half][slot.number()] = false;
                if let Some(victim) = victim
                    && let Some(buffer) = buffer_of(&mut self.buffers, victim.number)
                {
                    buffer.written_back += u64::from(victim.dirty.count_ones());
                }
                slot
            }
        };
        cache.fill(slot, sectors, 0.0);
        slot
    }

    /// A core writes sectors of a line.
    fn write(&mut self, home: usize, line: u64, sectors: u8, core: usize) {
        // Nothing is asked of it but a place, so that what was there is still known.
        let slot = self.bring(home, line, spread(line), 0);
        let present = self.halves[home].present(slot, sectors).0;
        self.halves[home].fill(slot, sectors, 0.0);
        let before = self.halves[home].dirty(slot);
        self.halves[home].mark_dirty(slot, sectors, 0);
        let writer = std::mem::replace(&mut self.writers[home][slot.number()], core as u32);
        if let Some(buffer) = buffer_of(&mut self.buffers, line) {
            buffer.written += u64::from(sectors.count_ones());
            buffer.absent += u64::from((sectors & !present).count_ones());
            buffer.met += u64::from((sectors & before).count_ones()) * u64::from(writer != core as u32);
        }
    }

    /// A core has asked for a line that is there.
    fn first(&mut self, half: usize, line: u64, hash: u64, core: usize) {
        let cache = &mut self.halves[half];
        let key = cache.key(line, hash);
        if let Some(slot) = cache.find(key) {
            cache.first_asker(slot, core);
        }
    }
}

#[cfg(test)]
mod tests;
