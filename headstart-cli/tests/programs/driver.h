/* What these programs use of CUDA's driver, and the three ways in which programs reach it: linked (WAY 0), through dlsym (1),
 * and through cuGetProcAddress, as CUDA's runtime does (2). */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent;

#ifndef WAY
#define WAY 0
#endif

#define FUNCTIONS(_) \
    _(cuInit, cuInit, (unsigned)) \
    _(cuDeviceGet, cuDeviceGet, (CUdevice *, int)) \
    _(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
    _(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext)) \
    _(cuCtxSynchronize, cuCtxSynchronize, (void)) \
    _(cuModuleLoad, cuModuleLoad, (CUmodule *, const char *)) \
    _(cuModuleLoadData, cuModuleLoadData, (CUmodule *, const void *)) \
    _(cuModuleUnload, cuModuleUnload, (CUmodule)) \
    _(cuModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    _(cuModuleGetGlobal, cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *)) \
    _(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
    _(cuMemFree, cuMemFree_v2, (CUdeviceptr)) \
    _(cuMemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
    _(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    _(cuMemsetD32, cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t)) \
    _(cuStreamCreate, cuStreamCreate, (CUstream *, unsigned)) \
    _(cuLaunchKernel, cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                                       CUstream, void **, void **))

#if WAY == 0
#define DECLARE(name, symbol, arguments) extern CUresult symbol arguments;
#define GET(name, symbol, arguments)
#elif WAY == 1
#define DECLARE(name, symbol, arguments) static CUresult(*name) arguments;
#define GET(name, symbol, arguments) *(void **)&name = dlsym(library, #symbol);
#else
#define DECLARE(name, symbol, arguments) static CUresult(*name) arguments;
#define GET(name, symbol, arguments) \
    { int status; if (ask(#name, (void **)&name, 12000, 0, &status) != 0) exit(9); }
#endif

FUNCTIONS(DECLARE)

#if WAY == 0
#define cuModuleGetGlobal cuModuleGetGlobal_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuMemsetD32 cuMemsetD32_v2
#endif

static void open_driver(void) {
#if WAY != 0
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); exit(8); }
#endif
#if WAY == 2
    CUresult (*ask)(const char *, void **, int, unsigned long long, int *);
    *(void **)&ask = dlsym(library, "cuGetProcAddress_v2");
    if (!ask) exit(8);
#endif
    FUNCTIONS(GET)
}

#define OK(call) \
    do { \
        CUresult result = (call); \
        if (result != 0) { fprintf(stderr, "%s: error %d\n", #call, result); exit(7); } \
    } while (0)

/* A module from a file of text, read into memory. */
static CUmodule load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(6); }
    static char text[1 << 20];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    CUmodule module;
    OK(cuModuleLoadData(&module, text));
    return module;
}

static void start(void) {
    open_driver();
    CUdevice device;
    CUcontext context;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
}

static CUdeviceptr filled(const void *from, size_t bytes) {
    CUdeviceptr memory;
    OK(cuMemAlloc(&memory, bytes));
    OK(cuMemcpyHtoD(memory, from, bytes));
    return memory;
}
