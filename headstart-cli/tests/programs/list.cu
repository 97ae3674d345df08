struct Node {
    Node* next;
    int value;
};

struct Work {
    Node* head;
    int* out;
    int scale;
};

__device__ int factor = 3;

extern "C" __global__ void walk(Work work) {
    int sum = 0;
    for (Node* node = work.head; node; node = node->next) {
        sum += node->value * work.scale;
    }
    work.out[threadIdx.x] = sum * factor + threadIdx.x;
}
