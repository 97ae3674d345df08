//! Addresses as a base and a scaled index.
//!
//! Addresses keep this form through additions, so an access reads `base + index × scale + offset` in one operation, however the
//! compiler wrote it.

use std::collections::HashMap;

use crate::ir::{Builder, ConvertOp, Type, Value};

/// The shapes of values that addresses are made of.
#[derive(Default)]
pub(crate) struct Shapes {
    /// Pointers: base, index, bytes an index, further bytes.
    addresses: HashMap<Value, (Value, Value, u32, i64)>,
    /// 64-bit integers: index, factor, addend.
    scaled: HashMap<Value, (Value, u32, i64)>,
}

impl Shapes {
    /// Remembers that an integer is an index, scaled and displaced.
    pub(crate) fn note_scaled(&mut self, value: Value, index: Value, factor: u32, addend: i64) {
        self.scaled.insert(value, (index, factor, addend));
    }

    /// The index, factor and addend that an integer was made of.
    pub(crate) fn scaled(&self, value: Value) -> Option<(Value, u32, i64)> {
        self.scaled.get(&value).copied()
    }

    /// The pointer some bytes further.
    pub(crate) fn offset(&mut self, b: &mut Builder<'_>, pointer: Value, bytes: i64) -> Value {
        if bytes == 0 {
            return pointer;
        }
        let none = b.i64(0);
        self.address(b, pointer, none, 1, bytes)
    }

    /// The pointer and an integer of 32 or 64 bits.
    pub(crate) fn pointer_plus(&mut self, b: &mut Builder<'_>, pointer: Value, integer: Value) -> Value {
        if let Some((index, factor, addend)) = self.scaled(integer) {
            return self.address(b, pointer, index, factor, addend);
        }
        // A sum of 32 bits leads to the same address in a window of 32 bits, whichever way it is widened.
        let index = b.convert(ConvertOp::ExtendS, Type::I64, integer);
        self.address(b, pointer, index, 1, 0)
    }

    /// `base + index × scale + offset`, in bytes.
    pub(crate) fn address(
        &mut self,
        b: &mut Builder<'_>,
        base: Value,
        index: Value,
        scale: u32,
        offset: i64,
    ) -> Value {
        let (index, scale, offset) = match b.kernel.as_constant(index) {
            Some(bits) => {
                let bytes = (bits as i64).wrapping_mul(i64::from(scale));
                (b.i64(0), 1, offset.wrapping_add(bytes))
            }
            None => (index, scale, offset),
        };
        let is_constant = |b: &Builder<'_>, value: Value| b.kernel.as_constant(value).is_some();
        let parts = match self.addresses.get(&base) {
            Some(&(base, inner, inner_scale, bytes)) if is_constant(b, index) => {
                (base, inner, inner_scale, bytes.wrapping_add(offset))
            }
            Some(&(base, inner, _, bytes)) if is_constant(b, inner) => {
                (base, index, scale, bytes.wrapping_add(offset))
            }
            _ => (base, index, scale, offset),
        };
        let (base, index, scale, offset) = parts;
        let pointer = b.address(base, index, scale, offset);
        if pointer != base {
            self.addresses.insert(pointer, parts);
        }
        pointer
    }
}
