// Warps in lockstep, as before Volta: no barrier within a warp.
// target/tools/bin/nvcc -arch=sm_90 -ptx headstart/tests/ptx_semantics/lockstep.cu -o headstart/tests/ptx_semantics/lockstep.ptx

// The compiler keeps no value in a register, and the warp does nothing.
#define STEP asm volatile("" ::: "memory")

// The tail of a reduction.
extern "C" __global__ void tail(const float* in, float* out)
{
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i] + in[i + 128];
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];
        STEP;
        s[t] += s[t + 16];
        STEP;
        s[t] += s[t + 8];
        STEP;
        s[t] += s[t + 4];
        STEP;
        s[t] += s[t + 2];
        STEP;
        s[t] += s[t + 1];
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

// The same through a volatile pointer.
extern "C" __global__ void volatile_tail(const float* in, float* out)
{
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = in[i] + in[i + 128];
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        volatile float* v = s;
        v[t] += v[t + 32];
        v[t] += v[t + 16];
        v[t] += v[t + 8];
        v[t] += v[t + 4];
        v[t] += v[t + 2];
        v[t] += v[t + 1];
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

// Some lanes write, and all of the warp read it behind the branch: the branch ends together.
extern "C" __global__ void passed_on(const float* in, float* out)
{
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = 0.f;
    for (int round = 0; round < 4; ++round) {
        if ((t & 31) < 16) s[t ^ 1] = in[i] * (round + 1);
        STEP;
        out[i] += s[t & ~16];
        STEP;
    }
}
