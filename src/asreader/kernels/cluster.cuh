// What both kernels of recurrences are made of: numbers, clusters of thread blocks, tensor cores of Hopper GPUs.
//
// H (units of a state), U (of them in a block), CS (blocks of a cluster) and NB (sequences of a cluster: 8, 16 or 32)
// come from the compiler's command line.

typedef unsigned short bf16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ACCUMULATORS (NB / 2)

__device__ __forceinline__ float low(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ __forceinline__ u32 paired(float first, float second) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
__device__ __forceinline__ void unpack(uint2 four, float* out) {
    out[0] = low(four.x); out[1] = high(four.x); out[2] = low(four.y); out[3] = high(four.y);
}
__device__ __forceinline__ uint2 packed(const float* in) { return make_uint2(paired(in[0], in[1]), paired(in[2], in[3])); }
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ __forceinline__ float hyperbolic(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

__device__ __forceinline__ u32 cluster_rank() { u32 rank; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); return rank; }
__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }
__device__ __forceinline__ u32 in_block(u32 address, u32 rank) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
// Into another block's shared memory, telling its barrier how many bytes have come, so that nobody waits for a sender:
// single stores, which were faster for the shares of sums, and runs of bytes, which were faster for the state.
__device__ __forceinline__ void give(u32 address, uint4 value, u32 barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
                 ::"r"(address), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(barrier) : "memory");
}
__device__ __forceinline__ void give_all(u32 to, u32 from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "r"(from), "r"(bytes), "r"(barrier) : "memory");
}
__device__ __forceinline__ void prepare(u32 barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(u32 barrier, u32 phase) {
    u32 done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
}
// All blocks of the cluster are there: before the first byte is sent, and before a block that may be sent to ends.
__device__ __forceinline__ void meet() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Tensor cores read shared memory past the ordinary path: what was stored must be made visible to them.
__device__ __forceinline__ void show_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A tile of K rows and NB columns as the tensor cores want it: blocks of 8 x 8 elements, each column's 8 in a row.
__device__ __forceinline__ u32 tile_byte(int k, int n) { return (k >> 3) * (NB * 16) + (n >> 3) * 128 + (n & 7) * 16 + (k & 7) * 2; }
__device__ __forceinline__ u64 descriptor(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(NB * 16 >> 4) << 16 | (u64)(128 >> 4) << 32;
}

#if NB == 8
#define SHAPE "m64n8k16"
#define SUMS "{%0, %1, %2, %3}"
#define REST "{%4, %5, %6, %7}, %8, p, 1, 1, 0;\n}"
#define ADD "setp.ne.b32 p, %9, 0;\n"
#define SUM_OPERANDS "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define SHARED_REST "%4, %5, p, 1, 1, 0, 0;\n}"
#define SHARED_ADD "setp.ne.b32 p, %6, 0;\n"
#elif NB == 16
#define SHARED_REST "%8, %9, p, 1, 1, 0, 0;\n}"
#define SHARED_ADD "setp.ne.b32 p, %10, 0;\n"
#define SHAPE "m64n16k16"
#define SUMS "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define REST "{%8, %9, %10, %11}, %12, p, 1, 1, 0;\n}"
#define ADD "setp.ne.b32 p, %13, 0;\n"
#define SUM_OPERANDS "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#else
#define SHARED_REST "%16, %17, p, 1, 1, 0, 0;\n}"
#define SHARED_ADD "setp.ne.b32 p, %18, 0;\n"
#define SHAPE "m64n32k16"
#define SUMS "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define REST "{%16, %17, %18, %19}, %20, p, 1, 1, 0;\n}"
#define ADD "setp.ne.b32 p, %21, 0;\n"
#define SUM_OPERANDS "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#endif

__device__ __forceinline__ void multiply(float (&d)[ACCUMULATORS], const u32 (&a)[4], u64 b, int add) {
    asm volatile("{\n.reg .pred p;\n" ADD "wgmma.mma_async.sync.aligned." SHAPE ".f32.bf16.bf16 " SUMS ", " REST
                 : SUM_OPERANDS
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// A thread's sums of a 64-row tile, transposed: out[column][row].
__device__ __forceinline__ void spread(const float (&d)[ACCUMULATORS], float* out, int stride, int row, int column) {
#pragma unroll
    for (int n = 0; n < NB / 8; n++) {
        float* at = out + (n * 8 + column) * stride + row;
        at[0] = d[4 * n]; at[stride] = d[4 * n + 1];
        at[8] = d[4 * n + 2]; at[stride + 8] = d[4 * n + 3];
    }
}

// Beyond the longest of a cluster's sequences nothing happens, so nobody needs to step there.
__device__ __forceinline__ int longest_of(const int* lengths, int count) {
    int longest = 0;
    for (int place = 0; place < count; place++) longest = max(longest, lengths[place]);
    return longest;
}
