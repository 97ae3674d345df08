/* A CUDA runtime for tests, over whatever driver there is: as much of `libcudart.so.13` as programs compiled by
 * `nvcc --cudart=shared` need that launch kernels on streams.
 *
 * CUDA's own runtime asks its driver for private tables, so that it works with no other driver. This one uses the public interface
 * alone. It gets every function from `cuGetProcAddress_v2`, as CUDA's does, and loads images as libraries: what stands between a
 * program and its driver sees the same calls.
 *
 *     cc -shared -fPIC -Wl,-soname,libcudart.so.13 cudart.c -o libcudart.so.13 -ldl -lpthread
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef void *Handle;
typedef unsigned long long Address;
typedef struct { unsigned x, y, z; } dim3;
/* The runtime's parameters of a kernel node, and the driver's. */
struct own_node { const void *host; dim3 grid, block; unsigned shared; void **parameters, **extra; };
struct node { Handle function; dim3 grid, block; unsigned shared; void **parameters, **extra; Handle kernel, context; };

#define FUNCTIONS(_) \
    _(cuInit, (unsigned)) \
    _(cuDeviceGetCount, (int *)) \
    _(cuDeviceGetAttribute, (int *, int, int)) \
    _(cuDevicePrimaryCtxRetain, (Handle *, int)) \
    _(cuCtxSetCurrent, (Handle)) \
    _(cuCtxGetCurrent, (Handle *)) \
    _(cuCtxSynchronize, (void)) \
    _(cuLibraryLoadData, (Handle *, const void *, int *, void **, unsigned, int *, void **, unsigned)) \
    _(cuLibraryGetKernel, (Handle *, Handle, const char *)) \
    _(cuLibraryGetGlobal, (Address *, size_t *, Handle, const char *)) \
    _(cuKernelGetFunction, (Handle *, Handle)) \
    _(cuKernelSetAttribute, (int, int, Handle, int)) \
    _(cuMemAlloc, (Address *, size_t)) \
    _(cuMemAllocAsync, (Address *, size_t, Handle)) \
    _(cuMemFree, (Address)) \
    _(cuMemFreeAsync, (Address, Handle)) \
    _(cuMemAllocHost, (void **, size_t)) \
    _(cuMemFreeHost, (void *)) \
    _(cuMemcpy, (Address, Address, size_t)) \
    _(cuMemcpyAsync, (Address, Address, size_t, Handle)) \
    _(cuMemsetD8, (Address, unsigned char, size_t)) \
    _(cuMemsetD8Async, (Address, unsigned char, size_t, Handle)) \
    _(cuStreamCreate, (Handle *, unsigned)) \
    _(cuStreamDestroy, (Handle)) \
    _(cuStreamSynchronize, (Handle)) \
    _(cuStreamWaitEvent, (Handle, Handle, unsigned)) \
    _(cuStreamBeginCapture, (Handle, int)) \
    _(cuStreamEndCapture, (Handle, Handle *)) \
    _(cuGraphInstantiateWithFlags, (Handle *, Handle, unsigned long long)) \
    _(cuGraphLaunch, (Handle, Handle)) \
    _(cuGraphGetNodes, (Handle, Handle *, size_t *)) \
    _(cuGraphKernelNodeSetParams, (Handle, const struct node *)) \
    _(cuGraphExecKernelNodeSetParams, (Handle, Handle, const struct node *)) \
    _(cuGraphExecUpdate, (Handle, Handle, void *)) \
    _(cuGraphExecDestroy, (Handle)) \
    _(cuGraphDestroy, (Handle)) \
    _(cuEventCreate, (Handle *, unsigned)) \
    _(cuEventDestroy, (Handle)) \
    _(cuEventRecord, (Handle, Handle)) \
    _(cuEventSynchronize, (Handle)) \
    _(cuEventElapsedTime, (float *, Handle, Handle)) \
    _(cuLaunchKernel, (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **)) \
    _(cuLaunchCooperativeKernel, \
      (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **)) \
    _(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, Handle, int, size_t))

#define DECLARE(name, arguments) static Result(*name) arguments;
FUNCTIONS(DECLARE)

struct image { const void *wrapper; Handle library; };
struct kernel { const void *host; struct image *image; const char *name; Handle kernel; };
struct variable { const void *host; struct image *image; const char *name; Address address; size_t bytes; };

static struct kernel kernels[4096];
static struct variable variables[4096];
static int kernel_count, variable_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static Handle context;
static Result first_error;
static __thread Result last_error;
static __thread struct { dim3 grid, block; size_t shared; Handle stream; } pushed[16];
static __thread int depth;

static Result kept(Result result) {
    if (result) last_error = result;
    return result;
}

static void begin(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) { first_error = 35; return; }
    Result (*ask)(const char *, void **, int, unsigned long long, int *);
    *(void **)&ask = dlsym(driver, "cuGetProcAddress_v2");
    int status;
    /* What a driver does not have is null, and crashes if it is called: a test sees it. */
