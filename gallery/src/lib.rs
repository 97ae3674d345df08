//! The gallery: the kernels everyone meets first, and the data of real applications.
//!
//! ```
//! use headstart::tune::Subject;
//! use headstart_gallery::kernels;
//!
//! // A kernel with its launch, and one number of it changed.
//! let gather = kernels::find("gather")?.with(&["items=64".to_owned()], None)?;
//! assert_eq!(gather.name(), "gather");
//! assert_eq!(gather.workload()?.kernel.name, "gather");
//! # Ok::<(), headstart::Error>(())
//! ```

pub mod article;
pub mod data;
pub mod extension;
pub mod gather;
pub mod host;
pub mod kernels;
pub mod latency;
pub mod micro;
pub mod settings;
pub mod spatter;
pub mod techniques;
pub mod workloads;
