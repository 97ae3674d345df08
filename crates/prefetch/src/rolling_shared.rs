//! `rolling-shared:D` and `rolling-async:D` — a ring of slots in shared memory.
//!
//! ```text
//! before                      after (rolling-async)
//! loop (%j = 0) {             D copies, tokens %t0 …
//!   %x = load %j              loop (%j = 0, %free, %a = %t0, %b = %t1) {
//!   use %x                      %c = copy %free, address of %j + D (guarded)
//!   continue %j + 1             wait %a
//! }                             %slot = next of %free
//!                               %x = load %slot
//!                               use %x
//!                               continue %j + 1, %slot, %b, %c
//!                             }
//! ```
//!
//! A short ring filled by copies, and one whose addresses are loaded in the loop, has one step's slots more than its depth,
//! those of the step before: its copies are then in flight before the step waits. Behind the wait they would be late, and an
//! assembler moves them further, behind the arithmetic. A longer ring loses nothing by it: its copies go behind the wait, where
//! their issue time is hidden, and fill the slot that was just read. Loaded addresses are different: behind the wait, their
//! loads would wait too, and their latency would be added to it. (`gather`, `rolling-async:4`, on an H200: 0.53 ms with loads
//! in front of the wait, 0.73 behind it. For the same reason the address of the slot to read is computed after the copies: it
//! gives ptxas work to place before the read of the slot, and ptxas then leaves the loads in front.)
//!
//! `rolling-shared` loads and stores instead of copying, and has no tokens; it stores at the end of the iteration,
//! because a core that issues in order waits there for the load. The slot of iteration `j` is read before that of
//! `j + D`, which is the same one, is fetched into it. Under `unroll:N` the step waits for
//! N slots at once; the tokens of a group are joined into one.

use super::early::{Early, load_under};
use super::fetch::Fetch;
use super::plan::{Distance, Layout};
use super::planned::Planned;
use super::slots::{Holds, Slots};
use super::word::{WORD, Word};
use crate::analysis::loops::LoadSite;
use crate::error::{Error, Result};
use crate::ir::{Builder, ConvertOp, Space, Type, Value};

/// The most steps that a ring is deep whose copies leave before the wait. On an H200 the two orders take the same
/// time at four (`article`, 0.405 and 0.416 ms).
const SHORT: u32 = 4;

pub(super) fn pass(load: &Planned<'_>) -> Result<Box<dyn Fetch>> {
    Ok(Box::new(RollingShared::new(load)))
}

/// A ring of slots in shared memory.
pub(super) struct RollingShared {
    pub(super) site: LoadSite,
    /// How many iterations ahead; a multiple of the group.
    pub(super) distance: u32,
    pub(super) layout: Layout,
    /// Filled by asynchronous copies.
    pub(super) asynchronous: bool,
    /// Iterations a step.
    pub(super) group: u32,
    /// Distances at which the addresses of other loads need the value.
    pub(super) consumers: Vec<u32>,
    /// The address needs values that are loaded in the loop.
    pub(super) chained: bool,
    slots: Option<Slots>,
    /// Copies move the word around an element.
    word: Option<Word>,
    /// Values that the step loaded and has yet to store.
    loaded: Vec<Loaded>,
}

/// Values that are on their way into a slot.
struct Loaded {
    guard: Option<Value>,
    slot: Value,
    values: Vec<Value>,
}

impl RollingShared {
    fn new(load: &Planned<'_>) -> RollingShared {
        RollingShared {
            site: load.site.clone(),
            distance: load.ahead(),
            layout: load.strategy.layout().unwrap_or_default(),
            asynchronous: load.strategy.descriptor().is_asynchronous,
            group: load.shape.group,
            consumers: load.consumers(),
            chained: load.is_chained(),
            slots: None,
            word: None,
            loaded: Vec::new(),
        }
    }

    fn bytes(&self, b: &Builder<'_>) -> u32 {
        b.kernel.ty(self.site.results[0]).bytes() * self.site.results.len() as u32
    }

    /// Fetches the value of iteration `ahead` into `slot`; a token if it is copied. A loaded value has yet to be stored.
    fn fetch(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        slot: Value,
        ahead: u32,
    ) -> Result<Option<Value>> {
        super::legality::may_move(b.kernel, early.definitions, early.summary, &self.site, ahead)?;
        if self.asynchronous {
            super::legality::not_constant(b.kernel, early.definitions, &self.site)?;
        }
        let guard = early.guard(b, &self.site, ahead, true)?;
        let from = early.value(b, self.site.pointer, ahead)?;
        if self.asynchronous {
            // A copy takes no generic address. Its memory is global, or it would not move.
            let from = match b.kernel.ty(from) {
                Type::Ptr(Space::Generic) => {
                    b.convert(ConvertOp::FromGeneric, Type::Ptr(Space::Global), from)
                }
                _ => from,
            };
            if let (Some(word), Some(slots)) = (&self.word, &self.slots) {
                let element = word.element(b, early, ahead)?;
                let fetched =
                    |b: &mut Builder<'_>| vec![self.fetch_word(b, word, slots, slot, element, from)];
                return Ok(Some(match guard {
                    None => fetched(b)[0],
                    Some(guard) => b.if_(guard, &[Type::Token], fetched, |b| vec![b.no_token()])[0],
                }));
            }
            let (bytes, id) = (self.bytes(b), self.site.id);
            let Some(guard) = guard else {
                return Ok(Some(b.copy(slot, from, bytes, id)));
            };
            let copied = |b: &mut Builder<'_>| vec![b.copy(slot, from, bytes, id)];
            return Ok(Some(
                b.if_(guard, &[Type::Token], copied, |b| vec![b.no_token()])[0],
            ));
        }
        let values = load_under(b, guard, &self.site, from);
        self.loaded.push(Loaded { guard, slot, values });
        Ok(None)
    }

