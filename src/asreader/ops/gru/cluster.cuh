// What both kernels of recurrences are made of.

__device__ __forceinline__ float low(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ __forceinline__ void unpack(uint2 four, float* out) {
    out[0] = low(four.x); out[1] = high(four.x); out[2] = low(four.y); out[3] = high(four.y);
}
__device__ __forceinline__ uint2 packed(const float* in) { return make_uint2(paired(in[0], in[1]), paired(in[2], in[3])); }
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ __forceinline__ float hyperbolic(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

// A tile of K rows and NB columns as the tensor cores want it: blocks of 8 x 8 elements, each column's 8 in a row.
__device__ __forceinline__ u32 tile_byte(int k, int n) { return (k >> 3) * (NB * 16) + (n >> 3) * 128 + (n & 7) * 16 + (k & 7) * 2; }
__device__ __forceinline__ u64 descriptor(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(NB * 16 >> 4) << 16 | (u64)(128 >> 4) << 32;
}

__device__ __forceinline__ void end_products() {
    commit_products();
    products_left<0>();
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
