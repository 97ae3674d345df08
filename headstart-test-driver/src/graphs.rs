//! Streams that are captured, and the graphs that come of it: what was submitted, in its order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::launch;
use crate::modules::Function;
use crate::state::{CUresult, Handle, INVALID_HANDLE, SUCCESS};

/// Something that a stream was told to do.
#[derive(Clone)]
pub enum Work {
    /// A launch, with the bytes of its parameters as they were.
    Launch {
        function: &'static Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        parameters: Vec<u8>,
    },
    /// A copy between addresses, of the device or the host.
    Copy { to: u64, from: u64, length: usize },
    /// A value of 1, 2 or 4 bytes, so many times.
    Fill { to: u64, value: Vec<u8>, count: u64 },
}

#[derive(Default)]
struct Graphs {
    captured: HashMap<usize, Vec<Work>>,
    graphs: HashMap<usize, Arc<Vec<Work>>>,
}

fn graphs() -> MutexGuard<'static, Graphs> {
    static GRAPHS: OnceLock<Mutex<Graphs>> = OnceLock::new();
    GRAPHS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Begins to capture a stream.
pub fn begin(stream: Handle) -> CUresult {
    graphs().captured.insert(stream as usize, Vec::new());
    SUCCESS
}

/// Whether a stream is being captured.
pub fn is_captured(stream: Handle) -> bool {
    graphs().captured.contains_key(&(stream as usize))
}

/// Ends it: the graph.
pub fn end(stream: Handle) -> Result<Handle, CUresult> {
    let mut graphs = graphs();
    let work = graphs.captured.remove(&(stream as usize)).ok_or(INVALID_HANDLE)?;
    Ok(new(&mut graphs, Arc::new(work)))
}

fn new(graphs: &mut Graphs, work: Arc<Vec<Work>>) -> Handle {
    let handle = crate::state::handle();
    graphs.graphs.insert(handle as usize, work);
    handle
}

/// A graph that can be launched.
pub fn instantiate(graph: Handle) -> Result<Handle, CUresult> {
    let mut graphs = graphs();
    let work = graphs
        .graphs
        .get(&(graph as usize))
        .cloned()
        .ok_or(INVALID_HANDLE)?;
    Ok(new(&mut graphs, work))
}

/// Gives a graph back.
pub fn destroy(graph: Handle) -> CUresult {
    match graphs().graphs.remove(&(graph as usize)) {
        Some(_) => SUCCESS,
        None => INVALID_HANDLE,
    }
}

/// Does all that a graph has.
///
/// # Safety
/// The host's addresses in it are still there.
pub unsafe fn launch(graph: Handle) -> CUresult {
    let work = graphs().graphs.get(&(graph as usize)).cloned();
    let Some(work) = work else { return INVALID_HANDLE };
    for work in work.iter() {
        // SAFETY: the caller's.
        let result = unsafe { run(work) };
        if result != SUCCESS {
            return result;
        }
    }
    SUCCESS
}

/// Does something now, or notes it where the stream is captured.
///
/// # Safety
/// The host's addresses in it are there.
pub unsafe fn submit(stream: Handle, work: Work) -> CUresult {
    let mut graphs = graphs();
    if let Some(captured) = graphs.captured.get_mut(&(stream as usize)) {
        captured.push(work);
        return SUCCESS;
    }
    drop(graphs);
    // SAFETY: the caller's.
    unsafe { run(&work) }
}

unsafe fn run(work: &Work) -> CUresult {
    match work {
        Work::Launch {
            function,
            grid,
            block,
            shared_bytes,
            parameters,
        } => launch::launch(function, *grid, *block, *shared_bytes, parameters),
        // SAFETY: the caller's.
        Work::Copy { to, from, length } => unsafe { crate::exports::copy(*to, *from, *length) },
        Work::Fill { to, value, count } => crate::state::state().fill(*to, value, *count),
    }
}
