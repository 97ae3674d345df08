// What CUDA's headers would give, for clang, which needs none of them for kernels.
#pragma once
#include <__clang_cuda_builtin_vars.h>
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __noinline__ __attribute__((noinline))
struct __attribute__((aligned(8))) float2 { float x, y; };
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };
static __device__ inline float2 make_float2(float x, float y) { return {x, y}; }
static __device__ inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static __device__ inline int __shfl_xor_sync(unsigned m, int v, int d) { return __nvvm_shfl_sync_bfly_i32(m, v, d, 31); }
static __device__ inline int __shfl_up_sync(unsigned m, int v, int d) { return __nvvm_shfl_sync_up_i32(m, v, d, 0); }
static __device__ inline int __shfl_down_sync(unsigned m, int v, int d) { return __nvvm_shfl_sync_down_i32(m, v, d, 31); }
static __device__ inline int __shfl_sync(unsigned m, int v, int d, int width = 32) { return __nvvm_shfl_sync_idx_i32(m, v, d, (32 - width) << 8 | 31); }
static __device__ inline int __any_sync(unsigned m, int p) { return __nvvm_vote_any_sync(m, p); }
static __device__ inline unsigned __ballot_sync(unsigned m, int p) { return __nvvm_vote_ballot_sync(m, p); }
static __device__ inline int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
static __device__ inline unsigned atomicAdd(unsigned *p, unsigned v) { return __nvvm_atom_add_gen_i((int *)p, v); }
static __device__ inline int atomicExch(int *p, int v) { return __nvvm_atom_xchg_gen_i(p, v); }
static __device__ inline int atomicCAS(int *p, int c, int v) { return __nvvm_atom_cas_gen_i(p, c, v); }
static __device__ inline int atomicMin(int *p, int v) { return __nvvm_atom_min_gen_i(p, v); }
static __device__ inline int atomicMax(int *p, int v) { return __nvvm_atom_max_gen_i(p, v); }
static __device__ inline float rsqrtf(float x) { return __nvvm_rsqrt_approx_f(x); }
static __device__ inline float sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
static __device__ inline float fminf(float x, float y) { return __nvvm_fmin_f(x, y); }
static __device__ inline float fmaxf(float x, float y) { return __nvvm_fmax_f(x, y); }
static __device__ inline int __popc(unsigned x) { return __builtin_popcount(x); }
static __device__ inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
static __device__ inline unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
static __device__ inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) { return __nvvm_prmt(x, y, s); }
static __device__ inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned s)
{
    return (unsigned)((((unsigned long long)high << 32 | low) << (s & 31)) >> 32);
}
static __device__ inline int __ffs(int x) { return __builtin_ffs(x); }
static __device__ inline int __mulhi(int x, int y) { return __nvvm_mulhi_i(x, y); }
static __device__ inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return __nvvm_sad_ui(x, y, z); }
static __device__ inline void __threadfence() { __nvvm_membar_gl(); }
static __device__ inline void __syncwarp(unsigned m = 0xffffffffu) { __nvvm_bar_warp_sync(m); }
