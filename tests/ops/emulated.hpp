// What stands in for hopper.cuh on a CPU: every thread of a cluster is a fiber, and whatever a GPU leaves open is drawn by
// lot. Which thread goes on, when a copy arrives, whether a product is made when it is begun or only when it is waited for:
// a kernel is right if its results are, whatever the lot. Memory begins as NaN; what waits for ever, or points beyond the
// block's memory, ends the run with a message.

#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__
#define __cluster_dims__(...)
#define __launch_bounds__(...)

typedef unsigned short bf16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct int2 { int x, y; };
struct uint2 { u32 x, y; };
struct float2 { float x, y; };
inline float2 make_float2(float x, float y) { return {x, y}; }
struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class Value> inline Value __ldcs(const Value* place) { return *place; }
inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline u32 __float_as_uint(float value) { u32 bits; memcpy(&bits, &value, 4); return bits; }
inline u32 __byte_perm(u32 first, u32 second, u32 which) {
    u32 out = 0;
    for (int i = 0; i < 4; i++) out |= (u32)(((u64)second << 32 | first) >> (which >> 4 * i & 7) * 8 & 255) << 8 * i;
    return out;
}
inline float __uint_as_float(u32 bits) { float value; memcpy(&value, &bits, 4); return value; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }

#define ACCUMULATORS (NB / 2)
#define STACK 131072
#define GUARD 4096  // bytes behind a block's memory that must stay as they are

namespace emulated {

struct Product {  // of one lane: what `multiply` was given
    float* sum;
    u32 weights[4];
    u64 left, right;
    bool shared, add;
};
struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    struct { u32 x; } thread, block;
    u32 rank;
    int copies = 0, stores = 0;                // on their way to it, or from it
    int* awaited = nullptr;                    // which of them it waits for
    std::vector<Product> open;
    std::vector<std::vector<Product>> begun;   // by commits
    u32 commits = 0;
    void* said[3];                             // what a lane brings to its warp
};
struct Barrier { u32 count, pending; long bytes; u32 turn; std::vector<Thread*> waiting; };
struct Gathering { size_t there = 0; std::vector<Thread*> waiting; };

static std::vector<Thread> threads;
static std::vector<std::vector<unsigned char>> rooms;
static std::vector<Thread*> ready;
static std::vector<std::function<void()>> travelling, dawdling;  // copies; the second come when nobody can go on without
static std::map<u32, Barrier> barriers;
static std::map<u64, Gathering> gatherings;
static std::function<void()> kernel;
static ucontext_t scheduler;
static Thread* now;
static std::mt19937 lot;
static u32 seed, room_bytes;
static const char* wrong;
static bool ended;

inline void fail(const char* what) { if (!wrong) wrong = what; }
inline unsigned char* at(u32 address, u32 bytes) {
    const u32 rank = address >> 24, offset = address & 0xffffff;
    if (rank < rooms.size() && offset + bytes <= room_bytes) return rooms[rank].data() + offset;
    fail("an address beyond the block's memory");
    return rooms[0].data();
}
inline void travel(std::function<void()> arrives) { (lot() % 4 ? travelling : dawdling).push_back(std::move(arrives)); }
inline void arrive_one(std::vector<std::function<void()>>& copies) {
    const size_t which = lot() % copies.size();
    std::swap(copies[which], copies.back());
    const auto arrives = std::move(copies.back());
    copies.pop_back(), arrives();
}
inline void rest() { ended = false, swapcontext(&now->context, &scheduler); }
inline void one_less(Thread* own, int& count) {
    if (--count == 0 && own->awaited == &count) own->awaited = nullptr, ready.push_back(own);
}
inline void until_none(int& count) { if (count) now->awaited = &count, rest(); }
inline void wake(std::vector<Thread*>& waiting) { ready.insert(ready.end(), waiting.begin(), waiting.end()), waiting.clear(); }

