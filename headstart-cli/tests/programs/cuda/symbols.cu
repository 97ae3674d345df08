// A codebook in a variable of the module and weights in constant memory: weighted sums of the rows that codes name, a warp for each.
#include "check.h"
#include <chrono>

constexpr int WIDTH = 32, ROWS = 1 << 17, WEIGHTS = 64;

__device__ float codebook[ROWS * WIDTH];
__device__ unsigned rounds_done;
__constant__ float weights[WEIGHTS];

__global__ void decode_codes(const int* codes, float* sums, int count, int steps) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, item = at / WIDTH, lane = at % WIDTH;
    if (at == 0) rounds_done += 1;
    if (item >= count) return;
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
        sum += codebook[codes[item * steps + step] * WIDTH + lane] * weights[step % WEIGHTS];
    }
    sums[at] = sum;
}

int main(int argc, char** argv) {
    int count = argc > 1 ? std::atoi(argv[1]) : 32, steps = argc > 2 ? std::atoi(argv[2]) : 64;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 6, rows = argc > 4 ? std::atoi(argv[4]) : 512;
    unsigned state = 1;
    std::vector<int> codes(size_t(count) * steps);
    for (auto& code : codes) code = int((next(state) ^ next(state) << 12) % rows);
    std::vector<float> book(size_t(rows) * WIDTH), own(WEIGHTS);
    for (auto& entry : book) entry = float(next(state) % 1000) / 64;
    CHECK(cudaMemcpyToSymbol(codebook, book.data(), book.size() * sizeof(float)));
    int* on_codes = to_device(codes);
    float* on_sums = to_device(std::vector<float>(size_t(count) * WIDTH));
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) {
        if (round % 100 == 0) {
            for (auto& weight : own) weight = float(round / 100 + 1) / 16;
            CHECK(cudaMemcpyToSymbol(weights, own.data(), sizeof weights));
        }
        decode_codes<<<(count * WIDTH + 127) / 128, 128>>>(on_codes, on_sums, count, steps);
    }
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d rounds in %.2f ms\n", rounds, took.count());
    unsigned done;
    CHECK(cudaMemcpyFromSymbol(&done, rounds_done, sizeof done));
    std::printf("%u rounds\n", done);
    print_sum("sums", on_sums, size_t(count) * WIDTH);
}
