//! Buffers: memory of a device, where it lies, and how it is filled at first.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::Pattern;
use crate::ir::Type;
use crate::{Error, Result};

/// Memory of one device, shared by its clones and freed with the last of them.
#[derive(Clone)]
pub struct Buffer {
    element: Type,
    length: u64,
    allocation: Allocation,
    implementation: Arc<dyn Any + Send + Sync>,
    /// The same memory, as the host sees it.
    host: Option<Arc<dyn HostSide>>,
}

/// The location of a buffer: the three kinds of SYCL's unified shared memory. (Shared memory of a work-group is unrelated.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// In the device's memory. The host copies by [`Command`](super::Command)s.
    #[default]
    Device,
    /// In the host's memory, pinned: the host reads and writes it at once, kernels reach it over the link, and copies
    /// from and to it overlap kernels.
    Host,
    /// Where it was last used: host and device both read and write it at once, and its pages move between them.
    Shared,
}

impl Allocation {
    /// All of them.
    pub const ALL: [Allocation; 3] = [Allocation::Device, Allocation::Host, Allocation::Shared];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Allocation::Device => "device",
            Allocation::Host => "host",
            Allocation::Shared => "shared",
        }
    }
}

/// Memory that the host reads and writes directly. Ranges have been checked. Concurrent writes of a running kernel or copy to
/// the same bytes may be seen in part, or not: wait for the event first.
pub trait HostSide: Send + Sync {
    /// Reads bytes from an offset on.
    ///
    /// # Errors
    /// The device's; bytes that were never written.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()>;

    /// Writes bytes from an offset on.
    ///
    /// # Errors
    /// The device's.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;
}

/// The contents of a new buffer.
#[derive(Clone, Debug)]
pub enum Fill {
    /// Nothing yet: reading an element before it is written is an error that the simulator reports.
    Uninitialized,
    /// These bytes, little-endian, as many as the buffer has.
    Bytes(Arc<[u8]>),
    /// A function of the element's index.
    Pattern(Pattern),
}

impl Buffer {
    /// Wraps a device's memory of `length` elements.
    #[doc(hidden)]
    pub fn new(element: Type, length: u64, implementation: Arc<dyn Any + Send + Sync>) -> Buffer {
        Buffer {
            element,
            length,
            allocation: Allocation::Device,
            implementation,
            host: None,
        }
    }

    /// The same, of a kind that the host sees, too.
    #[doc(hidden)]
    #[must_use]
    pub fn seen_by_host(self, allocation: Allocation, host: Arc<dyn HostSide>) -> Buffer {
        Buffer {
            allocation,
            host: Some(host),
            ..self
        }
    }

    /// The same memory as elements of another type: as many as fit whole.
    #[doc(hidden)]
    #[must_use]
    pub fn seen_as(&self, element: Type) -> Buffer {
        Buffer {
            element,
            length: self.bytes() / u64::from(element.bytes()).max(1),
            ..self.clone()
        }
    }

    /// Where it lies.
    pub fn allocation(&self) -> Allocation {
        self.allocation
    }

    /// Reads bytes from an offset on, without a queue and without waiting for one.
    ///
    /// # Errors
    /// It lies in the device's memory; the range is outside; the device's own.
    #[doc(hidden)]
    pub(crate) fn read_on_host(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.check_range(offset, bytes.len() as u64)?;
        self.host()?.read(offset, bytes)
    }

    /// Writes bytes from an offset on, without a queue and without waiting for one.
    ///
    /// # Errors
    /// As [`Buffer::read_on_host`].
    #[doc(hidden)]
    pub(crate) fn write_on_host(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check_range(offset, bytes.len() as u64)?;
        self.host()?.write(offset, bytes)
    }

    fn host(&self) -> Result<&Arc<dyn HostSide>> {
        self.host.as_ref().ok_or_else(|| {
            Error::usage("the host cannot reach a buffer in the device's memory")
                .accepted("a queue's commands, or a host or shared allocation")
        })
    }

    /// Type of its elements.
    pub fn element(&self) -> Type {
        self.element
    }

    /// Number of elements.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.length * u64::from(self.element.bytes())
    }

    /// Whether both are the same memory.
    #[doc(hidden)]
    pub fn is_same(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.implementation, &other.implementation)
    }

    /// The device's memory behind it.
    ///
    /// # Errors
    /// It is of another device.
    #[doc(hidden)]
    pub fn implementation<T: Any + Send + Sync>(&self) -> Result<Arc<T>> {
        let implementation = Arc::clone(&self.implementation);
        implementation
            .downcast()
            .map_err(|_| Error::usage("a buffer of another device was passed"))
    }

    /// Checks that a range of bytes lies inside.
    ///
    /// # Errors
    /// It does not.
    #[doc(hidden)]
    pub fn check_range(&self, offset: u64, length: u64) -> Result<()> {
        match offset.checked_add(length) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => Err(Error::usage(format!(
                "{length} bytes from byte {offset} on are outside a buffer of {} bytes",
                self.bytes()
            ))),
        }
    }
}

impl Fill {
    /// Whether it is known to give the same as another.
    #[doc(hidden)]
    pub fn is_same(&self, other: &Fill) -> bool {
        match (self, other) {
            (Fill::Uninitialized, Fill::Uninitialized) => true,
            (Fill::Bytes(one), Fill::Bytes(other)) => Arc::ptr_eq(one, other),
            (Fill::Pattern(one), Fill::Pattern(other)) => one.is_same(other),
            _ => false,
        }
    }

    /// Checks the size of a new buffer against its contents, and gives its bytes.
    ///
    /// # Errors
    /// The element is no data, the size does not fit 40 bits, or there are fewer or more bytes to fill it.
    pub fn check(&self, element: Type, length: u64) -> Result<u64> {
        if element == Type::Token {
            return Err(Error::usage("a buffer cannot hold tokens"));
        }
        let bytes = length
            .checked_mul(u64::from(element.bytes()))
            .filter(|&bytes| bytes < 1 << 40);
        let bytes = bytes.ok_or_else(|| {
            Error::usage(format!("a buffer of {length} elements `{element}` is too large"))
                .accepted("a buffer has less than 2^40 bytes")
        })?;
        match self {
            Fill::Bytes(given) if given.len() as u64 != bytes => Err(Error::usage(format!(
                "{} bytes cannot fill a buffer of {length} elements `{element}`",
                given.len()
            ))
            .accepted(format!("it takes {bytes}"))),
            _ => Ok(bytes),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.allocation {
            Allocation::Device => write!(f, "Buffer({} × {})", self.length, self.element),
            other => write!(f, "Buffer({} × {}, {})", self.length, self.element, other.name()),
        }
    }
}
