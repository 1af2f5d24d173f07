// Recurrences of many GRUs at once: each for NB sequences, by a cluster of CS thread blocks that stay for all of them.
//
// Block `rank` owns U = H / CS units, a warp 16 of them, for which it multiplies the rows of all three gates: so a thread
// finds reset, update and new of the same unit and sequence in its own registers. Of the weights so many live in registers
// as fit, the others in shared memory (FORWARD_HELD, BACKWARD_HELD). Forward, a warp multiplies with the whole state before,
// writes its new units as a tile the tensor cores can read, and copies them to the other blocks. Backward, every block
// multiplies its own gates' gradients with the transposed weights and hands each other block its share of the sums, thread
// to thread. What the forward pass keeps for the backward one is kept as the threads hold it.

#define GROUPS (U / 64)                        // warpgroups of a block
#define WARPS (4 * GROUPS)
#define THREADS (32 * WARPS)
#define EIGHTS (NB / 8)
#define LINE (NB * 16 + 16)                    // bytes of 8 units in a tile; so that reading many lines meets all banks
#define TILE(units) ((units) / 8 * LINE)
#define OWN TILE(16)                           // a warp's units
#define SHARE (U * NB * 2)                     // bytes of sums that a block hands to another
#define FORWARD_STEPS (H / 16)
#define BACKWARD_STEPS (3 * U / 16)
#define KEPT 5                                 // numbers kept for each unit
#if NB == 8
typedef uint2 Run;
#else
typedef uint4 Run;
#endif
#define RUNS ((NB + 15) / 16)                  // a thread's NB / 2 numbers are so many Runs
#define MOVES ((NB + 15) / 16)                 // in which a warp moves its units of all sequences

__device__ __forceinline__ float quick_sigmoid(float x) { return fmaf(quick_tanh(0.5f * x), 0.5f, 0.5f); }
__device__ __forceinline__ u32 word(const uint4& four, int i) { return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w; }
__device__ __forceinline__ u32 word(const uint2& two, int i) { return i ? two.y : two.x; }
__device__ __forceinline__ void collect(uint4& out, const u32* in) { out = make_uint4(in[0], in[1], in[2], in[3]); }
__device__ __forceinline__ void collect(uint2& out, const u32* in) { out = make_uint2(in[0], in[1]); }
#define PER_RUN (sizeof(Run) / 4)
#define AHEAD 2                                // steps, for which what will be wanted is brought near

// A tile of K units and NB sequences as the tensor cores want it: each sequence's 8 units side by side.
__device__ __forceinline__ u64 tile_descriptor(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(LINE >> 4) << 16 | (u64)(128 >> 4) << 32;
}
// A 64 x 16 tile of weights in shared memory: blocks of 8 x 8, rows of 16 bytes.
#define WEIGHT_TILE 2048
__device__ __forceinline__ u64 weight_descriptor(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(1024 >> 4) << 16 | (u64)(128 >> 4) << 32;
}
// The weights of a warpgroup's TILES tiles of STEPS products: the first HELD products' in registers, the others' in
// shared memory. `at(tile, row, k)` is where the element of weights lies.
template <int TILES, int STEPS, int HELD, class At>
__device__ __forceinline__ void load_weights(u32 (&held)[TILES][HELD][4], unsigned char* shared, const bf16* weights, At at) {
    const int lane = threadIdx.x & 31, in_group = threadIdx.x & 127, row = (in_group >> 5) * 16 + (lane >> 2), column = (lane & 3) * 2;
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int k = 0; k < HELD; k++)
#pragma unroll
            for (int part = 0; part < 4; part++) {
                const int m = row + (part & 1) * 8, n = k * 16 + column + (part >> 1) * 8;
                held[tile][k][part] = (u32)weights[at(tile, m, n)] | (u32)weights[at(tile, m, n + 1)] << 16;
            }
    for (int tile = 0; tile < TILES; tile++)
        for (int k = HELD; k < STEPS; k++)
            for (int place = in_group; place < 1024; place += 128) {
                const int m = place & 63, n = place >> 6;
                bf16* to = (bf16*)(shared + (tile * (STEPS - HELD) + k - HELD) * WEIGHT_TILE + (n >> 3) * 1024 + (m >> 3) * 128 + (m & 7) * 16 + (n & 7) * 2);
                *to = weights[at(tile, m, k * 16 + n)];
            }
}
// The products of tiles FROM to TO - 1. Weights of both kinds are taken by turns, as long as there are: while some are read
// from shared memory, others are used.
template <int FROM, int TO, int STEPS, int HELD, int TILES>
__device__ __forceinline__ void products(float (&sum)[TILES][ACCUMULATORS], const u32 (&held)[TILES][HELD][4], u32 shared, u32 tile_address) {
    constexpr int BOTH = HELD < STEPS - HELD ? HELD : STEPS - HELD;
    begin_products();
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        const int k = i < 2 * BOTH ? (i & 1 ? HELD + i / 2 : i / 2) : HELD > BOTH ? i - BOTH : i;
        const u64 right = tile_descriptor(tile_address + k * 2 * LINE);
#pragma unroll
        for (int tile = FROM; tile < TO; tile++)
            if (k < HELD) multiply(sum[tile], held[tile][k < HELD ? k : 0], right, i > 0);
            else multiply_shared(sum[tile], weight_descriptor(shared + (tile * (STEPS - HELD) + k - HELD) * WEIGHT_TILE), right, i > 0);
    }
    commit_products();
}
// All but the LEFT products that were begun last; the sums may not be looked at before.
template <int FROM, int TO, int LEFT, int TILES>
__device__ __forceinline__ void products_done(float (&sum)[TILES][ACCUMULATORS]) {
    products_left<LEFT>();
#pragma unroll
    for (int tile = FROM; tile < TO; tile++)
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++) settled(sum[tile][i]);
}

