//! A launch on copies of its buffers, so that it can be timed without a trace.

use std::sync::Arc;

use super::functional::BufferMemory;
use crate::Result;
use crate::device::{Argument, Buffer, Launch};

/// The launch on copies of its buffers; arguments that are the same buffer stay the same. Those of parameters that
/// `stay` are not copied.
///
/// # Errors
/// A buffer is not a simulator's.
#[doc(hidden)]
pub fn on_copies(launch: &Launch, stay: impl Fn(usize) -> bool) -> Result<Launch> {
    let mut copies: Vec<(Buffer, Buffer)> = Vec::new();
    let mut copy = launch.clone();
    for (index, argument) in copy.arguments.iter_mut().enumerate() {
        let (Argument::Buffer(buffer) | Argument::Part(buffer, _)) = argument else {
            continue;
        };
        if stay(index) {
            continue;
        }
        let known = copies.iter().find(|(original, _)| original.is_same(buffer));
        let copied = match known {
            Some((_, copied)) => copied.clone(),
            None => {
                let memory: Arc<BufferMemory> = buffer.implementation()?;
                let copied = Buffer::new(buffer.element(), buffer.length(), Arc::new(memory.snapshot()));
                copies.push((buffer.clone(), copied.clone()));
                copied
            }
        };
        // Parameters may see one buffer as elements of several types.
        *buffer = copied.seen_as(buffer.element());
    }
    for (_, buffer) in &mut copy.memory {
        let known = copies.iter().find(|(original, _)| original.is_same(buffer));
        let stays = launch.arguments.iter().enumerate().any(|(index, argument)| {
            stay(index) && argument.buffer().is_some_and(|(own, _)| own.is_same(buffer))
        });
        *buffer = match known {
            Some((_, copied)) => copied.clone(),
            None if stays => continue,
            None => {
                let memory: Arc<BufferMemory> = buffer.implementation()?;
                Buffer::new(buffer.element(), buffer.length(), Arc::new(memory.snapshot()))
            }
        };
    }
    Ok(copy)
}
