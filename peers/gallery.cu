// CUDA beside Headstart's kernels. "Plain CUDA" is what one writes: restrict, vectors where they fit, no prefetching by
// hand; each kernel is tried with work-groups of several sizes, and the fastest is told. Beside it stand Thrust's functions
// for moves and searches, and for a search of a graph the advance that graph libraries use.
//
//     nvcc -O3 -arch sm_90 -o gallery gallery.cu

#include "workload.cuh"

#include <cub/device/device_scan.cuh>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/scatter.h>

// Four at once, as two accesses of 16 bytes.
struct __align__(16) Doubles {
    double x, y, z, w;
};

// ---- kernels

__global__ void index_select(const float* __restrict__ source, const u32* __restrict__ indices,
                             float* __restrict__ result, size_t count) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) result[i] = source[indices[i]];
}

__global__ void scatter(const float* __restrict__ source, const u32* __restrict__ indices,
                        float* __restrict__ result, size_t count) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count) result[indices[i]] = source[i];
}

__global__ void hash_probe(const u32* __restrict__ keys, const uint2* __restrict__ table, u32* __restrict__ values,
                           size_t count, u32 bits) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    u32 key = keys[i], mask = (1u << bits) - 1, slot = (key * 2654435761u) >> (32 - bits);
    uint2 held = table[slot];
    while (held.x != key && held.x != 0xffffffffu) {
        slot = (slot + 1) & mask;
        held = table[slot];
    }
    values[i] = held.y;
}

__global__ void binary_search(const u32* __restrict__ sorted, const u32* __restrict__ queries,
                              u32* __restrict__ smaller, size_t count, u32 levels) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    u32 query = queries[i], below = 0;
    for (u32 half = 1u << (levels - 1); half > 0; half /= 2)
        if (sorted[below + half - 1] < query) below += half;
    smaller[i] = below;
}

__global__ void btree(const uint4* __restrict__ nodes, const u32* __restrict__ queries, u32* __restrict__ smaller,
                      size_t count, u32 levels) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    u32 query = queries[i], node = 0, rank = 0;
    size_t level = 0, length = 4;
    for (u32 l = 0; l < levels; l++) {
        u32 found = 0;
#pragma unroll
        for (int part = 0; part < 4; part++) {
            uint4 keys = nodes[level + node * 4 + part];
            found += (keys.x < query) + (keys.y < query) + (keys.z < query) + (keys.w < query);
        }
        rank = node * 16 + found;
        node = node * 16 + min(found, 15u);
        level += length;
        length *= 16;
    }
    smaller[i] = rank;
}

// A warp takes a vertex.
__global__ void bfs(const u32* __restrict__ frontier, const u32* __restrict__ starts, const u32* __restrict__ columns,
                    const u32* __restrict__ visited, u32* next, size_t count) {
    size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / 32;
    if (i >= count) return;
    u32 vertex = frontier[i];
    for (u32 edge = starts[vertex] + threadIdx.x % 32; edge < starts[vertex + 1]; edge += 32) {
        u32 neighbour = columns[edge], bit = 1u << (neighbour % 32);
        if (!(visited[neighbour / 32] & bit)) atomicOr(&next[neighbour / 32], bit);
    }
}

// The edges of a frontier's vertices.
struct Degree {
    const u32* starts;
    __host__ __device__ u32 operator()(u32 vertex) const { return starts[vertex + 1] - starts[vertex]; }
};

// The first vertex of the frontier that has edges behind this one.
__device__ u32 owner(const u32* ends, u32 low, u32 high, u32 edge) {
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (ends[middle] > edge) high = middle;
        else low = middle + 1;
    }
    return low;
}

