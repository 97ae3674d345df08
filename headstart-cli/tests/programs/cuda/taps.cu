// A filter whose taps are in a structure that is passed by value, and chosen by an index that only the run tells: read where the
// launch passes it, or in a copy that each work-item has.
#include "check.h"

struct Filter {
    int count;
    int taps[24];
    const int* in;
};

__device__ int filter_of(const Filter& filter, const int* first, int item) {
    int sum = 0;
    for (int tap = 0; tap < filter.count; ++tap)
        sum += filter.taps[(first[item] + tap) % filter.count] * filter.in[first[item] * 3 + tap];
    return sum;
}

__global__ void passed(const __grid_constant__ Filter filter, const int* first, int* out, int count) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= count) return;
    out[item] = filter_of(filter, first, item);
}

__global__ void copied(Filter filter, const int* first, int* out, int count) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item < count) out[item] += filter_of(filter, first, item);
}

int main() {
    const int count = 900;
    unsigned state = 11;
    Filter filter{24};
    for (int& tap : filter.taps) tap = int(next(state) % 9) - 4;
    std::vector<int> in(4096), first(count);
    for (int& value : in) value = int(next(state) % 100);
    for (int& value : first) value = int(next(state) % 1300);
    filter.in = to_device(in);
    int *starts = to_device(first), *out = to_device(first);
    for (int i = 0; i < 3; ++i) {
        passed<<<(count + 63) / 64, 64>>>(filter, starts, out, count);
        copied<<<(count + 63) / 64, 64>>>(filter, starts, out, count);
    }
    CHECK(cudaDeviceSynchronize());
    print_sum("taps", out, count);
}
