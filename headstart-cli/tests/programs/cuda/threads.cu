// Several threads of the host, each with a stream and memory of its own.
#include "check.h"
#include <thread>

__global__ void multiply(const int* from, int* to, int count, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[i] * by;
}

int main() {
    const int count = 800, threads = 4;
    std::vector<int*> results(threads);
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&results, thread] {
            std::vector<int> host(count);
            for (int i = 0; i < count; ++i) host[i] = i % 29;
            cudaStream_t stream;
            CHECK(cudaStreamCreate(&stream));
            int *from = to_device(host), *to = to_device(host);
            for (int i = 0; i < 20; ++i) multiply<<<(count + 127) / 128, 128, 0, stream>>>(from, to, count, thread + i);
            CHECK(cudaStreamSynchronize(stream));
            results[thread] = to;
        });
    }
    for (auto& thread : running) thread.join();
    for (int thread = 0; thread < threads; ++thread) print_sum("threads", results[thread], count);
}