// All `count` threads that say the same key; the last one acts for all before they go on.
inline void gather(u64 key, size_t count, const std::function<void()>& act = nullptr) {
    Gathering& here = gatherings[key];
    if (++here.there < count) { here.waiting.push_back(now), rest(); return; }
    if (act) act();
    here.there = 0, wake(here.waiting);
}
inline Thread* lane(int number) { return now - (now->thread.x & 31) + number; }
inline void with_warp(const std::function<void()>& act) { gather((u64)1 << 40 | (u64)(now - threads.data()) / 32, 32, act); }

inline void settle(Barrier& barrier) {
    if (barrier.pending || barrier.bytes) return;
    barrier.pending = barrier.count, barrier.turn ^= 1, wake(barrier.waiting);
}
inline void come(u32 barrier, u32 bytes) { barriers[barrier].bytes -= bytes, settle(barriers[barrier]); }

inline float number(bf16 bits) { return __uint_as_float((u32)bits << 16); }
inline float element(u64 descriptor, int outer, int k) {  // of a tile: blocks of 8 x 8, rows of 16 bytes
    const u32 start = (descriptor & 0x3fff) << 4, along = (descriptor >> 16 & 0x3fff) << 4, across = (descriptor >> 32 & 0x3fff) << 4;
    bf16 bits;
    memcpy(&bits, at(now->rank << 24 | (start + k / 8 * along + outer / 8 * across + outer % 8 * 16 + k % 8 * 2), 2), 2);
    return number(bits);
}
// One product of a whole warp, from what its 32 lanes brought.
inline void make(size_t commit, size_t place) {
    float left[16][16];
    const Product& first = lane(0)->begun[commit][place];
    const int warp = now->thread.x / 32 % 4;
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < 16; k++) {
            const Product& owner = lane(m % 8 * 4 + k % 8 / 2)->begun[commit][place];
            left[m][k] = first.shared ? element(first.left, warp * 16 + m, k) : number(owner.weights[m / 8 + k / 8 * 2] >> (k % 2 * 16));
        }
    for (int n = 0; n < NB; n++) {
        float right[16];
        for (int k = 0; k < 16; k++) right[k] = element(first.right, n, k);
        for (int m = 0; m < 16; m++) {
            float* sum = lane(m % 8 * 4 + n % 8 / 2)->begun[commit][place].sum + n / 8 * 4 + m / 8 * 2 + n % 2;
            float total = first.add ? *sum : 0;
            for (int k = 0; k < 16; k++) total += left[m][k] * right[k];
            *sum = total;
        }
    }
}
inline void make_all_but(size_t left) {
    for (size_t commit = 0; commit + left < now->begun.size(); commit++)
        for (size_t place = 0; place < now->begun[commit].size(); place++) make(commit, place);
    for (int i = 0; i < 32; i++) {
        auto& begun = lane(i)->begun;
        if (begun.size() > left) begun.erase(begun.begin(), begun.end() - left);
    }
}

inline void live() { kernel(), ended = true, swapcontext(&now->context, &scheduler); }

