// Tensor cores, as people use them: around gathers, in attention over pages, on numbers of 8 bits and on `tf32`.
#include <cuda_fp16.h>
#include <mma.h>

#define KERNEL extern "C" __global__ void

// A warp's 16 gathered rows times a matrix of 16 columns, through WMMA.
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

__device__ void load_rows(unsigned (&r)[4], const __half* at) {
    unsigned address = __cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ void load_columns(unsigned (&r)[2], const __half* at) {
    unsigned address = __cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address));
}

__device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Rows of a table, by a list that is read on the way, each weighted and added up by expert: 32 rows a step, whose products
// with the expert's 8 columns are summed.
KERNEL gathered_sums(float* out, const uint4* table, const int* list, const __half* weights, int steps) {
    __shared__ __align__(16) __half tile[32][24];
    __shared__ __align__(16) __half own[16][8];
    int lane = threadIdx.x;
    for (int element = lane; element < 128; element += 32) own[element / 8][element % 8] = weights[element];
    float sums[2][4] = {};
    for (int step = 0; step < steps; step++) {
        int row = list[(blockIdx.x * steps + step) * 32 + lane];
        uint4 first = table[row * 2], second = table[row * 2 + 1];
        *(uint4*)&tile[lane][0] = first;
        *(uint4*)&tile[lane][8] = second;
        __syncwarp();
        unsigned columns[2];
        load_columns(columns, &own[lane % 16][0]);
        for (int half = 0; half < 2; half++) {
            unsigned rows[4];
            load_rows(rows, &tile[half * 16 + lane % 16][lane / 16 * 8]);
            multiply(sums[half], rows, columns);
        }
        __syncwarp();
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 4; i++)
            out[blockIdx.x * 256 + (half * 16 + lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[half][i];
}

// A step of decoding: 16 queries of a head over the pages of a sequence, 8 keys a page, with the running maximum and sum of
// a softmax. A key has 16 numbers.
KERNEL flash_decode(float* out, float* largest, const __half* queries, const __half* keys, const __half* values,
                    const int* pages, int count) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4;
    const unsigned* q = (const unsigned*)(queries + blockIdx.x * 256);
    unsigned a[4] = {q[group * 8 + within], q[(group + 8) * 8 + within], q[group * 8 + within + 4],
                     q[(group + 8) * 8 + within + 4]};
    float most[2] = {-1e30f, -1e30f}, total[2] = {}, sums[2][4] = {};
    for (int number = 0; number < count; number++) {
        int page = pages[blockIdx.x * count + number];
        const unsigned* k = (const unsigned*)(keys + page * 128);
        unsigned b[2] = {k[group * 8 + within], k[group * 8 + within + 4]};
        float scores[4] = {};
        multiply(scores, a, b);
        unsigned weights[4] = {};
        for (int half = 0; half < 2; half++) {
            float above = fmaxf(scores[half * 2], scores[half * 2 + 1]);
            above = fmaxf(above, __shfl_xor_sync(0xffffffff, above, 1));
            above = fmaxf(above, __shfl_xor_sync(0xffffffff, above, 2));
            float now = fmaxf(most[half], above);
            float shrink = __expf(most[half] - now);
            float first = __expf(scores[half * 2] - now), second = __expf(scores[half * 2 + 1] - now);
            total[half] = total[half] * shrink + first + second;
            most[half] = now;
            for (int part = 0; part < 2; part++) {
                sums[part][half * 2] *= shrink;
                sums[part][half * 2 + 1] *= shrink;
            }
            __half2 pair = __floats2half2_rn(first, second);
            weights[half] = *(unsigned*)&pair;
        }
        const __half* v = values + page * 128;
        for (int part = 0; part < 2; part++) {
            __half2 pair = __halves2half2(v[within * 2 * 16 + part * 8 + group], v[(within * 2 + 1) * 16 + part * 8 + group]);
            unsigned factors[2] = {*(unsigned*)&pair, 0};
            multiply(sums[part], weights, factors);
        }
    }
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(0xffffffff, total[half], 1);
        total[half] += __shfl_xor_sync(0xffffffff, total[half], 2);
        int row = blockIdx.x * 16 + group + half * 8;
        for (int part = 0; part < 2; part++) {
            out[row * 16 + part * 8 + within * 2] = sums[part][half * 2] / total[half];
            out[row * 16 + part * 8 + within * 2 + 1] = sums[part][half * 2 + 1] / total[half];
        }
        if (within == 0) largest[row] = most[half];
    }
}

// A matrix of 8-bit numbers, whose blocks a list names, times vectors of 8-bit numbers.
KERNEL chosen_blocks(int* out, const int4* blocks, const int* chosen, const int* vectors, int count) {
    int lane = threadIdx.x, d[4] = {};
    for (int number = 0; number < count; number++) {
        int4 a = blocks[chosen[blockIdx.x * count + number] * 32 + lane];
        int first = vectors[number * 64 + lane], second = vectors[number * 64 + 32 + lane];
        asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(first), "r"(second));
    }
    for (int i = 0; i < 4; i++) out[(blockIdx.x * 4 + i) * 32 + lane] = d[i];
}

// Rows by a list of neighbours in `tf32`, as a layer of a graph network has them.
KERNEL neighbour_layer(float* out, const float* features, const int* neighbours, const float* weights, int count) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4;
    unsigned b[2] = {__float_as_uint(weights[within * 8 + group]), __float_as_uint(weights[(within + 4) * 8 + group])};
    float d[4] = {};
    for (int number = 0; number < count; number++) {
        int first = neighbours[(blockIdx.x * count + number) * 16 + group];
        int second = neighbours[(blockIdx.x * count + number) * 16 + group + 8];
        unsigned a[4] = {__float_as_uint(features[first * 8 + within]), __float_as_uint(features[second * 8 + within]),
                         __float_as_uint(features[first * 8 + within + 4]),
                         __float_as_uint(features[second * 8 + within + 4])};
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    for (int i = 0; i < 4; i++) out[blockIdx.x * 128 + (group + i / 2 * 8) * 8 + within * 2 + i % 2] = d[i];
}