#define NOTES (KEPT * RUNS * THREADS)          // Runs that a block keeps of a step

// Registers are full of weights: where anything lies is one pointer to the first step, and one number from step to step.
struct Place {  // what a thread is in charge of
    int lane, warp, group, chunk, first, back, longest, count;
    u32 rank;
    long r;
    __device__ Place(const int* lengths, int B, int chunks) {
        lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = warp >> 2, rank = cluster_rank();
        r = blockIdx.x / CS / chunks, chunk = blockIdx.x / CS % chunks, first = chunk * NB, back = r & 1;
        count = min(NB, B - first), longest = longest_of(lengths + (r >> 1) * B + first, count);
    }
    __device__ int unit() const { return rank * U + warp * 16; }  // the first of the warp's
    __device__ u32 blocks() const { return (lane >> 3 & 1) * LINE + (lane & 7) * 16; }  // of 8 x 8, that lanes point at
    __device__ long notes(int T, int t, int chunks) const {  // where a thread's of a step begin, in Runs
        return (((r * T + t) * chunks + chunk) * CS + rank) * NOTES + threadIdx.x;
    }
    __device__ int size(const int* lengths, int B) const {  // of the sequence whose number is the thread's
        return (int)threadIdx.x < count ? lengths[(r >> 1) * B + first + threadIdx.x] : 0;
    }
};

