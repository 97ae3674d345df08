// Memory from a pool, in the order of a stream.
#include "check.h"

__global__ void square(const int* from, int* to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[i] * from[i];
}

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    for (int round = 1; round <= 4; ++round) {
        int count = 500 * round;
        std::vector<int> host(count);
        for (int i = 0; i < count; ++i) host[i] = i % 50 + round;
        int *from, *to;
        CHECK(cudaMallocAsync(&from, count * sizeof(int), stream));
        CHECK(cudaMallocAsync(&to, count * sizeof(int), stream));
        CHECK(cudaMemcpyAsync(from, host.data(), count * sizeof(int), cudaMemcpyHostToDevice, stream));
        square<<<(count + 255) / 256, 256, 0, stream>>>(from, to, count);
        CHECK(cudaStreamSynchronize(stream));
        print_sum("pool", to, count);
        CHECK(cudaFreeAsync(from, stream));
        CHECK(cudaFreeAsync(to, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
}
