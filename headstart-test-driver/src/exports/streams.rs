//! Streams, graphs, events and launches.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use super::{Export, answer, answered};
use crate::abi::{CUresult, Handle, INVALID_HANDLE, INVALID_VALUE, LaunchConfig, NodeParameters, SUCCESS};
use crate::graphs::{self, Work};
use crate::launch;
use crate::modules;
use crate::state::{self, state};

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

exported! {
    cuStreamCreate(stream, flags) { answer(stream, state::handle()) }
    cuStreamCreateWithPriority(stream, flags, priority) { cuStreamCreate(stream, flags) }
    cuStreamDestroy_v2(stream) { SUCCESS }
    cuStreamGetCtx(stream, context) { super::device::cuCtxGetCurrent(context) }
    cuStreamSynchronize(stream) { state().result() }
    cuStreamQuery(stream) { state().result() }
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) { SUCCESS }
    cuStreamIsCapturing(stream, status) { answer(status, c_int::from(graphs::is_captured(stream))) }
    cuStreamBeginCapture_v2(stream: Handle, mode: c_int) { graphs::begin(stream) }
    cuStreamEndCapture(stream: Handle, graph: *mut Handle) { answered(graph, graphs::end(stream)) }
    cuGraphInstantiateWithFlags(exec, graph, flags) { answered(exec, graphs::instantiate(graph)) }
    cuGraphLaunch(exec, stream) { graphs::launch(exec) }
    cuGraphCreate(graph: *mut Handle, flags: c_uint) { answer(graph, graphs::create()) }
    cuGraphAddKernelNode_v2(node, graph, after, count, parameters) {
        // In the order in which they are added, one node runs after the other.
        match parameters.as_ref() {
            Some(own) => answered(node, graphs::add(graph, own)),
            None => INVALID_VALUE,
        }
    }
    cuGraphGetNodes(graph, nodes, count) {
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
    cuGraphNodeGetType(node, kind) { answered(kind, graphs::kind(node)) }
    cuGraphKernelNodeGetParams_v2(node, parameters) { answered(parameters, graphs::parameters(node)) }
    cuGraphKernelNodeSetParams_v2(node, parameters) {
        match parameters.as_ref() {
            Some(own) => done(graphs::set_parameters(None, node, own)),
            None => INVALID_VALUE,
        }
    }
    cuGraphExecKernelNodeSetParams_v2(exec, node, parameters) {
        match parameters.as_ref() {
            Some(own) => done(graphs::set_parameters(Some(exec), node, own)),
            None => INVALID_VALUE,
        }
    }
    cuGraphExecUpdate_v2(exec, graph, outcome) { done(graphs::update(exec, graph)) }
    cuGraphClone(clone, graph) { answered(clone, graphs::clone(graph)) }
    cuGraphNodeFindInClone(node, original, clone) { answered(node, graphs::in_clone(original, clone)) }
    cuGraphExecDestroy(exec) { graphs::destroy(exec) }
    cuGraphDestroy(graph) { graphs::destroy(graph) }
    cuThreadExchangeStreamCaptureMode(mode) { SUCCESS }
    cuEventCreate(event, flags) { answer(event, Box::into_raw(Box::new(-1f64)).cast()) }
    cuEventDestroy_v2(event: Handle) {
        // Others may still ask for it: events are small.
        match event.is_null() {
            true => INVALID_HANDLE,
            false => SUCCESS,
        }
    }
    cuEventRecord(event, stream) {
        let now = state().now_ns();
        answer(event.cast::<f64>(), now)
    }
    cuEventQuery(event) { state().result() }
    cuEventSynchronize(event: Handle) { state().result() }
    cuEventElapsedTime(milliseconds, start, end) {
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

    cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra) {
        launched(stream, function, [gx, gy, gz], [bx, by, bz], shared, parameters, extra)
    }
    cuLaunchKernelEx(config, function, parameters, extra) {
        match config.as_ref() {
            Some(own) => launched(own.stream, function, own.grid, own.block, own.shared_bytes, parameters, extra),
            None => INVALID_VALUE,
        }
    }
    cuLaunchCooperativeKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters) {
        launched(stream, function, [gx, gy, gz], [bx, by, bz], shared, parameters, ptr::null_mut())
    }
}