#define GET(name, arguments) if (ask(#name, (void **)&name, 13000, 0, &status) != 0) name = NULL;
    FUNCTIONS(GET)
    first_error = cuInit(0);
    if (!first_error) first_error = cuDevicePrimaryCtxRetain(&context, 0);
}

static Result ready(void) {
    pthread_once(&once, begin);
    Handle own = NULL;
    if (!first_error && (cuCtxGetCurrent(&own) || !own)) return kept(cuCtxSetCurrent(context));
    return kept(first_error);
}

void **__cudaRegisterFatBinary(void *wrapper) {
    struct image *image = calloc(1, sizeof *image);
    image->wrapper = wrapper;
    return (void **)image;
}
void __cudaRegisterFatBinaryEnd(void **image) { (void)image; }
void __cudaUnregisterFatBinary(void **image) { (void)image; }
char __cudaInitModule(void **image) { (void)image; return 0; }
void __cudaRegisterFunction(void **image, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                            void *block, void *grid, int *warp) {
    kernels[kernel_count++] = (struct kernel){host, (struct image *)image, name, NULL};
}
void __cudaRegisterVar(void **image, char *host, char *device, const char *name, int external, size_t size, int constant,
                       int global) {
    variables[variable_count++] = (struct variable){host, (struct image *)image, name, 0, size};
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, Handle stream) {
    if (depth == 16) return 1;
    pushed[depth].grid = grid, pushed[depth].block = block, pushed[depth].shared = shared, pushed[depth].stream = stream;
    return depth++, 0;
}
Result __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (depth == 0) return 9;
    depth--;
    *grid = pushed[depth].grid, *block = pushed[depth].block, *shared = pushed[depth].shared;
    *(Handle *)stream = pushed[depth].stream;
    return 0;
}

static Result loaded(struct image *image) {
    return image->library ? 0 : cuLibraryLoadData(&image->library, image->wrapper, NULL, NULL, 0, NULL, NULL, 0);
}

/* The kernel behind a function of the host. */
static Result find(const void *host, Handle *kernel) {
    Result result = ready();
    if (result) return result;
    pthread_mutex_lock(&lock);
    result = 98;
    for (int i = 0; i < kernel_count; ++i)
        if (kernels[i].host == host) {
            result = loaded(kernels[i].image);
            if (!result && !kernels[i].kernel)
                result = cuLibraryGetKernel(&kernels[i].kernel, kernels[i].image->library, kernels[i].name);
            *kernel = kernels[i].kernel;
            break;
        }
    pthread_mutex_unlock(&lock);
    return kept(result);
}

static Result find_variable(const void *host, Address *address) {
    Result result = ready();
    if (result) return result;
    pthread_mutex_lock(&lock);
    result = 13;
    for (int i = 0; i < variable_count; ++i)
        if (variables[i].host == host) {
            size_t bytes;
            result = loaded(variables[i].image);
            if (!result) result = cuLibraryGetGlobal(address, &bytes, variables[i].image->library, variables[i].name);
            break;
        }
    pthread_mutex_unlock(&lock);
    return kept(result);
}

Result __cudaGetKernel(Handle *kernel, const void *host) { *kernel = (Handle)host; return 0; }
Result cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **parameters, size_t shared, Handle stream) {
    Handle kernel;
    Result result = find(host, &kernel);
    return result ? result
                  : kept(cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, parameters,
                                        NULL));
}
Result __cudaLaunchKernel(Handle host, dim3 grid, dim3 block, void **parameters, size_t shared, Handle stream) {
    return cudaLaunchKernel(host, grid, block, parameters, shared, stream);
}
Result cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **parameters, size_t shared, Handle stream) {
    Handle kernel;
    Result result = find(host, &kernel);
    return result ? result
                  : kept(cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream,
                                                   parameters));
}
Result cudaFuncSetAttribute(const void *host, int attribute, int value) {
    Handle kernel;
    Result result = find(host, &kernel);
    return result ? result : kept(cuKernelSetAttribute(attribute, value, kernel, 0));
}
Result cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *host, int size, size_t shared,
                                                              unsigned flags) {
    Handle kernel, function;
    Result result = find(host, &kernel);
    if (!result) result = cuKernelGetFunction(&function, kernel);
    return result ? result : kept(cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function, size, shared));
}
Result cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *host, int size, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, host, size, shared, 0);
}

#define AFTER(call) { Result result = ready(); return result ? result : kept(call); }
Result cudaMalloc(void **to, size_t bytes) AFTER(cuMemAlloc((Address *)to, bytes))
Result cudaMallocAsync(void **to, size_t bytes, Handle stream) AFTER(cuMemAllocAsync((Address *)to, bytes, stream))
Result cudaFree(void *memory) AFTER(cuMemFree((Address)memory))
Result cudaFreeAsync(void *memory, Handle stream) AFTER(cuMemFreeAsync((Address)memory, stream))
Result cudaMallocHost(void **to, size_t bytes) AFTER(cuMemAllocHost(to, bytes))
Result cudaFreeHost(void *memory) AFTER(cuMemFreeHost(memory))
Result cudaMemcpy(void *to, const void *from, size_t bytes, int kind) AFTER(cuMemcpy((Address)to, (Address)from, bytes))
Result cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, Handle stream)
    AFTER(cuMemcpyAsync((Address)to, (Address)from, bytes, stream))
