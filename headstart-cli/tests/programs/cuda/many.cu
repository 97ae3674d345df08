// A small kernel that is launched 10,000 times.
#include "check.h"

__global__ void advance(int* data, int count, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = (data[i] * 5 + step) & 0xffff;
}

int main(int argc, char** argv) {
    int launches = argc > 1 ? std::atoi(argv[1]) : 10000;
    const int count = 64;
    std::vector<int> host(count);
    for (int i = 0; i < count; ++i) host[i] = i;
    int* data = to_device(host);
    for (int step = 0; step < launches; ++step) advance<<<1, 64>>>(data, count, step);
    CHECK(cudaDeviceSynchronize());
    print_sum("many", data, count);
}
