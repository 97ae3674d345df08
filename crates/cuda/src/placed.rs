//! Buffers at given addresses: a captured launch runs where its memory was, so that the pointers in it lead where
//! they did.
//!
//! Addresses are reserved and mapped in whole pages of the GPU. Allocations that shared a page do so again. Another process
//! has other things in the way: where an address is taken, that is said.

use std::sync::Arc;

use cudarc::driver::sys;

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::memory::Buffer;

/// The driver's granularity for reserved addresses with a hint: other hints are rounded up. Observed with driver 580 on an
/// H100.
const HINTED: u64 = 32 << 20;
/// Smaller reservations come from a pool of the driver's at any address: 2 MiB did, 512 MiB did not.
const LEAST: u64 = 512 << 20;

/// Addresses that are reserved.
struct Window {
    start: u64,
    bytes: usize,
}

/// Pages that are mapped where they were asked for.
pub(super) struct Region {
    start: u64,
    bytes: usize,
    handle: sys::CUmemGenericAllocationHandle,
    /// Given back after the pages.
    _window: Arc<Window>,
}

/// The runs of whole pages that hold all of some ranges: start and size of each, in the order of their addresses.
fn runs(ranges: &[(u64, usize)], page: u64) -> Option<Vec<(u64, u64)>> {
    let whole = |&(start, bytes): &(u64, usize)| {
        let end = start.checked_add(bytes.max(1) as u64)?;
        Some((start - start % page, end.checked_next_multiple_of(page)?))
    };
    let mut pages: Vec<(u64, u64)> = ranges.iter().map(whole).collect::<Option<_>>()?;
    pages.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (start, end) in pages {
        match runs.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => runs.push((start, end)),
        }
    }
    Some(
        runs.into_iter()
            .map(|(start, end)| (start, end - start))
            .collect(),
    )
}

/// The windows of addresses that hold all of some runs: start and size of each.
fn windows(runs: &[(u64, u64)]) -> Option<Vec<(u64, u64)>> {
    let mut windows: Vec<(u64, u64)> = Vec::new();
    for &(start, bytes) in runs {
        let from = start - start % HINTED;
        let end = start
            .checked_add(bytes)?
            .max(from.checked_add(LEAST)?)
            .checked_next_multiple_of(HINTED)?;
        match windows.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(end),
            _ => windows.push((from, end)),
        }
    }
    Some(
        windows
            .into_iter()
            .map(|(start, end)| (start, end - start))
            .collect(),
    )
}

impl Gpu {
    /// Takes memory at these addresses, of this many bytes each.
    ///
    /// Fails where an address is taken, or the GPU cannot map memory.
    pub(crate) fn allocate_at(&self, ranges: &[(u64, usize)]) -> Result<Vec<Buffer>, Failure> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        if !self.can_guard() {
            return Err(Failure::new(
                FailureKind::OldDevice,
                "this GPU or its driver cannot map memory to addresses",
            ));
        }
        self.enter()?;
        let failed = |error| Failure::of(error, "mapping global memory");
        let (_, properties) = self.properties();
        let mut page = 0;
        let wanted = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the call reads the properties and writes one number.
        unsafe { sys::cuMemGetAllocationGranularity(&mut page, &properties, wanted) }
            .result()
            .map_err(failed)?;
        let beyond = || Failure::new(FailureKind::Request, "memory beyond all addresses");
        let runs = runs(ranges, page.max(1) as u64).ok_or_else(beyond)?;
        let windows = windows(&runs).ok_or_else(beyond)?.into_iter();
        let windows: Vec<Arc<Window>> = windows
            .map(|(start, bytes)| reserve(start, bytes as usize))
            .collect::<Result<_, _>>()?;
        let region = |(start, bytes): (u64, u64)| {
            let own = windows.iter().rev().find(|window| window.start <= start);
            self.region(own.ok_or_else(beyond)?, start, bytes as usize)
        };
        let regions: Vec<Arc<Region>> = runs.into_iter().map(region).collect::<Result<_, _>>()?;
        let buffer = |&(address, bytes): &(u64, usize)| {
            let region = regions.iter().find(|region| {
                region.start <= address && address - region.start + bytes as u64 <= region.bytes as u64
            });
            let region =
                region.ok_or_else(|| Failure::new(FailureKind::Request, "memory that is not mapped"))?;
            Ok(Buffer::in_region(self, region, address, bytes))
        };
        ranges.iter().map(buffer).collect()
    }

    fn region(&self, window: &Arc<Window>, base: u64, bytes: usize) -> Result<Arc<Region>, Failure> {
        // SAFETY: the addresses lie in the window, which is reserved, and runs of pages do not meet.
        let handle = unsafe { self.map(base, bytes) }.map_err(|failure| match failure.kind {
            FailureKind::OutOfMemory => self.full(bytes),
            _ => failure,
        })?;
        Ok(Arc::new(Region {
            start: base,
            bytes,
            handle,
            _window: Arc::clone(window),
        }))
    }
}

/// Reserves a window of addresses. The context is current.
fn reserve(start: u64, bytes: usize) -> Result<Arc<Window>, Failure> {
    let mut base = 0;
    // SAFETY: the call writes one value; an address elsewhere is given back.
    let reserved = unsafe { sys::cuMemAddressReserve(&mut base, bytes, 0, start, 0) }.result();
    let window = Arc::new(Window { start: base, bytes });
    match reserved {
        Ok(()) if base == start => Ok(window),
        Ok(()) => Err(taken(start)),
        Err(_) => {
            std::mem::forget(window);
            Err(taken(start))
        }
    }
}

fn taken(start: u64) -> Failure {
    Failure::new(
        FailureKind::AddressTaken,
        format!("the addresses from {start:#x} on are taken in this process"),
    )
    .accepted("another try, or a simulated device, such as `--device sim:h200`")
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: reserved once, so, and given back once; the regions in it are gone.
        let _ = unsafe { sys::cuMemAddressFree(self.start, self.bytes) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // The buffer's `drop` has made the context current.
        // SAFETY: mapped once, so, and given back once.
        unsafe {
            let _ = sys::cuMemUnmap(self.start, self.bytes);
            let _ = sys::cuMemRelease(self.handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_share_pages_are_one_run() {
        let ranges = [(0x1200, 0x100), (0x5000, 0x2000), (0x1300, 0xe00), (0x7fff, 2)];
        assert_eq!(
            runs(&ranges, 0x1000),
            Some(vec![(0x1000, 0x2000), (0x5000, 0x4000)])
        );
        assert_eq!(runs(&[(u64::MAX, 2)], 0x1000), None);
        let (one, far) = (0x7f00_0220_0000, 0x7f40_0000_0000);
        let expected = vec![(0x7f00_0200_0000, LEAST), (far, 1 << 30)];
        assert_eq!(
            windows(&[(one, 0x20_0000), (one + 0x40_0000, 0x20_0000), (far, 1 << 30)]),
            Some(expected)
        );
        assert_eq!(runs(&[(0x2000, 0)], 0x1000), Some(vec![(0x2000, 0x1000)]));
    }
}
