//! Graphs with better kernels in the place of the program's own.
//!
//! ```text
//! the program's graph ── instantiated ──► its own executable graph        all that it does to that is done to that
//!        └─ cloned, better kernels in ──► ours, launched in its place     while the facts hold
//! ```
//!
//! A node is looked at as a launch is: when its graph is instantiated, when its parameters are set, when the graph is updated,
//! and when memory has changed since the last launch. The program's executable graph stays as it is, so that every launch may
//! take it again: where a fact no longer holds, where ours is slower, and after a change that is not followed here. Graphs that
//! the device changes or launches, and those with memory, conditions or graphs of their own, have none beside them.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::abi::{CUresult, Handle, KernelNode, NodeParameters, SUCCESS};
use crate::functions;
use crate::launches::Launch;
use crate::lock::Lock;
use crate::replace::Replacement;
use crate::replace::turns::{self, Times, Turn};
use crate::settings::{self, Mode};
use crate::{events, memory, real};

/// `CU_GRAPH_NODE_TYPE_KERNEL`.
const KERNEL: c_int = 0;
/// Child graphs, memory that is got and given back, conditions: a second graph would share or lack what is theirs.
const OF_ONE_GRAPH: [c_int; 4] = [4, 10, 11, 13];
/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`.
const DEVICE_UPDATABLE: c_uint = 13;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD` and `…_DEVICE_LAUNCH`.
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
/// From this many updates on a graph must be launched twice for each: making ours takes longer than its kernels save.
const FEW_UPDATES: u64 = 4;

/// An executable graph of the program's, and ours.
struct Graph {
    exec: usize,
    clone: usize,
    /// How the program's was instantiated.
    flags: u64,
    nodes: Vec<Node>,
    /// Changes of memory when all facts were last looked at.
    changes: u64,
    /// Launches so far, and which of the two the last one took, on which stream.
    launches: u64,
    last: Option<(usize, usize)>,
    updates: u64,
    times: Arc<Times>,
}

/// A kernel node: the program's, and its copy in our graph.
struct Node {
    own: usize,
    copy: usize,
    /// Its kernel, if there is a better one.
    known: Option<functions::Known>,
    /// What is in the copy instead.
    better: Option<&'static Replacement>,
}

static ALL: Lock<Option<HashMap<usize, Graph>>> = Lock::new(None);

/// Holds the lock for the time of a fork.
pub fn hold() {
    ALL.hold();
}

/// Ends [`hold`].
pub fn release() {
    ALL.release();
}

/// The program has instantiated a graph.
///
/// # Safety
/// The driver has accepted it.
pub unsafe fn instantiated(exec: Handle, graph: Handle, flags: u64) {
    if settings::mode() != Mode::Exec || flags & DEVICE_LAUNCH != 0 {
        return;
    }
    // SAFETY: the caller's.
    if let Some(own) = events::relaxed(|| unsafe { beside(graph, flags & !UPLOAD) }) {
        ALL.take().get_or_insert_default().insert(exec as usize, own);
    }
}

/// Our graph for one of the program's; none where no node meets the facts of a better kernel.
unsafe fn beside(graph: Handle, flags: u64) -> Option<Graph> {
    let changes = memory::changes();
    // SAFETY: the program's graph, and places for the answers.
    unsafe {
        let kernels = kernels(graph)?;
        let better = |(_, parameters): &(Handle, NodeParameters)| replacement(known(parameters), parameters);
        if !kernels.iter().any(|node| better(node).is_some()) {
            return None;
        }
        let mut clone = ptr::null_mut();
        if real::cuGraphClone(&raw mut clone, graph) != SUCCESS {
            return None;
        }
        let mut own = Graph {
            exec: 0,
            clone: clone as usize,
            flags,
            nodes: Vec::with_capacity(kernels.len()),
            changes,
            launches: 0,
            last: None,
            updates: 0,
            times: Arc::default(),
        };
        let mut is_whole = true;
        for (node, parameters) in &kernels {
            let mut copy = ptr::null_mut();
            is_whole &= real::cuGraphNodeFindInClone(&raw mut copy, *node, clone) == SUCCESS;
            let known = known(parameters);
            let better = replacement(known, parameters);
            if let (true, Some(better)) = (is_whole, better) {
                let given = parameters.with(better.function());
                is_whole &= real::cuGraphKernelNodeSetParams_v2(copy, &raw const given) == SUCCESS;
            }
            own.nodes.push(Node {
                own: *node as usize,
                copy: copy as usize,
                known,
                better,
            });
        }
        let mut exec = ptr::null_mut();
        if is_whole && real::cuGraphInstantiateWithFlags(&raw mut exec, clone, flags) == SUCCESS {
            own.exec = exec as usize;
            return Some(own);
        }
        let _ = real::cuGraphDestroy(clone);
        None
    }
}

