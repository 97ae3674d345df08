// The other half of twins.cu.
static __global__ void twin(int* data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] - 3;
}

void other(int* data, int count) {
    twin<<<(count + 63) / 64, 64>>>(data, count);
}
