//! Methods of atomic elements, `memory[index].fetch_add(value, order)`, and fences.

use super::memory::element;
use super::state::recorder;
use super::{AsMemory, At, AtomicElement, Recorded, begin_else, begin_if, end_if, yield_if};
use crate::Error;
use crate::ir::{AtomicOp, CompareOp, ConvertOp, MemoryOrder, Type, Value};
use crate::lang::atomic::{AtomicInteger, AtomicScalar, Order};

/// Appends an operation on `memory[index]`; the old value, if it returns that.
fn operate<T: AtomicScalar>(
    at: At,
    op: AtomicOp,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    values: Vec<Value>,
    order: impl Into<Order>,
) -> Option<Recorded<T>> {
    let Order { order, scope } = order.into();
    let ptr = element(at, memory.memory(), T::TYPE, index.value);
    recorder(|recorder| {
        if !op.can_be(order) {
            let accepted = match op {
                AtomicOp::Load => "accepted: Relaxed, Acquire, SeqCst",
                _ => "accepted: Relaxed, Release, SeqCst",
            };
            let error = Error::input(format!(
                "an atomic `{}` cannot have the order {}",
                op.name(),
                order.name()
            ));
            recorder.fail(at, error.accepted(accepted));
        }
        recorder.build(at, |b| b.atomic(op, T::TYPE, ptr, values, order, scope))
    })
    .map(Recorded::new)
}

/// As [`operate`], for an operation that returns the old value.
fn exchange<T: AtomicScalar>(
    at: At,
    op: AtomicOp,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    values: Vec<Value>,
    order: impl Into<Order>,
) -> Recorded<T> {
    operate(at, op, memory, index, values, order)
        .expect("every operation except a store returns the old value")
}

/// `memory[index].load(order)`
pub fn load<T: AtomicScalar>(
    at: At,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    order: impl Into<Order>,
) -> Recorded<T> {
    exchange(at, AtomicOp::Load, memory, index, Vec::new(), order)
}

/// `memory[index].store(value, order)`
pub fn store<T: AtomicScalar>(
    at: At,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    value: Recorded<T>,
    order: impl Into<Order>,
) {
    operate(at, AtomicOp::Store, memory, index, vec![value.value], order);
}

/// `memory[index].compare_and_swap(current, new, order)`
pub fn compare_and_swap<T: AtomicInteger>(
    at: At,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    current: Recorded<T>,
    new: Recorded<T>,
    order: impl Into<Order>,
) -> Recorded<T> {
    let values = vec![current.value, new.value];
    exchange(at, AtomicOp::CompareExchange, memory, index, values, order)
}

/// `memory[index].fetch_add(value, order)`
pub fn fetch_add<T: AtomicScalar>(
    at: At,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    value: Recorded<T>,
    order: impl Into<Order>,
) -> Recorded<T> {
    let op = match T::TYPE.is_float() {
        true => AtomicOp::FAdd,
        false => AtomicOp::Add,
    };
    exchange(at, op, memory, index, vec![value.value], order)
}

macro_rules! methods {
    ($($name:ident of $bound:ident: $signed:ident, $unsigned:ident;)+) => {$(
        #[doc = concat!("`memory[index].", stringify!($name), "(value, order)`")]
        pub fn $name<T: $bound>(
            at: At,
            memory: impl AsMemory<AtomicElement<T>>,
            index: Recorded<usize>,
            value: Recorded<T>,
            order: impl Into<Order>,
        ) -> Recorded<T> {
            let op = if T::SIGNED { AtomicOp::$signed } else { AtomicOp::$unsigned };
            exchange(at, op, memory, index, vec![value.value], order)
        }
    )+};
}

methods! {
    swap of AtomicScalar: Exchange, Exchange;
    fetch_sub of AtomicInteger: Sub, Sub;
    fetch_and of AtomicInteger: And, And;
    fetch_or of AtomicInteger: Or, Or;
    fetch_xor of AtomicInteger: Xor, Xor;
}

/// `memory[index].fetch_min(value, order)`
pub fn fetch_min<T: AtomicScalar>(
    at: At,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    value: Recorded<T>,
    order: impl Into<Order>,
) -> Recorded<T> {
    let [signed, unsigned] = [AtomicOp::MinS, AtomicOp::MinU];
    if T::TYPE.is_float() {
        return float_extreme(at, memory, index, value, order, [signed, AtomicOp::MaxU]);
    }
    let op = if T::SIGNED { signed } else { unsigned };
    exchange(at, op, memory, index, vec![value.value], order)
}

/// `memory[index].fetch_max(value, order)`
pub fn fetch_max<T: AtomicScalar>(
    at: At,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    value: Recorded<T>,
    order: impl Into<Order>,
) -> Recorded<T> {
    let [signed, unsigned] = [AtomicOp::MaxS, AtomicOp::MaxU];
    if T::TYPE.is_float() {
        return float_extreme(at, memory, index, value, order, [signed, AtomicOp::MinU]);
    }
    let op = if T::SIGNED { signed } else { unsigned };
    exchange(at, op, memory, index, vec![value.value], order)
}

/// The least or greatest of floats, by operations on integers: among the bits of positive floats the order is that of
/// signed integers, which have the negative ones below; among those of negative floats it is the opposite of that of
/// unsigned ones, which have the positive ones below. `positive` and `negative` are the operations for either sign.
fn float_extreme<T: AtomicScalar>(
    at: At,
    memory: impl AsMemory<AtomicElement<T>>,
    index: Recorded<usize>,
    value: Recorded<T>,
    order: impl Into<Order>,
    [positive, negative]: [AtomicOp; 2],
) -> Recorded<T> {
    let Order { order, scope } = order.into();
    let ptr = element(at, memory.memory(), T::TYPE, index.value);
    let bits = match T::TYPE {
        Type::F64 => Type::I64,
        _ => Type::I32,
    };
    // The neutral element: the greatest in the order of `MinS`, the least in that of `MinU`.
    let nothing = match positive {
        AtomicOp::MinS => bits.mask() >> 1,
        _ => bits.mask(),
    };
    let (number, is_negative) = recorder(|recorder| {
        recorder.build(at, |b| {
            let number = b.convert(ConvertOp::Bits, bits, value.value);
            let is_nan = b.compare(CompareOp::FUnordered, value.value, value.value);
            let nothing = b.constant(bits, nothing);
            let number = b.select(is_nan, nothing, number);
            let zero = b.constant(bits, 0);
            (number, b.compare(CompareOp::LtS, number, zero))
        })
    });
    let operate = |op: AtomicOp| {
        recorder(|recorder| {
            recorder.build(at, |b| {
                let before = b.atomic(op, bits, ptr, vec![number], order, scope);
                let before = before.expect("it returns the old value");
                b.convert(ConvertOp::Bits, T::TYPE, before)
            })
        })
    };
    let branch = begin_if::<Recorded<T>>(at, Recorded::new(is_negative));
    yield_if(branch, Recorded::new(operate(negative)));
    begin_else(branch);
    yield_if(branch, Recorded::new(operate(positive)));
    end_if(branch)
}

/// `fence(order)`
pub fn fence(at: At, Order { order, scope }: Order) {
    recorder(|recorder| {
        if order == MemoryOrder::Relaxed {
            let error = Error::input("a relaxed fence orders nothing")
                .accepted("accepted: Acquire, Release, AcqRel, SeqCst");
            recorder.fail(at, error);
        }
        recorder.build(at, |b| b.fence(order, scope));
    });
}
