// What is read and written again, and not run by the simulator: a texture.

#define KERNEL extern "C" __global__ void

KERNEL textured(float* out, cudaTextureObject_t image, const int* at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += tex2D<float>(image, (float)at[i * n + k], (float)k);
    out[i] = sum;
}
