//! Asynchronous copies by hand: groups that are counted become tokens that are named.
//!
//! Before: `pipeline_memcpy_async(…); pipeline_commit(); pipeline_wait_prior(1)`. After: `current = copy …; group1 = group0;
//! group0 = current; wait group1`. The tokens are variables like all others, declared before the kernel's first step so that loops
//! carry them; those that no wait asks for are taken out at the end.

use super::groups::{CURRENT, MOST, group};
use super::memory::{Memory, element};
use super::state::recorder;
use super::{At, Recorded};
use crate::Error;
use crate::ir::{Space, Type};
use crate::lang::scalar::Number;

/// `pipeline_memcpy_async(to, from)`.
pub fn copy<T: Number>(at: At, to: Memory<Recorded<T>>, from: Memory<Recorded<T>>) {
    let bytes = T::TYPE.bytes();
    let zero = recorder(|recorder| recorder.kernel.constant(Type::I64, 0));
    let [to_ptr, from_ptr] = [to, from].map(|memory| element(at, memory, T::TYPE, zero));
    recorder(|recorder| {
        let spaces = [to_ptr, from_ptr].map(|ptr| recorder.kernel.ty(ptr));
        if spaces != [Type::Ptr(Space::Shared), Type::Ptr(Space::Global)] {
            let error = Error::input("an asynchronous copy goes from global to shared memory")
                .accepted("`pipeline_memcpy_async(&mut tile[i..], &values[j..])` with a shared `tile` and a parameter `values`");
            return recorder.fail(at, error);
        }
        if !matches!(bytes, 4 | 8) {
            let error = Error::input(format!("an asynchronous copy of {bytes} bytes"))
                .accepted("elements of 4 or 8 bytes");
            return recorder.fail(at, error);
        }
        let id = recorder.load_id(at, from.root());
        let token = recorder.build(at, |b| b.copy(to_ptr, from_ptr, bytes, id));
        recorder.write(CURRENT, token);
    });
}

/// `pipeline_commit()`.
pub(crate) fn commit() {
    recorder(|recorder| {
        for ago in (1..=MOST).rev() {
            let before = recorder.read(group(ago - 1));
            recorder.write(group(ago), before);
        }
        let current = recorder.read(CURRENT);
        recorder.write(group(0), current);
    });
}

/// `pipeline_wait_prior(groups)`.
pub(crate) fn wait_prior(at: At, groups: Recorded<u32>) {
    recorder(|recorder| {
        let Some(left) = recorder
            .constant(groups.value)
            .filter(|&left| left <= u64::from(MOST))
        else {
            let error = Error::input(
                "how many groups a wait leaves on their way has to be known when the kernel is compiled",
            )
            .accepted(format!("a constant of at most {MOST}"));
            return recorder.fail(at, error);
        };
        let left = left as u32;
        recorder.groups_left = Some(recorder.groups_left.unwrap_or(0).max(left));
        let token = recorder.read(group(left));
        recorder.build(at, |b| b.wait(token));
    });
}