extern "C" __global__ void __cluster_dims__(CS, 1, 1) __launch_bounds__(THREADS, 1) gru_forward(
    const bf16* table, const int* index, const bf16* weights, const float* biases, const int* lengths, bf16* states,
    unsigned char* kept, int rows, int T, int B, int chunks, int keep) {
    BLOCK_MEMORY(room);
    unsigned char* before = room;                          // two tiles of the whole state, by turns
    unsigned char* given = before + 2 * TILE(H);           // three tiles of the gates' inputs
    unsigned char* matrix = given + 3 * TILE(U);
    int* sizes = (int*)(matrix + GROUPS * 3 * (FORWARD_STEPS - FORWARD_HELD) * WEIGHT_TILE);
    const u32 barriers = shared_address(sizes + NB);
    const Place at(lengths, B, chunks);
    const int lane = at.lane, longest = at.longest, way = at.back ? -1 : 1, begin = at.back ? longest - 1 : 0;

    u32 held[3][FORWARD_HELD][4];
    matrix += at.group * 3 * (FORWARD_STEPS - FORWARD_HELD) * WEIGHT_TILE;
    load_weights<3, FORWARD_STEPS, FORWARD_HELD>(held, matrix, weights, [&](int gate, int m, int n) {
        return ((at.r * 3 + gate) * H + at.rank * U + at.group * 64 + m) * H + n;
    });
    for (int place = threadIdx.x; place < (2 * TILE(H) + 3 * TILE(U)) / 4; place += THREADS) ((u32*)room)[place] = 0;
    if (threadIdx.x < NB) sizes[threadIdx.x] = at.size(lengths, B);
    if (threadIdx.x < 2) prepare(barriers + 8 * threadIdx.x, WARPS);
    const float bias[2] = {biases[at.r * H + at.unit() + (lane >> 2)], biases[at.r * H + at.unit() + (lane >> 2) + 8]};

    // Between tiles and memory a warp moves its own units, so that it waits for no other: 8 of one sequence by each lane.
    const int sequence = lane >> 1, line = lane & 1;
    const u32 piece = line * LINE + sequence * 16;
    const bf16* inputs = table + ((at.r >> 1) * rows * 2 + at.back) * 3 * H + at.unit() + line * 8;
    const int* words = index + ((at.r >> 1) * T + begin) * B + at.first + sequence;
    bf16* out = states + ((at.r * (T + 2) + begin + 1) * B + at.first + sequence) * H + at.unit() + line * 8;
    Run* notebook = (Run*)kept + at.notes(T, begin, chunks);
    const int one_step = way * B, one_page = way * chunks * CS * NOTES;
    int row[MOVES];                                        // of the table, of what will be fetched next
    auto look_up = [&](int step) {
#pragma unroll
        for (int move = 0; move < MOVES; move++)
            row[move] = step < longest && sequence + 16 * move < at.count ? words[step * one_step + 16 * move] : -1;
    };
    auto fetch = [&]() {
#pragma unroll
        for (int move = 0; move < MOVES; move++) {
            if (row[move] < 0) continue;
            const bf16* from = inputs + (long)row[move] * (6 * H);
            const u32 to = shared_address(given) + at.warp * OWN + piece + 256 * move;
            for (int gate = 0; gate < 3; gate++) fetch_16(to + gate * TILE(U), from + gate * H);
        }
    };
    auto store_state = [&](int turn, long places, bool zero) {
#pragma unroll
        for (int move = 0; move < MOVES; move++) {
            if (sequence + 16 * move >= at.count) continue;
            const uint4 value = *(const uint4*)(before + turn * TILE(H) + TILE(at.unit()) + piece + 256 * move);
            *(uint4*)(out + (places + 16 * move) * H) = zero ? make_uint4(0, 0, 0, 0) : value;
        }
    };
    float state[EIGHTS][4], sum[3][ACCUMULATORS];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) for (int e = 0; e < 4; e++) state[j][e] = 0;
    show_tensor_cores();
    __syncthreads();
    meet();
    look_up(0);
    fetch();

    for (int step = 0; step < longest; step++) {
        const int t = begin + way * step, turn = step & 1;
        if (step) await(barriers + 8 * turn, ((step - 1) >> 1) & 1);
        products<0, 2, FORWARD_STEPS, FORWARD_HELD>(sum, held, shared_address(matrix), shared_address(before) + turn * TILE(H));
        products<2, 3, FORWARD_STEPS, FORWARD_HELD>(sum, held, shared_address(matrix), shared_address(before) + turn * TILE(H));
        look_up(step + 1);                                 // while tensor cores work
        if (step) store_state(turn, (step - 1) * one_step, false);
        fetched();
        __syncwarp();
        const u32 its = shared_address(given) + at.warp * OWN + at.blocks();
        products_done<0, 2, 1>(sum);
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)                   // reset and update, while the products for new are made
#pragma unroll
            for (int gate = 0; gate < 2; gate++) {
                u32 x[2];
                take_two(x, its + gate * TILE(U) + j * 128);
#pragma unroll
                for (int e = 0; e < 4; e++) sum[gate][4 * j + e] = quick_sigmoid(sum[gate][4 * j + e] + (e & 1 ? high(x[e >> 1]) : low(x[e >> 1])));
            }
        products_done<2, 3, 0>(sum);
        u32 notes[KEPT][2 * EIGHTS];
        const u32 mine = shared_address(before) + (turn ^ 1) * TILE(H) + TILE(at.unit());
