// Copies that a work-group makes together, and lines that are printed.

#define TILE 64

// Tiles of a vector, the next one under way while this one is used.
kernel void staged(global const float *restrict in, global float *restrict out, int tiles)
{
    local float here[2][TILE];
    size_t item = get_local_id(0);
    global const float *own = in + get_group_id(0) * tiles * TILE;
    event_t under_way = async_work_group_copy(here[0], own, TILE, 0);
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {
        wait_group_events(1, &under_way);
        if (tile + 1 < tiles)
            under_way = async_work_group_copy(here[(tile + 1) & 1], own + (tile + 1) * TILE, TILE, 0);
        sum += here[tile & 1][(item * 5 + tile) & (TILE - 1)];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = sum;
}

// Rows of a matrix through columns of it: strided both ways, vectors of four, two events for one wait.
kernel void columns(global const float4 *restrict in, global float4 *restrict out, int width, int rows)
{
    local float4 left[TILE], right[TILE];
    size_t group = get_group_id(0);
    event_t both[2];
    both[0] = async_work_group_strided_copy(left, in + group, rows, width, 0);
    both[1] = async_work_group_strided_copy(right, in + group + 1, rows, width, 0);
    wait_group_events(2, both);
    for (int row = get_local_id(0); row < rows; row += get_local_size(0))
        left[row] = left[row] * 0.5f - right[rows - 1 - row];
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t back = async_work_group_strided_copy(out + group, left, rows, width, 0);
    wait_group_events(1, &back);
}

// What a kernel says while it runs.
kernel void lines(global const int *restrict in, global int *restrict out, int n)
{
    size_t item = get_global_id(0);
    int most = 0;
    for (int k = 0; k < n; ++k) {
        int x = in[item * n + k];
        if (x > most) {
            most = x;
            if (item == 1)
                printf("%s %3d: {%+06d} %#x %5.2f %v4d 100%%\n", "largest at", k, most, (uint)most, most * 0.25f,
                       (int4)(k, most, 0, -1));
        }
    }
    out[item] = most;
}
