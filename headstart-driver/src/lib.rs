//! The library that stands between a program and the CUDA driver.
//!
//! `headstart capture` and `headstart exec` bring it into a program by `LD_PRELOAD`. The program calls the driver as it always
//! did; some of the calls come by here:
//!
//! ```text
//! program ─ cuLaunchKernel, linked ─────────┐
//!         ─ dlsym(handle, "cuLaunch…") ─────┤ exports      the calls that are looked at, in every variant
//!         ─ cuGetProcAddress("cuLaunch…") ──┘ lookup       every way of getting a function's address
//!                     │                       compilers    nvJitLink and NVRTC: which text machine code was made of
//!                     │
//!         images, functions, memory     which kernel is which, and where memory lies
//!         kinds                         which launches of a kernel are alike
//!         reach, extents                which bytes a launch reaches
//!                     │
//!         record · snapshot · replace   counts and times; a launch with its memory; a better kernel in place
//!                               graphs  the same of a graph's nodes
//!                     │
//!                   real                 the driver itself
//!                   interface            its functions, one by one: exports and real are made of them
//! ```
//!
//! Unknown functions pass untouched. Nothing happens before the program first calls the driver: the library is inherited by
//! shells and by workers that never do. `HEADSTART=off` in the environment turns everything off, and so does an unreadable
//! setting: the program must run as if the library were not there.
//!
//! Every function that a program calls is `unsafe`: its arguments are the program's pointers, which are as the driver's
//! documentation requires, or the driver itself would fail on them.

// It is a C library.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

#[macro_use]
mod interface;

mod abi;
mod addresses;
mod asked;
mod compilers;
mod events;
mod exports;
mod extents;
mod facts;
mod functions;
mod graphs;
mod images;
mod kinds;
mod launches;
mod lock;
mod lookup;
mod memory;
mod reach;
mod real;
mod record;
mod replace;
mod settings;
mod snapshot;
mod stored;
