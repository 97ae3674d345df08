// Sums of values that a table of indices names.
#include "check.h"

__global__ void gather(const int* indices, const float* values, float* out, int count, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0;
    for (int step = 0; step < steps; ++step) sum += values[indices[step * count + i]];
    out[i] = sum;
}

int main(int argc, char** argv) {
    int count = argc > 1 ? std::atoi(argv[1]) : 1024, steps = argc > 2 ? std::atoi(argv[2]) : 32;
    int launches = argc > 3 ? std::atoi(argv[3]) : 4, size = argc > 4 ? std::atoi(argv[4]) : 1 << 14;
    std::vector<int> indices(size_t(count) * steps);
    std::vector<float> values(size), out(count);
    unsigned state = 1;
    for (auto& index : indices) index = next(state) % size;
    for (auto& value : values) value = float(next(state) % 1000) / 64;
    int* on_indices = to_device(indices);
    float *on_values = to_device(values), *on_out = to_device(out);
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(start, 0));
    for (int launch = 0; launch < launches; ++launch) {
        gather<<<(count + 127) / 128, 128>>>(on_indices, on_values, on_out, count, steps);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaEventRecord(end, 0));
    CHECK(cudaEventSynchronize(end));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    std::fprintf(stderr, "%.6f ms a launch\n", milliseconds / launches);
    print_sum("gather", on_out, count);
}
