//! Prefetching: plans, and a pass per strategy that applies them.
//!
//! ```
//! use headstart::prefetch::{self, Plan, PlanTarget};
//! use headstart::prelude::*;
//!
//! /// Adds up `items` elements for each work-item.
//! #[kernel(work_group = 64)]
//! fn sum(values: &[f32], sums: &mut [f32], items: u32) {
//!     let start = global_id() * items as usize;
//!     let mut sum = 0.0;
//!     for j in 0..items as usize {
//!         sum += values[start + j];
//!     }
//!     sums[global_id()] = sum;
//! }
//!
//! let kernel = sum::kernel()?;
//! assert_eq!(prefetch::candidates(&kernel)[0].name.to_string(), "values");
//! let plan: Plan = "values=rolling-registers:4".parse()?;
//! let derived = prefetch::apply(&kernel, &plan, &PlanTarget::default())?;
//! assert_eq!(derived.plan, plan);
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! [`candidates`] lists the loads that a plan can name, [`apply`] applies a plan, [`carry_out_wishes`] applies the attributes
//! in the source. The error of a refused plan names the rule of [`legality`](self) and the place.
//!
//! | file | purpose |
//! |---|---|
//! | `plan` | the one spelling of plans |
//! | `candidate`, `loads`, `parts` | which loads a plan can name; main loop and rest |
//! | `legality` | the rules by which a load may be fetched early |
//! | `early`, `growth`, `limits` | values of later iterations, computed now, and whether those iterations execute |
//! | `planned`, `fetch` | what a strategy's pass gets, and what it makes |
//! | `pipeline` | the frame of every strategy: prologue, step, remainder |
//! | `step` | the body of a rewritten loop: one iteration, or several together |
//! | `shape` | how many iterations a step has, and whether the plan's parts agree about it |
//! | `strategies`, `descriptor` | the list of strategies; the properties of each |
//! | `rolling_registers`, `batched_registers`, `rolling_shared`, `batched_shared`, `hint`, `joint` | a strategy each |
//! | `slots`, `word` | layouts in shared memory; elements smaller than a copy |
//! | `fences` | hints that a fence invalidates, issued again |
//! | `versions` | a loop whose counter may wrap, twice: planned, and as it was |
//! | `text` | loops whose iterations are copied as the text of a program |
//! | `rotate` | register rings that shift without moves |
//! | `unroll`, `inner`, `wishes` | full unrolling; loops inside as part of those around; the attributes in the source |
//! | `complete` | the loads that a planned one depends on get a strategy, too |
//! | `planned_loops` | which loops a plan is for |
//! | `apply` | a plan from its text to the transformed kernel |

mod apply;
mod batched_registers;
mod batched_shared;
mod candidate;
mod complete;
mod descriptor;
mod early;
mod fences;
mod fetch;
mod growth;
mod hint;
mod inner;
mod joint;
mod layout;
mod legality;
mod limits;
mod loads;
mod parts;
mod pipeline;
pub mod plan;
mod planned;
mod planned_loops;
mod probe;
mod recurrence;
mod rolling_registers;
mod rolling_shared;
mod rotate;
mod shape;
mod slots;
mod step;
mod strategies;
mod text;
mod together;
mod unroll;
mod versions;
mod wishes;
mod word;

// The crates below, by the names that all of Headstart has for them.
use headstart_ir::{analysis, cleanup, error, ir, suggest};

pub use apply::{Applied, apply};
#[doc(hidden)]
pub use apply::{Loads, Versions, apply_in_text, apply_to};
pub use candidate::Candidate;
#[doc(hidden)]
pub use inner::InnerLoop;
#[doc(hidden)]
pub use layout::is_unseen;
pub use loads::candidates;
pub use plan::Plan;
pub use planned::PlanTarget;
pub use planned_loops::planned_loops;
#[doc(hidden)]
pub use text::LoopText;
pub use wishes::{carry_out_wishes, wishes};
