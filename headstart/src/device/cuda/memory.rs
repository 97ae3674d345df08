//! Buffers in a GPU's global memory.
//!
//! Memory is taken with plain allocations only: managed memory moves pages during a launch, which
//! would be timed with it.

use cudarc::driver::{result, sys};

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;

/// A piece of global memory. Freed when dropped.
///
/// Its contents are plain bytes. A new buffer holds whatever was there.
pub struct Buffer {
    gpu: Gpu,
    address: sys::CUdeviceptr,
    bytes: usize,
}

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
            if failure.kind != FailureKind::OutOfMemory {
                return failure;
            }
            let free = self.free_bytes().unwrap_or(0);
            Failure::new(
                FailureKind::OutOfMemory,
                format!("a buffer of {bytes} bytes does not fit: {free} bytes of the GPU's memory are free"),
            )
            .accepted("smaller sizes")
        })?;
        Ok(Buffer {
            gpu: self.clone(),
            address,
            bytes,
        })
    }
}

impl Buffer {
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its address on the GPU.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Copies `from` to the start of the buffer, after all work given to the GPU before.
    pub fn write(&mut self, from: &[u8]) -> Result<(), Failure> {
        self.write_at(0, from)
    }

    /// Copies `from` into the buffer from a byte on, after all work given to the GPU before.
    pub fn write_at(&mut self, offset: usize, from: &[u8]) -> Result<(), Failure> {
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
    pub fn read_at(&self, offset: usize, to: &mut [u8]) -> Result<(), Failure> {
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
    pub fn fill(&mut self, value: u8) -> Result<(), Failure> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: the range is the allocation's own.
        unsafe { result::memset_d8_async(self.address, value, self.bytes, self.gpu.0.stream) }
            .map_err(|error| Failure::of(error, "filling a buffer"))
    }

    /// Copies a whole buffer of the same size, in the queue's order, without waiting.
    pub fn copy_from(&mut self, from: &Buffer) -> Result<(), Failure> {
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
            // SAFETY: the address was allocated once and is freed once. The driver waits for work
            // that still uses it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