// Work-groups share out the edges, as many for each, whatever vertex has them: `ends` has how many edges the frontier's
// vertices have up to each of them. This is the advance of Merrill and others (PPoPP 2012), of Gunrock and cuGraph.
const u32 TILE = 2048;
__global__ void advance(const u32* __restrict__ frontier, const u32* __restrict__ starts,
                        const u32* __restrict__ columns, const u32* __restrict__ visited, u32* next,
                        const u32* __restrict__ ends, u32 count) {
    __shared__ u32 owners[2];
    u32 total = ends[count - 1];
    for (size_t first = blockIdx.x * (size_t)TILE; first < total; first += gridDim.x * (size_t)TILE) {
        u32 end = min((size_t)total, first + TILE);
        if (threadIdx.x < 2) owners[threadIdx.x] = owner(ends, 0, count - 1, threadIdx.x == 0 ? (u32)first : end - 1);
        __syncthreads();
        for (u32 at = first + threadIdx.x; at < end; at += blockDim.x) {
            u32 own = owner(ends, owners[0], owners[1], at);
            u32 neighbour = columns[starts[frontier[own]] + at - (own ? ends[own - 1] : 0)];
            u32 bit = 1u << (neighbour % 32);
            if (!(visited[neighbour / 32] & bit)) atomicOr(&next[neighbour / 32], bit);
        }
        __syncthreads();
    }
}

// So many lanes take a vertex.
template <int LANES>
__global__ void pagerank(const u32* __restrict__ starts, const u32* __restrict__ columns,
                         const float* __restrict__ given, float* __restrict__ ranks, u32 vertices) {
    u32 vertex = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    float sum = 0;
    if (vertex < vertices)
        for (u32 edge = starts[vertex] + lane; edge < starts[vertex + 1]; edge += LANES) sum += given[columns[edge]];
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (vertex < vertices && lane == 0) ranks[vertex] = 0.15f / vertices + 0.85f * sum;
}

__global__ void cross_section(const u32* __restrict__ materials, const u32* __restrict__ energies,
                              const float* __restrict__ shares, const u32* __restrict__ starts,
                              const u32* __restrict__ nuclides, const float* __restrict__ densities,
                              const u32* __restrict__ index, const float4* __restrict__ points,
                              float4* __restrict__ result, size_t count, u32 nuclide_count, u32 point_count) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    u32 material = materials[i];
    size_t row = energies[i] * (size_t)nuclide_count;
    float share = shares[i] - 1.0f;
    float4 sum = make_float4(0, 0, 0, 0);
    for (u32 j = starts[material]; j < starts[material + 1]; j++) {
        u32 nuclide = nuclides[j];
        float density = densities[j];
        size_t below = nuclide * (size_t)point_count + index[row + nuclide];
        float4 low = points[below], high = points[below + 1];
        sum.x += density * (low.x + share * (high.x - low.x));
        sum.y += density * (low.y + share * (high.y - low.y));
        sum.z += density * (low.z + share * (high.z - low.z));
        sum.w += density * (low.w + share * (high.w - low.w));
    }
    result[i] = sum;
}

__global__ void option_pricing(const Doubles* __restrict__ noise, const Doubles* __restrict__ volatilities,
                               double* __restrict__ payoffs, u32 steps, double strike) {
    size_t path = blockIdx.x * (size_t)blockDim.x + threadIdx.x, paths = gridDim.x * (size_t)blockDim.x;
    double price[8], total = 0;
    for (int a = 0; a < 8; a++) price[a] = 1;
    for (u32 step = 0; step < steps; step++) {
        Doubles one = noise[(step * paths + path) * 2], two = noise[(step * paths + path) * 2 + 1];
        Doubles v = volatilities[step];
        double own[8] = {one.x, one.y, one.z, one.w, two.x, two.y, two.z, two.w};
        double volatility[4] = {v.x, v.y, v.z, v.w};
        double common = 0.25 * (one.x + one.w + two.x + two.w);
#pragma unroll
        for (int a = 0; a < 8; a++) {
            double s = 0.02 * volatility[a / 2];
            price[a] *= exp(s * (0.8 * (own[a] - 0.5) + 0.6 * (common - 0.5)) - 0.5 * s * s);
            total += price[a];
        }
    }
    double average = total / (8.0 * steps);
    payoffs[path] = average > strike ? average - strike : 0;
}

