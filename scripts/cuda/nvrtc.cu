// How long NVIDIA's own compiler for running programs (NVRTC) takes from a kernel's source to a loaded module, for
// the loops of the gallery's kernels. Both libraries are opened at run time, so that nothing has to be linked.
// Prints medians of 7 in milliseconds, after one run that is not counted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nvrtc.h>
#include <vector>

static const char *ARTICLE = R"(
extern "C" __global__ __launch_bounds__(128) void article(const double *__restrict__ arr, double *result, unsigned elements) {
    const double *own = arr + (long long)blockIdx.x * elements;
    double acc = 0;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < elements; i += 128) { double x = own[i]; acc += exp(-x * x) * x; }
    result[blockIdx.x * 128 + threadIdx.x] = acc;
})";

static const char *GATHER = R"(
extern "C" __global__ __launch_bounds__(128) void gather(const int *__restrict__ indices, const float *__restrict__ values, float *result, unsigned items) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int *own = indices + (long long)(i / 32) * items * 32 + i % 32;
    float dx = 0;
#pragma unroll 1
    for (unsigned j = 0; j < items; j++) {
        float v = values[own[j * 32]];
#pragma unroll
        for (int k = 0; k < 8; k++) dx += sqrtf(v + k);
    }
    result[i] = dx;
})";

static void *nvrtc, *driver;

template <class F> static F *function(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : nullptr;
    if (!found) { fprintf(stderr, "%s was not found\n", name); exit(1); }
    return reinterpret_cast<F *>(found);
}

static void must(int code, const char *what) {
    if (code) { fprintf(stderr, "%s failed: %d\n", what, code); exit(1); }
}

#define NVRTC(name) function<decltype(name)>(nvrtc, #name)
#define DRIVER(name) function<decltype(name)>(driver, #name)

// Milliseconds from source to module; `ptx_to_module` gets those of the driver's compiler.
static double once(const char *source, double *ptx_to_module) {
    auto start = std::chrono::steady_clock::now();
    nvrtcProgram program;
    must(NVRTC(nvrtcCreateProgram)(&program, source, "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
    const char *options[] = {"--gpu-architecture=compute_90"};
    must(NVRTC(nvrtcCompileProgram)(program, 1, options), "nvrtcCompileProgram");
    size_t size;
    must(NVRTC(nvrtcGetPTXSize)(program, &size), "nvrtcGetPTXSize");
    std::vector<char> ptx(size);
    must(NVRTC(nvrtcGetPTX)(program, ptx.data()), "nvrtcGetPTX");
    must(NVRTC(nvrtcDestroyProgram)(&program), "nvrtcDestroyProgram");
    CUmodule module;
    auto compiled = std::chrono::steady_clock::now();
    must(DRIVER(cuModuleLoadDataEx)(&module, ptx.data(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    auto end = std::chrono::steady_clock::now();
    double time = std::chrono::duration<double, std::milli>(end - start).count();
    *ptx_to_module = std::chrono::duration<double, std::milli>(end - compiled).count();
    must(DRIVER(cuModuleUnload)(module), "cuModuleUnload");
    return time;
}

static void measure(const char *name, const char *source) {
    std::vector<double> times(7), drivers(7);
    once(source, &drivers[0]);
    for (int i = 0; i < 7; i++) times[i] = once(source, &drivers[i]);
    std::sort(times.begin(), times.end());
    std::sort(drivers.begin(), drivers.end());
    printf("%s source to module %.3f ms\n", name, times[3]);
    printf("%s its PTX to module %.3f ms\n", name, drivers[3]);
}

int main() {
    for (const char *name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
        if (!nvrtc) nvrtc = dlopen(name, RTLD_NOW);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    must(cudaFree(nullptr), "opening the GPU");
    printf("NVRTC\n");
    measure("article", ARTICLE);
    measure("gather", GATHER);
}
