// A sparse matrix times a vector, again and again, as an iterative solver does: a thread for each row.
#include "check.h"
#include <chrono>

__global__ void spmv(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int at = starts[row]; at < starts[row + 1]; ++at) sum += values[at] * x[columns[at]];
    y[row] = sum;
}

int main(int argc, char** argv) {
    int rows = argc > 1 ? std::atoi(argv[1]) : 1024, each = argc > 2 ? std::atoi(argv[2]) : 32;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 6, width = argc > 4 ? std::atoi(argv[4]) : 1 << 14;
    std::vector<int> starts(rows + 1), columns;
    unsigned state = 1;
    for (int row = 0; row < rows; ++row) {
        int own = each / 2 + next(state) % (each + 1);
        for (int at = 0; at < own; ++at) columns.push_back((next(state) ^ next(state) << 12) % width);
        starts[row + 1] = int(columns.size());
    }
    std::vector<float> values(columns.size()), x(width), y(rows);
    for (auto& value : values) value = float(next(state) % 1000) / 64;
    for (auto& value : x) value = float(next(state) % 1000) / 64;
    int *on_starts = to_device(starts), *on_columns = to_device(columns);
    float *on_values = to_device(values), *on_x = to_device(x), *on_y = to_device(y);
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round)
        spmv<<<(rows + 127) / 128, 128>>>(on_starts, on_columns, on_values, on_x, on_y, rows);
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d rounds in %.2f ms\n", rounds, took.count());
    print_sum("y", on_y, rows);
}