// A warp takes a head: four of 128 values a lane, pages of 16 tokens.
__global__ void attention(const float4* __restrict__ queries, const u32* __restrict__ pages,
                          const u32* __restrict__ lengths, const uint2* __restrict__ keys,
                          const uint2* __restrict__ values, float4* __restrict__ result, u32 sequences, u32 longest,
                          u32 heads) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    u32 own = i / 32, sequence = own / heads, head = own % heads, lane = threadIdx.x % 32;
    if (sequence >= sequences) return;
    auto halves = [](uint2 bits) {
        float2 low = __half22float2(*(const __half2*)&bits.x), high = __half22float2(*(const __half2*)&bits.y);
        return make_float4(low.x, low.y, high.x, high.y);
    };
    float4 q = queries[i], sum = make_float4(0, 0, 0, 0);
    float largest = -1e30f, weights = 0;
    for (u32 token = 0; token < lengths[sequence]; token++) {
        u32 page = pages[sequence * (size_t)longest + token / 16];
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

// ---- what is launched

const std::vector<int> SIZES = {64, 128, 256, 512};

static std::vector<Peer> moves(Workload& w) {
    auto *source = w["source"].as<float>(), *result = w["result"].as<float>();
    auto* indices = w["indices"].as<u32>();
    size_t count = w["indices"].length;
    auto here = thrust::cuda::par_nosync;
    if (w.kernel == "index-select")
        return {sized("plain CUDA", count, SIZES, [=](int grid, int group) {
                    index_select<<<grid, group>>>(source, indices, result, count);
                }),
                {"Thrust gather", {{"", [=] { thrust::gather(here, indices, indices + count, source, result); }}}}};
    return {sized("plain CUDA", count, SIZES,
                  [=](int grid, int group) { scatter<<<grid, group>>>(source, indices, result, count); }),
            {"Thrust scatter", {{"", [=] { thrust::scatter(here, source, source + count, indices, result); }}}}};
}

static Peer hashed(Workload& w) {
    auto *keys = w["keys"].as<u32>(), *values = w["values"].as<u32>();
    auto* table = w["table"].as<uint2>();
    size_t count = w["keys"].length;
    u32 bits = w.scalars["bits"];
    return sized("plain CUDA", count, SIZES,
                 [=](int grid, int group) { hash_probe<<<grid, group>>>(keys, table, values, count, bits); });
}

static std::vector<Peer> searches(Workload& w) {
    auto *queries = w["queries"].as<u32>(), *smaller = w["smaller"].as<u32>();
    size_t count = w["queries"].length;
    u32 levels = std::stoul(w.settings["levels"]);
    bool is_tree = w.kernel == "btree";
    u32* sorted = w[is_tree ? "nodes" : "sorted"].as<u32>();
    // The kernel never asks for the last number of the list; a tree's leaves are a sorted list, behind the other nodes.
    size_t length = ((size_t)1 << levels) - 1;
    u32* list = sorted;
    if (is_tree) {
        length = std::stoull(w.settings["root"]) << (4 * (levels - 1));
        list = sorted + w["nodes"].length - length;
    }
    Peer plain = sized("plain CUDA", count, SIZES, [=](int grid, int group) {
        if (is_tree) btree<<<grid, group>>>((const uint4*)sorted, queries, smaller, count, levels);
        else binary_search<<<grid, group>>>(sorted, queries, smaller, count, levels);
    });
    auto bound = [=] {
        thrust::lower_bound(thrust::cuda::par_nosync, list, list + length, queries, queries + count, smaller);
    };
    return {plain, {is_tree ? "Thrust lower_bound in the leaves" : "Thrust lower_bound", {{"", bound}}}};
}

static std::vector<Peer> step(Workload& w) {
    auto *frontier = w["frontier"].as<u32>(), *starts = w["starts"].as<u32>(), *columns = w["columns"].as<u32>();
    auto *visited = w["visited"].as<u32>(), *next = w["next"].as<u32>();
    size_t count = w["frontier"].length, bytes = 0;
    auto degrees = thrust::make_transform_iterator(frontier, Degree{starts});
    Buffer ends = w.buffers["ends"] = allocate("i32", count);
    CHECK(cub::DeviceScan::InclusiveSum(nullptr, bytes, degrees, ends.as<u32>(), (u32)count));
    Buffer room = w.buffers["room of the scan"] = allocate("i32", bytes / 4 + 1);
    auto balanced = [=] {
        size_t given = bytes;
        CHECK(cub::DeviceScan::InclusiveSum(room.at, given, degrees, ends.as<u32>(), (u32)count));
        advance<<<1056, 256>>>(frontier, starts, columns, visited, next, ends.as<u32>(), (u32)count);
    };
    return {sized("plain CUDA", count * 32, SIZES, [=](int grid, int group) {
                bfs<<<grid, group>>>(frontier, starts, columns, visited, next, count);
            }),
            {"CUDA with CUB, edges shared out as in Gunrock", {{"", balanced}}}};
}

static Peer ranked(Workload& w) {
    auto *starts = w["starts"].as<u32>(), *columns = w["columns"].as<u32>();
    auto *given = w["given"].as<float>(), *ranks = w["ranks"].as<float>();
    u32 vertices = w["ranks"].length;
    return sized("plain CUDA", (size_t)vertices * 8, SIZES, [=](int grid, int group) {
        pagerank<8><<<grid, group>>>(starts, columns, given, ranks, vertices);
    });
}

static Peer looked_up(Workload& w) {
    auto *materials = w["materials"].as<u32>(), *energies = w["energies"].as<u32>(), *starts = w["starts"].as<u32>();
    auto *nuclides = w["nuclides"].as<u32>(), *index = w["index"].as<u32>();
    auto *shares = w["shares"].as<float>(), *densities = w["densities"].as<float>();
    auto *points = w["points"].as<float4>(), *result = w["result"].as<float4>();
    size_t count = w["materials"].length;
    u32 nuclide_count = w.scalars["nuclide_count"], point_count = w.scalars["point_count"];
    return sized("plain CUDA", count, {32, 64, 128, 256}, [=](int grid, int group) {
        cross_section<<<grid, group>>>(materials, energies, shares, starts, nuclides, densities, index, points, result,
                                       count, nuclide_count, point_count);
    });
}

static Peer priced(Workload& w) {
    auto *noise = w["noise"].as<Doubles>(), *volatilities = w["volatilities"].as<Doubles>();
    auto* payoffs = w["payoffs"].as<double>();
    u32 steps = w.scalars["steps"];
    uint64_t bits = w.scalars["strike"];
    double strike;
    memcpy(&strike, &bits, 8);
    return sized("plain CUDA", w["payoffs"].length, {32, 64, 128}, [=](int grid, int group) {
        option_pricing<<<grid, group>>>(noise, volatilities, payoffs, steps, strike);
    });
}

static Peer decoded(Workload& w) {
    auto *queries = w["queries"].as<float4>(), *result = w["result"].as<float4>();
    auto *pages = w["pages"].as<u32>(), *lengths = w["lengths"].as<u32>();
    auto *keys = w["keys"].as<uint2>(), *values = w["values"].as<uint2>();
    u32 sequences = w["lengths"].length, longest = w.scalars["longest"], heads = w.scalars["heads"];
    return sized("plain CUDA", (size_t)sequences * heads * 32, {32, 64, 128, 256}, [=](int grid, int group) {
        attention<<<grid, group>>>(queries, pages, lengths, keys, values, result, sequences, longest, heads);
    });
}

static const std::map<string, Peers> KERNELS = {
    {"index-select", moves},
    {"scatter", moves},
    {"scatter-shared", moves},
    {"hash-probe", [](Workload& w) { return std::vector<Peer>{hashed(w)}; }},
    {"binary-search", searches},
    {"btree", searches},
    {"bfs", step},
    {"pagerank", [](Workload& w) { return std::vector<Peer>{ranked(w)}; }},
    {"cross-section", [](Workload& w) { return std::vector<Peer>{looked_up(w)}; }},
    {"option-pricing", [](Workload& w) { return std::vector<Peer>{priced(w)}; }},
    {"attention", [](Workload& w) { return std::vector<Peer>{decoded(w)}; }},
};

int main() {
    return serve([](const string& kernel) { return KERNELS.count(kernel) > 0; },
                 [](Workload& w) { return KERNELS.at(w.kernel)(w); });
}
