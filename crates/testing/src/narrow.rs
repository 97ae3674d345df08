//! Statements of random kernels: arithmetic on narrow types, and vectors in memory.

use super::statements::{Frame, Generator, PRIVATE_LENGTH, widened};
use super::tables::Table;
use super::values::Pool;
use crate::ir::{BinaryOp, Builder, CacheUse, CompareOp, ConvertOp, Kernel, OpKind, Type, UnaryOp, Value};

/// The largest vector in memory, in bytes: what tables are aligned to.
const VECTOR_BYTES: u32 = 16;

impl Generator {
    /// Wide values made narrow, something computed, and the result made wide again.
    pub fn narrow(&mut self, b: &mut Builder<'_>, pool: &mut Pool) {
        let narrow = *self
            .random
            .choose(&[Type::F16, Type::F16, Type::Bf16, Type::I8, Type::I16]);
        let wide = if narrow.is_float() { Type::F32 } else { Type::I32 };
        let [x, y, z] = [(); 3].map(|()| {
            let value = pool.pick(&mut self.random, b, wide);
            let op = if narrow.is_float() {
                ConvertOp::FloatToFloat
            } else {
                ConvertOp::Truncate
            };
            b.convert(op, narrow, value)
        });
        if self.random.chance(15) {
            let op = match narrow.is_float() {
                true => *self
                    .random
                    .choose(&[CompareOp::FLt, CompareOp::FLe, CompareOp::FEq]),
                false => *self
                    .random
                    .choose(&[CompareOp::LtS, CompareOp::LtU, CompareOp::Ne]),
            };
            pool.add(b.compare(op, x, y));
            return;
        }
        let result = match (narrow.is_float(), self.random.below(6)) {
            (true, 0) => b.fma(x, y, z),
            (true, 1) => {
                let op = *self
                    .random
                    .choose(&[UnaryOp::FNeg, UnaryOp::FAbs, UnaryOp::Sqrt, UnaryOp::Floor]);
                b.unary(op, x)
            }
            (true, _) => {
                use BinaryOp::{FAdd, FDiv, FMax, FMin, FMul, FSub};
                let op = *self.random.choose(&[FAdd, FSub, FMul, FDiv, FMin, FMax]);
                b.binary(op, x, y)
            }
            (false, 0) => {
                let op = *self
                    .random
                    .choose(&[UnaryOp::Not, UnaryOp::Neg, UnaryOp::CountOnes]);
                b.unary(op, x)
            }
            (false, _) => {
                use BinaryOp::{Add, And, DivS, DivU, MaxS, MinU, Mul, Or, RemU, Shl, ShrS, ShrU, Sub, Xor};
                let op = *self.random.choose(&[
                    Add, Sub, Mul, And, Or, Xor, Shl, ShrS, ShrU, DivS, DivU, RemU, MinU, MaxS,
                ]);
                b.binary(op, x, y)
            }
        };
        let back = match narrow.is_float() {
            true => ConvertOp::FloatToFloat,
            false if self.random.chance(50) => ConvertOp::ExtendS,
            false => ConvertOp::ExtendU,
        };
        pool.add(b.convert(back, wide, result));
    }

    /// Two or four elements of a table that lie together, at any multiple of their number.
    pub fn load_vector(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let table = self.random.choose(&frame.tables.inputs).clone();
        let fits = |parts: &&u32| **parts * table.element.bytes() <= VECTOR_BYTES;
        let parts = *self
            .random
            .choose(&[2u32, 4].iter().filter(fits).collect::<Vec<_>>());
        let index = self.index(b, pool, table.length);
        // Tables hold a multiple of four elements, so the vector lies inside where its first element does.
        let first = b.i64(-i64::from(*parts));
        let index = b.and(index, first);
        self.parts(b, pool, &table, index, *parts);
    }

    /// Loads parts, and keeps them as they are used: as indices, or widened.
    fn parts(&mut self, b: &mut Builder<'_>, pool: &mut Pool, table: &Table, index: Value, parts: u32) {
        let ptr = b.element(table.pointer, table.element, index);
        let id = self.new_load(b, table.name);
        let types = vec![table.element; parts as usize];
        let load = OpKind::Load {
            ptr,
            id,
            cache: CacheUse::Default,
        };
        let values = b.push(load, &types);
        b.at(Kernel::NOWHERE);
        for value in values {
            pool.add(widened(b, value));
        }
    }

    /// Two or four elements of the private array, written and read together.
    pub fn private_vector(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let parts = *self.random.choose(&[2u64, 4]);
        let any = pool.pick(&mut self.random, b, Type::I64);
        let mask = b.i64((PRIVATE_LENGTH - parts) as i64);
        let index = b.and(any, mask);
        let array = b.array_address(frame.private);
        let ptr = b.element(array, Type::F32, index);
        let values = (0..parts)
            .map(|_| pool.pick(&mut self.random, b, Type::F32))
            .collect();
        let store = OpKind::Store {
            ptr,
            values,
            cache: CacheUse::Default,
        };
        b.push(store, &[]);
        let id = self.new_load(b, "mine");
        let load = OpKind::Load {
            ptr,
            id,
            cache: CacheUse::Default,
        };
        let types = vec![Type::F32; parts as usize];
        b.push(load, &types).into_iter().for_each(|value| pool.add(value));
        b.at(Kernel::NOWHERE);
    }
}