/// The kernel nodes of a graph, with their parameters; none where a node may not be twice, or the device may change it.
unsafe fn kernels(graph: Handle) -> Option<Vec<(Handle, NodeParameters)>> {
    let mut count = 0usize;
    // SAFETY: places for the answers.
    unsafe {
        if real::cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count) != SUCCESS {
            return None;
        }
        let mut nodes = vec![ptr::null_mut(); count];
        if real::cuGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut count) != SUCCESS {
            return None;
        }
        let mut found = Vec::new();
        for node in nodes.into_iter().take(count) {
            let mut kind = 0;
            if real::cuGraphNodeGetType(node, &raw mut kind) != SUCCESS || OF_ONE_GRAPH.contains(&kind) {
                return None;
            }
            if kind != KERNEL {
                continue;
            }
            let mut value = [0u64; 8];
            let asked =
                real::cuGraphKernelNodeGetAttribute(node, DEVICE_UPDATABLE, value.as_mut_ptr().cast());
            if asked == SUCCESS && value[0] as u32 != 0 {
                return None;
            }
            let mut parameters = NodeParameters::EMPTY;
            if real::cuGraphKernelNodeGetParams_v2(node, &raw mut parameters) != SUCCESS {
                return None;
            }
            found.push((node, parameters));
        }
        Some(found)
    }
}

/// The kernel of a node, if there is a better one.
fn known(parameters: &NodeParameters) -> Option<functions::Known> {
    let handles = [parameters.node.function, parameters.kernel].into_iter();
    let mut all = handles
        .filter(|handle| !handle.is_null())
        .filter_map(functions::of);
    all.find(|known| known.replacements().is_some())
}

/// What takes a node's place, if that meets its facts now.
unsafe fn replacement(
    known: Option<functions::Known>,
    parameters: &NodeParameters,
) -> Option<&'static Replacement> {
    // SAFETY: the node is one that the driver has accepted.
    unsafe { known?.replacements()?.chosen(&launch_of(&parameters.node)) }
}

fn launch_of(node: &KernelNode) -> Launch {
    Launch {
        handle: node.function,
        grid: node.grid,
        block: node.block,
        shared_bytes: node.shared_bytes,
        stream: ptr::null_mut(),
        per_thread: false,
        is_cooperative: false,
        is_node: true,
        parameters: node.parameters,
        extra: node.extra,
        attributes: ptr::null(),
        attribute_count: 0,
    }
}

impl Graph {
    /// Whether all better kernels may be launched now.
    fn holds(&mut self) -> bool {
        let is_off = |node: &Node| node.better.is_some_and(Replacement::is_off);
        if self.nodes.iter().any(is_off) || self.times.is_slower() {
            return false;
        }
        let changes = memory::changes();
        if changes == self.changes {
            return true;
        }
        let meets = |node: &Node| {
            let Some(better) = node.better else { return true };
            let mut parameters = NodeParameters::EMPTY;
            // SAFETY: a node of our graph, which has the parameters that ours runs with.
            unsafe {
                real::cuGraphKernelNodeGetParams_v2(node.copy as Handle, &raw mut parameters) == SUCCESS
                    && better.is_for(&launch_of(&parameters.node))
            }
        };
        self.changes = changes;
        self.nodes.iter().all(meets)
    }

    /// Gives ours back, before the program's own may be launched on another stream.
    fn leave(&self) {
        if self.last.is_some_and(|(_, last)| last == self.exec) {
            // SAFETY: nothing to pass.
            let _ = events::relaxed(|| unsafe { real::cuCtxSynchronize() });
        }
        self.drop_ours();
    }

    /// Gives ours back.
    fn drop_ours(&self) {
        // SAFETY: both are ours, and nothing launches them any more; what runs goes on.
        events::relaxed(|| unsafe {
            let _ = real::cuGraphExecDestroy(self.exec as Handle);
            let _ = real::cuGraphDestroy(self.clone as Handle);
        });
    }