inline const char* run(int clusters, int blocks, int size, u32 bytes, u32 number, const std::function<void()>& body) {
    kernel = body, seed = number, room_bytes = bytes, wrong = nullptr, lot.seed(number);
    for (int cluster = 0; cluster < clusters && !wrong; cluster++) {
        barriers.clear(), gatherings.clear(), travelling.clear(), dawdling.clear(), ready.clear();
        rooms.assign(blocks, std::vector<unsigned char>(bytes + GUARD, 0xff));
        threads = std::vector<Thread>(blocks * size);
        for (int i = 0; i < blocks * size; i++) {
            Thread& own = threads[i];
            own.stack.reset(new char[STACK]), own.rank = i / size;
            own.thread.x = i % size, own.block.x = cluster * blocks + i / size;
            getcontext(&own.context);
            own.context.uc_stack.ss_sp = own.stack.get(), own.context.uc_stack.ss_size = STACK, own.context.uc_link = nullptr;
            makecontext(&own.context, live, 0);
            ready.push_back(&own);
        }
        size_t done = 0;
        while (!wrong && done < threads.size()) {
            if (!travelling.empty() && (ready.empty() || lot() % 8 == 0)) { arrive_one(travelling); continue; }
            if (ready.empty() && !dawdling.empty()) { arrive_one(dawdling); continue; }
            if (ready.empty()) { fail("all threads wait for ever"); break; }
            const size_t which = lot() % ready.size();
            std::swap(ready[which], ready.back());
            now = ready.back(), ready.pop_back();
            swapcontext(&scheduler, &now->context);
            done += ended;
        }
        if (!wrong && travelling.size() + dawdling.size()) fail("a block ended before its copies had come");
        for (auto& room : rooms)
            for (size_t i = bytes; i < room.size(); i++) if (room[i] != 0xff) fail("a block wrote beyond its memory");
    }
    return wrong;
}

}  // namespace emulated

#define threadIdx (emulated::now->thread)
#define blockIdx (emulated::now->block)
#define BLOCK_MEMORY(name) unsigned char* name = emulated::rooms[emulated::now->rank].data()

inline u32 paired(float first, float second) {
    u32 half[2];
    const float given[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        u32 bits;
        memcpy(&bits, &given[i], 4);
        half[i] = std::isnan(given[i]) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;  // to the nearest, ties to even
    }
    return half[0] | half[1] << 16;
}
inline float quick_tanh(float x) { return tanhf(x); }

inline void __syncthreads() { emulated::gather((u64)2 << 40 | emulated::now->rank, emulated::threads.size() / CS); }
inline void __syncwarp() { emulated::with_warp(nullptr); }
inline float __shfl_xor_sync(u32, float value, int other) {
    float got;
    emulated::now->said[0] = &value, emulated::now->said[1] = &got;
    emulated::with_warp([other] {
        for (int i = 0; i < 32; i++) *(float*)emulated::lane(i)->said[1] = *(float*)emulated::lane(i ^ other)->said[0];
    });
    return got;
}

inline u32 cluster_rank() { return emulated::now->rank; }
inline u32 shared_address(const void* pointer) {
    return (u32)((const unsigned char*)pointer - emulated::rooms[emulated::now->rank].data()) | emulated::now->rank << 24;
}
inline u32 in_block(u32 address, u32 rank) { return (address & 0xffffff) | rank << 24; }
inline void send(u32 to, const void* value, u32 bytes, u32 barrier) {
    std::vector<unsigned char> copy((const unsigned char*)value, (const unsigned char*)value + bytes);
    emulated::travel([=] { memcpy(emulated::at(to, bytes), copy.data(), bytes), emulated::come(barrier, bytes); });
}
inline void give(u32 to, uint4 value, u32 barrier) { send(to, &value, 16, barrier); }
inline void give(u32 to, uint2 value, u32 barrier) { send(to, &value, 8, barrier); }
inline void give_all(u32 to, u32 from, u32 bytes, u32 barrier) {
    emulated::travel([=] { memcpy(emulated::at(to, bytes), emulated::at(from, bytes), bytes), emulated::come(barrier, bytes); });
}
inline void prepare(u32 barrier, u32 count) { emulated::at(barrier, 8), emulated::barriers[barrier] = {count, count, 0, 0, {}}; }
inline void arrive(u32 barrier, u32 bytes) {
    emulated::Barrier& own = emulated::barriers.at(barrier);
    own.pending--, own.bytes += bytes, emulated::settle(own);
}
inline void await(u32 barrier, u32 turn) {
    emulated::Barrier& own = emulated::barriers.at(barrier);
    while (own.turn == turn) own.waiting.push_back(emulated::now), emulated::rest();
}
inline void four_warps_meet(int group) { emulated::gather((u64)(4 + group) << 40 | emulated::now->rank, 128); }
inline void movers_meet(int group, int count) { emulated::gather((u64)(6 + group) << 40 | emulated::now->rank, count); }
inline void take_registers() {}
inline void leave_registers() {}
inline void meet() { emulated::gather((u64)3 << 40, emulated::threads.size()); }
inline void show_tensor_cores() {}

