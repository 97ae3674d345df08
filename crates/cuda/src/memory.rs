//! Buffers in a GPU's global memory, in the host's, or in both.
//!
//! Timed kernels use plain allocations only: managed memory migrates pages during a launch, which would be timed with it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::{result, sys};

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::guarded::{Mapping, Placement};
use super::launch::{Event, Lane};
use super::placed::Region;

/// A piece of memory that the GPU reaches. Freed when dropped.
///
/// Its contents are plain bytes. A new buffer has arbitrary contents.
pub struct Buffer {
    gpu: Gpu,
    address: sys::CUdeviceptr,
    bytes: usize,
    place: Place,
    /// Held while the host reads or writes the bytes: two of its threads never do at once.
    host: Mutex<()>,
}

/// Where a buffer lies.
enum Place {
    /// In the GPU's memory.
    Device,
    /// In the host's, pinned, at this address.
    Host(*mut u8),
    /// Where it was last used: the driver moves pages. Both sides have the same address.
    Managed,
    /// In the GPU's memory, at a given address: in pages that it may share with others.
    Placed { _pages: Arc<Region> },
    /// In the GPU's memory, at the end of its pages, behind which nothing is mapped; with its alignment.
    Guarded(Mapping, usize),
}

// SAFETY: the pointer is used only through `Buffer::on_host`, which copies bytes.
unsafe impl Send for Place {}
// SAFETY: as above, one thread at a time.
unsafe impl Sync for Place {}

impl Gpu {
    /// Takes `bytes` of global memory, aligned to at least 256 bytes.
    ///
    /// Fails with [`FailureKind::OutOfMemory`] and the amount that is free.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer, Failure> {
        self.enter()?;
        // The driver refuses empty allocations; an empty slice still needs an address.
        // SAFETY: the memory is only ever seen as bytes, for which any contents are valid.
        let address = unsafe { result::malloc_sync(bytes.max(1)) }.map_err(|error| {
            let failure = Failure::of(error, "taking global memory");
            match failure.kind {
                FailureKind::OutOfMemory => self.full(bytes),
                _ => failure,
            }
        })?;
        Ok(Buffer {
            gpu: self.clone(),
            address,
            bytes,
            place: Place::Device,
            host: Mutex::new(()),
        })
    }

    /// That there is no room for this many bytes.
    pub(super) fn full(&self, bytes: usize) -> Failure {
        let free = self.free_bytes().unwrap_or(0);
        Failure::new(
            FailureKind::OutOfMemory,
            format!("a buffer of {bytes} bytes does not fit: {free} bytes of the GPU's memory are free"),
        )
        .accepted("smaller sizes")
    }

    /// Takes pinned memory of the host, which kernels reach over the link, and from and to which copies run beside
    /// kernels.
    pub(crate) fn allocate_on_host(&self, bytes: usize) -> Result<Buffer, Failure> {
        self.enter()?;
        let failed = |error| Failure::of(error, &format!("pinning {bytes} bytes of the host's memory"));
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the memory is only ever seen as bytes.
        let pointer = unsafe { result::malloc_host(bytes.max(1), flags) }.map_err(failed)?;
        let mut address = 0;
        // SAFETY: the memory was pinned just now, with an address for the GPU.
        let mapped = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, pointer, 0) }.result();
        if let Err(error) = mapped {
            // SAFETY: no other code has the address.
            let _ = unsafe { result::free_host(pointer) };
            return Err(failed(error));
        }
        Ok(Buffer {
            gpu: self.clone(),
            address,
            bytes,
            place: Place::Host(pointer.cast()),
            host: Mutex::new(()),
        })
    }

    /// Takes managed memory, whose pages move to who uses them.
    pub(crate) fn allocate_managed(&self, bytes: usize) -> Result<Buffer, Failure> {
        self.enter()?;
        // SAFETY: the memory is only ever seen as bytes.
        let address =
            unsafe { result::malloc_managed(bytes.max(1), sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL) }
                .map_err(|error| Failure::of(error, &format!("taking {bytes} bytes of managed memory")))?;
        Ok(Buffer {
            gpu: self.clone(),
            address,
            bytes,
            place: Place::Managed,
            host: Mutex::new(()),
        })
    }
}

impl Buffer {
    pub(super) fn in_region(gpu: &Gpu, region: &Arc<Region>, address: u64, bytes: usize) -> Buffer {
        Buffer {
            gpu: gpu.clone(),
            address,
            bytes,
            place: Place::Placed {
                _pages: Arc::clone(region),
            },
            host: Mutex::new(()),
        }
    }

