//! Kernels and device functions: where recording begins and ends.

use super::layout::{Layout, Placed};
use super::state::{Frame, Recorder, exchange, recorder};
use super::{At, Memory, ScopeHandle, Values, end_block, redundant, ssa};
use crate::cleanup;
use crate::ir::{
    Accuracy, BinaryOp, Kernel, OpKind, Param, PointerFacts, Races, Region, Space, Type, Value, limits,
    verify_derived,
};
use crate::lang::atomic::{Exclusive, Stored};
use crate::lang::data::Data;
use crate::prefetch::Plan;
use crate::suggest::accepted;
use crate::{Error, Result};

/// The deepest nesting of calls: far more than readable kernels have, and no danger to the stack.
const DEEPEST: usize = 64;

/// Records a kernel: `body` makes the calls.
///
/// # Errors
/// The first thing that a call found wrong.
pub fn kernel(name: &'static str, file: &'static str, body: impl FnOnce()) -> Result<Kernel> {
    let outer = exchange(Recorder::new(name, file));
    body();
    let mut recorder = exchange(outer);
    if let Some(error) = recorder.error.take() {
        return Err(error);
    }
    let (mut kernel, variables, body) = recorder.finish();
    ssa::construct(&mut kernel, &variables, body);
    redundant::remove(&mut kernel);
    cleanup::tidy(&mut kernel);
    verify_derived(&kernel)?;
    check_wishes(&kernel)?;
    Ok(kernel)
}

/// The plans that loops ask for can be read, and name loads of those loops.
fn check_wishes(kernel: &Kernel) -> Result<()> {
    let mut checked = Ok(());
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { wishes, body, .. } = &op.kind
            && let Some(plan) = &wishes.plan
            && checked.is_ok()
        {
            // The plan is at fault, so the kernel is: its own place goes in front.
            checked = check_plan(kernel, body, plan)
                .map_err(|error| Error::input(error.to_string()).at(kernel.describe_place(op.place)));
        }
    });
    checked
}

fn check_plan(kernel: &Kernel, body: &Region, plan: &str) -> Result<()> {
    let mut names: Vec<&str> = Vec::new();
    body.walk(&mut |op| {
        if let OpKind::Load { id, .. } = &op.kind {
            names.push(&kernel.loads[*id].name);
        }
    });
    names.sort_unstable();
    names.dedup();
    for (load, _) in plan.parse::<Plan>()?.loads() {
        if !names.contains(&load.param()) {
            let choices = accepted(load.param(), "loads", names.iter().copied());
            return Err(Error::input(format!("this loop has no load `{load}`")).accepted(choices));
        }
    }
    Ok(())
}

/// A `&[T]` parameter: a pointer and a length. Rust promises that nothing writes it meanwhile.
/// A `&[Atomic<T>]` is written through, but by atomic operations only.
pub fn slice<T: Stored>(name: &str, length: &str) -> Memory<T::Element> {
    slice_with(name, length, !T::SHARED_WRITES)
}

/// A `&mut [T]` parameter: a pointer and a length. Rust promises that nothing else reaches it.
pub fn slice_mut<T: Exclusive>(name: &str, length: &str) -> Memory<T::Element> {
    slice_with(name, length, false)
}

pub(super) fn slice_with<V: Layout>(name: &str, length_name: &str, read_only: bool) -> Memory<V> {
    let unit = V::UNIT.bytes();
    let (base, length) = recorder(|recorder| {
        let kernel = &mut recorder.kernel;
        let base = kernel.value(Type::Ptr(Space::Global));
        let length = kernel.value(Type::I64);
        let facts = PointerFacts {
            element: V::UNIT,
            align: limits::BUFFER_ALIGNMENT.max(unit),
            length: Some(length),
            read_only,
            unaliased: true,
            is_constant: false,
            races: Races::None,
        };
        push_parameter(kernel, name.to_owned(), base, Some(facts));
        push_parameter(kernel, length_name.to_owned(), length, None);
        // The parameter counts scalars; a slice of vectors or structs is this many times shorter.
        let count = match V::SIZE / unit {
            1 => length,
            count => recorder.build(At(0, 0), |b| {
                let count = b.constant(Type::I64, u64::from(count));
                b.binary(BinaryOp::DivU, length, count)
            }),
        };
        (base, count)
    });
    Memory::new(base, length, name)
}

