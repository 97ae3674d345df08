//! Errors between us and NVIDIA's driver, sorted by the caller's next step.
//!
//! The driver has about a hundred error codes. A caller has five answers to them: choose another
//! device, reject this candidate, ask for less memory, start a new process because the context is
//! lost, or report a bug of ours. [`FailureKind`] is that sorting.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The driver's library is not on this machine.
    MissingDriver,
    /// The driver is older than the PTX that we emit.
    OldDriver,
    /// The driver sees no GPU, or not the one that was asked for.
    NoDevice,
    /// The GPU lacks instructions that we emit.
    OldDevice,
    /// The driver's compiler refused the PTX.
    Compilation,
    /// The device's memory is too small.
    OutOfMemory,
    /// The launch asks for more registers, shared memory or work-items than a core has.
    Resources,
    /// Memory cannot lie at an address where something of this process does. Another process has other things in the way.
    AddressTaken,
    /// The kernel did something illegal. The context is lost.
    Fault,
    /// The kernel ran longer than it was allowed to. The context is lost.
    TimeLimit,
    /// The worker process ended, or said something that is not an answer.
    Worker,
    /// The request itself makes no sense: an unknown buffer or module, an impossible size.
    Request,
    /// Anything else that the driver reports.
    Driver,
}

impl FailureKind {
    /// Whether nothing more can be done in this process: every later call would fail too.
    #[doc(hidden)]
    pub fn poisons(self) -> bool {
        matches!(
            self,
            FailureKind::AddressTaken | FailureKind::Fault | FailureKind::TimeLimit | FailureKind::Worker
        )
    }
}

/// A failure of the driver, of the device, or of a kernel on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// One line: what failed, and why.
    pub what: String,
    /// What would be accepted instead, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The driver compiler's whole log; empty for other failures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

impl Failure {
    /// A failure of this kind, described in one line.
    pub fn new(kind: FailureKind, what: impl Into<String>) -> Failure {
        Failure {
            kind,
            what: what.into(),
            accepted: None,
            log: String::new(),
        }
    }

    /// Adds the accepted alternatives.
    #[must_use]
    pub(crate) fn accepted(mut self, accepted: impl Into<String>) -> Failure {
        self.accepted = Some(accepted.into());
        self
    }

    /// Adds the compiler's log.
    #[must_use]
    pub(crate) fn with_log(mut self, log: String) -> Failure {
        self.log = log;
        self
    }

    /// Sorts an error code of the driver. `doing` completes "… failed": `"copying 4 KiB"`.
    pub(super) fn of(error: DriverError, doing: &str) -> Failure {
        use CUresult as C;
        let said = describe(error);
        let kind = match error.0 {
            C::CUDA_ERROR_OUT_OF_MEMORY => FailureKind::OutOfMemory,
            C::CUDA_ERROR_NO_DEVICE | C::CUDA_ERROR_INVALID_DEVICE | C::CUDA_ERROR_DEVICE_UNAVAILABLE => {
                FailureKind::NoDevice
            }
            C::CUDA_ERROR_STUB_LIBRARY => FailureKind::MissingDriver,
            C::CUDA_ERROR_UNSUPPORTED_PTX_VERSION | C::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
                FailureKind::OldDriver
            }
            C::CUDA_ERROR_INVALID_PTX
            | C::CUDA_ERROR_INVALID_IMAGE
            | C::CUDA_ERROR_INVALID_SOURCE
            | C::CUDA_ERROR_NO_BINARY_FOR_GPU
            | C::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
            | C::CUDA_ERROR_JIT_COMPILATION_DISABLED => FailureKind::Compilation,
            C::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => FailureKind::Resources,
            C::CUDA_ERROR_ILLEGAL_ADDRESS
            | C::CUDA_ERROR_ASSERT
            | C::CUDA_ERROR_HARDWARE_STACK_ERROR
            | C::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | C::CUDA_ERROR_MISALIGNED_ADDRESS
            | C::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | C::CUDA_ERROR_INVALID_PC
            | C::CUDA_ERROR_LAUNCH_FAILED
            | C::CUDA_ERROR_ECC_UNCORRECTABLE
            | C::CUDA_ERROR_CONTEXT_IS_DESTROYED => FailureKind::Fault,
            C::CUDA_ERROR_LAUNCH_TIMEOUT => FailureKind::TimeLimit,
            _ => FailureKind::Driver,
        };
        Failure::new(kind, format!("{doing} failed: {said}"))
    }
}

/// The driver's name and sentence for its own code.
fn describe(error: DriverError) -> String {
    let text = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map(|text| text.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let (name, sentence) = (text(error.error_name()), text(error.error_string()));
    if name.is_empty() {
        format!("error {}", error.0 as u32)
    } else {
        format!("{sentence} ({name})")
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        let error = match failure.kind {
            // ptxas writes "error" or, for a version or target that it does not know, "fatal".
            FailureKind::Compilation => match failure
                .log
                .lines()
                .find(|line| line.contains("error") || line.contains("fatal"))
            {
                Some(line) => Error::bug(format!("{}: {}", failure.what, line.trim())),
                None => Error::bug(failure.what),
            },
            FailureKind::Fault | FailureKind::TimeLimit | FailureKind::Request => Error::input(failure.what),
            _ => Error::device(failure.what),
        };
        match failure.accepted {
            Some(accepted) => error.accepted(accepted),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_ir::Fault;

    #[test]
    fn a_compilation_failure_quotes_the_first_error_of_the_log() {
        let failure = Failure::new(FailureKind::Compilation, "compiling `gather`")
            .with_log("info : 0 bytes\nptxas error : line 7: unknown symbol\nmore".into());
        let error = Error::from(failure);
        assert_eq!(error.fault(), Fault::Bug);
        assert_eq!(
            error.what(),
            "compiling `gather`: ptxas error : line 7: unknown symbol"
        );
    }

    #[test]
    fn only_a_lost_context_poisons() {
        for kind in [
            FailureKind::Compilation,
            FailureKind::OutOfMemory,
            FailureKind::Resources,
        ] {
            assert!(!kind.poisons(), "{kind:?}");
        }
        for kind in [FailureKind::Fault, FailureKind::TimeLimit, FailureKind::Worker] {
            assert!(kind.poisons(), "{kind:?}");
        }
    }

    #[test]
    fn a_failure_survives_the_way_through_json() {
        let failure = Failure::new(FailureKind::OutOfMemory, "no room")
            .accepted("less")
            .with_log("log".into());
        let text = serde_json::to_string(&failure).expect("a failure is plain data");
        assert_eq!(
            serde_json::from_str::<Failure>(&text).expect("what was written"),
            failure
        );
    }
}