    /// Fetches the values of the step `distance` ahead into the slots from `first` on; the tokens of the copies.
    fn fetch_group(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        first: Value,
        group: u32,
    ) -> Result<Vec<Value>> {
        let mut tokens = Vec::new();
        for ahead in 0..group {
            let slots = self.slots.as_ref().ok_or_else(|| Error::bug("no slots"))?;
            let slot = slots.slot(b, first, ahead, true);
            tokens.extend(self.fetch(early, b, slot, self.distance + ahead)?);
        }
        Ok(tokens)
    }

    /// Stores the loaded values.
    fn store(&mut self, b: &mut Builder<'_>) {
        let Some(slots) = &self.slots else { return };
        for Loaded { guard, slot, values } in self.loaded.drain(..) {
            match guard {
                None => slots.write(b, slot, values),
                Some(guard) => {
                    let fill = |b: &mut Builder<'_>| {
                        slots.write(b, slot, values);
                        Vec::new()
                    };
                    b.if_(guard, &[], fill, |_| Vec::new());
                }
            }
        }
    }

    /// Whether copies leave before the wait, into slots of their own.
    fn copies_first(&self) -> bool {
        self.asynchronous && (self.chained || self.distance / self.group <= SHORT)
    }

    /// Slots of a work-item.
    fn depth(&self) -> Result<Distance> {
        let spare = if self.copies_first() { self.group } else { 0 };
        Distance::new(self.distance + spare)
    }

    /// Copies the word around an element into `slot`; the element alone, if the word reaches over the end.
    fn fetch_word(
        &self,
        b: &mut Builder<'_>,
        word: &Word,
        slots: &Slots,
        slot: Value,
        element: Value,
        from: Value,
    ) -> Value {
        let (start, whole) = word.around(b, element);
        let copied = |b: &mut Builder<'_>| vec![b.copy(slot, start, WORD, self.site.id)];
        let loaded = |b: &mut Builder<'_>| {
            let values = load_under(b, None, &self.site, from);
            let place = word.within(b, slot, element);
            slots.write(b, place, values);
            vec![b.no_token()]
        };
        b.if_(whole, &[Type::Token], copied, loaded)[0]
    }
}

impl Fetch for RollingShared {
    fn site(&self) -> &LoadSite {
        &self.site
    }

    fn prologue(&mut self, early: &mut Early<'_>, b: &mut Builder<'_>) -> Result<Vec<Value>> {
        if self.asynchronous {
            self.word = Word::of(b, early, &self.site)?;
        }
        let holds = match self.word {
            Some(_) => Holds::Word,
            None => Holds::Result,
        };
        let slots = Slots::declare(b, &self.site, self.depth()?, self.layout, holds)?;
        let first = slots.first();
        let mut state = vec![match self.copies_first() {
            // The slots that the step before the first one would read: the prologue leaves them empty.
            true => slots.slot(b, first, self.distance, true),
            false => first,
        }];
        self.slots = Some(slots);
        for step in 0..self.distance / self.group {
            // Each token covers those before it: a copy under a guard that fails leaves the token 0, and code that
            // waits for the last one means all.
            let mut tokens: Vec<Value> = state[1..].last().copied().into_iter().collect();
            for ahead in step * self.group..(step + 1) * self.group {
                let slots = self.slots.as_ref().ok_or_else(|| Error::bug("no slots"))?;
                let slot = slots.slot(b, first, ahead, true);
                tokens.extend(self.fetch(early, b, slot, ahead)?);
            }
            if self.asynchronous {
                state.push(b.join(tokens));
            }
        }
        self.store(b);
        Ok(state)
    }

    fn advance(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        state: &[Value],
        group: u32,
    ) -> Result<Vec<Value>> {
        let copies_first = self.copies_first();
        let (filled, tokens) = (state[0], &state[1..]);
        let mut copied: Vec<Value> = tokens.last().copied().into_iter().collect();
        if copies_first {
            copied.extend(self.fetch_group(early, b, filled, group)?);
        }
        let slots = self.slots.as_ref().ok_or_else(|| Error::bug("no slots"))?;
        let next = slots.step(b, filled, group);
        let pointer = if copies_first { next } else { filled };
        if self.asynchronous {
            // One wait reaches the furthest iteration that is needed now.
            let furthest = self.consumers.iter().copied().max().unwrap_or(0) + group - 1;
            let token = (furthest / group) as usize;
            b.wait(tokens[token.min(tokens.len() - 1)]);
        }
        for distance in [0].into_iter().chain(self.consumers.clone()) {
            for ahead in distance..distance + group {
                if early.known_load(&self.site, ahead).is_some() {
                    continue;
                }
                let guard = early.guard(b, &self.site, ahead, true)?;
                let slots = self.slots.as_ref().ok_or_else(|| Error::bug("no slots"))?;
                let mut slot = slots.slot(b, pointer, ahead, ahead < group);
                if let Some(word) = &self.word {
                    let element = word.element(b, early, ahead)?;
                    slot = word.within(b, slot, element);
                }
                slots.read(b, early, guard, slot, ahead);
            }
        }
        if !copies_first {
            copied.extend(self.fetch_group(early, b, pointer, group)?);
        }
        let mut state = vec![next];
        if self.asynchronous {
            state.extend(&tokens[1..]);
            state.push(b.join(copied));
        }
        Ok(state)
    }

    fn finish(&mut self, b: &mut Builder<'_>) {
        self.store(b);
    }

    fn replaces_load(&self) -> bool {
        true
    }

    fn in_flight(&self, state: &[Value]) -> Option<Value> {
        if self.asynchronous {
            state.last().copied()
        } else {
            None
        }
    }
}