    pub(super) fn of_mapping(gpu: &Gpu, mapping: Mapping, bytes: usize, align: usize) -> Buffer {
        Buffer {
            gpu: gpu.clone(),
            address: mapping.address(bytes, align, Placement::Plain),
            bytes,
            place: Place::Guarded(mapping, align),
            host: Mutex::new(()),
        }
    }

    /// Moves the buffer within its pages, if it has pages of its own. Its contents are lost if it moves; the result says
    /// whether it did. Nothing may use it meanwhile.
    pub(crate) fn move_to(&mut self, placement: Placement) -> bool {
        let Place::Guarded(mapping, align) = &self.place else {
            return false;
        };
        let address = mapping.address(self.bytes, *align, placement);
        let has_moved = address != self.address;
        self.address = address;
        has_moved
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its address on the GPU.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The GPU that it was taken for.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Copies bytes in, in a lane's order, and waits for the end of the lane.
    pub(crate) fn write_on(&self, lane: &Lane, offset: usize, from: &[u8]) -> Result<(), Failure> {
        let address = self.range(offset, from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: the range lies within the allocation, and `from` outlives the copy, since the
        // stream is drained before returning.
        unsafe {
            result::memcpy_htod_async(address, from, lane.stream)
                .and_then(|()| result::stream::synchronize(lane.stream))
        }
        .map_err(|error| Failure::of(error, "copying to the GPU"))
    }

    /// Copies bytes out, in a lane's order, and waits for the end of the lane.
    pub(crate) fn read_on(&self, lane: &Lane, offset: usize, to: &mut [u8]) -> Result<(), Failure> {
        let address = self.range(offset, to.len())?;
        if to.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: as in `write_on`.
        unsafe {
            result::memcpy_dtoh_async(to, address, lane.stream)
                .and_then(|()| result::stream::synchronize(lane.stream))
        }
        .map_err(|error| Failure::of(error, "copying from the GPU"))
    }

    /// Copies bytes from another buffer, or from other bytes of this one, in a lane's order; then records `end`, and waits
    /// for it at most this long. Both buffers are borrowed until then; beyond the limit the driver waits when one is given
    /// back.
    pub(crate) fn copy_on(
        &self,
        lane: &Lane,
        offset: usize,
        (from, from_offset): (&Buffer, usize),
        length: usize,
        end: &mut Event,
        limit: Duration,
    ) -> Result<(), Failure> {
        let (to, from) = (self.range(offset, length)?, from.range(from_offset, length)?);
        self.gpu.enter()?;
        if length == 0 {
            return end.record_on(lane).and_then(|()| end.wait(limit));
        }
        // SAFETY: both ranges lie within allocations; the driver sees by its address where each lies.
        unsafe { sys::cuMemcpyAsync(to, from, length, lane.stream) }
            .result()
            .map_err(|error| Failure::of(error, "copying beside the kernels"))?;
        end.record_on(lane)?;
        end.wait(limit)
    }

    /// The host's address of a range, for memory that it reaches.
    fn on_host(&self, offset: usize, length: usize) -> Result<*mut u8, Failure> {
        let address = self.range(offset, length)?;
        match &self.place {
            // SAFETY: the range lies within the allocation.
            Place::Host(pointer) => Ok(unsafe { pointer.add(offset) }),
            Place::Managed => Ok(std::ptr::with_exposed_provenance_mut(address as usize)),
            Place::Device | Place::Placed { .. } | Place::Guarded(..) => Err(Failure::new(
                FailureKind::Request,
                "the host was to reach memory of the GPU",
            )),
        }
    }

    /// Reads bytes as the host sees them now.
    pub(crate) fn read_on_host(&self, offset: usize, to: &mut [u8]) -> Result<(), Failure> {
        let pointer = self.on_host(offset, to.len())?;
        let _alone = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, byte) in to.iter_mut().enumerate() {
            // SAFETY: the range lies within an allocation that the host reaches. No other thread of the host writes it
            // meanwhile; a kernel may, so each byte is read as it is at some time.
            *byte = unsafe { pointer.add(at).read_volatile() };
        }
        Ok(())
    }

    /// Writes bytes as the host sees them.
    pub(crate) fn write_on_host(&self, offset: usize, from: &[u8]) -> Result<(), Failure> {
        let pointer = self.on_host(offset, from.len())?;
        let _alone = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, &byte) in from.iter().enumerate() {
            // SAFETY: as in `read_on_host`.
            unsafe { pointer.add(at).write_volatile(byte) };
        }
        Ok(())
    }

