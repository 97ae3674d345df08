// What all of these programs share.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                       \
    do {                                                                                                  \
        cudaError_t check_result = (call);                                                                      \
        if (check_result != cudaSuccess) {                                                                  \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(check_result));          \
            std::exit(1);                                                                                 \
        }                                                                                                 \
    } while (0)

// The same numbers on every machine.
inline unsigned next(unsigned& state) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

template <typename T>
T* to_device(const std::vector<T>& host) {
    T* device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <typename T>
void print_sum(const char* name, const T* device, size_t count) {
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += double(host[i]) * double(i % 13 + 1);
    std::printf("%s %.6f\n", name, sum);
}