/// A parameter that is a value: one of the IR's for each scalar in it. Of a struct `p` with a field `x` it is
/// `p_x`, unless a parameter in `others` is called so.
pub fn parameter<T: Data>(name: &str, others: &[&str]) -> T::Recorded {
    let (mut types, mut names) = (Vec::new(), Vec::new());
    T::Recorded::types(&mut types);
    T::Recorded::names(name, &mut names);
    let values: Vec<Value> = recorder(|recorder| {
        let kernel = &mut recorder.kernel;
        let both = types.into_iter().zip(names);
        both.map(|(ty, mut part)| {
            let is_taken = |kernel: &Kernel, part: &str| {
                kernel.param(part).is_some() || (part != name && others.contains(&part))
            };
            while is_taken(kernel, &part) {
                part.push('_');
            }
            let value = kernel.value(ty);
            push_parameter(kernel, part, value, None);
            value
        })
        .collect()
    });
    T::Recorded::from_parts(&mut values.into_iter())
}

fn push_parameter(kernel: &mut Kernel, name: String, value: Value, facts: Option<PointerFacts>) {
    kernel.values[value].name = Some(name.clone());
    kernel.params.push(Param { name, value, facts });
}

/// `work_group = …`
pub fn require_work_group(sizes: &[u64]) {
    let mut required = [1; 3];
    for (required, &size) in required.iter_mut().zip(sizes) {
        *required = size_of(size, "work-group");
    }
    recorder(|recorder| recorder.kernel.group_size = Some(required));
}

/// `sub_group = …`
pub fn require_sub_group(size: u64) {
    let size = size_of(size, "sub-group");
    recorder(|recorder| recorder.kernel.sub_group_size = Some(size));
}

/// How far quotients and square roots may be off.
pub fn allow_accuracy(accuracy: Accuracy) {
    recorder(|recorder| recorder.kernel.float_mode.accuracy = accuracy);
}

fn size_of(size: u64, what: &str) -> u32 {
    match u32::try_from(size) {
        Ok(size) if size > 0 => size,
        _ => {
            let error = Error::input(format!("a {what} cannot have {size} work-items"))
                .accepted("a size of at least 1 that fits 32 bits");
            recorder(|recorder| recorder.fail(At(0, 0), error));
            1
        }
    }
}

/// Begins a device function that was called at `call`; nothing if it is being recorded already, for a
/// function that calls itself cannot be inlined.
pub fn enter_function<V: Values>(
    call: At,
    name: &'static str,
    file: &'static str,
    line: u32,
) -> Option<ScopeHandle<V>> {
    let definition = (file, line);
    let entered = recorder(|recorder| {
        let recursive = recorder.frames.iter().any(|frame| frame.definition == definition);
        if recursive || recorder.frames.len() >= DEEPEST {
            let error = Error::input(format!("the device function `{name}` calls itself"))
                .accepted("device functions are inlined; write a loop");
            recorder.fail(call, error);
            return false;
        }
        let place = recorder.place(call);
        recorder.frames.push(Frame {
            definition,
            call: Some(place),
        });
        true
    });
    entered.then(|| ScopeHandle::begin(call))
}

/// The end of a device function; its value.
pub fn leave_function<V: Values>(scope: ScopeHandle<V>) -> V {
    // The block belongs to the call: its place is the caller's.
    recorder(|recorder| recorder.frames.pop());
    end_block(scope)
}