    /// Copies `from` to the start of the buffer, after all work given to the GPU before.
    pub fn write(&mut self, from: &[u8]) -> Result<(), Failure> {
        self.write_at(0, from)
    }

    /// Copies `from` into the buffer from a byte on, after all work given to the GPU before.
    pub(crate) fn write_at(&mut self, offset: usize, from: &[u8]) -> Result<(), Failure> {
        let address = self.range(offset, from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        let stream = self.gpu.0.stream;
        // SAFETY: the range lies within the allocation, and `from` outlives the copy, since the
        // stream is drained before returning.
        unsafe {
            result::memcpy_htod_async(address, from, stream)
                .and_then(|()| result::stream::synchronize(stream))
        }
        .map_err(|error| Failure::of(error, "copying to the GPU"))
    }

    /// Copies the first bytes of the buffer to `to`, after all work given to the GPU before.
    pub fn read(&self, to: &mut [u8]) -> Result<(), Failure> {
        self.read_at(0, to)
    }

    /// Copies bytes of the buffer to `to`, after all work given to the GPU before.
    pub(crate) fn read_at(&self, offset: usize, to: &mut [u8]) -> Result<(), Failure> {
        let address = self.range(offset, to.len())?;
        if to.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        let stream = self.gpu.0.stream;
        // SAFETY: as in `write`.
        unsafe {
            result::memcpy_dtoh_async(to, address, stream).and_then(|()| result::stream::synchronize(stream))
        }
        .map_err(|error| Failure::of(error, "copying from the GPU"))
    }

    /// Sets every byte to `value`, in the queue's order, without waiting.
    pub(crate) fn fill(&mut self, value: u8) -> Result<(), Failure> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: the range is the allocation's own.
        unsafe { result::memset_d8_async(self.address, value, self.bytes, self.gpu.0.stream) }
            .map_err(|error| Failure::of(error, "filling a buffer"))
    }

    /// Copies a whole buffer of the same size, in the queue's order, without waiting.
    pub(crate) fn copy_from(&mut self, from: &Buffer) -> Result<(), Failure> {
        if from.bytes != self.bytes {
            return Err(self.too_small(from.bytes));
        }
        if self.bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: both ranges are whole allocations of the same size on the same GPU.
        unsafe { result::memcpy_dtod_async(self.address, from.address, self.bytes, self.gpu.0.stream) }
            .map_err(|error| Failure::of(error, "copying on the GPU"))
    }

    /// Copies bytes to memory of a module, in the queue's order, without waiting.
    pub(super) fn copy_out(&self, offset: usize, to: sys::CUdeviceptr, bytes: usize) -> Result<(), Failure> {
        self.copy(to, self.range(offset, bytes)?, bytes)
    }

    /// Copies memory of a module to bytes of the buffer, in the queue's order, without waiting.
    pub(super) fn copy_in(&self, offset: usize, from: sys::CUdeviceptr, bytes: usize) -> Result<(), Failure> {
        self.copy(self.range(offset, bytes)?, from, bytes)
    }

    fn copy(&self, to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize) -> Result<(), Failure> {
        if bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: one range lies within this buffer, the other in a variable of a loaded module, as the driver says.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.gpu.0.stream) }
            .map_err(|error| Failure::of(error, "copying on the GPU"))
    }

    /// The address of a range that lies inside.
    fn range(&self, offset: usize, length: usize) -> Result<sys::CUdeviceptr, Failure> {
        match offset.checked_add(length) {
            Some(end) if end <= self.bytes => Ok(self.address + offset as u64),
            _ => Err(self.too_small(offset.saturating_add(length))),
        }
    }

    fn too_small(&self, asked: usize) -> Failure {
        Failure::new(
            FailureKind::Request,
            format!("{asked} bytes were asked of a buffer of {} bytes", self.bytes),
        )
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: the memory was allocated once, so, and is freed once. The driver waits for work
            // that uses it.
            let _ = unsafe {
                match self.place {
                    Place::Host(pointer) => result::free_host(pointer.cast()),
                    Place::Device | Place::Managed => result::free_sync(self.address),
                    // Given back when the mapping is dropped, at once.
                    Place::Guarded(..) | Place::Placed { .. } => Ok(()),
                }
            };
        }
    }
}
