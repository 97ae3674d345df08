// Plain CUDA beside Headstart's kernels, as one writes it: restrict, vectors where they fit, no prefetching by hand.
//
// Reads paths of workloads, one a line (lab/src/manifest.rs says how they are written), and answers each
// with a line of JSON: name, times in nanoseconds, the geometry. Each kernel is tried with work-groups of several
// sizes, and the fastest is told. The data and the state of the L2 cache are those of the workload: `flushed` reads a
// buffer of ten times the cache before each launch.
//
//     nvcc -O3 -arch sm_90 -o gallery gallery.cu

#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define CHECK(call)                                                                     \
    do {                                                                                \
        cudaError_t error = (call);                                                     \
        if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));  \
    } while (0)

using std::string;
typedef unsigned int u32;

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

// ---- data

__device__ uint64_t splitmix64(uint64_t index, uint64_t seed) {
    uint64_t z = (index + 1) * 0x9E3779B97F4A7C15ull + seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

enum Kind { CONSTANT, STEPS, BELOW, FRACTIONS };

template <typename T>
__global__ void fill(T* out, size_t length, Kind kind, uint64_t a, uint64_t b, double low) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < length; i += gridDim.x * (size_t)blockDim.x) {
        if (kind == FRACTIONS) out[i] = (T)(low + (double)((i * 2654435761ull >> 8) & 0xffff) / 65536.0);
        else out[i] = (T)(long long)(kind == CONSTANT ? a : kind == STEPS ? a + i * b : splitmix64(i, b) % a);
    }
}

struct Buffer {
    void* at = nullptr;
    size_t length = 0, bytes = 0;
    template <typename T> T* as() const { return (T*)at; }
};

struct Workload {
    string kernel, answer;
    bool flushed = true;
    int rounds = 9;
    std::map<string, string> settings;
    std::map<string, Buffer> buffers;
    std::map<string, uint64_t> scalars;
    Buffer output;

    ~Workload() {
        for (auto& named : buffers) cudaFree(named.second.at);
    }
    Buffer& operator[](const string& name) {
        if (!buffers.count(name)) throw std::runtime_error("there is no " + name);
        return buffers[name];
    }
};

static size_t size_of(const string& element) {
    if (element == "f16") return 2;
    if (element == "f64" || element == "i64") return 8;
    return 4;
}

static Buffer allocate(const string& element, size_t length) {
    Buffer buffer;
    buffer.length = length;
    buffer.bytes = length * size_of(element);
    CHECK(cudaMalloc(&buffer.at, std::max<size_t>(buffer.bytes, 1)));
    CHECK(cudaMemset(buffer.at, 0, buffer.bytes));
    return buffer;
}

