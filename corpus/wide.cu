// What the other files do not have: structures by value, data of the module, halves, asynchronous copies, parts of a warp.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A sorted tree of nodes with eight keys each: the way down is a chain of loads.
extern "C" __global__ void b_tree(const unsigned *__restrict__ keys, const int *__restrict__ children,
                                  const unsigned *__restrict__ wanted, int *__restrict__ leaf, int depth, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    unsigned key = wanted[id];
    int node = 0;
    for (int level = 0; level < depth; ++level) {
        int child = 0;
#pragma unroll
        for (int k = 0; k < 8; ++k) child += keys[node * 8 + k] <= key;
        node = children[node * 9 + child];
    }
    leaf[id] = node;
}

// Monte Carlo neutron transport: for each nuclide of a material, a search in its grid and five interpolations.
struct Grid {
    const float *energy;
    const float *sections;
    const int *nuclides;
    int points;
    int count;
    float scale;
};

extern "C" __global__ void cross_section(Grid grid, const float *__restrict__ energies, float *__restrict__ out, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    float energy = energies[id] * grid.scale;
    float total[5] = {0, 0, 0, 0, 0};
    for (int i = 0; i < grid.count; ++i) {
        int nuclide = grid.nuclides[i];
        const float *own = grid.energy + nuclide * grid.points;
        int low = 0, high = grid.points - 1;
        while (high - low > 1) {
            int middle = (low + high) / 2;
            if (own[middle] > energy) high = middle;
            else low = middle;
        }
        float share = (own[high] - energy) / (own[high] - own[low]);
        const float *at = grid.sections + (nuclide * grid.points + low) * 5;
#pragma unroll
        for (int k = 0; k < 5; ++k) total[k] += at[k + 5] - share * (at[k + 5] - at[k]);
    }
    for (int k = 0; k < 5; ++k) out[id * 5 + k] = total[k];
}

// A scan of a block of 256 in shared memory.
extern "C" __global__ void block_scan(const int *__restrict__ in, int *__restrict__ out, int n)
{
    __shared__ int sums[2][256];
    int id = blockIdx.x * 256 + threadIdx.x, side = 0;
    sums[0][threadIdx.x] = id < n ? in[id] : 0;
    __syncthreads();
    for (int distance = 1; distance < 256; distance *= 2) {
        int value = sums[side][threadIdx.x];
        if (threadIdx.x >= distance) value += sums[side][threadIdx.x - distance];
        side ^= 1;
        sums[side][threadIdx.x] = value;
        __syncthreads();
    }
    if (id < n) out[id] = sums[side][threadIdx.x];
}

// A table that the module holds, and one in constant memory.
__constant__ float weights[8] = {0.5f, 0.25f, 0.125f, 1.0f, 2.0f, -1.0f, 3.0f, 0.75f};
__device__ unsigned crc[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                               0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                               0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

extern "C" __global__ void checksum(const unsigned char *__restrict__ data, unsigned *__restrict__ out, int length)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0xffffffffu;
    for (int i = 0; i < length; ++i) {
        sum ^= data[id * length + i];
        sum = crc[sum & 15] ^ (sum >> 4);
        sum = crc[sum & 15] ^ (sum >> 4);
    }
    out[id] = ~sum;
}

extern "C" __global__ void weighted(const float *__restrict__ in, float *__restrict__ out, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id + 8 > n) return;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 8; ++k) sum += weights[k] * in[id + k];
    out[id] = sum;
}

// Halves, two at a time, and bfloat16.
extern "C" __global__ void dot_half(const __half2 *__restrict__ a, const __half2 *__restrict__ b, float *out, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x, total = gridDim.x * blockDim.x;
    float sum = 0;
    for (int i = id; i < n; i += total) {
        float2 product = __half22float2(__hfma2(a[i], b[i], __float2half2_rn(0.5f)));
        sum += product.x + product.y;
    }
    out[id] = sum;
}

extern "C" __global__ void scale_bfloat(const __nv_bfloat16 *__restrict__ in, __nv_bfloat16 *__restrict__ out, float by,
                                        int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < n) out[id] = __hmul(in[id], __float2bfloat16(by));
}

// A tile that is fetched while the one before is summed, as a program that manages its own copies does it.
extern "C" __global__ void staged(const float *__restrict__ in, float *__restrict__ out, int tiles)
{
    __shared__ alignas(16) float stage[2][512];
    const float *own = in + (long long)blockIdx.x * tiles * 512;
    auto fetch = [&](int tile) {
        unsigned to = (unsigned)__cvta_generic_to_shared(&stage[tile & 1][threadIdx.x * 4]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(own + tile * 512 + threadIdx.x * 4));
        asm volatile("cp.async.commit_group;");
    };
    fetch(0);
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) {
            fetch(tile + 1);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        for (int k = 0; k < 4; ++k) sum += stage[tile & 1][(threadIdx.x + k * 128) & 511];
        __syncthreads();
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}

// Sums of half warps: each half names itself in its mask.
extern "C" __global__ void half_warps(const int *__restrict__ in, int *__restrict__ out)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask = threadIdx.x & 16 ? 0xffff0000u : 0x0000ffffu;
    int sum = in[id];
    for (int distance = 8; distance > 0; distance /= 2) sum += __shfl_xor_sync(mask, sum, distance, 16);
    out[id] = sum + __popc(__ballot_sync(mask, in[id] & 1));
}

// A structure that a function takes and gives back.
struct Complex { float re, im; };
__device__ __noinline__ Complex times(Complex a, Complex b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

extern "C" __global__ void julia(Complex c, int *__restrict__ steps, int width, int most)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    Complex z = {x * (3.0f / width) - 1.5f, y * (3.0f / width) - 1.5f};
    int step = 0;
    while (step < most && z.re * z.re + z.im * z.im < 4.0f) {
        Complex square = times(z, z);
        z = {square.re + c.re, square.im + c.im};
        ++step;
    }
    steps[y * width + x] = step;
}
