//! Limits of a kernel's size. Untrusted input must not exhaust stack, memory or time, and every pass may rely on these
//! limits.

/// Most bytes of text that are read as a kernel.
pub const TEXT_BYTES: usize = 32 << 20;
/// Most bytes of a module in PTX, of which only the entry that is asked for is read.
pub const MODULE_BYTES: u64 = 1 << 36;
/// Most operations in a kernel, those in regions included.
pub const OPERATIONS: usize = 1 << 20;
/// Most regions inside each other. Passes recurse once per region.
pub const NESTING: usize = 200;
/// Most parameters.
pub const PARAMETERS: usize = 512;
/// Most shared and private arrays together.
pub const ARRAYS: usize = 256;
/// Most bytes of shared arrays; devices have less.
pub const SHARED_BYTES: u64 = 1 << 20;
/// Most bytes of private arrays a work-item; as much as CUDA's local memory.
pub(crate) const PRIVATE_BYTES: u64 = 512 << 10;
/// Largest alignment of an array or a pointer, in bytes.
pub const ALIGNMENT: u32 = 1 << 16;
/// Where every device lets a buffer start, at least: at a multiple of this many bytes. A kernel's own slices are
/// whole buffers, and promise it.
pub const BUFFER_ALIGNMENT: u32 = 16;
/// Longest name of anything, plan, or path of a source file, in bytes.
pub const NAME_BYTES: usize = 1024;
/// Most calls through which a source place was inlined.
pub(crate) const INLINED_CALLS: usize = 64;
/// Most bytes that the source places take together, file names counted once a place.
pub(crate) const PLACE_BYTES: usize = 256 << 20;
/// Most work-items in a required work-group size; devices have less.
pub(crate) const GROUP_ITEMS: u64 = 4096;
/// Largest required sub-group size.
pub(crate) const SUB_GROUP_ITEMS: u32 = 128;

/// Work-items of a sub-group that exchanges values, in a kernel that does not require a size: what is written in CUDA and for
/// Intel's GPUs, and the language's own reductions, count on no more.
pub const EXCHANGING_ITEMS: u32 = 32;
/// 32-bit registers that a compiler may be told to keep to. (ptxas 13.0 raises fewer to 24, and ignores more than 255.)
pub const REGISTERS: std::ops::RangeInclusive<u32> = 24..=255;
/// Most bytes that one prefetch asks for.
pub const PREFETCH_BYTES: u32 = 1 << 20;
/// Barriers of a work-group that have a number of their own, from 1 on.
pub const NAMED_BARRIERS: u32 = 15;
/// Most bytes of a line that a kernel prints, its values not counted.
pub const LINE_BYTES: usize = 1024;
/// Most values in a line that a kernel prints.
pub const LINE_VALUES: usize = 32;
/// Most results, and most operands, of an instruction that is carried as text.
pub(crate) const OPAQUE_VALUES: usize = 512;
/// Most bytes that one load or store moves.
pub const ACCESS_BYTES: u32 = 16;
