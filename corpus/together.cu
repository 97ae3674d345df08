// Kernels in which work-items work together: atomics, exchanges inside a sub-group, shared memory.

extern "C" __global__ void histogram(const unsigned char *__restrict__ data, unsigned *bins, int n)
{
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

extern "C" __global__ void warp_sum(const int *__restrict__ in, int *out, int n)
{
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

extern "C" __global__ void warp_scan(const int *__restrict__ in, int *out)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    int value = in[id];
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(0xffffffffu, value, d);
        if (lane >= d) value += other;
    }
    // The sum of each half, in the upper half of 16.
    int half = __shfl_sync(0xffffffffu, value, 7, 16);
    out[id] = value + (__any_sync(0xffffffffu, half > 100) ? 1 << 20 : 0);
}

extern "C" __global__ void transpose(const float *__restrict__ in, float *__restrict__ out, int n)
{
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void dynamic_reverse(const int *__restrict__ in, int *out)
{
    extern __shared__ int buffer[];
    int id = threadIdx.x;
    buffer[id] = in[id];
    __syncthreads();
    out[id] = buffer[blockDim.x - 1 - id];
}
