// One kernel for several types and sizes, with shared memory.
#include "check.h"

template <typename T, int N>
__global__ void reduce(const T* in, T* out, int count) {
    __shared__ T sums[N];
    T sum = 0;
    for (int i = blockIdx.x * N + threadIdx.x; i < count; i += N * gridDim.x) sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = N / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

template <typename T, int N>
void run(const char* name) {
    const int count = 5000, blocks = 7;
    std::vector<T> host(count);
    for (int i = 0; i < count; ++i) host[i] = T(i % 23);
    T *in = to_device(host), *out;
    CHECK(cudaMalloc(&out, blocks * sizeof(T)));
    reduce<T, N><<<blocks, N>>>(in, out, count);
    CHECK(cudaDeviceSynchronize());
    print_sum(name, out, blocks);
}

int main() {
    run<int, 128>("int");
    run<float, 64>("float");
    run<double, 256>("double");
}
