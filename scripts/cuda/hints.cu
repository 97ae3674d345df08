// What cache hints, load qualifiers and asynchronous copies cost and fill on a GPU of compute capability 9.0.
//
//   cost    cycles an instruction takes of a core's time, 16 sub-groups a core issuing nothing else, where the lanes
//           of a sub-group name one line, or 32 lines; the memory they name (16 MiB) is in L2
//   after   cycles of the next load of the same word, of the word 32 bytes on (the next sector), 128 bytes on (the
//           next line), where nothing was in a cache before; one work-item, the clock's own cost included
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>
#define CK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

enum Kind { NONE, PF_L1, PF_L2, PF_L2_LAST, PF_L2_NORMAL, BULK, COPY4, COPY16, LD, LD_CG, LD_CS, LD_NA, LD_EF, LD_EL, LD_LTC128, LD_LTC256, KINDS };
static const char *NAMES[KINDS] = {"nothing", "prefetch.global.L1", "prefetch.global.L2", "prefetch.global.L2::evict_last",
    "prefetch.global.L2::evict_normal", "cp.async.bulk.prefetch.L2 128", "cp.async.ca 4", "cp.async.cg 16", "ld.global",
    "ld.global.cg", "ld.global.cs", "ld.global.L1::no_allocate", "ld.global.L1::evict_first", "ld.global.L1::evict_last",
    "ld.global.L2::128B", "ld.global.L2::256B"};

template <int K> __device__ __forceinline__ unsigned act(const unsigned *p, unsigned scratch) {
    unsigned v = 0;
    if (K == PF_L1) asm volatile("prefetch.global.L1 [%0];" ::"l"(p));
    if (K == PF_L2) asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
    if (K == PF_L2_LAST) asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(p));
    if (K == PF_L2_NORMAL) asm volatile("prefetch.global.L2::evict_normal [%0];" ::"l"(p));
    if (K == COPY4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(scratch), "l"(p));
    if (K == COPY16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(scratch), "l"(p));
    if (K == LD) asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (K == LD_CG) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (K == LD_CS) asm volatile("ld.global.cs.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (K == LD_NA) asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (K == LD_EF) asm volatile("ld.global.L1::evict_first.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (K == LD_EL) asm volatile("ld.global.L1::evict_last.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (K == LD_LTC128) asm volatile("ld.global.L2::128B.u32 %0, [%1];" : "=r"(v) : "l"(p));
    if (K == LD_LTC256) asm volatile("ld.global.L2::256B.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

template <int K> __global__ void __launch_bounds__(512) cost(const unsigned *p, unsigned lane_stride, long *out, unsigned *sink) {
    __shared__ unsigned scratch[512 * 4];
    unsigned at = (unsigned)__cvta_generic_to_shared(scratch + threadIdx.x * 4), sum = 0;
    unsigned warp = blockIdx.x * 16 + threadIdx.x / 32, lane = threadIdx.x % 32;
    long start = clock64();
#pragma unroll 8
    for (unsigned i = 0; i < 256; i++) {
        unsigned word = ((warp * 256 + i) * 1024 + lane * lane_stride) & ((1u << 22) - 1);
        if (K == BULK) {
            if (lane == 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], 128;" ::"l"(p + (word & ~31u)));
        } else sum += act<K>(p + word, at);
    }
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = clock64() - start;
    if (sum == 12345) *sink = sum;
}

template <int K> __global__ void after(const unsigned *p, unsigned further, long *out, unsigned *sink) {
    __shared__ unsigned scratch[4];
    unsigned at = (unsigned)__cvta_generic_to_shared(scratch), sum = 0;
    for (int i = 0; i < 64; i++) {
        const unsigned *q = p + i * 32768l;
        if (K == BULK) asm volatile("cp.async.bulk.prefetch.L2.global [%0], 128;" ::"l"(q)); else sum += act<K>(q, at);
        long t = clock64();
        while (clock64() - t < 4000);
        long start = clock64();
        unsigned v;
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(q + further));
        sum += v;
        if (sum == 12345) *sink = 1;
        out[i] = clock64() - start;
    }
    asm volatile("cp.async.wait_all;");
    *sink = sum;
}

static unsigned *data, *sink;
static char *other;
static long *out;

static long median(int count) {
    CK(cudaDeviceSynchronize());
    std::vector<long> v(count);
    CK(cudaMemcpy(v.data(), out, count * 8, cudaMemcpyDeviceToHost));
    std::sort(v.begin(), v.end());
    return v[count / 2];
}

template <int K> static void measure() {
    long cycles[2], next[3];
    for (int spread = 0; spread < 2; spread++) {
        unsigned stride = spread ? 32 : K == COPY16 ? 0 : 1;
        for (int warm = 0; warm < 2; warm++) cost<K><<<132, 512>>>(data, stride, out, sink);
        cycles[spread] = median(132);
    }
    unsigned further[3] = {0, 8, 32};
    for (int f = 0; f < 3; f++) {
        CK(cudaMemset(other, f, 512l << 20));
        after<K><<<1, 1>>>(data, further[f], out, sink);
        next[f] = median(64);
    }
    printf("%-34s cost %7.2f %7.2f cycles; after: same word %4ld, next sector %4ld, next line %4ld cycles\n", NAMES[K],
        cycles[0] / (256. * 16), cycles[1] / (256. * 16), next[0], next[1], next[2]);
}

int main() {
    CK(cudaMalloc(&data, 1l << 30)); CK(cudaMemset(data, 1, 1l << 30));
    CK(cudaMalloc(&other, 512l << 20)); CK(cudaMalloc(&sink, 4)); CK(cudaMalloc(&out, 8 * 256));
    printf("hints and loads: cost for one line, for 32 lines\n");
    measure<NONE>(); measure<PF_L1>(); measure<PF_L2>(); measure<PF_L2_LAST>(); measure<PF_L2_NORMAL>(); measure<BULK>();
    measure<COPY4>(); measure<COPY16>(); measure<LD>(); measure<LD_CG>(); measure<LD_CS>(); measure<LD_NA>();
    measure<LD_EF>(); measure<LD_EL>(); measure<LD_LTC128>(); measure<LD_LTC256>();
}
