//! Buffers that know the Rust type of their elements, and the blocking calls that most programs want.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Allocation, Buffer, Command, Device, Event, Fill, Pattern, Queue, host_bytes};
use crate::ir::Item;
use crate::{Error, Result};

/// A buffer of `T`.
pub struct TypedBuffer<T> {
    buffer: Buffer,
    element: PhantomData<fn() -> T>,
}

impl<T: Item> TypedBuffer<T> {
    /// Units that an element takes.
    const UNITS: u64 = T::BYTES as u64 / T::UNIT.bytes() as u64;

    /// A buffer with these elements.
    ///
    /// # Errors
    /// The device's.
    pub fn from_slice(device: &dyn Device, elements: &[T]) -> Result<TypedBuffer<T>> {
        let fill = Fill::Bytes(bytes_of(elements));
        TypedBuffer::filled(device, elements.len() as u64, fill)
    }

    /// A buffer of `length` elements made by a pattern of their units.
    ///
    /// # Errors
    /// The device's.
    pub fn from_pattern(device: &dyn Device, length: u64, pattern: Pattern) -> Result<TypedBuffer<T>> {
        TypedBuffer::filled(device, length, Fill::Pattern(pattern))
    }

    /// A buffer of `length` elements to be written before they are read.
    ///
    /// # Errors
    /// The device's.
    pub fn uninitialized(device: &dyn Device, length: u64) -> Result<TypedBuffer<T>> {
        TypedBuffer::filled(device, length, Fill::Uninitialized)
    }

    fn filled(device: &dyn Device, length: u64, fill: Fill) -> Result<TypedBuffer<T>> {
        let units = length.saturating_mul(Self::UNITS);
        Ok(TypedBuffer::of(device.allocate(T::UNIT, units, fill)?))
    }

    /// A buffer of this kind with these elements.
    ///
    /// # Errors
    /// The device's, which may have no such memory.
    pub fn from_slice_as(
        device: &dyn Device,
        allocation: Allocation,
        elements: &[T],
    ) -> Result<TypedBuffer<T>> {
        let units = (elements.len() as u64).saturating_mul(Self::UNITS);
        let fill = Fill::Bytes(bytes_of(elements));
        Ok(TypedBuffer::of(device.allocate_as(
            allocation,
            T::UNIT,
            units,
            fill,
        )?))
    }

    /// A buffer of this kind, of `length` elements to be written before they are read.
    ///
    /// # Errors
    /// The device's, which may have no such memory.
    pub fn uninitialized_as(
        device: &dyn Device,
        allocation: Allocation,
        length: u64,
    ) -> Result<TypedBuffer<T>> {
        let units = length.saturating_mul(Self::UNITS);
        Ok(TypedBuffer::of(device.allocate_as(
            allocation,
            T::UNIT,
            units,
            Fill::Uninitialized,
        )?))
    }

    fn of(buffer: Buffer) -> TypedBuffer<T> {
        TypedBuffer {
            buffer,
            element: PhantomData,
        }
    }

    /// The buffer without its Rust type.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Number of elements.
    pub fn length(&self) -> u64 {
        self.buffer.length() / Self::UNITS
    }

    /// Waits for the queue's earlier commands, then reads every element.
    ///
    /// # Errors
    /// The device's; an element that was never written.
    pub fn read(&self, queue: &dyn Queue) -> Result<Vec<T>> {
        self.read_after(queue, &[])
    }

    /// As [`TypedBuffer::read`], when these events have ended: for queues out of order.
    ///
    /// # Errors
    /// The device's or an event's; an element that was never written.
    pub fn read_after(&self, queue: &dyn Queue, after: &[Event]) -> Result<Vec<T>> {
        let command = Command::Read {
            buffer: self.buffer.clone(),
            offset: 0,
            length: self.buffer.bytes(),
        };
        let outcome = queue.submit(command, after).wait()?;
        Ok(outcome.bytes.chunks_exact(T::BYTES).map(T::read).collect())
    }

    /// Reads `count` elements from index `first` on, as [`TypedBuffer::read_after`].
    ///
    /// # Errors
    /// The device's or an event's; elements that are not there, or were never written.
    pub fn read_part(&self, queue: &dyn Queue, first: u64, count: u64, after: &[Event]) -> Result<Vec<T>> {
        let command = Command::Read {
            buffer: self.buffer.clone(),
            offset: first.saturating_mul(T::BYTES as u64),
            length: count.saturating_mul(T::BYTES as u64),
        };
        let outcome = queue.submit(command, after).wait()?;
        Ok(outcome.bytes.chunks_exact(T::BYTES).map(T::read).collect())
    }

    /// Adds a copy of all elements to another buffer of as many, to start when the events `after` have ended, and
    /// returns at once.
    pub fn copy_to(&self, to: &mut TypedBuffer<T>, queue: &dyn Queue, after: &[Event]) -> Event {
        if to.buffer.bytes() != self.buffer.bytes() {
            let (event, completion) = Event::pending();
            completion.end(Err(Error::usage(format!(
                "a buffer of {} elements cannot be copied to one of {}",
                self.length(),
                to.length()
            ))
            .accepted("as many")));
            return event;
        }
        let copy = Command::Copy {
            from: self.buffer.clone(),
            from_offset: 0,
            to: to.buffer.clone(),
            to_offset: 0,
            length: self.buffer.bytes(),
        };
        queue.submit(copy, after)
    }

    /// An element of a host or shared allocation, as the host sees it now.
    ///
    /// # Errors
    /// The buffer is in the device's memory; there is no such element, or it was never written.
    pub fn get(&self, index: u64) -> Result<T> {
        let mut bytes = vec![0; T::BYTES];
        self.buffer
            .read_on_host(index.saturating_mul(T::BYTES as u64), &mut bytes)?;
        Ok(T::read(&bytes))
    }

    /// All elements of a host or shared allocation, as the host sees them now.
    ///
    /// # Errors
    /// The buffer lies in the device's memory; an element was never written.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut bytes = host_bytes(self.buffer.bytes())?;
        self.buffer.read_on_host(0, &mut bytes)?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::read).collect())
    }

    /// Sets elements of a host or shared allocation from index `first` on, at once.
    ///
    /// # Errors
    /// The buffer lies in the device's memory; there are no such elements.
    pub fn set(&mut self, first: u64, elements: &[T]) -> Result<()> {
        let offset = first.saturating_mul(T::BYTES as u64);
        self.buffer.write_on_host(offset, &bytes_of(elements))
    }

    /// Writes elements from index `first` on, and waits for it.
    ///
    /// # Errors
    /// The device's; more elements than there is room for.
    pub fn write(&self, queue: &dyn Queue, first: u64, elements: &[T]) -> Result<()> {
        let command = Command::Write {
            buffer: self.buffer.clone(),
            offset: first.saturating_mul(T::BYTES as u64),
            bytes: bytes_of(elements),
        };
        queue.submit(command, &[]).wait().map(drop)
    }
}

impl<T> Clone for TypedBuffer<T> {
    fn clone(&self) -> Self {
        TypedBuffer {
            buffer: self.buffer.clone(),
            element: PhantomData,
        }
    }
}

impl<T> fmt::Debug for TypedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.buffer.fmt(f)
    }
}

fn bytes_of<T: Item>(elements: &[T]) -> Arc<[u8]> {
    let mut bytes = vec![0; elements.len() * T::BYTES];
    for (element, bytes) in elements.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
        element.write(bytes);
    }
    bytes.into()
}
