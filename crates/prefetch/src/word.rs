//! Elements smaller than an asynchronous copy: the aligned word around one is copied.
//!
//! ```text
//! before                  after
//! %x = load %p            %first = and %i, !3                       elements per word: 4, of 1 byte each
//!                         if %first < %length & !3                  the whole word lies in the memory
//!                           %t = copy %slot, address of %first, 4
//!                         else                                      the memory's last, partial word
//!                           store the element into its place in the slot
//!                         …
//!                         %x = load %slot + (%i & 3)
//! ```
//!
//! The memory must start at a word, its length must be known, and nothing may write it while the kernel runs:
//! the word holds elements that belong to other work-items.

use super::early::Early;
use super::legality::{self, Bounds};
use crate::analysis::loops::LoadSite;
use crate::analysis::roots::root;
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, CompareOp, Type, Value};

/// Bytes of a word: the least that an asynchronous copy moves.
pub(super) const WORD: u32 = 4;

/// How a load's element is found in the word around it.
pub(super) struct Word {
    /// The pointer to the memory's first element.
    base: Value,
    /// The load's index in iteration 0, an `I64`, and the amount added to it.
    index: Value,
    first: i64,
    /// Elements in the memory, an `I64`.
    length: Value,
    /// Bytes of an element.
    size: u32,
}

impl Word {
    /// The word around a load's element, if that is narrower than a word.
    pub(super) fn of(b: &Builder<'_>, early: &Early<'_>, site: &LoadSite) -> Result<Option<Word>> {
        let size = b.kernel.ty(site.results[0]).bytes();
        let loaded = size * site.results.len() as u32;
        if matches!(loaded, 4 | 8 | 16) {
            return Ok(None);
        }
        let name = &b.kernel.loads[site.id].name;
        let refuse = |why: &str| {
            let error = Error::usage(format!(
                "`{name}` has {loaded}-byte elements, and asynchronous copies move 4, 8 or 16 bytes: {why}"
            ));
            let place = b.kernel.describe_place(site.place);
            Err(error.at(place).accepted("`rolling-shared` moves any"))
        };
        if site.results.len() > 1 || size > WORD {
            return refuse("only a single small element is taken out of the word around it");
        }
        let bounds = legality::bounds(b.kernel, early.definitions, early.summary, site);
        let Bounds::Length {
            base,
            index,
            first,
            length,
            ..
        } = bounds
        else {
            return refuse(
                "the length of the memory is unknown, and the word around an element may reach over its end",
            );
        };
        let facts = root(b.kernel, early.definitions, base).and_then(|root| root.facts(b.kernel));
        if facts.is_none_or(|facts| facts.align < WORD) {
            return refuse("the memory need not start at a word");
        }
        if facts.is_none_or(|facts| !facts.read_only) {
            return refuse("its neighbours in the word around it may be written meanwhile");
        }
        Ok(Some(Word {
            base,
            index,
            first,
            length,
            size,
        }))
    }

    /// The element that the load reads `ahead` iterations on; an `I64`.
    pub(super) fn element(&self, b: &mut Builder<'_>, early: &mut Early<'_>, ahead: u32) -> Result<Value> {
        let index = early.value(b, self.index, ahead)?;
        let first = b.i64(self.first);
        Ok(b.add(index, first))
    }

    /// Where the word around an element begins, and whether all of it lies in the memory.
    pub(super) fn around(&self, b: &mut Builder<'_>, element: Value) -> (Value, Value) {
        let start = self.masked(b, element, !self.last());
        let whole_words = self.masked(b, self.length, !self.last());
        let whole = b.compare(CompareOp::LtU, start, whole_words);
        (b.address(self.base, start, self.size, 0), whole)
    }

    /// Where an element lies in the slot that holds its word.
    pub(super) fn within(&self, b: &mut Builder<'_>, slot: Value, element: Value) -> Value {
        let position = self.masked(b, element, self.last());
        b.address(slot, position, self.size, 0)
    }

    /// The last element of a word.
    fn last(&self) -> u64 {
        u64::from(WORD / self.size - 1)
    }

    fn masked(&self, b: &mut Builder<'_>, value: Value, mask: u64) -> Value {
        let mask = b.constant(Type::I64, mask);
        b.binary(BinaryOp::And, value, mask)
    }
}
