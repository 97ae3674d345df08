// Two kernels of one name in two modules: twins.cu and twins_other.cu.
#include "check.h"

void other(int* data, int count);

static __global__ void twin(int* data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * 2 + 1;
}

int main() {
    const int count = 1000;
    std::vector<int> host(count);
    for (int i = 0; i < count; ++i) host[i] = i % 31;
    int* data = to_device(host);
    for (int i = 0; i < 3; ++i) {
        twin<<<(count + 127) / 128, 128>>>(data, count);
        other(data, count);
    }
    CHECK(cudaDeviceSynchronize());
    print_sum("twins", data, count);
}
