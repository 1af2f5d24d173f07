// Numbers at places, in the order of their words -> sums for each word, in bfloat16: what `segments._in_chunks` does.
//
// A block takes CHUNK places of one recurrence, a thread 8 columns of them, DEPTH rows at a time, so that many are on their
// way. Each row is read once and nobody reads it again: the cache is left to others.

#ifndef BLOCK_MEMORY                           // tests have their own
typedef unsigned short bf16;
typedef unsigned int u32;
#define BLOCK_MEMORY(name) extern __shared__ __align__(16) unsigned char name[]
#endif

// Rounded to even, as PyTorch does.
__device__ __forceinline__ u32 rounded(float x) { const u32 bits = __float_as_uint(x); return (bits + 0x7fff + (bits >> 16 & 1)) >> 16; }
__device__ __forceinline__ u32 both(float first, float second) { return rounded(first) | rounded(second) << 16; }

extern "C" __global__ void __launch_bounds__(THREADS) sums_in_chunks(
    const bf16* values, const int* order, const short* numbers, const int* empty, bf16* sums, float* edges, int shared, int places,
    int room, int columns, int across, int along, int chunks, int recurrences) {
    BLOCK_MEMORY(memory);
    int *place = (int*)memory, *word = place + CHUNK;
    const int chunk = blockIdx.x % chunks, part = blockIdx.x / chunks / recurrences, column = (part * THREADS + threadIdx.x) * 8;
    const int first = chunk * CHUNK, count = min(CHUNK, places - first);
    const long r = blockIdx.x / chunks % recurrences, n = r / shared, here = n * places + first;
    if (first + count <= empty[n]) return;                 // nobody there
    for (int i = threadIdx.x; i < CHUNK; i += THREADS) place[i] = i < count ? order[here + i] : 0, word[i] = i < count ? numbers[here + i] : -1;
    const int before = first > 0 ? numbers[here - 1] : -2, after = first + CHUNK < places ? numbers[here + CHUNK] : -2;
    __syncthreads();
    if (column >= columns) return;
    float sum[8] = {};
    int current = word[0];
    const auto done = [&]() {  // a word that goes on beyond its chunk leaves its part at the edge
        if (current == before || current == after) {
            float* to = edges + ((r * chunks + chunk) * 2 + (current != before)) * columns + column;
            *(float4*)to = make_float4(sum[0], sum[1], sum[2], sum[3]);
            *(float4*)(to + 4) = make_float4(sum[4], sum[5], sum[6], sum[7]);
        } else
            *(uint4*)(sums + ((n * room + current) * shared + r % shared) * columns + column) =
                make_uint4(both(sum[0], sum[1]), both(sum[2], sum[3]), both(sum[4], sum[5]), both(sum[6], sum[7]));
    };
    const bf16* from = values + r * across + column;
    for (int begin = 0; begin < count; begin += DEPTH) {
        uint4 row[DEPTH];
#pragma unroll
        for (int i = 0; i < DEPTH; i++) row[i] = __ldcs((const uint4*)(from + (long)place[begin + i] * along));
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            if (begin + i >= count) break;
            if (word[begin + i] != current) {
                done();
                current = word[begin + i];
#pragma unroll
                for (int e = 0; e < 8; e++) sum[e] = 0;
            }
            const u32 pairs[4] = {row[i].x, row[i].y, row[i].z, row[i].w};
#pragma unroll
            for (int e = 0; e < 4; e++) sum[2 * e] += __uint_as_float(pairs[e] << 16), sum[2 * e + 1] += __uint_as_float(pairs[e] & 0xffff0000u);
        }
    }
    done();
}
