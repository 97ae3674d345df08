//! Kernels on an OpenCL device against what the IR specifies: Intel's runtime for CPUs, which `scripts/tools` sets up,
//! or a GPU. Without a runtime, skipped, and says so.

mod common;

use common::device;
use headstart::device::opencl::device::OpenClDevice;

/// The first device, or why there is none.
fn opencl() -> Option<OpenClDevice> {
    match OpenClDevice::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            headstart_testing::tools::skip("opencl", &error.to_string());
            None
        }
    }
}

#[test]
fn operations_compute_what_the_ir_specifies() {
    let Some(opencl) = opencl() else { return };
    device::operations_compute_what_the_ir_specifies(&opencl, 0, 1);
}

#[test]
fn patterns_are_what_they_are_on_the_host() {
    let Some(opencl) = opencl() else { return };
    device::patterns_are_what_they_are_on_the_host(&opencl);
}

#[test]
fn random_kernels_compute_the_same_as_on_the_simulator() {
    let Some(opencl) = opencl() else { return };
    let refuses = |why: &str| {
        [
            "may return while others wait",
            "a part of a sub-group",
            "which work-items run together",
            "rounds other than to nearest",
        ]
        .iter()
        .any(|reason| why.contains(reason))
    };
    let mut unoptimized = OpenClDevice::open(0).expect("opened once");
    unoptimized.leave_unoptimized();
    device::random_kernels_compute_the_same_as_on_the_simulator(&opencl, Some(&unoptimized), 30, refuses);
}
