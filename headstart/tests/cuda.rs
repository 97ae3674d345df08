//! Kernels on a real GPU against what the IR specifies. Without a GPU, skipped, and says so.

mod common;

use common::device;
use headstart::device::cuda::device::CudaDevice;

/// The first GPU, or why there is none.
fn gpu() -> Option<CudaDevice> {
    match CudaDevice::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

#[test]
fn operations_compute_what_the_ir_specifies() {
    let Some(gpu) = gpu() else { return };
    device::operations_compute_what_the_ir_specifies(&gpu, 0, 1);
}

#[test]
fn patterns_are_what_they_are_on_the_host() {
    let Some(gpu) = gpu() else { return };
    device::patterns_are_what_they_are_on_the_host(&gpu);
}

#[test]
fn random_kernels_compute_the_same_as_on_the_simulator() {
    let Some(gpu) = gpu() else { return };
    device::random_kernels_compute_the_same_as_on_the_simulator(&gpu, 100, |_| false);
}
