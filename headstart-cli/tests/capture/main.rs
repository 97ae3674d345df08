//! Programs run over the test driver: captured, run again, tuned, and run with the better kernel in place.

#![cfg(target_os = "linux")]

mod compiled;
mod cost;
mod drivers;
mod facts;
mod faults;
mod improve;
mod kinds;
mod place;