#pragma unroll
        for (int j = 0; j < EIGHTS; j++) {
            u32 x[2];
            take_two(x, its + 2 * TILE(U) + j * 128);
            const int2 size = *(const int2*)(sizes + j * 8 + (lane & 3) * 2);
            float note[KEPT][4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int half = e >> 1, place = 4 * j + e;
                const float reset = sum[0][place], update = sum[1][place], product = sum[2][place] + bias[half];
                const float fresh = quick_tanh(fmaf(reset, product, e & 1 ? high(x[half]) : low(x[half])));
                const float apart = state[j][e] - fresh;
                if (t < (e & 1 ? size.y : size.x)) state[j][e] = fmaf(update, apart, fresh);
                const float to_new = (1 - update) * fmaf(-fresh, fresh, 1);
                note[0][e] = to_new;
                note[1][e] = apart * update * (1 - update);
                note[2][e] = to_new * product * reset * (1 - reset);
                note[3][e] = to_new * reset;
                note[4][e] = update;
            }
            for (int kind = 0; kind < KEPT; kind++)
                for (int half = 0; half < 2; half++) notes[kind][2 * j + half] = paired(note[kind][2 * half], note[kind][2 * half + 1]);
            put_two(mine + at.blocks() + j * 128, paired(state[j][0], state[j][1]), paired(state[j][2], state[j][3]));
        }
        show_tensor_cores();
        __syncwarp();
        if (step + 1 < longest) {
            const u32 barrier = barriers + 8 * (turn ^ 1);
            if (lane == at.rank) arrive(barrier, (CS - 1) * OWN);
            else if (lane < CS) give_all(in_block(mine, lane), mine, OWN, in_block(barrier, lane));
        }
        fetch();
        if (keep) {
            Run* here = notebook + step * one_page;
#pragma unroll
            for (int kind = 0; kind < KEPT; kind++)
#pragma unroll
                for (int run = 0; run < RUNS; run++) {
                    Run value;
                    collect(value, notes[kind] + run * PER_RUN);
                    here[(kind * RUNS + run) * THREADS] = value;
                }
        }
    }
    store_state(longest & 1, (longest - 1) * one_step, false);
    for (int t = longest; t < T; t++) store_state(longest & 1, (long)(t - begin) * B, at.back);  // beyond, the last state is handed on
    meet();
}

// Backward all threads of a block move 16 bytes at a time, 8 units of one sequence: whole lines of memory.
#define IN_A_ROW (U / 8)
#define AT_ONCE (THREADS / IN_A_ROW)
#define PASSES ((NB + AT_ONCE - 1) / AT_ONCE)
__device__ __forceinline__ int piece_line() { return threadIdx.x % IN_A_ROW; }
__device__ __forceinline__ int piece_sequence(int pass) { return threadIdx.x / IN_A_ROW + pass * AT_ONCE; }
__device__ __forceinline__ u32 piece_byte(int pass) { return piece_line() * LINE + piece_sequence(pass) * 16; }

