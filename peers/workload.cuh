// What every CUDA program needs that is measured beside Headstart: it reads paths of workloads, one a line
// (lab/src/manifest.rs says how they are written), and answers each with a line of JSON: a list with name, times in
// nanoseconds and a note for each way of doing the work. What the Nth of them computed is in the file of the workload's
// answer, with `.N` behind its name. An empty list says that the program has nothing for this kernel.
//
// The data and the state of the L2 cache are those of the workload: `flushed` reads a buffer of ten times the cache before
// each launch, which also hides what the host takes to launch.
//
// A program defines `is_known` and `peers`, and calls `serve` in `main`.

#pragma once

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

static string kernel_of(const string& path) {
    std::ifstream file(path);
    for (string line; std::getline(file, line);)
        if (line.rfind("kernel ", 0) == 0) return line.substr(7);
    throw std::runtime_error(path + " names no kernel");
}

static void read(Workload& workload, const string& path) {
    std::ifstream file(path);
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

// ---- what is measured

// One way of doing the work, such as a size of work-groups: all ways of a peer compute the same, and the fastest is told.
struct Way {
    string note;
    std::function<void()> run;
};

struct Peer {
    string name;
    std::vector<Way> ways;
    string element = "";  // of the results, where it is another type than the workload's
};

// A kernel with work-groups of several sizes.
static Peer sized(const string& name, size_t items, const std::vector<int>& groups, std::function<void(int, int)> run) {
    Peer peer = {name, {}};
    for (int group : groups) {
        int grid = (int)((items + group - 1) / group);
        peer.ways.push_back({", work-groups of " + std::to_string(group), [=] { run(grid, group); }});
    }
    return peer;
}

__global__ void flush(const int4* __restrict__ lines, size_t count, int* never) {
    int sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
        sum += lines[i].x;
    if (sum == 0x12345678) *never = sum;
}

static std::vector<float> times_of(Workload& workload, const Way& way) {
    Buffer lines = workload["lines of nobody"];
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    // Atomics begin with zeros.
    CHECK(cudaMemset(workload.output.at, 0, workload.output.bytes));
    for (int i = 0; i < 2; i++) way.run();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::vector<float> times;
    for (int i = 0; i < workload.rounds; i++) {
        if (workload.flushed) flush<<<1056, 256>>>(lines.as<int4>(), lines.length / 4, lines.as<int>());
        CHECK(cudaEventRecord(start));
        way.run();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, start, end));
        times.push_back(milliseconds);
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    return times;
}

static string quoted(string text) {
    std::replace(text.begin(), text.end(), '"', '\'');
    std::replace(text.begin(), text.end(), '\n', ' ');
    return '"' + text + '"';
}

static string measured(Workload& workload, const Peer& peer, size_t number) {
    auto median = [](std::vector<float> times) {
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    };
    std::vector<float> best;
    string note;
    for (const Way& way : peer.ways) {
        std::vector<float> times = times_of(workload, way);
        if (best.empty() || median(times) < median(best)) best = times, note = way.note;
    }
    if (!workload.answer.empty()) {
        std::vector<char> bytes(workload.output.bytes);
        CHECK(cudaMemcpy(bytes.data(), workload.output.at, bytes.size(), cudaMemcpyDeviceToHost));
        std::ofstream(workload.answer + "." + std::to_string(number), std::ios::binary).write(bytes.data(), bytes.size());
    }
    std::ostringstream line;
    line << "{\"name\":" << quoted(peer.name) << ",\"times_ns\":[";
    for (size_t i = 0; i < best.size(); i++) line << (i ? "," : "") << best[i] * 1e6;
    string compiler = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__);
    line << "],\"note\":" << quoted(compiler + note);
    if (!peer.element.empty()) line << ",\"element\":" << quoted(peer.element);
    line << "}";
    return line.str();
}

typedef std::function<std::vector<Peer>(Workload&)> Peers;

// All peers of a workload; one that fails says so in its place.
static string answer(const string& path, const std::function<bool(const string&)>& is_known, const Peers& peers) {
    if (!is_known(kernel_of(path))) return "[]";
    Workload workload;
    read(workload, path);
    workload.buffers["lines of nobody"] = allocate("i32", 160 << 20);
    string list;
    size_t number = 0;
    for (const Peer& peer : peers(workload)) {
        string entry;
        try {
            entry = measured(workload, peer, number);
        } catch (const std::exception& error) {
            entry = "{\"name\":" + quoted(peer.name) + ",\"error\":" + quoted(error.what()) + "}";
        }
        list += (number++ ? "," : "") + entry;
    }
    return "[" + list + "]";
}

static int serve(const std::function<bool(const string&)>& is_known, const Peers& peers) {
    for (string path; std::getline(std::cin, path);) {
        string line;
        try {
            line = answer(path, is_known, peers);
        } catch (const std::exception& error) {
            line = "{\"error\":" + quoted(error.what()) + "}";
        }
        printf("%s\n", line.c_str());
        fflush(stdout);
    }
    return 0;
}
