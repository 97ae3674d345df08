// What work-items do together: memory of the work-group, barriers, atomic operations, sub-groups.

// A histogram in memory of the work-group.
kernel void histogram(global const uchar *restrict in, global uint *restrict bins, int per_item)
{
    local uint own[64];
    int local_id = get_local_id(0);
    for (int k = local_id; k < 64; k += get_local_size(0))
        own[k] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < per_item; ++k)
        atomic_inc(&own[in[get_global_id(0) + k * get_global_size(0)] & 63]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = local_id; k < 64; k += get_local_size(0))
        atomic_add(&bins[k], own[k]);
}

// A matrix turned over, tile by tile; the tile is the launch's.
kernel void transpose(global const float *restrict in, global float *restrict out, local float *tile, int width,
                      int height)
{
    int x = get_group_id(0) * 16 + get_local_id(0), y = get_group_id(1) * 16 + get_local_id(1);
    if (x < width && y < height)
        tile[get_local_id(1) * 17 + get_local_id(0)] = in[y * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    int column = get_group_id(1) * 16 + get_local_id(0), row = get_group_id(0) * 16 + get_local_id(1);
    if (column < height && row < width)
        out[row * height + column] = tile[get_local_id(0) * 17 + get_local_id(1)];
}

// A sum of a work-group, by halves.
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void reduce(global const int *restrict in, global int *restrict out, int per_item)
{
    local int own[64];
    int id = get_local_id(0);
    int sum = 0;
    for (int k = 0; k < per_item; ++k)
        sum += in[(get_group_id(0) * per_item + k) * 64 + id];
    own[id] = sum;
    for (int half_way = 32; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_way)
            own[id] += own[id + half_way];
    }
    if (id == 0)
        out[get_group_id(0)] = own[0];
}

// Atomic operations with scopes and orders: the largest, a ticket, and a sum of 64 bits.
kernel void atomics(global const int *restrict in, global atomic_int *most, global atomic_uint *tickets,
                    global uint *restrict seen, int per_item)
{
    int found = -1;
    for (int k = 0; k < per_item; ++k)
        found = max(found, in[get_global_id(0) * per_item + k]);
    atomic_fetch_max_explicit(most, found, memory_order_relaxed, memory_scope_device);
    atomic_fetch_add_explicit(tickets, 1u, memory_order_acq_rel, memory_scope_device);
    atomic_fetch_xor_explicit(tickets + 1, (uint)found, memory_order_relaxed, memory_scope_device);
    seen[get_global_id(0)] = found;
}

// A compare-and-exchange loop: a sum of floats that are whole numbers, so that the order does not matter.
kernel void exchanges(global const float *restrict in, volatile global uint *sums, int per_item)
{
    float own = 0.0f;
    for (int k = 0; k < per_item; ++k)
        own += floor(in[get_global_id(0) * per_item + k]);
    volatile global uint *to = &sums[get_group_id(0)];
    uint old = *to, found;
    for (;;) {
        found = atomic_cmpxchg(to, old, as_uint(as_float(old) + own));
        if (found == old)
            break;
        old = found;
    }
}

// Sums and votes of sub-groups.
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
__attribute__((intel_reqd_sub_group_size(16)))
kernel void sub_groups(global const int *restrict in, global int *restrict out, int per_item)
{
    int sum = 0;
    for (int k = 0; k < per_item; ++k)
        sum += in[get_global_id(0) * per_item + k];
    int all = sub_group_reduce_add(sum);
    int before = sub_group_scan_exclusive_add(sum);
    int most = sub_group_reduce_max(sum);
    int first = sub_group_broadcast(sum, 0);
    int any = sub_group_any(sum == most);
    out[get_global_id(0)] = (uint)all + 3u * before + 5u * most + 7u * first + any;
}

// Sums and votes of work-groups.
kernel void work_groups(global const int *restrict in, global int *restrict out)
{
    int own = in[get_global_id(0)];
    int all = work_group_reduce_add(own);
    int before = work_group_scan_inclusive_max(own);
    int other = work_group_broadcast(own, 3);
    int any = work_group_any(own > 60000);
    out[get_global_id(0)] = all ^ before ^ (other << 3) ^ any;
}
