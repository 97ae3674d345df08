// A cooperative launch: all work-groups meet between two passes.
#include "check.h"
#include <cooperative_groups.h>

__global__ void both(const int* in, int* between, int* out, int count) {
    auto grid = cooperative_groups::this_grid();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) between[i] = in[i] * 3;
    grid.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        out[i] = between[count - 1 - i] + 1;
}

int main() {
    int count = 1200;
    std::vector<int> host(count);
    for (int i = 0; i < count; ++i) host[i] = i % 19;
    int *in = to_device(host), *between = to_device(host), *out = to_device(host);
    void* parameters[] = {&in, &between, &out, &count};
    CHECK(cudaLaunchCooperativeKernel((const void*)both, dim3(4), dim3(128), parameters, 0, 0));
    CHECK(cudaDeviceSynchronize());
    print_sum("cooperative", out, count);
}