extern "C" __global__ void __cluster_dims__(CS, 1, 1) __launch_bounds__(THREADS, 1) gru_backward(
    const bf16* gradients, const bf16* weights, const int* lengths, const unsigned char* kept, bf16* out, float* bias_sums,
    int T, int B, int chunks) {
    BLOCK_MEMORY(room);
    unsigned char* own = room;                             // tiles of this block's gates: reset, update, product; new
    unsigned char* outer = own + 4 * TILE(U);      // a tile of the gradient from outside
    unsigned char* shares = outer + TILE(U);               // [2][CS - 1][RUNS][THREADS] Runs, by turns
    unsigned char* matrix = shares + 2 * (CS - 1) * SHARE;
    int* sizes = (int*)(matrix + GROUPS * CS * (BACKWARD_STEPS - BACKWARD_HELD) * WEIGHT_TILE);
    const u32 barriers = shared_address(sizes + NB);
    const Place at(lengths, B, chunks);
    const int lane = at.lane, longest = at.longest, way = at.back ? 1 : -1, begin = at.back ? 0 : longest - 1;

    // Tile number i is block rank + i's share: so this block's own is always the first.
    u32 held[CS][BACKWARD_HELD][4];
    matrix += at.group * CS * (BACKWARD_STEPS - BACKWARD_HELD) * WEIGHT_TILE;
    load_weights<CS, BACKWARD_STEPS, BACKWARD_HELD>(held, matrix, weights, [&](int tile, int m, int n) {
        return ((at.r * 3 + n / U) * H + at.rank * U + n % U) * H + (at.rank + tile) % CS * U + at.group * 64 + m;
    });
    for (int place = threadIdx.x; place < TILE(U) / 4; place += THREADS) ((u32*)outer)[place] = 0;
    if (threadIdx.x < 2) prepare(barriers + 8 * threadIdx.x, WARPS);
    if (threadIdx.x < NB) sizes[threadIdx.x] = at.size(lengths, B);
    const bf16* outside = gradients + ((at.r * T + begin) * B + at.first + piece_sequence(0)) * H + at.rank * U + piece_line() * 8;
    bf16* result = out + ((at.r * T + begin) * B + at.first + piece_sequence(0)) * 4 * H + at.rank * U + piece_line() * 8;
    const Run* notebook = (const Run*)kept + at.notes(T, begin, chunks);
    const int one_step = way * B, one_page = way * chunks * CS * NOTES;
    auto there = [&](int pass) { return piece_sequence(pass) < at.count; };
    auto fetch = [&](int step) {
        const bf16* from = outside + (long)(step * one_step) * H;
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (there(pass)) fetch_16(shared_address(outer) + piece_byte(pass), from + pass * AT_ONCE * H);
    };
    auto store_gates = [&](int step, bool zero) {
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            if (!there(pass)) continue;
            bf16* here = result + ((long)(step * one_step) + pass * AT_ONCE) * (4 * H);
#pragma unroll
            for (int gate = 0; gate < 4; gate++) {         // in memory: product, reset, update, new
                const uint4 value = *(const uint4*)(own + gate * TILE(U) + piece_byte(pass));
                *(uint4*)(here + (gate == 2 ? 0 : gate == 3 ? 3 : gate + 1) * H) = zero ? make_uint4(0, 0, 0, 0) : value;
            }
        }
    };
    Run notes[KEPT][RUNS];
    auto recall = [&](int step) {
        const Run* here = notebook + step * one_page;
#pragma unroll
        for (int kind = 0; kind < KEPT; kind++)
#pragma unroll
            for (int run = 0; run < RUNS; run++) notes[kind][run] = here[(kind * RUNS + run) * THREADS];
    };
    auto foresee_all = [&](int step) {
        if (step >= longest) return;
        if (threadIdx.x == 0) foresee(notebook + step * one_page, NOTES * sizeof(Run));
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (piece_line() == 0 && there(pass)) foresee(outside + ((long)(step * one_step) + pass * AT_ONCE) * H, U * 2);
    };
    float carried[EIGHTS][4], bias_sum[2] = {0, 0}, sum[CS][ACCUMULATORS];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) for (int e = 0; e < 4; e++) carried[j][e] = 0;
    for (int t = longest; t < T; t++) {  // there the last state is handed on: its gradients belong to the last real step
        store_gates((t - begin) * way, true);
        if (at.back) continue;
        for (int j = 0; j < EIGHTS; j++)
            for (int e = 0; e < 4; e++) {
                const int n = j * 8 + (lane & 3) * 2 + (e & 1);
                if (n < at.count) carried[j][e] += __uint_as_float((u32)gradients[((at.r * T + t) * B + at.first + n) * H + at.unit() + (lane >> 2) + (e >> 1) * 8] << 16);
            }
    }
    show_tensor_cores();
    __syncthreads();
    fetch(0);
    recall(0);
    for (int ahead = 1; ahead < AHEAD; ahead++) foresee_all(ahead);
    fetched();
    meet();

    for (int step = 0; step < longest; step++) {
        const int t = begin + way * step, turn = step & 1;
        if (step) await(barriers + 8 * turn, ((step - 1) >> 1) & 1);
#pragma unroll
        for (int j = 0; j < EIGHTS; j++) {
            u32 from_outside[2];
            take_two(from_outside, shared_address(outer) + at.warp * OWN + at.blocks() + j * 128);
            float total[4];
#pragma unroll
            for (int e = 0; e < 4; e++)
                total[e] = carried[j][e] + (e & 1 ? high(from_outside[e >> 1]) : low(from_outside[e >> 1]));
            if (CS > 1 && step) {
#pragma unroll
                for (int other = 0; other < CS - 1; other++) {
                    const uint2 their = *(const uint2*)(shares + ((turn * (CS - 1) + other) * RUNS + j / 2 * (NB > 8)) * THREADS * sizeof(Run) + threadIdx.x * sizeof(Run) + (j & 1) * 8);
                    total[0] += low(their.x), total[1] += high(their.x), total[2] += low(their.y), total[3] += high(their.y);
                }
            }
            const int2 size = *(const int2*)(sizes + j * 8 + (lane & 3) * 2);
            u32 gate[4][2];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                u32 note[KEPT];
                for (int kind = 0; kind < KEPT; kind++) note[kind] = word(notes[kind][j / 2 * (NB > 8)], (j & 1) * 2 + half);
                float used[2];
                for (int i = 0; i < 2; i++) {
                    const bool real = t < (i ? size.y : size.x);
                    const float whole = total[2 * half + i];
                    used[i] = real ? whole : 0;
                    carried[j][2 * half + i] = real ? whole * (i ? high(note[4]) : low(note[4])) : whole;
                }
                const float product[2] = {used[0] * low(note[3]), used[1] * high(note[3])};
                bias_sum[half] += product[0] + product[1];
                gate[0][half] = paired(used[0] * low(note[2]), used[1] * high(note[2]));
                gate[1][half] = paired(used[0] * low(note[1]), used[1] * high(note[1]));
                gate[2][half] = paired(product[0], product[1]);
                gate[3][half] = paired(used[0] * low(note[0]), used[1] * high(note[0]));
            }
            for (int number = 0; number < 4; number++)
                put_two(shared_address(own) + number * TILE(U) + at.warp * OWN + at.blocks() + j * 128, gate[number][0], gate[number][1]);
        }
        show_tensor_cores();
        __syncthreads();
        if (step + 1 == longest) {
            store_gates(step, false);
            break;
        }
        // First the other blocks' shares, which have a way to go; this block's own while they travel.
        if (CS > 1) products<1, CS, BACKWARD_STEPS, BACKWARD_HELD>(sum, held, shared_address(matrix), shared_address(own));
        products<0, 1, BACKWARD_STEPS, BACKWARD_HELD>(sum, held, shared_address(matrix), shared_address(own));
        fetch(step + 1);                                   // while tensor cores work
        foresee_all(step + AHEAD);
        store_gates(step, false);
        if (CS > 1) products_done<1, CS, 1>(sum);
        const u32 barrier = barriers + 8 * (turn ^ 1);
