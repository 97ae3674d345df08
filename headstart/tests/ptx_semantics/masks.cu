// Parts of a warp that work together. `nvcc -arch=sm_90 -ptx masks.cu -o masks.ptx`, 13.0.88.
// The test computes what each entry gives; `lane` has the number of its thread, and a work-group is one warp.

#define ENTRY extern "C" __global__ void
#define ALL 0xffffffffu

// A sum among those that have an element: NVIDIA's "Using CUDA Warp-Level Primitives", with lanes that ask nobody outside.
ENTRY ballot_reduce(const int *__restrict__ in, int *out, int rows, int n)
{
    int lane = threadIdx.x;
    unsigned mask = __ballot_sync(ALL, lane < n);
    if (lane < n) {
        int sum = 0;
#pragma unroll 1
        for (int row = 0; row < rows; row++) {
            int value = in[row * n + lane];
            for (int d = 16; d > 0; d >>= 1) {
                int other = __shfl_sync(mask, value, lane + d < n ? lane + d : lane);
                if (lane + d < n) value += other;
            }
            sum = sum * 3 + value;
        }
        out[lane] = lane == 0 ? sum : -1;
    }
    else out[lane] = -2;
}

// One atomic operation for all that come here together, however many these are.
ENTRY aggregate(const int *__restrict__ in, int *count, int n)
{
    int lane = threadIdx.x;
#pragma unroll 1
    for (int i = lane; i < n; i += 32)
        if (in[i] % 3 != 0) {
            unsigned mask = __activemask();
            int leader = __ffs(mask) - 1;
            if (lane == leader) atomicAdd(count, __popc(mask));
            int first = __shfl_sync(mask, lane, leader);
            if (first != leader) atomicAdd(count, 1000000);
        }
}

// Loops of different lengths, whose lanes say before each iteration who will be there.
ENTRY uneven(const int *__restrict__ lengths, const int *__restrict__ in, int *out)
{
    int lane = threadIdx.x, length = lengths[lane], sum = 0;
    unsigned mask = __ballot_sync(ALL, 0 < length);
    for (int i = 0; i < length; i++) {
        int value = in[i * 32 + lane];
        sum = sum * 3 + __popc(__ballot_sync(mask, value & 1));
        mask = __ballot_sync(mask, i + 1 < length);
    }
    out[lane] = sum;
}

// As before, but with everybody's mask: who has ended is not waited for.
ENTRY ending(const int *__restrict__ lengths, const int *__restrict__ in, int *out)
{
    int lane = threadIdx.x, length = lengths[lane], sum = 0;
#pragma unroll 1
    for (int i = 0; i < length; i++) {
        int value = in[i * 32 + lane];
        sum = sum * 3 + __popc(__ballot_sync(ALL, value & 1));
    }
    out[lane] = sum;
}

// Some return at once, and the others shuffle among themselves.
ENTRY exit_then_shuffle(const int *__restrict__ in, int *out, int n, int rows)
{
    int lane = threadIdx.x;
    if (lane >= n) return;
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        int value = in[i * 32 + lane];
        sum += __shfl_sync(ALL, value, i % n);
    }
    out[lane] = sum;
}

// Each half with a mask of its own.
ENTRY halves(const int *__restrict__ in, int *out, int rows)
{
    int lane = threadIdx.x, sum = 0;
    unsigned mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        int value = in[i * 32 + lane];
        sum = sum * 3 + __shfl_sync(mask, value, 3, 16);
        if (__any_sync(mask, value == 77)) sum++;
    }
    out[lane] = sum;
}

// Who has the same, among all and among those that are odd.
ENTRY matches(const int *__restrict__ in, int *out, int rows)
{
    int lane = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        int value = in[i * 32 + lane];
        sum = sum * 3 + __popc(__match_any_sync(ALL, value & 3));
        unsigned odd = __ballot_sync(ALL, value & 1);
        if (value & 1) {
            int all;
            sum += __popc(__match_any_sync(odd, (long long)value << 32 | 7)) * 64;
            __match_all_sync(odd, value & 1, &all);
            sum += all;
        }
    }
    out[lane] = sum;
}

// Data decide who takes part.
ENTRY data_divergence(const int *__restrict__ in, int *out, int rows)
{
    int lane = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        int value = in[i * 32 + lane];
        unsigned mask = __ballot_sync(ALL, value % 5 < 3);
        if (value % 5 < 3) sum += __shfl_sync(mask, value, __ffs(mask) - 1);
        else sum -= value;
    }
    out[lane] = sum;
}

// The two sides of a branch shuffle with each other, which CUDA allows from Volta on.
ENTRY sides(const int *__restrict__ in, int *out, int rows)
{
    int lane = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        int value = in[i * 32 + lane];
        if (value % 3 == 0) {
            sum = sum * 5 + __shfl_xor_sync(ALL, value * 7, 9);
        } else {
            out[lane] = value;
            sum = sum * 3 - __shfl_xor_sync(ALL, value + 1, 9);
        }
    }
    out[lane] = sum;
}

// Shared memory between the halves of a warp, which meet on the two sides of a branch.
ENTRY meeting(const int *__restrict__ in, int *out, int rows)
{
    __shared__ int kept[32];
    int lane = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        int value = in[i * 32 + lane];
        if (lane < 16) {
            kept[lane] = value;
            __syncwarp();
            sum += kept[lane + 16];
        } else {
            kept[lane] = value * 2;
            __syncwarp();
            sum ^= kept[lane - 16];
        }
        __syncwarp();
    }
    out[lane] = sum;
}

// Segments of a width that only the run tells.
ENTRY segments(const int *__restrict__ in, int *out, int rows, int width)
{
    int lane = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < rows; i++) {
        int value = in[i * 32 + lane];
        sum = sum * 3 + __shfl_down_sync(ALL, value, 1, width);
        sum ^= __shfl_up_sync(ALL, value, 2, width);
        sum += __shfl_xor_sync(ALL, value, 3, width);
        sum -= __shfl_sync(ALL, value, i, width);
    }
    out[lane] = sum;
}
