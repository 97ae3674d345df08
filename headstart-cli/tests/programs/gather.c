/* gather PTX COUNT STEPS LAUNCHES [shared]: sums of values that a table of indices names. With `shared` all arrays lie in one
 * allocation. */
#include "driver.h"
#include <string.h>

int main(int argc, char **argv) {
    int count = atoi(argv[2]), steps = atoi(argv[3]), launches = atoi(argv[4]), table = 4096;
    int shared = argc > 5 && strcmp(argv[5], "shared") == 0;
    start();
    CUmodule module = load(argv[1]);
    CUfunction gather;
    OK(cuModuleGetFunction(&gather, module, "gather"));
    size_t index_bytes = sizeof(int) * count * steps, value_bytes = sizeof(float) * table, out_bytes = sizeof(float) * count;
    int *indices = malloc(index_bytes);
    float *values = malloc(value_bytes), *out = calloc(count, sizeof(float));
    unsigned state = 7;
    for (int i = 0; i < count * steps; ++i) {
        state = state * 1664525u + 1013904223u;
        indices[i] = (state >> 8) % table;
    }
    for (int i = 0; i < table; ++i) values[i] = 1.0f + (float)(i % 97) / 64.0f;
    CUdeviceptr on_indices, on_values, on_out;
    if (shared) {
        CUdeviceptr all;
        OK(cuMemAlloc(&all, index_bytes + value_bytes + out_bytes));
        on_indices = all, on_values = all + index_bytes, on_out = on_values + value_bytes;
        OK(cuMemcpyHtoD(on_indices, indices, index_bytes));
        OK(cuMemcpyHtoD(on_values, values, value_bytes));
        OK(cuMemcpyHtoD(on_out, out, out_bytes));
    } else {
        on_indices = filled(indices, index_bytes), on_values = filled(values, value_bytes), on_out = filled(out, out_bytes);
    }
    void *parameters[] = {&on_indices, &on_values, &on_out, &count, &steps};
    for (int launch = 0; launch < launches; ++launch)
        OK(cuLaunchKernel(gather, (count + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(out, on_out, out_bytes));
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += out[i] * (i % 7 + 1);
    printf("%.3f\n", sum);
    return 0;
}
