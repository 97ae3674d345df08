// For each query: walks its list of postings and adds their scores, until there is enough.
#include "check.h"
#include <chrono>

__global__ void until(const int* postings, const float* scores, float* sums, int* lengths, int queries, int longest,
                      float enough) {
    int query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query >= queries) return;
    float sum = 0;
    int step = 0;
    while (step < longest) {
        sum += scores[postings[step * queries + query]];
        ++step;
        if (sum > enough) break;
    }
    sums[query] = sum;
    lengths[query] = step;
}

int main(int argc, char** argv) {
    int queries = argc > 1 ? std::atoi(argv[1]) : 1024, longest = argc > 2 ? std::atoi(argv[2]) : 64;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 6, documents = argc > 4 ? std::atoi(argv[4]) : 1 << 14;
    std::vector<int> postings(size_t(queries) * longest), lengths(queries);
    std::vector<float> scores(documents), sums(queries);
    unsigned state = 1;
    for (auto& posting : postings) posting = (next(state) ^ next(state) << 12) % documents;
    for (auto& score : scores) score = float(next(state) % 1000) / 64;
    int *on_postings = to_device(postings), *on_lengths = to_device(lengths);
    float *on_scores = to_device(scores), *on_sums = to_device(sums);
    auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round)
        until<<<(queries + 127) / 128, 128>>>(on_postings, on_scores, on_sums, on_lengths, queries, longest,
                                              7.5f * longest * (round + 4) / (rounds + 3));
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d rounds in %.2f ms\n", rounds, took.count());
    print_sum("sums", on_sums, queries);
    print_sum("lengths", on_lengths, queries);
}
