/* pooled PTX SEED LAUNCHES [apart [same]]: sums of arrays that lie in one allocation, as pools place them; each launch has others, of
 * other sizes, right behind each other, or with some steps in common. With `apart` none has, with `same`
 * all are of one size. Says how many launches share bytes. */
#include "driver.h"
#include <string.h>

static unsigned state;

static unsigned next(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

int main(int argc, char **argv) {
    int launches = atoi(argv[3]), apart = argc > 4, sharing = 0;
    const unsigned words = 1 << 16;
    state = atoi(argv[2]);
    start();
    CUmodule module = load(argv[1]);
    CUfunction pooled;
    OK(cuModuleGetFunction(&pooled, module, "pooled"));
    int *host = malloc(4 * words);
    for (unsigned word = 0; word < words; ++word) host[word] = word * 7 % 1001;
    CUdeviceptr pool = filled(host, 4 * words);
    for (int launch = 0; launch < launches; ++launch) {
        unsigned items = 100 + next(200), steps = 24 + next(8);
        if (argc > 5) items = 160, steps = 29;
        unsigned size = items * steps;
        /* A step's items are read and written by one work-item each, so that none races for another's. */
        unsigned low = next(words - 2 * size + 1), from = low, to = low + size, ahead = next(6);
        switch (apart ? 0 : next(5)) {
        case 0: break;
        case 1: to = low + ahead * items; break;
        case 2: from = low + size, to = low; break;
        case 3: from = low + (steps - 1) * items, to = low; break;
        case 4: to = low + (steps - 1) * items; break;
        }
        sharing += from < to + size && to < from + size;
        CUdeviceptr reads = pool + 4 * (CUdeviceptr)from, writes = pool + 4 * (CUdeviceptr)to;
        void *parameters[] = {&reads, &writes, &items, &steps};
        OK(cuLaunchKernel(pooled, (items + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
    }
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(host, pool, 4 * words));
    unsigned long long sum = 0;
    for (unsigned word = 0; word < words; ++word) sum = sum * 31 + (unsigned)host[word];
    printf("%016llx, %d of %d launches share bytes\n", sum, sharing, launches);
    return 0;
}
