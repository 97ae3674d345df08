// Sums of rows of a table, a bag of rows for each request: a block for each bag, a thread for each column.
#include "check.h"
#include <chrono>

__global__ void bag(const int* indices, const float* table, float* out, int items, int columns) {
    float sum = 0;
    for (int item = 0; item < items; ++item)
        sum += table[size_t(indices[blockIdx.x * items + item]) * columns + threadIdx.x];
    out[blockIdx.x * columns + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
    int bags = argc > 1 ? std::atoi(argv[1]) : 16, items = argc > 2 ? std::atoi(argv[2]) : 32;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 6, rows = argc > 4 ? std::atoi(argv[4]) : 1 << 10, columns = 128;
    std::vector<int> indices(size_t(bags) * items);
    std::vector<float> table(size_t(rows) * columns), out(size_t(bags) * columns);
    unsigned state = 1;
    for (auto& index : indices) index = (next(state) ^ next(state) << 12) % rows;
    for (auto& value : table) value = float(next(state) % 1000) / 64;
    int* on_indices = to_device(indices);
    float *on_table = to_device(table), *on_out = to_device(out);
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) bag<<<bags, columns>>>(on_indices, on_table, on_out, items, columns);
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d rounds in %.2f ms\n", rounds, took.count());
    print_sum("out", on_out, out.size());
}
