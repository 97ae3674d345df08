// Kernels that are right, and kernels that are wrong in one way each, for the checks of the functional engine.
//
// The line in front of a kernel says which it is, how it is launched, and what it is told:
//
//     //@ good GROUPSxITEMS ARGUMENT…
//     //@ note GROUPSxITEMS ARGUMENT… | part of the note
//     //@ bad GROUPSxITEMS ARGUMENT… | part of the message
//
// An argument is a scalar `=5`, or a buffer and its length: `seq:64` (0, 1, 2, …), `zero:64`, `idx:64<8` (numbers below 8),
// `none:64` (nobody has written it). A bad kernel marks the line of the access at fault with `HERE`.
//
// Compiled by `nvcc -arch=sm_90 -lineinfo -ptx kernels.cu` (13.0) to kernels.ptx.
#include <cuda_pipeline.h>

#define K extern "C" __global__ void
#define TID ((int)threadIdx.x)
#define BID ((int)blockIdx.x)
#define ALL 0xffffffffu

#define ACCESSES(SCOPE)                                                                                                 \
  __device__ __forceinline__ int ld_acquire_##SCOPE(const int *p) {                                                     \
    int v; asm volatile("ld.acquire." #SCOPE ".global.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory"); return v; }         \
  __device__ __forceinline__ int ld_relaxed_##SCOPE(const int *p) {                                                     \
    int v; asm volatile("ld.relaxed." #SCOPE ".global.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory"); return v; }         \
  __device__ __forceinline__ void st_release_##SCOPE(int *p, int v) {                                                   \
    asm volatile("st.release." #SCOPE ".global.u32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }                            \
  __device__ __forceinline__ void st_relaxed_##SCOPE(int *p, int v) {                                                   \
    asm volatile("st.relaxed." #SCOPE ".global.u32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }                            \
  __device__ __forceinline__ int add_release_##SCOPE(int *p, int v) {                                                   \
    int o; asm volatile("atom.add.release." #SCOPE ".global.u32 %0,[%1],%2;" : "=r"(o) : "l"(p), "r"(v) : "memory");    \
    return o; }                                                                                                         \
  __device__ __forceinline__ int add_acq_rel_##SCOPE(int *p, int v) {                                                   \
    int o; asm volatile("atom.add.acq_rel." #SCOPE ".global.u32 %0,[%1],%2;" : "=r"(o) : "l"(p), "r"(v) : "memory");    \
    return o; }                                                                                                         \
  __device__ __forceinline__ int add_relaxed_##SCOPE(int *p, int v) {                                                   \
    int o; asm volatile("atom.add.relaxed." #SCOPE ".global.u32 %0,[%1],%2;" : "=r"(o) : "l"(p), "r"(v) : "memory");    \
    return o; }                                                                                                         \
  __device__ __forceinline__ void fence_acq_rel_##SCOPE() { asm volatile("fence.acq_rel." #SCOPE ";" ::: "memory"); }
ACCESSES(gpu)
ACCESSES(cta)

// ------------------------------------------------------------------------------------------- barriers and tiles

//@ good 2x128 seq:128 zero:256
K g_tile(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = a[TID];
  __syncthreads();
  o[BID * 128 + TID] = t[127 - TID];
}

//@ bad 1x128 seq:128 zero:128 | which work-item
K b_tile_without_barrier(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = 0;
  __syncthreads();
  t[TID] = a[TID];
  o[TID] = t[127 - TID]; // HERE
}

//@ good 1x128 seq:128 zero:1
K g_tree(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = a[TID];
  for (int d = 64; d; d >>= 1) {
    __syncthreads();
    if (TID < d) t[TID] += t[TID + d];
  }
  if (TID == 0) o[0] = t[0];
}

//@ bad 1x128 seq:128 zero:1 | with no barrier between
K b_tree_reads_early(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = a[TID];
  __syncthreads();
  for (int d = 64; d; d >>= 1) {
    if (TID < d) t[TID] += t[TID + d]; // HERE
  }
  if (TID == 0) o[0] = t[0];
}

//@ good 1x128 seq:128 =5
K g_in_place(int *u, int n) {
  for (int k = 0; k < n; k++) {
    int x = u[TID], l = u[(TID + 127) & 127];
    __syncthreads();
    u[TID] = x + l;
    __syncthreads();
  }
}

//@ bad 1x128 seq:128 =5 | which work-item
K b_in_place_one_barrier(int *u, int n) {
  for (int k = 0; k < n; k++) {
    int x = u[TID], l = u[(TID + 127) & 127]; // HERE
    __syncthreads();
    u[TID] = x + l;
  }
}

//@ good 1x128 seq:128 zero:128 =6
K g_double_buffer(const int *a, int *o, int n) {
  __shared__ int t[2][128];
  int s = 0;
  t[0][TID] = a[TID];
  for (int i = 0; i < n; i++) {
    __syncthreads();
    s += t[i & 1][127 - TID];
    t[(i + 1) & 1][TID] = a[TID] + i;
  }
  o[TID] = s;
}

//@ bad 1x128 seq:128 zero:128 =6 | which work-item
K b_single_buffer(const int *a, int *o, int n) {
  __shared__ int t[128];
  int s = 0;
  for (int i = 0; i < n; i++) {
    t[TID] = a[TID] + i; // HERE
    __syncthreads();
    s += t[127 - TID];
  }
  o[TID] = s;
}

//@ good 1x128 seq:128 zero:128
K g_transpose(const int *a, int *o) {
  __shared__ int t[8][17];
  int x = TID & 15, y = TID >> 4;
  t[y][x] = a[TID];
  __syncthreads();
  o[TID] = t[TID & 7][TID >> 3];
}

//@ good 1x128 seq:128 zero:128 =8
K g_scan(const int *a, int *o, int n) {
  __shared__ int t[128];
  t[TID] = a[TID];
  for (int d = 1; d < 128; d <<= 1) {
    __syncthreads();
    int y = TID >= d ? t[TID - d] : 0;
    __syncthreads();
    t[TID] += y;
  }
  o[TID] = t[TID] + n;
}

//@ bad 1x128 seq:128 zero:128 =8 | with no barrier between
K b_scan_half_a_barrier(const int *a, int *o, int n) {
  __shared__ int t[128];
  t[TID] = a[TID];
  for (int d = 1; d < 128; d <<= 1) {
    __syncthreads();
    int y = TID >= d ? t[TID - d] : 0;
    t[TID] += y; // HERE
  }
  o[TID] = t[TID] + n;
}

//@ good 1x128 seq:128 zero:128
K g_broadcast(const int *a, int *o) {
  __shared__ int v;
  if (TID == 5) v = a[9];
  __syncthreads();
  o[TID] = v;
}

//@ bad 1x128 seq:128 zero:256 | which work-item
K b_broadcast_overwritten(const int *a, int *o) {
  __shared__ int v;
  if (TID == 0) v = a[9];
  __syncthreads();
  o[TID] = v;
  if (TID == 0) v = a[10]; // HERE
  __syncthreads();
  o[128 + TID] = v;
}

//@ bad 1x128 seq:128 zero:128 | reaches a barrier that work-item
K b_divergent_barrier(const int *a, int *o) {
  if (a[TID] & 1) __syncthreads(); // HERE
  o[TID] = 1;
}

//@ bad 1x128 seq:8 zero:128 | waits at a barrier while work-item
K b_other_number_of_barriers(const int *a, int *o) {
  int s = 0;
  for (int i = 0; i < (TID >> 5) + 1; i++) {
    __syncthreads(); // HERE
    s += a[i];
  }
  __syncthreads();
  o[TID] = s;
}

//@ bad 1x64 zero:64 | reaches a barrier that work-item
K b_barrier_skipped_then_read(int *o) {
  __shared__ int t[64];
  if (TID & 1) {
    t[TID] = TID;
    __syncthreads(); // HERE
  }
  o[TID] = t[TID | 1];
}

// ------------------------------------------------------------------------------------------------- early returns

//@ good 2x64 seq:64 zero:128 =40
K g_return_before_barrier(const int *a, int *o, int n) {
  __shared__ int t[64];
  if (TID >= n) return;
  t[TID] = a[TID];
  __syncthreads();
  o[BID * 64 + TID] = t[n - 1 - TID];
}

//@ good 1x128 seq:128 zero:128 =70
K g_return_with_a_store(const int *a, int *o, int n) {
  __shared__ int t[128];
  if (TID >= n) {
    o[TID] = -1;
    return;
  }
  t[TID] = a[TID];
  __syncthreads();
  o[TID] = t[n - 1 - TID];
}

//@ good 1x128 seq:128 zero:128 =3
K g_return_from_a_loop(const int *a, int *o, int n) {
  __shared__ int t[128];
  for (int k = 0; k < n; k++) {
    if (TID >= (32 << (n - k)) - 7) return;
    t[TID] = a[TID] + k;
    __syncthreads();
    o[TID] = t[TID ^ 1 & -(TID < 24)];
    __syncthreads();
  }
}

//@ bad 1x64 seq:64 zero:64 =40 | which was never written
K b_return_and_nobody_wrote(const int *a, int *o, int n) {
  __shared__ int t[64];
  if (TID >= n) return;
  t[TID] = a[TID];
  __syncthreads();
  o[TID] = t[63 - TID]; // HERE
}

//@ bad 1x64 seq:64 zero:64 =40 | with no barrier between
K b_return_and_no_barrier(const int *a, int *o, int n) {
  __shared__ int t[64];
  t[TID] = 0;
  __syncthreads();
  if (TID >= n) return;
  t[TID] = a[TID];
  o[TID] = t[n - 1 - TID]; // HERE
}

//@ good 1x128 seq:128 zero:64
K g_producers_end(const int *a, int *o) {
  __shared__ int t[64];
  if (TID >= 64) {
    t[TID - 64] = a[TID];
    return;
  }
  __syncthreads();
  o[TID] = t[63 - TID];
}

// ------------------------------------------------------------------------------------------------ named barriers

//@ good 1x128 seq:128 zero:128
K g_named_pair(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = a[TID];
  if (TID < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  o[TID] = t[TID ^ 33];
}

//@ bad 1x128 seq:128 zero:128 | with no barrier between
K b_named_other_half(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = a[TID];
  if (TID < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  o[TID] = t[TID ^ 64]; // HERE
}

//@ good 1x128 seq:128 zero:64
K g_named_producers(const int *a, int *o) {
  __shared__ int t[64];
  for (int k = 0; k < 3; k++) {
    if (TID < 64) t[TID] = a[TID] + k;
    asm volatile("bar.sync 3, 128;" ::: "memory");
    if (TID >= 64) o[TID - 64] = t[127 - TID];
    asm volatile("bar.sync 4, 128;" ::: "memory");
  }
}

//@ bad 1x128 seq:128 zero:64 | which work-item
K b_named_producers_run_ahead(const int *a, int *o) {
  __shared__ int t[64];
  for (int k = 0; k < 3; k++) {
    if (TID < 64) t[TID] = a[TID] + k; // HERE
    asm volatile("bar.sync 3, 128;" ::: "memory");
    if (TID >= 64) o[TID - 64] = t[127 - TID];
  }
}

//@ bad 1x128 zero:128 | and no others will come
K b_named_too_few(int *o) {
  if (TID < 32) asm volatile("bar.sync 1, 64;" ::: "memory"); // HERE
  o[TID] = 1;
}

// --------------------------------------------------------------------------------------------------- sub-groups

//@ good 1x128 seq:128 zero:128
K g_sub_group_meets(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = a[TID];
  __syncwarp();
  o[TID] = t[TID ^ 17];
}

//@ bad 1x128 seq:128 zero:128 | with no barrier between
K b_sub_group_without_meeting(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = a[TID];
  o[TID] = t[TID ^ 17]; // HERE
}

//@ bad 1x128 seq:128 zero:128 | with no barrier between
K b_sub_group_meeting_is_not_enough(const int *a, int *o) {
  __shared__ int t[128];
  t[TID] = 0;
  __syncthreads();
  t[TID] = a[TID];
  __syncwarp();
  o[TID] = t[TID ^ 32]; // HERE
}

//@ good 1x64 seq:64 zero:2
K g_sub_group_tree(const int *a, int *o) {
  __shared__ int t[64];
  int *w = t + (TID & 32), l = TID & 31;
  w[l] = a[TID];
  for (int d = 16; d; d >>= 1) {
    __syncwarp();
    int x = l < d ? w[l + d] : 0;
    __syncwarp();
    w[l] += x;
  }
  if (l == 0) o[TID >> 5] = w[0];
}

//@ bad 1x64 seq:64 zero:2 | with no barrier between
K b_sub_group_tree_one_meeting(const int *a, int *o) {
  __shared__ int t[64];
  int *w = t + (TID & 32), l = TID & 31;
  w[l] = a[TID];
  for (int d = 16; d; d >>= 1) {
    __syncwarp();
    int x = l < d ? w[l + d] : 0;
    w[l] += x; // HERE
  }
  if (l == 0) o[TID >> 5] = w[0];
}

//@ good 1x64 seq:64 zero:64
K g_shuffles(const int *a, int *o) {
  int x = a[TID];
  for (int d = 1; d < 32; d <<= 1) {
    int y = __shfl_up_sync(ALL, x, d);
    if ((TID & 31) >= d) x += y;
  }
  o[TID] = x + __popc(__ballot_sync(ALL, x & 1));
}

//@ bad 1x64 seq:64 zero:64 | with no barrier between
K b_votes_order_no_memory(const int *a, int *o) {
  __shared__ int t[64];
  t[TID] = a[TID];
  int all = __all_sync(ALL, a[TID] >= 0);
  o[TID] = t[TID ^ 1] + all; // HERE
}

// ------------------------------------------------------------------------- flags: every order and scope that matters

#define PRODUCER(PUBLISH)                                                                                               \
  if (BID == 0) {                                                                                                       \
    if (TID == 0)                                                                                                       \
      for (int i = 0; i < n; i++) {                                                                                     \
        d[i] = i * 3 + 1;                                                                                               \
        PUBLISH;                                                                                                        \
      }                                                                                                                 \
    return;                                                                                                             \
  }

//@ good 2x32 zero:4 zero:4 zero:1 =4
K g_flag_release_acquire(int *f, int *d, int *o, int n) {
  PRODUCER(st_release_gpu(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_gpu(f + i) == 0);
      s = s * 31 + d[i];
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_no_release(int *f, int *d, int *o, int n) {
  PRODUCER(st_relaxed_gpu(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_gpu(f + i) == 0);
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_exchange_no_release(int *f, int *d, int *o, int n) {
  PRODUCER(atomicExch(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_gpu(f + i) == 0);
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_no_acquire(int *f, int *d, int *o, int n) {
  PRODUCER(st_release_gpu(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_relaxed_gpu(f + i) == 0);
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_polled_by_atomics_no_acquire(int *f, int *d, int *o, int n) {
  PRODUCER(st_release_gpu(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (atomicAdd(f + i, 0) == 0);
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ good 2x32 zero:4 zero:4 zero:1 =4
K g_flag_fences(int *f, int *d, int *o, int n) {
  PRODUCER(__threadfence(); atomicExch(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (atomicAdd(f + i, 0) == 0);
      __threadfence();
      s = s * 31 + d[i];
    }
    o[0] = s;
  }
}

//@ good 2x32 zero:4 zero:4 zero:1 =4
K g_flag_light_fences(int *f, int *d, int *o, int n) {
  PRODUCER(fence_acq_rel_gpu(); st_relaxed_gpu(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_relaxed_gpu(f + i) == 0);
      fence_acq_rel_gpu();
      s = s * 31 + d[i];
    }
    o[0] = s;
  }
}

//@ good 2x32 zero:4 zero:4 zero:1 =4
K g_flag_one_fence_for_all(int *f, int *d, int *o, int n) {
  PRODUCER(st_release_gpu(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++)
      while (ld_relaxed_gpu(f + i) == 0);
    fence_acq_rel_gpu();
    for (int i = 0; i < n; i++) s = s * 31 + d[i];
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_fence_too_early(int *f, int *d, int *o, int n) {
  if (BID == 0) {
    if (TID == 0)
      for (int i = 0; i < n; i++) {
        __threadfence();
        d[i] = i * 3 + 1;
        st_relaxed_gpu(f + i, 1);
      }
    return;
  }
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_gpu(f + i) == 0);
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_before_data(int *f, int *d, int *o, int n) {
  if (BID == 0) {
    if (TID == 0)
      for (int i = 0; i < n; i++) {
        st_release_gpu(f + i, 1);
        d[i] = i * 3 + 1; // HERE
      }
    return;
  }
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_gpu(f + i) == 0);
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_narrow_fence_of_producer(int *f, int *d, int *o, int n) {
  PRODUCER(__threadfence_block(); atomicExch(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_gpu(f + i) == 0);
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | nothing orders the two
K b_flag_narrow_fence_of_consumer(int *f, int *d, int *o, int n) {
  PRODUCER(__threadfence(); atomicExch(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_relaxed_gpu(f + i) == 0);
      __threadfence_block();
      s = s * 31 + d[i]; // HERE
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | `param_0[0]`
K b_flag_narrow_release(int *f, int *d, int *o, int n) {
  PRODUCER(st_release_cta(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_gpu(f + i) == 0); // HERE
      s = s * 31 + d[i];
    }
    o[0] = s;
  }
}

//@ bad 2x32 zero:4 zero:4 zero:1 =4 | `param_0[0]`
K b_flag_narrow_acquire(int *f, int *d, int *o, int n) {
  PRODUCER(st_release_gpu(f + i, 1))
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_cta(f + i) == 0); // HERE
      s = s * 31 + d[i];
    }
    o[0] = s;
  }
}

//@ good 1x64 zero:4 zero:4 zero:1 =4
K g_flag_narrow_within_a_group(int *f, int *d, int *o, int n) {
  if (TID == 0)
    for (int i = 0; i < n; i++) {
      d[i] = i * 3 + 1;
      st_release_cta(f + i, 1);
    }
  if (TID == 32) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      while (ld_acquire_cta(f + i) == 0);
      s = s * 31 + d[i];
    }
    o[0] = s;
  }
}

//@ good 1x64 zero:1 zero:1 zero:1
K g_flag_narrow_fences_within_a_group(int *f, int *d, int *o) {
  if (TID == 40) {
    d[0] = 42;
    __threadfence_block();
    atomicExch(f, 1);
  }
  if (TID == 0) {
    while (ld_relaxed_gpu(f) == 0);
    __threadfence_block();
    o[0] = d[0];
  }
}

//@ bad 1x64 zero:1 zero:1 zero:1 | with no barrier between
K b_flag_within_a_group_relaxed(int *f, int *d, int *o) {
  if (TID == 40) {
    d[0] = 42;
    atomicExch(f, 1);
  }
  if (TID == 0) {
    while (ld_relaxed_gpu(f) == 0);
    o[0] = d[0]; // HERE
  }
}

//@ good 1x64 zero:1 =42
K g_flag_in_shared_memory(int *o, int n) {
  __shared__ int f, d;
  if (TID == 0) f = 0;
  __syncthreads();
  if (TID == 32) {
    d = n;
    __threadfence_block();
    atomicExch(&f, 1);
  }
  if (TID == 0) {
    while (atomicAdd(&f, 0) == 0);
    __threadfence_block();
    o[0] = d;
  }
}

//@ bad 1x64 zero:1 =42 | with no barrier between
K b_flag_in_shared_memory_no_fence(int *o, int n) {
  __shared__ int f, d;
  if (TID == 0) f = 0;
  __syncthreads();
  if (TID == 32) {
    d = n;
    atomicExch(&f, 1);
  }
  if (TID == 0) {
    while (atomicAdd(&f, 0) == 0);
    __threadfence_block();
    o[0] = d; // HERE
  }
}

//@ bad 2x32 zero:1 zero:1 zero:1 | `param_0[0]`
K b_flag_plain(int *f, int *d, int *o) {
  if (BID == 0) {
    if (TID == 0) {
      d[0] = 42;
      __threadfence();
      f[0] = 1;
    }
  } else if (TID == 0) {
    while (ld_acquire_gpu(f) == 0); // HERE
    o[0] = d[0];
  }
}

//@ bad 2x32 zero:1 zero:32 zero:32 | nothing orders the two
K b_flag_of_one_for_data_of_all(int *f, int *d, int *o) {
  if (BID == 0) {
    d[TID] = TID;
    if (TID == 0) st_release_gpu(f, 1);
  } else {
    if (TID == 0) while (ld_acquire_gpu(f) == 0);
    __syncthreads();
    o[TID] = d[TID]; // HERE
  }
}

//@ good 2x64 zero:1 zero:64 zero:64
K g_flag_behind_barriers(int *f, int *d, int *o) {
  if (BID == 0) {
    d[TID] = TID;
    __syncthreads();
    if (TID == 0) st_release_gpu(f, 1);
  } else {
    if (TID == 0) while (ld_acquire_gpu(f) == 0);
    __syncthreads();
    o[TID] = d[63 - TID];
  }
}

//@ bad 2x64 zero:1 zero:64 zero:64 | nothing orders the two
K b_flag_barrier_of_the_consumer_missing(int *f, int *d, int *o) {
  if (BID == 0) {
    d[TID] = TID;
    __syncthreads();
    if (TID == 0) st_release_gpu(f, 1);
  } else {
    if (TID == 32) while (ld_acquire_gpu(f) == 0);
    __syncwarp();
    o[TID] = d[63 - TID]; // HERE
  }
}

// ---------------------------------------------------------------------------------------- chains and release sequences

//@ good 3x32 zero:2 zero:1 zero:1
K g_chain_of_three(int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    st_release_gpu(f, 1);
  } else if (BID == 1) {
    while (ld_acquire_gpu(f) == 0);
    st_release_gpu(f + 1, 1);
  } else {
    while (ld_acquire_gpu(f + 1) == 0);
    o[0] = d[0];
  }
}

//@ bad 3x32 zero:2 zero:1 zero:1 | nothing orders the two
K b_chain_with_a_relaxed_link(int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    st_release_gpu(f, 1);
  } else if (BID == 1) {
    while (ld_relaxed_gpu(f) == 0);
    st_release_gpu(f + 1, 1);
  } else {
    while (ld_acquire_gpu(f + 1) == 0);
    o[0] = d[0]; // HERE
  }
}

//@ good 3x32 zero:1 zero:1 zero:1
K g_release_sequence(int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    st_release_gpu(f, 1);
  } else if (BID == 1) {
    while (ld_relaxed_gpu(f) == 0);
    add_relaxed_gpu(f, 1);
  } else {
    while (ld_acquire_gpu(f) != 2);
    o[0] = d[0];
  }
}

//@ bad 3x32 zero:1 zero:1 zero:1 | nothing orders the two
K b_release_sequence_broken_by_a_store(int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    st_release_gpu(f, 1);
  } else if (BID == 1) {
    while (ld_relaxed_gpu(f) == 0);
    st_relaxed_gpu(f, 2);
  } else {
    while (ld_acquire_gpu(f) != 2);
    o[0] = d[0]; // HERE
  }
}

//@ good 2x32 zero:1 zero:1 zero:1
K g_release_then_a_store_of_the_same(int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    st_release_gpu(f, 1);
    st_relaxed_gpu(f, 2);
  } else {
    while (ld_acquire_gpu(f) != 2);
    o[0] = d[0];
  }
}

//@ bad 2x32 zero:1 zero:2 zero:2 | nothing orders the two
K b_release_does_not_cover_what_follows(int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    st_release_gpu(f, 1);
    d[1] = 43;
    st_relaxed_gpu(f, 2);
  } else {
    while (ld_acquire_gpu(f) != 2);
    o[0] = d[0];
    o[1] = d[1]; // HERE
  }
}

// ------------------------------------------------------------------------------------- tickets, last blocks, counters

//@ good 8x64 seq:512 zero:8 zero:1 zero:1
K g_last_block(const int *a, int *part, int *count, int *o) {
  __shared__ int t[64], last;
  t[TID] = a[BID * 64 + TID];
  __syncthreads();
  if (TID == 0) {
    int s = 0;
    for (int i = 0; i < 64; i++) s += t[i];
    part[BID] = s;
    __threadfence();
    last = atomicAdd(count, 1) == (int)gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && TID == 0) {
    int s = 0;
    for (int i = 0; i < gridDim.x; i++) s += part[i];
    o[0] = s;
    *count = 0;
  }
}

//@ bad 8x64 zero:8 zero:1 zero:1 | nothing orders the two
K b_last_block_no_fence(int *part, int *count, int *o) {
  __shared__ int last;
  if (TID == 0) {
    part[BID] = BID;
    last = atomicAdd(count, 1) == (int)gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && TID == 0) {
    int s = 0;
    for (int i = 0; i < gridDim.x; i++) s += part[i]; // HERE
    o[0] = s;
  }
}

//@ bad 8x64 zero:8 zero:1 zero:1 | nothing orders the two
K b_last_block_no_acquire(int *part, int *count, int *o) {
  __shared__ int last;
  if (TID == 0) {
    part[BID] = BID;
    __threadfence();
    last = atomicAdd(count, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (last && TID == 0) {
    int s = 0;
    for (int i = 0; i < gridDim.x; i++) s += part[i]; // HERE
    o[0] = s;
  }
}

//@ good 6x64 zero:384 zero:1 zero:64
K g_last_block_all_fence(int *part, int *count, int *o) {
  __shared__ int last;
  part[BID * 64 + TID] = BID + TID;
  __threadfence();
  __syncthreads();
  if (TID == 0) last = atomicAdd(count, 1) == (int)gridDim.x - 1;
  __syncthreads();
  if (last) {
    __threadfence();
    int s = 0;
    for (int i = 0; i < gridDim.x; i++) s += part[i * 64 + TID];
    o[TID] = s;
  }
}

//@ bad 6x64 zero:384 zero:1 zero:64 | nothing orders the two
K b_last_block_no_barrier_before_the_ticket(int *part, int *count, int *o) {
  __shared__ int last;
  part[BID * 64 + TID] = BID + TID;
  __threadfence();
  if (TID == 0) last = atomicAdd(count, 1) == (int)gridDim.x - 1;
  __syncthreads();
  if (last) {
    __threadfence();
    int s = 0;
    for (int i = 0; i < gridDim.x; i++) s += part[i * 64 + TID]; // HERE
    o[TID] = s;
  }
}

//@ good 4x64 zero:1 zero:256
K g_tickets(int *count, int *o) {
  int i = atomicAdd(count, 1);
  o[i] = TID;
}

//@ bad 4x64 zero:1 zero:256 | nothing orders the two
K b_tickets_handed_out_twice(int *count, int *o) {
  int i = atomicAdd(count, 1);
  o[i & 127] = BID; // HERE
}

//@ good 4x32 zero:1 zero:1 seq:4
K g_lock(int *lock, int *sum, const int *a) {
  if (TID == 0) {
    while (atomicCAS(lock, 0, 1) != 0);
    __threadfence();
    *sum = *sum + a[BID];
    __threadfence();
    atomicExch(lock, 0);
  }
}

//@ bad 4x32 zero:1 zero:1 seq:4 | nothing orders the two
K b_lock_no_fence_at_the_end(int *lock, int *sum, const int *a) {
  if (TID == 0) {
    while (atomicCAS(lock, 0, 1) != 0);
    __threadfence();
    *sum = *sum + a[BID]; // HERE
    atomicExch(lock, 0);
  }
}

//@ bad 4x32 zero:1 zero:1 seq:4 | nothing orders the two
K b_lock_no_fence_at_the_start(int *lock, int *sum, const int *a) {
  if (TID == 0) {
    while (atomicCAS(lock, 0, 1) != 0);
    *sum = *sum + a[BID]; // HERE
    __threadfence();
    atomicExch(lock, 0);
  }
}

//@ good 2x64 zero:1 zero:1 seq:128
K g_lock_of_each_work_item(int *lock, int *sum, const int *a) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *sum = *sum + a[BID * 64 + TID];
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

//@ bad 2x64 zero:2 zero:1 | nothing orders the two
K b_two_locks(int *lock, int *sum) {
  if (TID == 0) {
    while (atomicCAS(lock + BID, 0, 1) != 0);
    __threadfence();
    *sum = *sum + 1; // HERE
    __threadfence();
    atomicExch(lock + BID, 0);
  }
}

//@ good 4x64 idx:256<32 zero:32
K g_histogram(const int *a, int *o) {
  __shared__ int h[32];
  if (TID < 32) h[TID] = 0;
  __syncthreads();
  atomicAdd(&h[a[BID * 64 + TID]], 1);
  __syncthreads();
  if (TID < 32) atomicAdd(&o[TID], h[TID]);
}

//@ bad 1x64 idx:64<32 zero:32 | with no barrier between
K b_histogram_cleared_too_late(const int *a, int *o) {
  __shared__ int h[32];
  if (TID < 32) h[TID] = 0;
  atomicAdd(&h[a[TID]], 1); // HERE
  __syncthreads();
  if (TID < 32) o[TID] = h[TID];
}

//@ bad 1x64 idx:64<32 zero:32 | with no barrier between
K b_histogram_read_too_early(const int *a, int *o) {
  __shared__ int h[32];
  if (TID < 32) h[TID] = 0;
  __syncthreads();
  atomicAdd(&h[a[TID]], 1);
  if (TID < 32) o[TID] = h[TID]; // HERE
}

//@ bad 4x64 idx:256<32 zero:32 | in the same launch: nothing orders work-groups
K b_histogram_cleared_by_one_group(const int *a, int *o) {
  if (BID == 0 && TID < 32) o[TID] = 0; // HERE
  __syncthreads();
  atomicAdd(&o[a[BID * 64 + TID]], 1);
}

//@ good 4x64 seq:256 zero:1
K g_greatest(const int *a, int *o) { atomicMax(o, a[BID * 64 + TID]); }

//@ bad 1x64 zero:1 | with no barrier between
K b_atomic_and_plain(int *c) {
  if (TID == 0) c[0] = 5;
  else atomicAdd(c, 1); // HERE
}

//@ bad 2x32 zero:2 | nothing orders
K b_atomics_of_two_sizes(int *c) {
  if (BID == 0) atomicAdd(c, 1);
  else atomicAdd((unsigned long long *)c, 1ull); // HERE
}

//@ bad 2x32 zero:1 zero:64 | nothing orders the two
K b_atomics_for_the_group_alone(int *c, int *o) {
  o[BID * 32 + TID] = add_relaxed_cta(c, 1); // HERE
}

//@ good 1x64 zero:1 zero:64
K g_atomics_for_the_group(int *c, int *o) { o[TID] = add_relaxed_cta(c, 1); }

//@ good 2x64 zero:1 seq:128 zero:128
K g_queue(int *head, const int *a, int *o) {
  int i;
  while ((i = atomicAdd(head, 1)) < 128) o[i] = a[i] * 2;
}

// ---------------------------------------------------------------------------------------- barriers of the whole grid

#define GRID_BARRIER(TARGET)                                                                                            \
  __syncthreads();                                                                                                      \
  if (TID == 0) {                                                                                                       \
    __threadfence();                                                                                                    \
    atomicAdd(bar, 1);                                                                                                  \
    while (ld_acquire_gpu(bar) < (TARGET) * (int)gridDim.x);                                                            \
  }                                                                                                                     \
  __syncthreads();

//@ good 5x64 zero:1 seq:320 zero:320 =3
K g_grid_barrier(int *bar, int *a, int *o, int n) {
  int i = BID * 64 + TID, total = gridDim.x * 64, s = 0;
  for (int k = 0; k < n; k++) {
    int x = a[(i + 77) % total];
    GRID_BARRIER(2 * k + 1)
    a[i] = x + k;
    GRID_BARRIER(2 * k + 2)
    s += a[(i + 5) % total];
  }
  o[i] = s;
}

//@ bad 5x64 zero:1 seq:320 zero:320 =3 | nothing orders the two
K b_grid_barrier_one_is_missing(int *bar, int *a, int *o, int n) {
  int i = BID * 64 + TID, total = gridDim.x * 64, s = 0;
  for (int k = 0; k < n; k++) {
    int x = a[(i + 77) % total];
    a[i] = x + k; // HERE
    GRID_BARRIER(k + 1)
    s += x;
  }
  o[i] = s;
}

//@ bad 5x64 zero:1 seq:320 zero:320 | nothing orders the two
K b_grid_barrier_without_a_fence(int *bar, int *a, int *o) {
  int i = BID * 64 + TID;
  a[i] = i;
  __syncthreads();
  if (TID == 0) {
    atomicAdd(bar, 1);
    while (ld_acquire_gpu(bar) < (int)gridDim.x);
  }
  __syncthreads();
  o[i] = a[319 - i]; // HERE
}

//@ bad 5x64 zero:1 zero:320 | waits in a loop for ever
K b_grid_barrier_of_too_many(int *bar, int *o) {
  if (TID == 0) {
    atomicAdd(bar, 1);
    while (ld_acquire_gpu(bar) <= (int)gridDim.x); // HERE
  }
  __syncthreads();
  o[BID * 64 + TID] = 1;
}

//@ bad 1x32 zero:1 zero:32 | waits in a loop for ever
K b_flag_that_nobody_sets(volatile int *f, int *o) {
  if (TID == 0)
    while (f[0] == 0); // HERE
  o[TID] = 1;
}

//@ good 2x64 zero:1 zero:128
K g_all_poll_and_meet(volatile int *f, int *o) {
  if (BID == 1) {
    if (TID == 0) f[0] = 1;
  } else {
    int there;
    do {
      there = f[0];
      __syncthreads();
    } while (!there);
  }
  o[BID * 64 + TID] = 1;
}

//@ good 2x64 zero:1 zero:128
K g_one_polls_and_all_meet(volatile int *f, int *o) {
  __shared__ int there;
  if (BID == 1) {
    if (TID == 0) f[0] = 1;
  } else {
    do {
      __syncthreads();
      if (TID == 0) there = f[0];
      __syncthreads();
    } while (!there);
  }
  o[BID * 64 + TID] = 1;
}

//@ good 1x64 zero:1 zero:64
K g_one_counts_its_turns(volatile int *f, int *o) {
  int there, turns = 0;
  do {
    there = f[0];
    __syncthreads();
    if (++turns == 2000 && TID == 40) f[0] = 1;
  } while (!there);
  o[TID] = 1;
}

//@ bad 2x64 zero:1 zero:128 | waits in a loop for ever
K b_all_poll_and_meet_and_nobody_sets(volatile int *f, int *o) {
  int there;
  do {
    there = f[0]; // HERE
    __syncthreads();
  } while (!there);
  o[BID * 64 + TID] = 1;
}

//@ good 3x32 zero:4 zero:3
K g_groups_in_turn(int *turn, int *o) {
  if (TID == 0) {
    while (ld_acquire_gpu(turn) != (int)gridDim.x - 1 - BID);
    o[BID] = turn[1];
    turn[1] += BID + 1;
    st_release_gpu(turn, gridDim.x - BID);
  }
}

//@ bad 2x32 zero:2 zero:2 | waits in a loop for ever
K b_groups_wait_for_each_other(int *f, int *o) {
  if (TID == 0) {
    while (ld_acquire_gpu(f + 1 - BID) == 0); // HERE
    st_release_gpu(f + BID, 1);
    o[BID] = 1;
  }
}

//@ good 1x96 zero:1
K g_sub_groups_in_turn(int *o) {
  __shared__ int turn, sum;
  if (TID == 0) turn = 2, sum = 0;
  __syncthreads();
  if ((TID & 31) == 0) {
    while (atomicAdd(&turn, 0) != TID / 32);
    __threadfence_block();
    sum = sum * 10 + TID / 32;
    __threadfence_block();
    atomicSub(&turn, 1);
  }
  __syncthreads();
  if (TID == 0) o[0] = sum;
}

//@ bad 1x96 zero:1 | waits in a loop for ever
K b_sub_groups_wait(int *o) {
  __shared__ int turn;
  if (TID == 0) turn = 7;
  __syncthreads();
  if ((TID & 31) == 0) {
    while (atomicAdd(&turn, 0) != TID / 32); // HERE
  }
  __syncthreads();
  o[0] = 1;
}

//@ good 2x32 zero:1 zero:1 =1000
K g_gives_up(int *f, int *o, int tries) {
  if (BID == 0 && TID == 0) {
    int i = 0;
    while (ld_acquire_gpu(f) == 0 && i < tries) i++;
    o[0] = i;
  }
}

// ------------------------------------------------------------------------------------------------------- volatile

//@ good 2x32 zero:2 zero:1
K g_volatile_flag(volatile int *f, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    f[1] = 42;
    __threadfence();
    f[0] = 1;
  } else {
    while (f[0] == 0);
    __threadfence();
    o[0] = f[1];
  }
}

//@ bad 2x32 zero:1 zero:1 zero:1 | nothing orders the two
K b_volatile_flag_plain_data(volatile int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    f[0] = 1;
  } else {
    while (f[0] == 0);
    o[0] = d[0]; // HERE
  }
}

//@ good 2x32 zero:1 zero:1 zero:1
K g_volatile_flag_fences(volatile int *f, int *d, int *o) {
  if (TID != 0) return;
  if (BID == 0) {
    d[0] = 42;
    __threadfence();
    f[0] = 1;
  } else {
    while (f[0] == 0);
    __threadfence();
    o[0] = d[0];
  }
}

//@ bad 1x64 seq:64 zero:64 | with no barrier between
K b_volatile_on_one_side(const int *a, int *o) {
  __shared__ int t[64];
  t[TID] = a[TID];
  o[TID] = *(volatile int *)&t[TID ^ 1]; // HERE
}

//@ bad 1x64 zero:64 zero:64 | with no barrier between
K b_volatile_of_two_sizes(volatile int *a, int *o) {
  if (TID < 32) *(volatile unsigned char *)(a + TID) = 1;
  else o[TID] = a[TID - 32]; // HERE
}

// --------------------------------------------------------------------------------------------- same-value stores

//@ note 2x64 zero:1 =5 | writes race with others of the same bits, the first at `param_0[0]`
K g_same_value(int *o, int n) {
  if (n > 0) o[0] = 7;
}

//@ note 2x64 idx:128<4 zero:1 zero:128 | writes race with others of the same bits, the first at `param_1[0]`
K g_changed(const int *a, int *changed, int *level) {
  int i = BID * 64 + TID;
  if (a[i] > 0) {
    level[i] = 1;
    *changed = 1;
  }
}

//@ note 1x64 idx:64<8 zero:64 | seen[0]`: allowed
K g_same_value_in_shared_memory(const int *a, int *o) {
  __shared__ int seen[8];
  if (TID < 8) seen[TID] = 0;
  __syncthreads();
  seen[a[TID]] = 1;
  __syncthreads();
  o[TID] = seen[TID & 7];
}

//@ bad 1x64 zero:1 | with no barrier between
K b_other_values(int *o) {
  o[0] = TID >> 5; // HERE
}

//@ bad 2x32 zero:1 | in the same launch: nothing orders work-groups
K b_other_values_of_groups(int *o) {
  if (TID == 0) o[0] = BID; // HERE
}

//@ bad 1x64 zero:1 zero:64 | with no barrier between
K b_same_value_read_without_order(int *o, int *r) {
  o[0] = 7;
  r[TID] = o[(TID >> 6) & 1]; // HERE
}

//@ bad 2x32 idx:64<4 zero:1 | in the same launch: nothing orders work-groups
K b_same_value_looked_at_first(const int *a, int *found) {
  if (TID == 0 && found[0] == 0) found[0] = a[0] + 9; // HERE
}

//@ bad 1x64 zero:1 | with no barrier between
K b_same_value_in_part_of_the_bytes(int *o) {
  if (TID < 32) o[0] = 7;
  else *(short *)o = 8; // HERE
}

// ------------------------------------------------------------------------------------- bytes and sizes of accesses

//@ good 2x64 zero:128
K g_bytes_side_by_side(int *o) { ((unsigned char *)o)[BID * 64 + TID] = TID; }

//@ bad 1x64 zero:64 | with no barrier between
K b_bytes_overlap(int *o) {
  *(short *)((char *)o + (TID & ~1)) = TID; // HERE
}

//@ bad 1x64 zero:64 | with no barrier between
K b_word_over_bytes(int *r) {
  __shared__ int t[64];
  ((volatile char *)t)[TID * 4] = TID;
  ((volatile char *)t)[TID * 4 + 1] = TID;
  ((volatile char *)t)[TID * 4 + 2] = TID;
  ((volatile char *)t)[TID * 4 + 3] = TID;
  r[TID] = t[TID ^ 1]; // HERE
}

//@ good 1x64 zero:64
K g_word_over_bytes_behind_a_barrier(int *r) {
  __shared__ int t[64];
  for (int i = 0; i < 4; i++) ((char *)t)[i * 64 + TID] = TID;
  __syncthreads();
  r[TID] = t[TID ^ 1];
}

//@ good 1x64 seq:256 zero:256
K g_vectors(const int4 *a, int4 *o) {
  int4 x = a[TID];
  o[63 - TID] = make_int4(x.w, x.z, x.y, x.x);
}

//@ bad 1x64 seq:256 zero:256 | with no barrier between
K b_vector_over_words(const int4 *a, int *o) {
  o[TID] = 1;
  ((int4 *)o)[TID >> 5] = a[TID >> 5]; // HERE
}

//@ bad 1x32 seq:132 zero:128 =1 | which is not a multiple of 16
K b_misaligned(const int *a, int4 *o, int n) {
  o[TID] = ((const int4 *)(a + n))[TID]; // HERE
}

// ------------------------------------------------------------------------------------------ bounds and first reads

//@ bad 1x64 seq:64 zero:64 =1 | out of bounds
K b_behind_the_end(const int *a, int *o, int n) {
  o[TID] = a[TID + n]; // HERE
}

//@ bad 1x64 seq:64 zero:64 | out of bounds
K b_before_the_start(const int *a, int *o) {
  o[TID] = a[TID - 1]; // HERE
}

//@ bad 1x64 zero:64 =1 | out of bounds
K b_shared_out_of_bounds(int *o, int n) {
  __shared__ int t[64];
  t[TID] = 1;
  __syncthreads();
  o[TID] = t[TID + n]; // HERE
}

//@ bad 1x128 zero:128 | which was never written
K b_shared_never_written(int *o) {
  __shared__ int t[128];
  if (TID < 64) t[TID] = 1;
  __syncthreads();
  o[TID] = t[TID]; // HERE
}

//@ bad 1x64 none:64 zero:64 | which was never written
K b_global_never_written(int *a, int *o) {
  o[TID] = a[TID]; // HERE
}

//@ good 1x64 none:64 zero:64
K g_global_written_first(int *a, int *o) {
  a[TID] = TID;
  __syncthreads();
  o[TID] = a[63 - TID];
}

//@ bad 1x64 idx:8<8 zero:64 | which was never written
K b_private_never_written(const int *a, int *o) {
  int b[8];
  for (int i = 0; i < 4; i++) b[(a[i] & 1) + i] = a[i];
  o[TID] = b[7 - (a[0] & 1)]; // HERE
}

//@ good 1x64 idx:8<8 zero:64
K g_private(const int *a, int *o) {
  int b[8];
  for (int i = 0; i < 8; i++) b[(i * 3) & 7] = a[i];
  int s = 0;
  for (int i = 0; i < 8; i++) s += b[(a[i] + TID) & 7];
  o[TID] = s;
}

//@ bad 2x64 zero:64 zero:64 | in the same launch: nothing orders work-groups
K b_groups_read_what_others_write(int *a, int *o) {
  if (BID == 0) a[TID] = 1; // HERE
  else o[TID] = a[TID];
}

//@ bad 2x64 seq:128 zero:129 | in the same launch: nothing orders work-groups
K b_stencil_in_place(const int *a, int *u) {
  int i = BID * 64 + TID;
  if (TID < 63) u[i] = a[i];
  __syncthreads();
  if (TID == 63) u[i + (BID == 0)] = a[i]; // HERE
}

//@ good 3x64 seq:192 zero:192
K g_grid_stride(const int *a, int *o) {
  for (int i = BID * 32 + TID / 2; i < 192; i += 96)
    if (TID % 2 == 0) o[i] = a[i] + 1;
}

// ------------------------------------------------------------------------------------------- asynchronous copies

//@ good 1x64 seq:64 zero:64
K g_async(const int *__restrict__ a, int *o) {
  __shared__ int t[64];
  __pipeline_memcpy_async(&t[TID], &a[TID], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  o[TID] = t[63 - TID];
}

//@ bad 1x64 seq:64 zero:64 | asynchronous copy
K b_async_not_waited_for(const int *__restrict__ a, int *o) {
  __shared__ int t[64];
  __pipeline_memcpy_async(&t[TID], &a[TID], 4);
  __pipeline_commit();
  __syncthreads();
  o[TID] = t[TID]; // HERE
}

//@ bad 1x64 seq:64 zero:64 | with no barrier between
K b_async_no_barrier(const int *__restrict__ a, int *o) {
  __shared__ int t[64];
  t[TID] = 0;
  __syncthreads();
  __pipeline_memcpy_async(&t[TID], &a[TID], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  o[TID] = t[63 - TID]; // HERE
}

//@ good 1x64 seq:64 zero:64 =6
K g_async_two_stages(const int *__restrict__ a, int *o, int n) {
  __shared__ int t[2][64];
  int s = 0;
  __pipeline_memcpy_async(&t[0][TID], &a[TID], 4);
  __pipeline_commit();
  for (int i = 0; i < n; i++) {
    __pipeline_memcpy_async(&t[(i + 1) & 1][TID], &a[TID], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    s += t[i & 1][63 - TID] * i;
    __syncthreads();
  }
  __pipeline_wait_prior(0);
  o[TID] = s;
}

//@ bad 1x64 seq:64 zero:64 =6 | asynchronous copy
K b_async_two_stages_one_barrier(const int *__restrict__ a, int *o, int n) {
  __shared__ int t[2][64];
  int s = 0;
  __pipeline_memcpy_async(&t[0][TID], &a[TID], 4);
  __pipeline_commit();
  for (int i = 0; i < n; i++) {
    __pipeline_memcpy_async(&t[(i + 1) & 1][TID], &a[TID], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    s += t[i & 1][63 - TID] * i; // HERE
  }
  __pipeline_wait_prior(0);
  o[TID] = s;
}

//@ bad 1x64 seq:64 zero:64 | asynchronous copy
K b_async_overwritten(const int *__restrict__ a, int *o) {
  __shared__ int t[64];
  __pipeline_memcpy_async(&t[TID], &a[TID], 4);
  __pipeline_commit();
  t[TID] = 5; // HERE
  __pipeline_wait_prior(0);
  o[TID] = t[TID];
}

//@ bad 1x64 seq:64 zero:64 | asynchronous copy
K b_async_source_overwritten(int *a, int *o) {
  __shared__ int t[64];
  __pipeline_memcpy_async(&t[TID], &a[TID], 4);
  __pipeline_commit();
  a[TID] = 5; // HERE
  __pipeline_wait_prior(0);
  o[TID] = t[TID];
}

//@ good 1x32 seq:32 zero:32 =3
K g_async_of_few(const int *__restrict__ a, int *o, int n) {
  __shared__ int t[32];
  t[TID] = -1;
  __syncthreads();
  if (TID < n) __pipeline_memcpy_async(&t[TID], &a[TID], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  o[TID] = t[31 - TID];
}

// -------------------------------------------------------------------------------------------------- more that is right

//@ good 4x64 zero:1 zero:64 zero:192
K g_one_producer_many_consumers(int *f, int *d, int *o) {
  if (BID == 0) {
    d[TID] = TID * 3;
    __syncthreads();
    if (TID == 0) add_release_gpu(f, 1);
  } else {
    if ((TID & 31) == 0)
      while (ld_acquire_gpu(f) == 0);
    __syncwarp();
    o[(BID - 1) * 64 + TID] = d[63 - TID];
  }
}

//@ good 4x64 zero:1 zero:1
K g_sum_under_acquire_and_release(int *count, int *o) {
  if (TID == 0) {
    while (ld_acquire_gpu(count) != BID);
    o[0] = o[0] * 10 + BID;
    add_acq_rel_gpu(count, 1);
  }
}

//@ good 2x64 zero:2 zero:1 zero:1
K g_narrow_link_then_a_wide_one(int *f, int *d, int *o) {
  if (BID == 0) {
    if (TID == 32) {
      d[0] = 42;
      st_release_cta(f, 1);
    }
    if (TID == 0) {
      while (ld_acquire_cta(f) == 0);
      st_release_gpu(f + 1, 1);
    }
  } else if (TID == 0) {
    while (ld_acquire_gpu(f + 1) == 0);
    o[0] = d[0];
  }
}

//@ bad 2x64 zero:2 zero:1 zero:1 | nothing orders the two
K b_narrow_link_fenced_too_narrowly(int *f, int *d, int *o) {
  if (BID == 0) {
    if (TID == 32) {
      d[0] = 42;
      st_release_cta(f, 1);
    }
    if (TID == 0) {
      while (ld_acquire_cta(f) == 0);
      __threadfence_block();
      st_relaxed_gpu(f + 1, 1);
    }
  } else if (TID == 0) {
    while (ld_acquire_gpu(f + 1) == 0);
    o[0] = d[0]; // HERE
  }
}

//@ good 1x128 seq:128 zero:2
K g_counter_read_behind_a_barrier(const int *a, int *o) {
  __shared__ int c;
  if (TID == 0) c = 0;
  __syncthreads();
  if (a[TID] % 3 == 0) atomicAdd(&c, 1);
  __syncthreads();
  if (TID < 2) o[TID] = c;
}

//@ good 1x128 seq:128 zero:64
K g_compaction(const int *a, int *o) {
  __shared__ int c;
  if (TID == 0) c = 0;
  __syncthreads();
  if (a[TID] & 1) o[atomicAdd(&c, 1)] = a[TID];
}

//@ good 2x64 seq:128 zero:2
K g_atomics_of_eight_bytes(const int *a, unsigned long long *o) {
  atomicAdd(&o[TID & 0], (unsigned long long)a[BID * 64 + TID] << 33);
}

//@ good 1x64 seq:64 zero:64
K g_volatile_in_a_sub_group(const int *a, int *o) {
  __shared__ volatile int t[64];
  t[TID] = a[TID];
  int x = t[TID ^ 1];
  __syncwarp();
  t[TID] = x + 1;
  o[TID] = t[TID];
}

//@ good 1x96 seq:96 zero:96
K g_read_by_all_then_written_by_one(const int *a, int *o) {
  __shared__ int v[4];
  if (TID < 4) v[TID] = a[TID];
  __syncthreads();
  int s = 0;
  for (int k = 0; k < 4; k++) {
    s += v[k];
    __syncwarp();
  }
  __syncthreads();
  if (TID == 95) v[2] = s;
  __syncthreads();
  o[TID] = v[2];
}

//@ bad 1x96 seq:96 zero:96 | which work-item
K b_read_by_all_then_written_by_one(const int *a, int *o) {
  __shared__ int v[4];
  if (TID < 4) v[TID] = a[TID];
  __syncthreads();
  int s = 0;
  for (int k = 0; k < 4; k++) {
    s += v[k];
    __syncwarp();
  }
  __syncwarp();
  if (TID == 95) v[2] = s; // HERE
  __syncthreads();
  o[TID] = v[2];
}

//@ good 3x64 zero:3 zero:1 zero:192 =4
K g_pipeline_of_groups(int *f, int *head, int *o, int n) {
  for (int k = 0; k < n; k++) {
    if (TID == 0 && BID > 0)
      while (ld_acquire_gpu(f + BID - 1) <= k);
    __syncthreads();
    o[BID * 64 + TID] = (BID ? o[(BID - 1) * 64 + (63 - TID)] : 0) + k;
    __syncthreads();
    if (TID == 0) {
      st_release_gpu(f + BID, k + 1);
      if (BID < 2)
        while (ld_acquire_gpu(f + BID + 1) <= k);
    }
    __syncthreads();
  }
  if (BID == 2 && TID == 0) head[0] = o[128];
}
