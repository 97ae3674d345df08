//! Streams that are captured, and graphs, which come of that or are made by hand: what was submitted, in its order.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::abi::{
    CUresult, GRAPH_EXEC_UPDATE_FAILURE, Handle, INVALID_HANDLE, INVALID_VALUE, KernelNode, NodeParameters,
    SUCCESS,
};
use crate::launch;
use crate::modules::{self, Function};

/// Something that a stream was told to do.
#[derive(Clone)]
pub enum Work {
    /// A launch, with the bytes of its parameters as they were.
    Launch {
        /// The handle that it was asked for with.
        handle: usize,
        function: &'static Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        parameters: Vec<u8>,
    },
    /// A copy between addresses, of the device or the host.
    Copy { to: u64, from: u64, length: usize },
    /// A value of 1, 2 or 4 bytes, this many times.
    Fill { to: u64, value: Vec<u8>, count: u64 },
}

/// A node of a graph. In an executable one it has the handle that it has in its graph.
struct Node {
    handle: usize,
    /// Of a clone's node the one that it was made of.
    original: usize,
    work: Work,
    /// Where each parameter of a launch is.
    pointers: Vec<*mut c_void>,
}

// SAFETY: the pointers lead into the node's own work.
unsafe impl Send for Node {}

impl Node {
    fn new(handle: usize, original: usize, work: Work) -> Node {
        let mut node = Node {
            handle,
            original,
            work,
            pointers: Vec::new(),
        };
        if let Work::Launch {
            function, parameters, ..
        } = &mut node.work
        {
            let start = parameters.as_mut_ptr();
            let layout = function.layout.iter();
            node.pointers = layout
                .map(|&(offset, _)| start.wrapping_add(offset as usize).cast())
                .collect();
        }
        node
    }
}

#[derive(Default)]
struct Graphs {
    captured: HashMap<usize, Vec<Work>>,
    graphs: HashMap<usize, Vec<Node>>,
}

impl Graphs {
    fn nodes(&mut self, graph: Handle) -> Result<&mut Vec<Node>, CUresult> {
        self.graphs.get_mut(&(graph as usize)).ok_or(INVALID_HANDLE)
    }

    /// A node, in whichever graph it is, executable ones aside: those are asked for last.
    fn node(&mut self, node: Handle) -> Result<&mut Node, CUresult> {
        let mut all: Vec<&mut Vec<Node>> = self.graphs.values_mut().collect();
        all.sort_by_key(|nodes| nodes.first().is_some_and(|first| first.original == EXECUTABLE));
        let mut nodes = all.into_iter().flatten();
        nodes
            .find(|own| own.handle == node as usize)
            .ok_or(INVALID_HANDLE)
    }
}

/// What nodes of executable graphs have for an original.
const EXECUTABLE: usize = 1;

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
    let nodes = work
        .into_iter()
        .map(|work| Node::new(crate::state::handle() as usize, 0, work));
    let nodes = nodes.collect();
    Ok(new(&mut graphs, nodes))
}

fn new(graphs: &mut Graphs, nodes: Vec<Node>) -> Handle {
    let handle = crate::state::handle();
    graphs.graphs.insert(handle as usize, nodes);
    handle
}

/// A graph without nodes.
pub fn create() -> Handle {
    new(&mut graphs(), Vec::new())
}

/// Adds a launch to a graph: its node.
///
/// # Safety
/// The parameters are as the driver's documentation says.
pub unsafe fn add(graph: Handle, parameters: &NodeParameters) -> Result<Handle, CUresult> {
    // SAFETY: the caller's.
    let work = unsafe { work_of(parameters)? };
    let handle = crate::state::handle();
    let mut graphs = graphs();
    graphs.nodes(graph)?.push(Node::new(handle as usize, 0, work));
    Ok(handle)
}

unsafe fn work_of(parameters: &NodeParameters) -> Result<Work, CUresult> {
    let node = &parameters.node;
    let handle = match node.function.is_null() {
        true => parameters.kernel,
        false => node.function,
    };
    let function = modules::function(handle)?;
    Ok(Work::Launch {
        handle: handle as usize,
        function,
        grid: node.grid,
        block: node.block,
        shared_bytes: node.shared_bytes,
        // SAFETY: the caller's.
        parameters: unsafe { launch::parameters(function, node.parameters, node.extra) },
    })
}

