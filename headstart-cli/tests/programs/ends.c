/* ends PTX HOW: launches once, and ends as it is told: by returning, exit, _exit, abort, a signal, a crash, or in another thread:
 * after all, while it waits for its launch, or (`early`) while it launches. */
#include "driver.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void *leave(void *status) { exit((int)(long)status); }
static void *leave_soon(void *status) {
    usleep(300000);
    exit((int)(long)status);
}

int main(int argc, char **argv) {
    start();
    CUmodule module = load(argv[1]);
    CUfunction gather;
    OK(cuModuleGetFunction(&gather, module, "gather"));
    enum { STEPS = 64 };
    int indices[64 * STEPS] = {0}, count = 64, steps = STEPS;
    float values[4] = {1, 2, 3, 4}, out[64] = {0};
    CUdeviceptr on_indices = filled(indices, sizeof indices), on_values = filled(values, sizeof values),
                on_out = filled(out, sizeof out);
    void *parameters[] = {&on_indices, &on_values, &on_out, &count, &steps};
    pthread_t thread;
    if (!strcmp(argv[2], "early")) pthread_create(&thread, NULL, leave_soon, (void *)7L);
    OK(cuLaunchKernel(gather, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    if (!strcmp(argv[2], "early") || !strcmp(argv[2], "wait")) {
        if (!strcmp(argv[2], "wait")) pthread_create(&thread, NULL, leave_soon, (void *)6L);
        OK(cuCtxSynchronize());
        sleep(30);
    }
    OK(cuMemcpyDtoH(out, on_out, sizeof out));
    printf("%g\n", out[63]);
    fflush(stdout);
    if (!strcmp(argv[2], "exit")) exit(3);
    if (!strcmp(argv[2], "_exit")) _exit(4);
    if (!strcmp(argv[2], "abort")) abort();
    if (!strcmp(argv[2], "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(argv[2], "crash")) *(volatile int *)argv[3] = 0;
    if (!strcmp(argv[2], "thread")) {
        pthread_create(&thread, NULL, leave, (void *)5L);
        pthread_join(thread, NULL);
    }
    return 0;
}
