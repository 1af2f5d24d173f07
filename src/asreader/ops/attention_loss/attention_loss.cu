// States and questions -> scores, and sums of states weighted by their attention: what `pointing._partly` does, in bfloat16.
//
// A block takes a part of one document, a warp every eighth of its positions, a position's states of both directions spread
// over its lanes; DEPTH positions are on their way at the same time. A warp's sums are scaled by the greatest term that it
// has met, and meet the others' at the end.

#ifndef BLOCK_MEMORY                           // tests have their own
typedef unsigned short bf16;
typedef unsigned int u32;
#define BLOCK_MEMORY(name) extern __shared__ __align__(16) unsigned char name[]
#endif

#define IN_ALL (2 * HIDDEN / 8)                // runs of 8 units, of both directions
#define RUNS ((IN_ALL + 31) / 32)              // of a lane
#define LINE (RUNS * 8 * 32)                   // numbers of a warp's sums
#define LOWEST -1e30f

__device__ __forceinline__ void unpacked(const uint4& eight, float (&out)[8]) {
    const u32 pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int i = 0; i < 4; i++) out[2 * i] = __uint_as_float(pairs[i] << 16), out[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
}

// Sums of states, of which `top` is the greatest score, as a lane holds them: in registers, or 32 numbers apart in a line of
// shared memory, for the answer's, which are few.
struct Weighted {
    float top = LOWEST, total = 0;
    template <class At>
    __device__ __forceinline__ void scale(float factor, At at) {
        total *= factor;
#pragma unroll
        for (int i = 0; i < 8 * RUNS; i++) at(i) *= factor;
    }
    template <class At>
    __device__ __forceinline__ void add(float score, const uint4 (&state)[RUNS], At at) {
        if (score > top) scale(__expf(top - score), at), top = score;
        const float weight = __expf(score - top);
        total += weight;
#pragma unroll
        for (int j = 0; j < RUNS; j++) {
            float x[8];
            unpacked(state[j], x);
#pragma unroll
            for (int e = 0; e < 8; e++) at(8 * j + e) = fmaf(weight, x[e], at(8 * j + e));
        }
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, RUNS > 4 ? 1 : 2) point_partly(
    const bf16* states, const bf16* question, const unsigned char* readable, const unsigned char* answer_at, float* scores,
    float* greatest, float* totals, float* sums, int across, int T, int B, int length, int parts) {
    BLOCK_MEMORY(memory);
    float *lines = (float*)memory, *tops = lines + WARPS * LINE, *all = tops + WARPS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, part = blockIdx.x % parts;
    const long example = blockIdx.x / parts, n = example / B, b = example % B;
    const int begin = part * length, end = min(begin + length, T);
    float* const line = lines + warp * LINE + lane;
    const bf16* from[RUNS];                                // where the lane's part of position 0 is
    uint4 asked[RUNS];
    bool there[RUNS];
#pragma unroll
    for (int j = 0; j < RUNS; j++) {
        const int run = j * 32 + lane, direction = run >= IN_ALL / 2, unit = (run - direction * (IN_ALL / 2)) * 8;
        there[j] = run < IN_ALL;
        from[j] = states + (2 * n + direction) * (long)across + b * HIDDEN + unit;
        asked[j] = there[j] ? *(const uint4*)(question + ((2 * n + direction) * B + b) * HIDDEN + unit) : make_uint4(0, 0, 0, 0);
    }
    float sum[8 * RUNS];
    const auto held = [&](int i) -> float& { return sum[i]; };
    const auto laid = [&](int i) -> float& { return line[32 * i]; };
#pragma unroll
    for (int i = 0; i < 8 * RUNS; i++) held(i) = laid(i) = 0;
    Weighted every, own;
    for (int first = begin + warp; first < end; first += WARPS * DEPTH) {
        uint4 state[DEPTH][RUNS];
        bool may[DEPTH], does[DEPTH];
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            const int t = first + WARPS * i;
            const bool real = t < end;
#pragma unroll
            for (int j = 0; j < RUNS; j++)
                state[i][j] = real && there[j] ? __ldcs((const uint4*)(from[j] + (long)t * B * HIDDEN)) : make_uint4(0, 0, 0, 0);
            may[i] = real && readable[example * T + t], does[i] = real && answer_at[example * T + t];
        }
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            float score = 0;
#pragma unroll
            for (int j = 0; j < RUNS; j++) {
                float x[8], q[8];
                unpacked(state[i][j], x), unpacked(asked[j], q);
#pragma unroll
                for (int e = 0; e < 8; e++) score = fmaf(x[e], q[e], score);
            }
            for (int apart = 16; apart; apart >>= 1) score += __shfl_xor_sync(0xffffffffu, score, apart);
            if (lane == 0 && first + WARPS * i < end) scores[example * T + first + WARPS * i] = score;
            if (may[i]) every.add(score, state[i], held);
            if (does[i]) own.add(score, state[i], laid);
        }
    }
    // The warps' sums become the block's: first the answer's, which lie there already.
    const auto met = [&](const Weighted& mine, int kind) {
        const long to = (example * parts + part) * 2 + kind;
        if (lane == 0) tops[warp] = mine.top, all[warp] = mine.total;
        __syncthreads();
        float top = LOWEST, total = 0, factor[WARPS];
        for (int other = 0; other < WARPS; other++) top = fmaxf(top, tops[other]);
        for (int other = 0; other < WARPS; other++) total += all[other] * (factor[other] = __expf(tops[other] - top));
        if (threadIdx.x == 0) greatest[to] = top, totals[to] = total;
        for (int place = threadIdx.x; place < LINE; place += 32 * WARPS) {
            const int unit = (place / 256 * 32 + place % 32) * 8 + place / 32 % 8;
            float whole = 0;
            for (int other = 0; other < WARPS; other++) whole += factor[other] * lines[other * LINE + place];
            if (unit < 2 * HIDDEN) sums[to * 2 * HIDDEN + unit] = whole;
        }
        __syncthreads();
    };
    met(own, 1);
#pragma unroll
    for (int i = 0; i < 8 * RUNS; i++) laid(i) = held(i);
    met(every, 0);
}
