__device__ float table[4096];
__device__ int calls;
__constant__ float weights[16];

extern "C" __global__ void smooth(const int* indices, float* out, int count, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) calls += 1;
    if (i >= count) return;
    float sum = 0.0f;
    for (int step = 0; step < steps; ++step) {
        sum += table[indices[step * count + i]] * weights[step & 15];
        out[i] = sum;
    }
}
