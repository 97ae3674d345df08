//! A CUDA driver over the simulator.
//!
//! Programs that call the driver run unmodified without a GPU: they find this library as `libcuda.so.1`. It loads kernels as
//! PTX, as text or in fat binaries, and refuses machine code alone. Memory has addresses of its own, so that pointers inside
//! structures and buffers are valid, and every access is checked: an access out of bounds, a race, or a read of uninitialised
//! memory is reported on standard error, with the source line, and the launch fails.
//!
//! ```text
//! exports   the driver's functions, as programs see them
//! state     devices, contexts, streams, events: what is one of a kind
//! memory    allocations, and copies between them
//! modules   images, entries, variables
//! launch    a launch of an entry on the simulator
//! graphs    streams that are captured, and what comes of it
//! ```
//!
//! Commands run when they are submitted, one after the other: every order that a program may rely on is kept. The clock is the
//! simulator's where `HEADSTART_TEST_MODEL` names a model (`h200`), and the host's otherwise.

// It is a C library.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

// As the library has them that stands between programs and the driver.
#[macro_use]
#[path = "../../headstart-driver/src/interface.rs"]
mod interface;

#[allow(dead_code)]
#[path = "../../headstart-driver/src/abi.rs"]
mod abi;
mod exports;
mod graphs;
mod launch;
mod memory;
mod modules;
mod state;
