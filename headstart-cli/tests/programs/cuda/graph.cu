// A stream captured into a graph that is launched again and again.
#include "check.h"

__global__ void step(const float* from, float* to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float left = i > 0 ? from[i - 1] : 0, right = i + 1 < count ? from[i + 1] : 0;
    to[i] = 0.25f * left + 0.5f * from[i] + 0.25f * right;
}

int main() {
    const int count = 2000;
    std::vector<float> host(count);
    for (int i = 0; i < count; ++i) host[i] = float(i % 17);
    float *one = to_device(host), *other = to_device(host);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    step<<<(count + 127) / 128, 128, 0, stream>>>(one, other, count);
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    step<<<(count + 127) / 128, 128, 0, stream>>>(other, one, count);
    step<<<(count + 127) / 128, 128, 0, stream>>>(one, other, count);
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 5; ++i) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    print_sum("graph", other, count);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}