// Lanes 0 to 15 say where the rows of two 8 x 8 blocks lie; a lane's pair is of one column.
template <class Act>
inline void move_two(u32 address, u32* pairs, Act act) {
    emulated::now->said[0] = &address, emulated::now->said[1] = pairs;
    emulated::with_warp([act] {
        for (int i = 0; i < 32; i++)
            for (int block = 0; block < 2; block++)
                for (int half = 0; half < 2; half++) {
                    const u32 row = *(u32*)emulated::lane(block * 8 + i % 4 * 2 + half)->said[0];
                    act((bf16*)emulated::at(row + i / 4 * 2, 2), (u32*)emulated::lane(i)->said[1] + block, half * 16);
                }
    });
}
inline void take_two(u32 (&out)[2], u32 address) {
    out[0] = out[1] = 0;
    move_two(address, out, [](bf16* place, u32* pair, int shift) { *pair |= (u32)*place << shift; });
}
inline void put_two(u32 address, u32 first, u32 second) {
    u32 pairs[2] = {first, second};
    move_two(address, pairs, [](bf16* place, u32* pair, int shift) { *place = *pair >> shift; });
}
inline void fetch_16(u32 to, const void* from) {
    emulated::Thread* own = emulated::now;
    own->copies++;
    emulated::travel([=] { memcpy(emulated::at(to, 16), from, 16), emulated::one_less(own, own->copies); });
}
inline void clear_16(u32 to) { memset(emulated::at(to, 16), 0, 16); }
inline void fetched() { emulated::until_none(emulated::now->copies); }
inline void foresee(const void*, u32) {}
inline void store_all(void* to, u32 from, u32 bytes) {
    emulated::Thread* own = emulated::now;
    own->stores++;
    emulated::travel([=] { memcpy(to, emulated::at(from, bytes), bytes), emulated::one_less(own, own->stores); });
}
inline void all_stored() { emulated::until_none(emulated::now->stores); }
inline void all_read() { all_stored(); }

inline void begin_products() {}
inline void multiply(float (&sum)[ACCUMULATORS], const u32 (&left)[4], u64 right, int add) {
    emulated::now->open.push_back({sum, {left[0], left[1], left[2], left[3]}, 0, right, false, add != 0});
}
inline void multiply_shared(float (&sum)[ACCUMULATORS], u64 left, u64 right, int add) {
    emulated::now->open.push_back({sum, {}, left, right, true, add != 0});
}
inline void commit_products() {
    emulated::Thread* own = emulated::now;
    own->begun.push_back(std::move(own->open)), own->open.clear();
    const u32 warp = (own - emulated::threads.data()) / 32;
    if ((emulated::seed + warp * 7919 + own->commits++ * 104729) * 2654435761u >> 31) emulated::with_warp([] { emulated::make_all_but(0); });
}
template <int LEFT>
inline void products_left() { emulated::with_warp([] { emulated::make_all_but(LEFT); }); }
inline void settled(float&) {}

// A kernel's arguments, each in eight bytes of its own.
template <class... Given, size_t... Place>
inline const char* launched(void (*kernel)(Given...), void** given, int blocks, int size, int bytes, int seed, std::index_sequence<Place...>) {
    return emulated::run(blocks / CS, CS, size, bytes, seed, [=] { kernel(*(Given*)given[Place]...); });
}
template <class... Given>
inline const char* launch(void (*kernel)(Given...), void** given, int blocks, int size, int bytes, int seed) {
    return launched(kernel, given, blocks, size, bytes, seed, std::index_sequence_for<Given...>());
}