    fn count(&self, took_ours: bool) {
        for node in &self.nodes {
            let Some(known) = node.known else { continue };
            let counts = known.function.counts;
            counts.launches.fetch_add(1, Ordering::Relaxed);
            match node.better.filter(|_| took_ours) {
                Some(better) => {
                    counts.replaced.fetch_add(1, Ordering::Relaxed);
                    better.count_node();
                }
                None => {
                    counts.in_graphs.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Launches an executable graph; `run` hands one to the driver.
///
/// # Safety
/// The driver takes the program's.
pub unsafe fn launch(
    exec: Handle,
    stream: Handle,
    per_thread: bool,
    run: impl Fn(Handle) -> CUresult,
) -> CUresult {
    if settings::mode() != Mode::Exec
        || ALL
            .take()
            .as_ref()
            .is_none_or(|all| !all.contains_key(&(exec as usize)))
    {
        return run(exec);
    }
    // A node of another graph, which may be launched unobserved.
    if events::is_captured(stream, per_thread) {
        return run(exec);
    }
    let own_stream = (stream as usize) ^ usize::from(per_thread);
    let (chosen, takes_ours, is_timed, times, must_wait, dropped) = {
        let mut all = ALL.take();
        let Some(graph) = all.as_mut().and_then(|all| all.get_mut(&(exec as usize))) else {
            return run(exec);
        };
        let holds = events::relaxed(|| graph.holds());
        let is_elsewhere = graph.last.is_some_and(|(last, _)| last != own_stream);
        // On another stream the two would have to wait for each other.
        let turn = match is_elsewhere {
            true => Turn {
                takes_better: true,
                is_timed: false,
            },
            false => turns::of(graph.launches, graph.times.usual_ns()),
        };
        let takes_ours = holds && turn.takes_better;
        let chosen = if takes_ours { graph.exec } else { exec as usize };
        // Launches of one executable graph follow each other, whatever their streams. Those of two do so on one stream.
        let must_wait = is_elsewhere && graph.last.is_some_and(|(_, last)| last != chosen);
        let is_timed = holds && turn.is_timed;
        let times = Arc::clone(&graph.times);
        graph.launches += 1;
        graph.last = Some((own_stream, chosen));
        graph.count(takes_ours);
        let dropped = match holds {
            true => None,
            false => all.as_mut().and_then(|all| all.remove(&(exec as usize))),
        };
        (chosen as Handle, takes_ours, is_timed, times, must_wait, dropped)
    };
    if must_wait {
        // SAFETY: nothing to pass.
        let _ = events::relaxed(|| unsafe { real::cuCtxSynchronize() });
    }
    if let Some(dropped) = dropped {
        dropped.drop_ours();
    }
    let running = match is_timed {
        // SAFETY: the program's stream, which is not captured.
        true => unsafe { events::begin(stream, per_thread) },
        false => None,
    };
    let result = run(chosen);
    if takes_ours && result != SUCCESS {
        forget(exec);
        return run(exec);
    }
    if let Some(running) = running {
        let told = move |ns: u64| {
            times.add(takes_ours, ns);
        };
        // SAFETY: as above.
        unsafe { events::end(running, stream, per_thread, Box::new(told)) };
    }
    result
}

/// The program has set a kernel node's parameters in an executable graph: they are looked at, and ours gets them, too.
///
/// # Safety
/// The driver has accepted them.
pub unsafe fn set_parameters(exec: Handle, node: Handle, parameters: *const NodeParameters) {
    let mut all = ALL.take();
    let Some(graph) = all.as_mut().and_then(|all| all.get_mut(&(exec as usize))) else {
        return;
    };
    let own_exec = graph.exec as Handle;
    let found = graph.nodes.iter_mut().find(|own| own.own == node as usize);
    // SAFETY: the caller's parameters; a node of our graph.
    let is_done = found.is_some_and(|own| unsafe {
        let given = *parameters;
        own.known = known(&given);
        own.better = replacement(own.known, &given);
        let given = match own.better {
            Some(better) => given.with(better.function()),
            None => given,
        };
        let copy = own.copy as Handle;
        real::cuGraphExecKernelNodeSetParams_v2(own_exec, copy, &raw const given) == SUCCESS
            && real::cuGraphKernelNodeSetParams_v2(copy, &raw const given) == SUCCESS
    });
    if !is_done {
        let left = all.as_mut().and_then(|all| all.remove(&(exec as usize)));
        drop(all);
        if let Some(left) = left {
            left.leave();
        }
    }
}

/// The program has updated an executable graph from a graph: ours is made anew.
///
/// # Safety
/// The driver has accepted it.
pub unsafe fn updated(exec: Handle, graph: Handle) {
    let Some(before) = take(exec) else { return };
    before.leave();
    let updates = before.updates + 1;
    if updates > FEW_UPDATES && before.launches < 2 * updates {
        return;
    }
    // SAFETY: the caller's.
    if let Some(mut own) = events::relaxed(|| unsafe { beside(graph, before.flags) }) {
        own.updates = updates;
        (own.launches, own.times) = (before.launches, before.times);
        ALL.take().get_or_insert_default().insert(exec as usize, own);
    }
}

/// An executable graph was changed in a way that is not followed: it is launched itself from now on.
pub fn forget(exec: Handle) {
    if let Some(own) = take(exec) {
        own.leave();
    }
}

/// An executable graph is gone.
pub fn destroyed(exec: Handle) {
    if let Some(own) = take(exec) {
        own.drop_ours();
    }
}

fn take(exec: Handle) -> Option<Graph> {
    match settings::mode() {
        Mode::Exec => ALL.take().as_mut()?.remove(&(exec as usize)),
        _ => None,
    }
}

/// A context is gone, and with it what was made in it.
pub fn forget_all() {
    *ALL.take() = None;
}

impl NodeParameters {
    const EMPTY: NodeParameters = NodeParameters {
        node: KernelNode {
            function: ptr::null_mut(),
            grid: [0; 3],
            block: [0; 3],
            shared_bytes: 0,
            parameters: ptr::null_mut(),
            extra: ptr::null_mut(),
        },
        kernel: ptr::null_mut(),
        context: ptr::null_mut::<c_void>(),
    };

    /// The same with another function, which the driver takes: for a graph it asks nothing of it, and for an executable one the
    /// same device, and neither dynamic parallelism nor launches of graphs by the device where the first one had none. A better
    /// kernel calls nothing that its original does not.
    fn with(mut self, function: Handle) -> NodeParameters {
        self.node.function = function;
        self
    }
}
