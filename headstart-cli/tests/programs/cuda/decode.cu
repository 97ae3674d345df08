// Steps of decoding in a language model: attention over a cache of keys and values that lies in pages.
#include "check.h"
#include <chrono>
#include <cuda_fp16.h>

__global__ void attention(const float4* queries, const unsigned* pages, const unsigned* lengths, const uint2* keys,
                          const uint2* values, float4* result, unsigned sequences, unsigned longest, unsigned heads) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    unsigned own = i / 32, sequence = own / heads, head = own % heads, lane = threadIdx.x % 32;
    if (sequence >= sequences) return;
    auto halves = [](uint2 bits) {
        float2 low = __half22float2(*(const __half2*)&bits.x), high = __half22float2(*(const __half2*)&bits.y);
        return make_float4(low.x, low.y, high.x, high.y);
    };
    float4 q = queries[i], sum = make_float4(0, 0, 0, 0);
    float largest = -1e30f, weights = 0;
    for (unsigned token = 0; token < lengths[sequence]; token++) {
        unsigned page = pages[sequence * (size_t)longest + token / 16];
        size_t at = (((size_t)page * heads + head) * 16 + token % 16) * 32 + lane;
        float4 k = halves(keys[at]);
        float score = q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w;
        for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(~0u, score, step);
        score *= 0.08838835f;
        float larger = fmaxf(largest, score), shrink = expf(largest - larger), weight = expf(score - larger);
        float4 v = halves(values[at]);
        sum.x = sum.x * shrink + weight * v.x;
        sum.y = sum.y * shrink + weight * v.y;
        sum.z = sum.z * shrink + weight * v.z;
        sum.w = sum.w * shrink + weight * v.w;
        weights = weights * shrink + weight;
        largest = larger;
    }
    float scale = weights > 0 ? 1 / weights : 0;
    result[i] = make_float4(sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale);
}

int main(int argc, char** argv) {
    unsigned sequences = argc > 1 ? std::atoi(argv[1]) : 4, tokens = argc > 2 ? std::atoi(argv[2]) : 64;
    int steps = argc > 3 ? std::atoi(argv[3]) : 4;
    const unsigned heads = 8, longest = (tokens + 15) / 16, pool = sequences * longest;
    unsigned state = 9;
    std::vector<unsigned> pages(sequences * longest), lengths(sequences, tokens);
    for (unsigned i = 0; i < pages.size(); ++i) pages[i] = i;
    for (size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[next(state) % i]);
    std::vector<__half> cache(size_t(pool) * heads * 16 * 128);
    for (auto& number : cache) number = __float2half(float(next(state) % 256) / 128 - 1);
    std::vector<float4> queries(sequences * heads * 32), result(queries.size());
    auto* on_pages = to_device(pages);
    auto* on_lengths = to_device(lengths);
    auto *keys = to_device(cache), *values = to_device(cache);
    float4 *on_queries = to_device(queries), *on_result = to_device(result);
    auto start = std::chrono::steady_clock::now();
    double sum = 0;
    for (int step = 0; step < steps; ++step) {
        for (auto& query : queries) query = make_float4(float(next(state) % 64) / 64, float(step % 3), 0.5f, -0.25f);
        CHECK(cudaMemcpy(on_queries, queries.data(), queries.size() * sizeof(float4), cudaMemcpyHostToDevice));
        attention<<<(sequences * heads * 32 + 127) / 128, 128>>>(on_queries, on_pages, on_lengths, (const uint2*)keys,
                                                                (const uint2*)values, on_result, sequences, longest, heads);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(result.data(), on_result, result.size() * sizeof(float4), cudaMemcpyDeviceToHost));
        for (const auto& out : result) sum += out.x + 2 * out.y + 3 * out.z + 4 * out.w;
    }
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%d steps in %.1f ms\n", steps, took.count());
    std::printf("decode %.6f\n", sum);
}
