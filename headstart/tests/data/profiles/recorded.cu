// What the recorded profiles are of: nvcc -arch=sm_90 -O3 -lineinfo -o g recorded.cu
#include <cstdio>
#include <cuda_runtime.h>

__global__ void fill(int *indices, float *values, int n, int table) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    indices[i] = (int)((i * 2654435761ull) % table);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < table; i += gridDim.x * blockDim.x)
    values[i] = 1.0f + (i & 65535) / 65536.0f;
}

__global__ void gather(const int *indices, const float *values, float *result, int items) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  const int *at = indices + lane + (i / 32) * 32 * items;
  float dx = 0;
#pragma unroll 1
  for (int j = 0; j < items; ++j, at += 32) {
    float v = values[*at];
    for (int k = 0; k < 8; ++k) dx += sqrtf(v + k);
  }
  result[i] = dx;
}

int main() {
  int groups = 132, group = 128, items = 1024, table = 1 << 28, n = groups * group * items;
  int *indices;
  float *values, *result, sum = 0, first;
  cudaMalloc(&indices, n * 4ll);
  cudaMalloc(&values, table * 4ll);
  cudaMalloc(&result, groups * group * 4);
  fill<<<1056, 256>>>(indices, values, n, table);
  gather<<<groups, group>>>(indices, values, result, items);
  gather<<<groups * 16, group>>>(indices, values, result, items / 16);
  cudaMemcpy(&first, result, 4, cudaMemcpyDeviceToHost);
  sum += first;
  printf("first sum %.3f, %s", sum, cudaGetErrorString(cudaGetLastError()));
}