static void load(const Buffer& buffer, const string& element, std::istringstream& words) {
    string kind;
    words >> kind;
    if (kind == "file") {
        string path;
        words >> path;
        std::vector<char> bytes(buffer.bytes);
        std::ifstream file(path, std::ios::binary);
        if (!file.read(bytes.data(), bytes.size())) throw std::runtime_error(path + " is too short");
        CHECK(cudaMemcpy(buffer.at, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
        return;
    }
    uint64_t a = 0, b = 0;
    double low = 0;
    Kind number = kind == "steps" ? STEPS : kind == "below" ? BELOW : kind == "fractions" ? FRACTIONS : CONSTANT;
    if (number == FRACTIONS) words >> low;
    else words >> a >> b;
    if (element == "f16") fill<<<1024, 256>>>(buffer.as<__half>(), buffer.length, number, a, b, low);
    else if (element == "f32") fill<<<1024, 256>>>(buffer.as<float>(), buffer.length, number, a, b, low);
    else if (element == "f64") fill<<<1024, 256>>>(buffer.as<double>(), buffer.length, number, a, b, low);
    else if (element == "i64") fill<<<1024, 256>>>(buffer.as<uint64_t>(), buffer.length, number, a, b, low);
    else fill<<<1024, 256>>>(buffer.as<u32>(), buffer.length, number, a, b, low);
    CHECK(cudaDeviceSynchronize());
}

static void read(Workload& workload, const string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + " cannot be read");
    for (string line; std::getline(file, line);) {
        std::istringstream words(line);
        string word, name, element;
        size_t length;
        words >> word >> name;
        if (word == "kernel") workload.kernel = name;
        else if (word == "cache") workload.flushed = name == "flushed";
        else if (word == "rounds") workload.rounds = std::stoi(name);
        else if (word == "answer") workload.answer = name;
        else if (word == "set") words >> workload.settings[name];
        else if (word == "scalar") words >> workload.scalars[name];
        else if (word == "output" || word == "buffer") {
            words >> element >> length;
            Buffer buffer = allocate(element, length);
            workload.buffers[name] = buffer;
            if (word == "buffer") load(buffer, element, words);
            else if (!workload.output.at) workload.output = buffer;
        }
    }
}

// ---- what is launched

struct Launch {
    size_t items;                         // work-items that are needed
    std::vector<int> groups;              // sizes of work-groups to try
    std::function<void(int, int)> run;    // grid, work-group
};

static Launch prepare(Workload& w) {
    std::vector<int> sizes = {64, 128, 256, 512};
    const string& k = w.kernel;
    if (k == "index-select" || k == "scatter" || k == "scatter-shared") {
        auto *source = w["source"].as<float>(), *result = w["result"].as<float>();
        auto* indices = w["indices"].as<u32>();
        size_t count = w["indices"].length;
        bool gathers = k == "index-select";
        return {count, sizes, [=](int grid, int group) {
                    if (gathers) index_select<<<grid, group>>>(source, indices, result, count);
                    else scatter<<<grid, group>>>(source, indices, result, count);
                }};
    }
    if (k == "hash-probe") {
        auto *keys = w["keys"].as<u32>(), *values = w["values"].as<u32>();
        auto* table = w["table"].as<uint2>();
        size_t count = w["keys"].length;
        u32 bits = w.scalars["bits"];
        return {count, sizes, [=](int grid, int group) { hash_probe<<<grid, group>>>(keys, table, values, count, bits); }};
    }
    if (k == "binary-search" || k == "btree") {
        auto *queries = w["queries"].as<u32>(), *smaller = w["smaller"].as<u32>();
        size_t count = w["queries"].length;
        u32 levels = std::stoul(w.settings["levels"]);
        if (k == "btree") {
            auto* nodes = w["nodes"].as<uint4>();
            return {count, sizes, [=](int grid, int group) { btree<<<grid, group>>>(nodes, queries, smaller, count, levels); }};
        }
        auto* sorted = w["sorted"].as<u32>();
        return {count, sizes,
                [=](int grid, int group) { binary_search<<<grid, group>>>(sorted, queries, smaller, count, levels); }};
    }
    if (k == "bfs") {
        auto *frontier = w["frontier"].as<u32>(), *starts = w["starts"].as<u32>(), *columns = w["columns"].as<u32>();
        auto *visited = w["visited"].as<u32>(), *next = w["next"].as<u32>();
        size_t count = w["frontier"].length;
        return {count * 32, sizes,
                [=](int grid, int group) { bfs<<<grid, group>>>(frontier, starts, columns, visited, next, count); }};
    }
    if (k == "pagerank") {
        auto *starts = w["starts"].as<u32>(), *columns = w["columns"].as<u32>();
        auto *given = w["given"].as<float>(), *ranks = w["ranks"].as<float>();
        u32 vertices = w["ranks"].length;
        return {(size_t)vertices * 8, sizes,
                [=](int grid, int group) { pagerank<8><<<grid, group>>>(starts, columns, given, ranks, vertices); }};
    }
    if (k == "cross-section") {
        auto *materials = w["materials"].as<u32>(), *energies = w["energies"].as<u32>(), *starts = w["starts"].as<u32>();
        auto *nuclides = w["nuclides"].as<u32>(), *index = w["index"].as<u32>();
        auto *shares = w["shares"].as<float>(), *densities = w["densities"].as<float>();
        auto *points = w["points"].as<float4>(), *result = w["result"].as<float4>();
        size_t count = w["materials"].length;
        u32 nuclide_count = w.scalars["nuclide_count"], point_count = w.scalars["point_count"];
        return {count, {32, 64, 128, 256}, [=](int grid, int group) {
                    cross_section<<<grid, group>>>(materials, energies, shares, starts, nuclides, densities, index,
                                                   points, result, count, nuclide_count, point_count);
                }};
    }
    if (k == "option-pricing") {
        auto *noise = w["noise"].as<Doubles>(), *volatilities = w["volatilities"].as<Doubles>();
        auto* payoffs = w["payoffs"].as<double>();
        u32 steps = w.scalars["steps"];
        uint64_t bits = w.scalars["strike"];
        double strike;
        memcpy(&strike, &bits, 8);
        return {w["payoffs"].length, {32, 64, 128}, [=](int grid, int group) {
                    option_pricing<<<grid, group>>>(noise, volatilities, payoffs, steps, strike);
                }};
    }
    if (k == "attention") {
        auto *queries = w["queries"].as<float4>(), *result = w["result"].as<float4>();
        auto *pages = w["pages"].as<u32>(), *lengths = w["lengths"].as<u32>();
        auto *keys = w["keys"].as<uint2>(), *values = w["values"].as<uint2>();
        u32 sequences = w["lengths"].length, longest = w.scalars["longest"], heads = w.scalars["heads"];
        return {(size_t)sequences * heads * 32, {32, 64, 128, 256}, [=](int grid, int group) {
                    attention<<<grid, group>>>(queries, pages, lengths, keys, values, result, sequences, longest, heads);
                }};
    }
    throw std::runtime_error("there is no CUDA for `" + k + "`");
}

__global__ void flush(const int4* __restrict__ lines, size_t count, int* never) {
    int sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
        sum += lines[i].x;
    if (sum == 0x12345678) *never = sum;
}

static void measure(const string& path) {
    Workload workload;
    read(workload, path);
    Launch launch = prepare(workload);
    Buffer lines = allocate("i32", 160 << 20);
    workload.buffers["lines of nobody"] = lines;
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    std::vector<float> best;
    int best_group = 0;
    auto median = [](std::vector<float> times) {
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    };
    for (int group : launch.groups) {
        int grid = (int)((launch.items + group - 1) / group);
        // The last kernel's output stands, and all compute the same; atomics begin with zeros.
        CHECK(cudaMemset(workload.output.at, 0, workload.output.bytes));
        for (int i = 0; i < 2; i++) launch.run(grid, group);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        std::vector<float> times;
        for (int i = 0; i < workload.rounds; i++) {
            if (workload.flushed) flush<<<1056, 256>>>(lines.as<int4>(), lines.length / 4, lines.as<int>());
            CHECK(cudaEventRecord(start));
            launch.run(grid, group);
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            float milliseconds;
            CHECK(cudaEventElapsedTime(&milliseconds, start, end));
            times.push_back(milliseconds);
        }
        if (best.empty() || median(times) < median(best)) best = times, best_group = group;
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    if (!workload.answer.empty()) {
        std::vector<char> bytes(workload.output.bytes);
        CHECK(cudaMemcpy(bytes.data(), workload.output.at, bytes.size(), cudaMemcpyDeviceToHost));
        std::ofstream(workload.answer, std::ios::binary).write(bytes.data(), bytes.size());
    }
    printf("{\"name\":\"plain CUDA\",\"times_ns\":[");
    for (size_t i = 0; i < best.size(); i++) printf("%s%.1f", i ? "," : "", best[i] * 1e6);
    printf("],\"note\":\"nvcc %d.%d, work-groups of %d\"}\n", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, best_group);
}

int main() {
    for (string path; std::getline(std::cin, path);) {
        try {
            measure(path);
        } catch (const std::exception& error) {
            string what = error.what();
            std::replace(what.begin(), what.end(), '"', '\'');
            printf("{\"error\":\"%s\"}\n", what.c_str());
        }
        fflush(stdout);
    }
}