Result cudaMemset(void *to, int value, size_t bytes) AFTER(cuMemsetD8((Address)to, value, bytes))
Result cudaMemsetAsync(void *to, int value, size_t bytes, Handle stream)
    AFTER(cuMemsetD8Async((Address)to, value, bytes, stream))
Result cudaMemcpyToSymbol(const void *host, const void *from, size_t bytes, size_t offset, int kind) {
    Address to;
    Result result = find_variable(host, &to);
    return result ? result : kept(cuMemcpy(to + offset, (Address)from, bytes));
}
Result cudaMemcpyFromSymbol(void *to, const void *host, size_t bytes, size_t offset, int kind) {
    Address from;
    Result result = find_variable(host, &from);
    return result ? result : kept(cuMemcpy((Address)to, from + offset, bytes));
}
Result cudaStreamCreate(Handle *stream) AFTER(cuStreamCreate(stream, 0))
Result cudaStreamCreateWithFlags(Handle *stream, unsigned flags) AFTER(cuStreamCreate(stream, flags))
Result cudaStreamDestroy(Handle stream) AFTER(cuStreamDestroy(stream))
Result cudaStreamSynchronize(Handle stream) AFTER(cuStreamSynchronize(stream))
Result cudaStreamWaitEvent(Handle stream, Handle event, unsigned flags) AFTER(cuStreamWaitEvent(stream, event, flags))
Result cudaStreamBeginCapture(Handle stream, int mode) AFTER(cuStreamBeginCapture(stream, mode))
Result cudaStreamEndCapture(Handle stream, Handle *graph) AFTER(cuStreamEndCapture(stream, graph))
Result cudaGraphInstantiate(Handle *exec, Handle graph, unsigned long long flags)
    AFTER(cuGraphInstantiateWithFlags(exec, graph, flags))
Result cudaGraphLaunch(Handle exec, Handle stream) AFTER(cuGraphLaunch(exec, stream))
Result cudaGraphGetNodes(Handle graph, Handle *nodes, size_t *count) AFTER(cuGraphGetNodes(graph, nodes, count))
static Result to_node(const struct own_node *own, struct node *node) {
    *node = (struct node){NULL, own->grid, own->block, own->shared, own->parameters, own->extra, NULL, NULL};
    return find(own->host, &node->kernel);
}
Result cudaGraphKernelNodeSetParams(Handle own, const struct own_node *parameters) {
    struct node node;
    Result result = to_node(parameters, &node);
    return result ? result : kept(cuGraphKernelNodeSetParams(own, &node));
}
Result cudaGraphExecKernelNodeSetParams(Handle exec, Handle own, const struct own_node *parameters) {
    struct node node;
    Result result = to_node(parameters, &node);
    return result ? result : kept(cuGraphExecKernelNodeSetParams(exec, own, &node));
}
Result cudaGraphExecUpdate(Handle exec, Handle graph, void *outcome) AFTER(cuGraphExecUpdate(exec, graph, outcome))
Result cudaGraphExecDestroy(Handle exec) AFTER(cuGraphExecDestroy(exec))
Result cudaGraphDestroy(Handle graph) AFTER(cuGraphDestroy(graph))
Result cudaEventCreate(Handle *event) AFTER(cuEventCreate(event, 0))
Result cudaEventDestroy(Handle event) AFTER(cuEventDestroy(event))
Result cudaEventRecord(Handle event, Handle stream) AFTER(cuEventRecord(event, stream))
Result cudaEventSynchronize(Handle event) AFTER(cuEventSynchronize(event))
Result cudaEventElapsedTime(float *milliseconds, Handle start, Handle end) AFTER(cuEventElapsedTime(milliseconds, start, end))
Result cudaDeviceSynchronize(void) AFTER(cuCtxSynchronize())
Result cudaGetDeviceCount(int *count) AFTER(cuDeviceGetCount(count))
Result cudaGetDevice(int *device) { *device = 0; return ready(); }
Result cudaSetDevice(int device) { return device ? kept(101) : ready(); }
Result cudaDeviceGetAttribute(int *value, int attribute, int device) AFTER(cuDeviceGetAttribute(value, attribute, device))
Result cudaGetLastError(void) { Result own = last_error; last_error = 0; return own; }
Result cudaPeekAtLastError(void) { return last_error; }
const char *cudaGetErrorString(Result error) {
    static __thread char text[32];
    if (!error) return "no error";
    snprintf(text, sizeof text, "error %d", error);
    return text;
}
const char *cudaGetErrorName(Result error) { return cudaGetErrorString(error); }
