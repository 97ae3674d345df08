// Parameters with names and members: what debug information says of them.
// nvcc 13.0.88, `-arch=sm_90 -G -ptx fields.cu -o fields.ptx` with the file in `/`, since debug information names the folder.
struct Inner { float scale; int shift[3]; };
struct Base { const float *weights; };
struct Args : Base { float *out; int n; Inner inner[2]; double bias; unsigned char flag; union { int whole; float part; }; };

extern "C" __global__ void apply(Args args, int stride, const int *indices)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0.f;
    for (int j = 0; j < args.n; ++j) s += args.weights[indices[i + j * stride]] * args.inner[1].scale;
    args.out[i] = s + float(args.bias) + args.inner[0].shift[1] + args.flag + args.whole;
}
