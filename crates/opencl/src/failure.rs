//! The OpenCL runtime's errors, in our words.

use cl3::error_codes::{self as code, cl_int, error_text};

use crate::Error;

/// The error behind a code that was returned while doing something.
pub(super) fn failure(doing: &str, found: cl_int) -> Error {
    let name = error_text(found);
    match found {
        code::DLOPEN_RUNTIME_LOAD_FAILED => {
            Error::device("this machine has no OpenCL runtime: its library libOpenCL.so.1 was not found").accepted(
                "install one, name its library in OPENCL_DYLIB_PATH, or choose a simulated device such as sim:pvc-1550",
            )
        }
        code::DLOPEN_FUNCTION_NOT_AVAILABLE => {
            Error::device(format!("the OpenCL runtime is too old: {doing} needs a function that it lacks"))
                .accepted("OpenCL 2.1 or later")
        }
        code::CL_MEM_OBJECT_ALLOCATION_FAILURE | code::CL_OUT_OF_HOST_MEMORY => {
            Error::device(format!("the device's memory is too small: {doing} failed with {name}"))
        }
        code::CL_OUT_OF_RESOURCES
        | code::CL_INVALID_WORK_GROUP_SIZE
        | code::CL_INVALID_WORK_ITEM_SIZE
        | code::CL_INVALID_WORK_DIMENSION => {
            Error::device(format!("the launch is too large for the device: {doing} failed with {name}"))
        }
        _ => Error::device(format!("{doing} failed with {name}")),
    }
}
