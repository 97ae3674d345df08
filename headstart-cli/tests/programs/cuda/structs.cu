// A sparse matrix in a structure that is passed by value, with the pointers in it.
#include "check.h"

struct Csr {
    int rows;
    const int* starts;
    const int* columns;
    const double* values;
};

struct Vectors {
    const double* in;
    double* out;
    double scale;
};

__global__ void spmv(Csr matrix, Vectors vectors) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= matrix.rows) return;
    double sum = 0;
    for (int i = matrix.starts[row]; i < matrix.starts[row + 1]; ++i) sum += matrix.values[i] * vectors.in[matrix.columns[i]];
    vectors.out[row] = sum * vectors.scale;
}

int main() {
    const int rows = 1500;
    unsigned state = 3;
    std::vector<int> starts{0}, columns;
    std::vector<double> values, in(rows), out(rows);
    for (int row = 0; row < rows; ++row) {
        for (unsigned i = next(state) % 20; i > 0; --i) {
            columns.push_back(next(state) % rows);
            values.push_back(double(next(state) % 100) / 8);
        }
        starts.push_back(int(columns.size()));
        in[row] = double(row % 11);
    }
    Csr matrix{rows, to_device(starts), to_device(columns), to_device(values)};
    Vectors vectors{to_device(in), to_device(out), 0.5};
    for (int i = 0; i < 3; ++i) spmv<<<(rows + 63) / 64, 64>>>(matrix, vectors);
    CHECK(cudaDeviceSynchronize());
    print_sum("structs", vectors.out, rows);
}
