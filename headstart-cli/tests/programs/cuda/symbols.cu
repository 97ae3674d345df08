// A codebook in a variable of the module and weights in constant memory: sums of the entries that codes name.
#include "check.h"
#include <chrono>

constexpr int ENTRIES = 1 << 22, WEIGHTS = 64;

__device__ float codebook[ENTRIES];
__device__ unsigned rounds_done;
__constant__ float weights[WEIGHTS];

__global__ void decode_codes(const int* codes, float* sums, int count, int steps) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item == 0) rounds_done += 1;
    if (item >= count) return;
    float sum = 0;
    for (int step = 0; step < steps; ++step) sum += codebook[codes[step * count + item]] * weights[step % WEIGHTS];
    sums[item] = sum;
}

int main(int argc, char** argv) {
    int count = argc > 1 ? std::atoi(argv[1]) : 1024, steps = argc > 2 ? std::atoi(argv[2]) : 32;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 6, entries = argc > 4 ? std::atoi(argv[4]) : 4096;
    unsigned state = 1;
    std::vector<int> codes(size_t(count) * steps);
    for (auto& code : codes) code = int((next(state) ^ next(state) << 12) % entries);
    std::vector<float> book(entries), own(WEIGHTS);
    for (auto& entry : book) entry = float(next(state) % 1000) / 64;
    CHECK(cudaMemcpyToSymbol(codebook, book.data(), entries * sizeof(float)));
    int* on_codes = to_device(codes);
    float* on_sums = to_device(std::vector<float>(count));
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) {
        for (auto& weight : own) weight = float(round + 1) / 16;
        CHECK(cudaMemcpyToSymbol(weights, own.data(), sizeof weights));
        decode_codes<<<(count + 127) / 128, 128>>>(on_codes, on_sums, count, steps);
    }
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d rounds in %.2f ms\n", rounds, took.count());
    unsigned done;
    CHECK(cudaMemcpyFromSymbol(&done, rounds_done, sizeof done));
    std::printf("%u rounds\n", done);
    print_sum("sums", on_sums, count);
}
