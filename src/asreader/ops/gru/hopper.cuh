// What a Hopper GPU does and C++ has no word for. The kernels use nothing else of the kind, so that tests/ops can put
// another file in the place of this one and run them on a CPU.
//
// H (units of a state), U (of them in a block), CS (blocks of a cluster) and NB (sequences of a cluster: 8, 16 or 32)
// come from the compiler's command line.

typedef unsigned short bf16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ACCUMULATORS (NB / 2)

#define BLOCK_MEMORY(name) extern __shared__ __align__(1024) unsigned char name[]

__device__ __forceinline__ u32 paired(float first, float second) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
__device__ __forceinline__ float quick_tanh(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }

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
__device__ __forceinline__ void give(u32 address, uint2 value, u32 barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                 ::"r"(address), "r"(value.x), "r"(value.y), "r"(barrier) : "memory");
}
// A barrier's turn is over when `count` have arrived and all bytes have come that they expect.
__device__ __forceinline__ void prepare(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(u32 barrier, u32 phase) {
    u32 done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
}
// All four warps of a group are there.
__device__ __forceinline__ void four_warps_meet(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }
// Those who move the data of a group are there.
__device__ __forceinline__ void movers_meet(int group, int count) { asm volatile("bar.sync %0, %1;" ::"r"(group + 3), "r"(count) : "memory"); }
// A block's registers are dealt anew: of three warpgroups two need most of them.
__device__ __forceinline__ void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory"); }
__device__ __forceinline__ void leave_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory"); }
// All blocks of the cluster are there: before the first byte is sent, and before a block that may be sent to ends.
__device__ __forceinline__ void meet() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Tensor cores read shared memory past the ordinary path: what was stored must be made visible to them.
__device__ __forceinline__ void show_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// From shared memory to memory, by a thread that waits until all it has told so has been read, or is there.
__device__ __forceinline__ void store_all(void* to, u32 from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void all_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void all_stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// 8 x 8 blocks between a tile, where a sequence's 8 units lie side by side, and threads that hold one unit's sequences.
__device__ __forceinline__ void take_two(u32 (&out)[2], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(out[0]), "=r"(out[1]) : "r"(address) : "memory");
}
__device__ __forceinline__ void put_two(u32 address, u32 first, u32 second) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(first), "r"(second) : "memory");
}
__device__ __forceinline__ void fetch_16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void clear_16(u32 to) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
}
// Into the second-level cache, before it is wanted: nothing else hides the way from memory.
__device__ __forceinline__ void foresee(const void* from, u32 bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }

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
__device__ __forceinline__ void multiply_shared(float (&d)[ACCUMULATORS], u64 a, u64 b, int add) {
    asm volatile("{\n.reg .pred p;\n" SHARED_ADD "wgmma.mma_async.sync.aligned." SHAPE ".f32.bf16.bf16 " SUMS ", " SHARED_REST
                 : SUM_OPERANDS : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// All products are done but those of the LEFT youngest commits.
template <int LEFT>
__device__ __forceinline__ void products_left() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }
// Nothing that uses this sum may be moved to before here.
__device__ __forceinline__ void settled(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