/// The nodes of a graph.
pub fn nodes(graph: Handle) -> Result<Vec<Handle>, CUresult> {
    let mut graphs = graphs();
    Ok(graphs
        .nodes(graph)?
        .iter()
        .map(|node| node.handle as Handle)
        .collect())
}

/// `CUgraphNodeType`.
pub fn kind(node: Handle) -> Result<c_int, CUresult> {
    Ok(match graphs().node(node)?.work {
        Work::Launch { .. } => 0,
        Work::Copy { .. } => 1,
        Work::Fill { .. } => 2,
    })
}

/// A launch's parameters: valid until they are set, or the graph is gone.
pub fn parameters(node: Handle) -> Result<NodeParameters, CUresult> {
    let mut graphs = graphs();
    let node = graphs.node(node)?;
    let Work::Launch {
        handle,
        grid,
        block,
        shared_bytes,
        ..
    } = node.work
    else {
        return Err(INVALID_VALUE);
    };
    Ok(NodeParameters {
        node: KernelNode {
            function: handle as Handle,
            grid,
            block,
            shared_bytes,
            parameters: node.pointers.as_mut_ptr(),
            extra: std::ptr::null_mut(),
        },
        kernel: std::ptr::null_mut(),
        context: std::ptr::null_mut(),
    })
}

/// Sets a launch's parameters, in an executable graph or, without one, in the node's own graph.
///
/// # Safety
/// They are as the driver's documentation says.
pub unsafe fn set_parameters(
    exec: Option<Handle>,
    node: Handle,
    parameters: &NodeParameters,
) -> Result<(), CUresult> {
    // SAFETY: the caller's.
    let work = unsafe { work_of(parameters)? };
    let mut graphs = graphs();
    let own = match exec {
        Some(exec) => {
            let mut nodes = graphs.nodes(exec)?.iter_mut();
            nodes
                .find(|own| own.handle == node as usize)
                .ok_or(INVALID_HANDLE)?
        }
        None => graphs.node(node)?,
    };
    *own = Node::new(own.handle, own.original, work);
    Ok(())
}

/// A copy of a graph, with nodes of its own.
pub fn clone(graph: Handle) -> Result<Handle, CUresult> {
    let mut graphs = graphs();
    let nodes = graphs.nodes(graph)?.iter();
    let copy = |node: &Node| Node::new(crate::state::handle() as usize, node.handle, node.work.clone());
    let nodes = nodes.map(copy).collect();
    Ok(new(&mut graphs, nodes))
}

/// The node of a clone that was made of another one.
pub fn in_clone(original: Handle, clone: Handle) -> Result<Handle, CUresult> {
    let mut graphs = graphs();
    let mut nodes = graphs.nodes(clone)?.iter();
    let found = nodes.find(|node| node.original == original as usize);
    Ok(found.ok_or(INVALID_VALUE)?.handle as Handle)
}

/// Gives an executable graph what the nodes of a graph have, one after the other.
pub fn update(exec: Handle, graph: Handle) -> Result<(), CUresult> {
    let mut graphs = graphs();
    let work: Vec<Work> = graphs
        .nodes(graph)?
        .iter()
        .map(|node| node.work.clone())
        .collect();
    let nodes = graphs.nodes(exec)?;
    if nodes.len() != work.len() {
        return Err(GRAPH_EXEC_UPDATE_FAILURE);
    }
    for (node, work) in nodes.iter_mut().zip(work) {
        *node = Node::new(node.handle, node.original, work);
    }
    Ok(())
}

/// A graph that can be launched.
pub fn instantiate(graph: Handle) -> Result<Handle, CUresult> {
    let mut graphs = graphs();
    let nodes = graphs.nodes(graph)?.iter();
    let nodes = nodes.map(|node| Node::new(node.handle, EXECUTABLE, node.work.clone()));
    let nodes = nodes.collect();
    Ok(new(&mut graphs, nodes))
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
    let work: Vec<Work> = match graphs().nodes(graph) {
        Ok(nodes) => nodes.iter().map(|node| node.work.clone()).collect(),
        Err(error) => return error,
    };
    for work in &work {
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
            ..
        } => launch::launch(function, *grid, *block, *shared_bytes, parameters),
        // SAFETY: the caller's.
        Work::Copy { to, from, length } => unsafe { crate::exports::copy(*to, *from, *length) },
        Work::Fill { to, value, count } => crate::state::state().fill(*to, value, *count),
    }
}