#pragma unroll
        for (int tile = 1; tile < CS; tile++) {
            const u32 to = (at.rank + tile) % CS, there = in_block(shared_address(shares), to), its_barrier = in_block(barrier, to);
#pragma unroll
            for (int run = 0; run < RUNS; run++) {
                u32 some[PER_RUN];
                for (int i = 0; i < PER_RUN; i++) some[i] = paired(sum[tile][(run * PER_RUN + i) * 2], sum[tile][(run * PER_RUN + i) * 2 + 1]);
                Run value;
                collect(value, some);
                give(there + ((((turn ^ 1) * (CS - 1) + tile - 1) * RUNS + run) * THREADS + threadIdx.x) * sizeof(Run), value, its_barrier);
            }
        }
        recall(step + 1);
        fetched();
        products_done<0, 1, 0>(sum);
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++) carried[i / 4][i % 4] += sum[0][i];
        __syncwarp();
        if (lane == 0) arrive(barrier, (CS - 1) * SHARE / WARPS);
    }
    for (int half = 0; half < 2; half++) {
        float whole = bias_sum[half];
        whole += __shfl_xor_sync(0xffffffffu, whole, 1), whole += __shfl_xor_sync(0xffffffffu, whole, 2);
        if ((lane & 3) == 0) bias_sums[(at.r * chunks + at.chunk) * H + at.unit() + (lane >> 2) + half * 8] = whole;
    }
    meet();
}
