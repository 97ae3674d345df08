// Linked lists in device memory: a hash table with chains, made on the host.
#include "check.h"

struct Node {
    Node* next;
    int key, value;
};

__global__ void find(Node* const* buckets, int bucket_count, const int* keys, int* found, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int key = keys[i], value = -1;
    for (const Node* node = buckets[key % bucket_count]; node; node = node->next)
        if (node->key == key) value = node->value;
    found[i] = value;
}

int main() {
    const int bucket_count = 61, nodes = 300, count = 700;
    std::vector<Node*> buckets(bucket_count, nullptr);
    unsigned state = 5;
    for (int i = 0; i < nodes; ++i) {
        int key = next(state) % 1000;
        Node node{buckets[key % bucket_count], key, i};
        CHECK(cudaMalloc(&buckets[key % bucket_count], sizeof(Node)));
        CHECK(cudaMemcpy(buckets[key % bucket_count], &node, sizeof(Node), cudaMemcpyHostToDevice));
    }
    std::vector<int> keys(count), found(count);
    for (auto& key : keys) key = next(state) % 1000;
    int* on_found = to_device(found);
    find<<<(count + 127) / 128, 128>>>(to_device(buckets), bucket_count, to_device(keys), on_found, count);
    CHECK(cudaDeviceSynchronize());
    print_sum("list", on_found, count);
}
