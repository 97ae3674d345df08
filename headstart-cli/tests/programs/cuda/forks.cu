// A program that forks before it uses the GPU: parent and child each do half.
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

__global__ void cube(int* data, int count, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = (i + offset) * (i + offset) * (i + offset);
}

static void half(int offset) {
    const int count = 300;
    int* data;
    CHECK(cudaMalloc(&data, count * sizeof(int)));
    cube<<<(count + 127) / 128, 128>>>(data, count, offset);
    CHECK(cudaDeviceSynchronize());
    print_sum(offset ? "parent" : "child", data, count);
    std::fflush(stdout);
}

int main() {
    pid_t child = fork();
    if (child == 0) {
        half(0);
        return 0;
    }
    int status;
    waitpid(child, &status, 0);
    half(300);
    return status != 0;
}
