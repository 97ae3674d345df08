// Two streams that work on halves, and one that waits for both.
#include "check.h"

__global__ void fill(int* data, int count, int seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = (i * 7 + seed) % 101;
}

__global__ void add(const int* one, const int* other, int* sum, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = one[i] + other[i];
}

int main() {
    const int count = 3000;
    int *one, *other, *sum;
    CHECK(cudaMalloc(&one, count * sizeof(int)));
    CHECK(cudaMalloc(&other, count * sizeof(int)));
    CHECK(cudaMalloc(&sum, count * sizeof(int)));
    cudaStream_t a, b;
    cudaEvent_t done;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreate(&b));
    CHECK(cudaEventCreate(&done));
    for (int round = 0; round < 3; ++round) {
        fill<<<(count + 255) / 256, 256, 0, a>>>(one, count, round);
        fill<<<(count + 255) / 256, 256, 0, b>>>(other, count, round + 50);
        CHECK(cudaEventRecord(done, b));
        CHECK(cudaStreamWaitEvent(a, done, 0));
        add<<<(count + 255) / 256, 256, 0, a>>>(one, other, sum, count);
        CHECK(cudaStreamSynchronize(a));
        print_sum("streams", sum, count);
    }
}
