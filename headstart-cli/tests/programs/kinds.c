/* kinds PTX ROUNDS [MORE]: launches one kernel in four ways by turns: work-groups of 128; of 64; of 128, with arrays in one
 * allocation; of 128, for far fewer sums. Then one work-group of each size from 1 to MORE. */
#include "driver.h"

enum { COUNT = 1024, STEPS = 48, TABLE = 4096, FEW = 16 };

int main(int argc, char **argv) {
    int rounds = atoi(argv[2]), count = COUNT, few = FEW, steps = STEPS;
    start();
    CUmodule module = load(argv[1]);
    CUfunction gather;
    OK(cuModuleGetFunction(&gather, module, "gather"));
    static int indices[COUNT * STEPS];
    static float values[TABLE], out[COUNT];
    for (int i = 0; i < COUNT * STEPS; ++i) indices[i] = i * 7 % TABLE;
    for (int i = 0; i < TABLE; ++i) values[i] = 1.0f + (float)(i % 97) / 64.0f;
    CUdeviceptr on_indices = filled(indices, sizeof indices), on_values = filled(values, sizeof values),
                on_out = filled(out, sizeof out), all;
    OK(cuMemAlloc(&all, sizeof values + sizeof out));
    OK(cuMemcpyHtoD(all, values, sizeof values));
    CUdeviceptr beside = all + sizeof values;
    void *usual[] = {&on_indices, &on_values, &on_out, &count, &steps};
    void *joined[] = {&on_indices, &all, &beside, &count, &steps};
    void *fewer[] = {&on_indices, &on_values, &on_out, &few, &steps};
    for (int round = 0; round < rounds; ++round) {
        OK(cuLaunchKernel(gather, COUNT / 128, 1, 1, 128, 1, 1, 0, NULL, usual, NULL));
        OK(cuLaunchKernel(gather, COUNT / 128, 1, 1, 128, 1, 1, 0, NULL, usual, NULL));
        OK(cuLaunchKernel(gather, COUNT / 64, 1, 1, 64, 1, 1, 0, NULL, usual, NULL));
        OK(cuLaunchKernel(gather, COUNT / 128, 1, 1, 128, 1, 1, 0, NULL, joined, NULL));
        OK(cuLaunchKernel(gather, 1, 1, 1, 128, 1, 1, 0, NULL, fewer, NULL));
    }
    for (int own = 1; argc > 3 && own <= atoi(argv[3]); ++own) {
        void *some[] = {&on_indices, &on_values, &on_out, &own, &steps};
        OK(cuLaunchKernel(gather, 1, 1, 1, own, 1, 1, 0, NULL, some, NULL));
    }
    OK(cuCtxSynchronize());
    double sum = 0;
    OK(cuMemcpyDtoH(out, on_out, sizeof out));
    for (int i = 0; i < COUNT; ++i) sum += out[i] * (i % 7 + 1);
    OK(cuMemcpyDtoH(out, beside, sizeof out));
    for (int i = 0; i < COUNT; ++i) sum += out[i] * (i % 5 + 1);
    printf("%.3f\n", sum);
    return 0;
}
