// What is read and written again, and not run by the simulator: tensor cores around a gather, a texture.
#include <cuda_fp16.h>
#include <mma.h>

#define KERNEL extern "C" __global__ void

// Tensor cores around a gather.
KERNEL gathered_product(float* out, const __half* rows, const int* chosen, const __half* matrix, int depth) {
    __shared__ __half tile[16 * 16];
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sum;
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> a;
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __half, nvcuda::wmma::row_major> b;
    nvcuda::wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < depth; k += 16) {
        for (int element = threadIdx.x; element < 256; element += 32)
            tile[element] = rows[chosen[blockIdx.x * 16 + element / 16] * depth + k + element % 16];
        __syncwarp();
        nvcuda::wmma::load_matrix_sync(a, tile, 16);
        nvcuda::wmma::load_matrix_sync(b, matrix + k * 16, 16);
        nvcuda::wmma::mma_sync(sum, a, b, sum);
        __syncwarp();
    }
    nvcuda::wmma::store_matrix_sync(out + blockIdx.x * 256, sum, 16, nvcuda::wmma::mem_row_major);
}

KERNEL textured(float* out, cudaTextureObject_t image, const int* at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += tex2D<float>(image, (float)at[i * n + k], (float)k);
    out[i] = sum;
}
