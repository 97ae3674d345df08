//! A load that a plan can name, as data.

use super::plan::LoadName;
use crate::ir::{Label, LoadId};

/// A load that a plan can name.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The shortest name that means this load alone.
    pub name: LoadName,
    /// Which load.
    pub id: LoadId,
    /// The loop it is in.
    pub looped: Label,
    /// That loop's name in the source.
    pub(crate) loop_name: Option<String>,
    /// Where it is written.
    pub place: String,
    /// Bytes a work-item reads at once.
    pub bytes: u32,
    /// How often it stands in that loop: more than once where a compiler unrolled it.
    pub copies: u32,
    /// It is in the remainder of an unrolled loop; a plan that names it without its loop means the unrolled one.
    pub is_rest: bool,
    /// The loads in the same loop that its address depends on.
    pub parents: Vec<LoadId>,
    /// Why it cannot be fetched early, if it cannot.
    pub refusal: Option<String>,
}
