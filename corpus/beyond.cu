// What compilers emit beyond arithmetic and loads: instructions with a meaning of their own, and calls of the driver.
#include <assert.h>
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdio.h>

namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void

// Words of several words: carry chains.
KERNEL wide_sum(unsigned __int128* sums, const unsigned __int128* numbers, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned __int128 sum = 0;
    for (int k = 0; k < n; k++) sum += numbers[i * n + k] * 3;
    sums[i] = sum;
}

KERNEL wide_difference(unsigned __int128* out, const unsigned __int128* a, const unsigned __int128* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] - b[i];
}

// Reductions of a warp in one instruction.
KERNEL warp_extremes(int* out, const int* in, int n) {
    int low = 0x7fffffff;
    unsigned high = 0, all = 0xffffffff;
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        low = min(low, in[k]);
        high = max(high, (unsigned)in[k]);
        all &= in[k];
    }
    low = __reduce_min_sync(0xffffffff, low);
    high = __reduce_max_sync(0xffffffff, high);
    int sum = __reduce_add_sync(0xffffffff, in[threadIdx.x]);
    all = __reduce_and_sync(0xffffffff, all);
    if (threadIdx.x % 32 == 0) {
        int* at = out + (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 4;
        at[0] = low, at[1] = (int)high, at[2] = sum, at[3] = (int)all;
    }
}

// Votes of a work-group.
KERNEL group_votes(int* out, const int* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int mine = in[i % n] & 7;
    int count = __syncthreads_count(mine > 3);
    int any = __syncthreads_or(mine == 7);
    int all = __syncthreads_and(mine >= 0);
    out[i] = count * 4 + (any != 0) * 2 + (all != 0);
}

// Masks that only the run tells.
KERNEL masked_sums(float* out, const float* in, const int* keys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned here = __activemask();
    unsigned alike = __match_any_sync(here, keys[i]);
    float sum = 0;
    for (int lane = 0; lane < 32; lane++) {
        if (!(here >> lane & 1)) continue;
        float other = __shfl_sync(here, in[i], lane);
        if (alike >> lane & 1) sum += other;
    }
    __syncwarp(here);
    out[i] = sum;
}

KERNEL tiled_sums(float* out, const float* in) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = in[i];
    for (int step = 4; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
    if (tile.thread_rank() == 0) out[i / 8] = sum;
}

// Dot products of bytes and halves of words.
KERNEL quantized_product(int* out, const int* matrix, const int* vector, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = 0; k < columns; k++) sum = __dp4a(matrix[row * columns + k], vector[k], sum);
    out[row] = sum;
}

KERNEL halves_product(int* out, const int* a, const int* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = 0; k < n; k++) sum = __dp2a_lo(a[i], b[k], __dp2a_hi(a[i], b[k], sum));
    out[i] = sum;
}

KERNEL packed_extremes(unsigned* out, const unsigned* a, const unsigned* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __vmaxs2(a[i], b[i]) ^ __vminu2(a[i], b[i]) ^ __vadd2(a[i], b[i]);
}

// Atomic operations on halves, that wrap at a bound, for the whole system.
KERNEL half_sums(__half2* sums, const __half2* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[i % 4], in[i % n]);
}

KERNEL tickets(unsigned* counter, unsigned* taken, unsigned most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    taken[i] = atomicInc(counter, most) < most;
}

KERNEL system_sums(unsigned long long* sum, const unsigned* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd_system(sum, (unsigned long long)in[i]);
    __threadfence_system();
}

// A structure by value whose places only the run tells.
struct Coefficients { float of[16]; };
KERNEL by_value(float* out, const float* in, Coefficients given, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += in[i * n + k] * given.of[(i + k) % 16];
    out[i] = sum;
}

// What the driver does: printing, assertions, memory, clocks.
KERNEL printed(const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 1.9f) printf("%d: %.3f of %s\n", i, in[i], "two");
}

KERNEL asserted(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        assert(in[i * n + k] >= 0);
        sum += in[i * n + k];
    }
    out[i] = sum;
}

KERNEL timed(long long* ticks, const float* in, float* out, int n) {
    long long start = clock64();
    float sum = 0;
    for (int k = 0; k < n; k++) sum += in[(blockIdx.x * blockDim.x + threadIdx.x) * n + k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    ticks[blockIdx.x * blockDim.x + threadIdx.x] = clock64() - start > 0;
}

KERNEL backing_off(unsigned* lock, float* sum, const float* in) {
    if (threadIdx.x == 0) {
        unsigned wait = 8;
        while (atomicCAS(lock, 0u, 1u) != 0u) {
            __nanosleep(wait);
            wait = min(wait * 2, 256u);
        }
        __threadfence();
        *sum += in[blockIdx.x];
        __threadfence();
        atomicExch(lock, 0u);
    }
}
