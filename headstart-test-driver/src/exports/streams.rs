//! Streams, graphs, events and launches.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use super::{Export, answer, answered};
use crate::graphs::{self, NodeParameters, Work};
use crate::launch;
use crate::modules;
use crate::state::{self, CUresult, Handle, INVALID_HANDLE, INVALID_VALUE, SUCCESS, state};

unsafe fn launched(
    stream: Handle,
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let handle = function as usize;
    let function = match modules::function(function) {
        Ok(function) => function,
        Err(error) => return error,
    };
    // SAFETY: the caller's.
    let parameters = unsafe { launch::parameters(function, parameters, extra) };
    let work = Work::Launch {
        handle,
        function,
        grid,
        block,
        shared_bytes: shared,
        parameters,
    };
    // SAFETY: a launch has no address of the host.
    unsafe { graphs::submit(stream, work) }
}

fn done(result: Result<(), CUresult>) -> CUresult {
    result.err().unwrap_or(SUCCESS)
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    attributes: *const c_void,
    attribute_count: c_uint,
}

exported! {
    cuStreamCreate(stream: *mut Handle, flags: c_uint) {
        let _ = flags;
        answer(stream, state::handle())
    }
    cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) {
        let _ = priority;
        cuStreamCreate(stream, flags)
    }
    cuStreamDestroy_v2(stream: Handle) {
        let _ = stream;
        SUCCESS
    }
    cuStreamGetCtx(stream: Handle, context: *mut Handle) {
        let _ = stream;
        super::device::cuCtxGetCurrent(context)
    }
    cuStreamSynchronize(stream: Handle) {
        let _ = stream;
        state().result()
    }
    cuStreamQuery(stream: Handle) {
        let _ = stream;
        state().result()
    }
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) {
        let _ = (stream, event, flags);
        SUCCESS
    }
    cuStreamIsCapturing(stream: Handle, status: *mut c_int) {
        answer(status, c_int::from(graphs::is_captured(stream)))
    }
    cuStreamBeginCapture_v2(stream: Handle, mode: c_int) {
        let _ = mode;
        graphs::begin(stream)
    }
    cuStreamEndCapture(stream: Handle, graph: *mut Handle) { answered(graph, graphs::end(stream)) }
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64) {
        let _ = flags;
        answered(exec, graphs::instantiate(graph))
    }
    cuGraphLaunch(exec: Handle, stream: Handle) {
        let _ = stream;
        graphs::launch(exec)
    }
    cuGraphCreate(graph: *mut Handle, flags: c_uint) {
        let _ = flags;
        answer(graph, graphs::create())
    }
    cuGraphAddKernelNode_v2(
        node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const NodeParameters,
    ) {
        // In the order in which they are added, one node runs after the other.
        let _ = (after, count);
        match parameters.as_ref() {
            Some(own) => answered(node, graphs::add(graph, own)),
            None => INVALID_VALUE,
        }
    }
    cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) {
        let own = match graphs::nodes(graph) {
            Ok(own) => own,
            Err(error) => return error,
        };
        if count.is_null() {
            return INVALID_VALUE;
        }
        if !nodes.is_null() {
            let room = own.len().min(count.read_unaligned());
            ptr::copy_nonoverlapping(own.as_ptr(), nodes, room);
        }
        answer(count, own.len())
    }
    cuGraphNodeGetType(node: Handle, kind: *mut c_int) { answered(kind, graphs::kind(node)) }
    cuGraphKernelNodeGetParams_v2(node: Handle, parameters: *mut NodeParameters) {
        answered(parameters, graphs::parameters(node))
    }
    cuGraphKernelNodeSetParams_v2(node: Handle, parameters: *const NodeParameters) {
        match parameters.as_ref() {
            Some(own) => done(graphs::set_parameters(None, node, own)),
            None => INVALID_VALUE,
        }
    }
    cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, parameters: *const NodeParameters) {
        match parameters.as_ref() {
            Some(own) => done(graphs::set_parameters(Some(exec), node, own)),
            None => INVALID_VALUE,
        }
    }
    cuGraphExecUpdate_v2(exec: Handle, graph: Handle, outcome: *mut c_void) {
        let _ = outcome;
        done(graphs::update(exec, graph))
    }
    cuGraphClone(clone: *mut Handle, graph: Handle) { answered(clone, graphs::clone(graph)) }
    cuGraphNodeFindInClone(node: *mut Handle, original: Handle, clone: Handle) {
        answered(node, graphs::in_clone(original, clone))
    }
    cuGraphExecDestroy(exec: Handle) { graphs::destroy(exec) }
    cuGraphDestroy(graph: Handle) { graphs::destroy(graph) }
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        let _ = mode;
        SUCCESS
    }
    cuEventCreate(event: *mut Handle, flags: c_uint) {
        let _ = flags;
        answer(event, Box::into_raw(Box::new(-1f64)).cast())
    }
    cuEventDestroy_v2(event: Handle) {
        // Others may still ask for it: events are small.
        match event.is_null() {
            true => INVALID_HANDLE,
            false => SUCCESS,
        }
    }
    cuEventRecord(event: Handle, stream: Handle) {
        let _ = stream;
        let now = state().now_ns();
        answer(event.cast::<f64>(), now)
    }
    cuEventQuery(event: Handle) {
        let _ = event;
        state().result()
    }
    cuEventSynchronize(event: Handle) {
        let _ = event;
        state().result()
    }
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        if start.is_null() || end.is_null() {
            return INVALID_HANDLE;
        }
        let (start, end) = (*start.cast::<f64>(), *end.cast::<f64>());
        match start < 0.0 || end < 0.0 {
            true => INVALID_HANDLE,
            false => answer(milliseconds, ((end - start) * 1e-6) as f32),
        }
    }
    cuEventElapsedTime_v2(milliseconds: *mut f32, start: Handle, end: Handle) {
        cuEventElapsedTime(milliseconds, start, end)
    }

    cuLaunchKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        launched(stream, function, [gx, gy, gz], [bx, by, bz], shared, parameters, extra)
    }
    cuLaunchKernelEx(
        config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        match config.as_ref() {
            Some(own) => launched(own.stream, function, own.grid, own.block, own.shared_bytes, parameters, extra),
            None => INVALID_VALUE,
        }
    }
    cuLaunchCooperativeKernel(
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: Handle, parameters: *mut *mut c_void,
    ) {
        launched(stream, function, [gx, gy, gz], [bx, by, bz], shared, parameters, ptr::null_mut())
    }
}
