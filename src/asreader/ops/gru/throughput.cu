// Recurrences of many GRUs at once: each for NB sequences, by a cluster of CS thread blocks that stay for all of them.
//
// Block `rank` owns U = H / CS units, a warp 16 of them, for which it multiplies the rows of all three gates: so a thread
// finds reset, update and new of the same unit and sequence in its own registers. Of the weights so many live in registers
// as fit, the others in shared memory (FORWARD_HELD, BACKWARD_HELD). Forward, a warp multiplies with the whole state before,
// first with the part that its own block has made, while the others' is on its way; it writes its new units as a tile the
// tensor cores can read, and copies them to the other blocks. Backward, every block multiplies its own gates' gradients with
// the transposed weights and hands each other block its share of the sums, thread to thread. What the forward pass keeps for
// the backward one is kept as the threads hold it.

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
#define KEPT 4                                 // numbers kept for each unit; the last is two gates in a byte each
#if NB == 8
typedef uint2 Run;
#else
typedef uint4 Run;
#endif
#define RUNS ((NB + 15) / 16)                  // a thread's NB / 2 numbers are so many Runs

// sigmoid(2 x): weights and inputs of the gates that need it come halved, which costs them nothing.
__device__ __forceinline__ float sigmoid_of_twice(float x) { return fmaf(quick_tanh(x), 0.5f, 0.5f); }
__device__ __forceinline__ u32 halved(u32 x) { return (x & 0x7f80) > 0x80 ? x - 0x80 : x & 0x8000; }
__device__ __forceinline__ u32 both_halved(u32 two) { return halved(two & 0xffff) | halved(two >> 16) << 16; }
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
// Of STEPS products the weights of HELD are in registers, those of the others in shared memory, evenly mixed: while some are
// read from there, others are used. So many of those before product k are in registers:
template <int STEPS, int HELD>
__device__ __forceinline__ constexpr int held_before(int k) { return k * HELD / STEPS; }
template <int STEPS, int HELD>
__device__ __forceinline__ constexpr bool is_held(int k) { return held_before<STEPS, HELD>(k + 1) > held_before<STEPS, HELD>(k); }

// The weights of a warpgroup's TILES tiles, product k being that of numbers 16 k to 16 k + 15. Those for shared memory: each
// thread takes eight(tile, k), 16 bytes as they lie in memory, which `put` knows to spread. All of a tile's are asked for
// before the first is put down: the way to memory is long.
template <int TILES, int STEPS, int HELD, class Eight, class Put>
__device__ __forceinline__ void load_shared(unsigned char* shared, Eight eight, Put put) {
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        uint4 some[STEPS];
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            if (!is_held<STEPS, HELD>(k)) some[k] = eight(tile, k);
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            if (!is_held<STEPS, HELD>(k)) put(tile, shared + (tile * (STEPS - HELD) + k - held_before<STEPS, HELD>(k)) * WEIGHT_TILE, some[k]);
    }
}
// Those for registers, where `pair(tile, row, n)` are two of a row that lie side by side.
template <int TILES, int STEPS, int HELD, class Pair>
__device__ __forceinline__ void load_held(u32 (&held)[TILES][HELD][4], Pair pair) {
    const int lane = threadIdx.x & 31, in_group = threadIdx.x & 127, row = (in_group >> 5) * 16 + (lane >> 2), column = (lane & 3) * 2;
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            if (is_held<STEPS, HELD>(k))
#pragma unroll
                for (int part = 0; part < 4; part++) {
                    const int before = held_before<STEPS, HELD>(k);
                    held[tile][before < HELD ? before : 0][part] = pair(tile, row + (part & 1) * 8, k * 16 + column + (part >> 1) * 8);
                }
}
// Those for registers where they lie across: FEW products' weights at a time rest in shared memory as they are, row by row,
// and are turned on the way from there. eight(tile, k) is as above, of row `in_group & 15`.
#define ROW 144                                // bytes of 64 numbers; so that reading 8 rows meets all banks
template <int TILES, int STEPS, int HELD, int FEW, class Eight>
__device__ __forceinline__ void load_turned(u32 (&held)[TILES][HELD][4], unsigned char* rest, int group, Eight eight) {
    const int lane = threadIdx.x & 31, in_group = threadIdx.x & 127;
    unsigned char* to = rest + (in_group & 15) * ROW + (in_group >> 4) * 16;
    const u32 from = shared_address(rest) + (lane & 7) * ROW + (in_group >> 5) * 32 + (lane >> 3 & 1) * 16;
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int first = 0; first < HELD; first += FEW) {
            uint4 some[FEW];
#pragma unroll
            for (int k = 0; k < STEPS; k++) {
                const int number = held_before<STEPS, HELD>(k) - first;
                if (is_held<STEPS, HELD>(k) && number >= 0 && number < FEW) some[number < 0 || number >= FEW ? 0 : number] = eight(tile, k);
            }
#pragma unroll
            for (int number = 0; number < FEW; number++)
                if (first + number < HELD) *(uint4*)(to + number * 16 * ROW) = some[number];
            four_warps_meet(group);
#pragma unroll
            for (int number = 0; number < FEW; number++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    if (first + number >= HELD) continue;
                    u32 two[2];
                    take_two(two, from + (number * 16 + half * 8) * ROW);
                    held[tile][first + number < HELD ? first + number : 0][2 * half] = two[0];
                    held[tile][first + number < HELD ? first + number : 0][2 * half + 1] = two[1];
                }
            four_warps_meet(group);
        }
}
// Where a number stands in a tile.
__device__ __forceinline__ int weight_byte(int m, int n) { return (n >> 3) * 1024 + (m >> 3) * 128 + (m & 7) * 16 + (n & 7) * 2; }
// Products BEGIN to END - 1 of tiles FROM to TO - 1; `at(k)` is the address of the other factor's tile. Tensor cores make a warp
// wait that gives them more than they can take: what it does `beside(k)`, when it has given them product k, costs nothing.
template <int FROM, int TO, int BEGIN, int END, int STEPS, int HELD, int TILES, class At, class Beside>
__device__ __forceinline__ void products(float (&sum)[TILES][ACCUMULATORS], const u32 (&held)[TILES][HELD][4], u32 shared, At at, Beside beside) {
    begin_products();
#pragma unroll
    for (int k = BEGIN; k < END; k++) {
        const int before = held_before<STEPS, HELD>(k);
        const u64 right = tile_descriptor(at(k));
#pragma unroll
        for (int tile = FROM; tile < TO; tile++)
            if (is_held<STEPS, HELD>(k)) multiply(sum[tile], held[tile][before < HELD ? before : 0], right, k > 0);
            else multiply_shared(sum[tile], weight_descriptor(shared + (tile * (STEPS - HELD) + k - before) * WEIGHT_TILE), right, k > 0);
        beside(k);
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
#define PAGE (KEPT * RUNS * 32)                // and a warp

// Two numbers between 0 and 1 of two sequences, in a byte each. Added to 2^23 a float's last byte is its number.
__device__ __forceinline__ u32 in_bytes(float reset, float update, float second_reset, float second_update) {
    const float numbers[4] = {reset, update, second_reset, second_update};
    u32 bits[4];
    for (int i = 0; i < 4; i++) bits[i] = __float_as_uint(fmaf(numbers[i], 255.0f, 8388608.0f));
    return __byte_perm(__byte_perm(bits[0], bits[1], 0x0040), __byte_perm(bits[2], bits[3], 0x0040), 0x5410);
}
__device__ __forceinline__ float of_byte(u32 bytes, int which) {
    const float part = 1.0f / 255.0f;
    return fmaf(__uint_as_float(__byte_perm(bytes, 0x4b000000u, 0x7440 + which)), part, -8388608.0f * part);
}

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
    __device__ long notes(int T, int t, int chunks) const {  // where a warp's of a step begin, in Runs
        return (((r * T + t) * chunks + chunk) * CS + rank) * NOTES + warp * PAGE;
    }
    __device__ int size(const int* lengths, int B) const {  // of the sequence whose number is the thread's
        return (int)threadIdx.x < count ? lengths[(r >> 1) * B + first + threadIdx.x] : 0;
    }
};

#define NEAR (U / 16)                          // products with what the block itself has made; the others come after
#define PART (4 * PAGE * sizeof(Run))          // bytes that a warpgroup keeps of a step
#define MOVERS (128 / GROUPS)                  // threads that move the data of a warpgroup
#define AT_A_TIME (MOVERS / 8)                 // sequences that they move in one go: 8 units by each, whole lines by 8 of them
#define MOVES ((NB + AT_A_TIME - 1) / AT_A_TIME)

// What both sides of a block forward share. Barriers: a group's units of a step are made, by turns, and its inputs used; the
// other blocks' units have come, by turns; a group's inputs have come.
struct Rooms {
    unsigned char *before, *given, *matrix;                // two tiles of the state, by turns; inputs, then notes; weights
    int* sizes;
    u32 made, far, full;
    __device__ Rooms(unsigned char* room) {
        before = room, given = before + 2 * TILE(H), matrix = given + GROUPS * PART;
        sizes = (int*)(matrix + GROUPS * 3 * (FORWARD_STEPS - FORWARD_HELD) * WEIGHT_TILE);
        made = shared_address(sizes + NB), far = made + 16 * GROUPS, full = far + 16;
    }
};

// Those who move data: inputs from the table to the group whose units they are of, its new units to the other blocks and to
// memory, what it keeps to memory. So those who compute wait for no memory.
__device__ __forceinline__ void move_data(
    const Rooms& rooms, const Place& at, const bf16* table, const int* index, bf16* states, unsigned char* kept, int rows, int T, int B,
    int chunks, int keep) {
    const int own = threadIdx.x - THREADS, group = own / MOVERS, sequence = own % MOVERS / 8, line = own & 7, lane = own & 31;
    const int warp = own % MOVERS / 32;                    // among the movers of a group
    const int longest = at.longest, way = at.back ? -1 : 1, begin = at.back ? longest - 1 : 0, one_step = way * B;
    const bf16* inputs = table + ((at.r >> 1) * rows * 2 + at.back) * 3 * H + at.rank * U + group * 64 + line * 8;
    const int* words = index + ((at.r >> 1) * T + begin) * B + at.first + sequence;
    bf16* out = states + ((at.r * (T + 2) + begin + 1) * B + at.first + sequence) * H + at.rank * U + group * 64 + line * 8;
    Run* notebook = (Run*)kept + at.notes(T, begin, chunks) + (group * 4 - at.warp) * PAGE;
    const u32 to = shared_address(rooms.given) + group * PART + line / 2 * PAGE * sizeof(Run) + line % 2 * LINE + sequence * 16;
    const bool storing = warp == 1 && lane == 0;
    int row[MOVES];                                        // of the table, of what will be fetched next
    auto look_up = [&](int step) {
#pragma unroll
        for (int move = 0; move < MOVES; move++)
            row[move] = step < longest && sequence + AT_A_TIME * move < at.count ? words[step * one_step + AT_A_TIME * move] : -1;
    };
    auto store_state = [&](int turn, long places, bool zero) {
#pragma unroll
        for (int move = 0; move < MOVES; move++) {
            if (sequence + AT_A_TIME * move >= at.count) continue;
            const uint4 value = *(const uint4*)(rooms.before + turn * TILE(H) + TILE(at.rank * U + group * 64) + line * LINE + (sequence + AT_A_TIME * move) * 16);
            *(uint4*)(out + (places + AT_A_TIME * move) * H) = zero ? make_uint4(0, 0, 0, 0) : value;
        }
    };
    look_up(0);
    for (int step = 0; step < longest; step++) {
        const int turned = (step & 1) ^ 1;
        if (keep && storing) all_read();                   // what was kept is on its way, its place free for inputs
        movers_meet(group, MOVERS);
#pragma unroll
        for (int move = 0; move < MOVES; move++) {
            const bf16* from = inputs + (long)row[move] * (6 * H);
#pragma unroll
            for (int gate = 0; gate < 3; gate++) {
                const u32 place = to + gate * OWN + AT_A_TIME * 16 * move;
                if (row[move] >= 0) fetch_16(place, from + gate * H);
                else if (sequence + AT_A_TIME * move < NB) clear_16(place);  // of no sequence
            }
        }
        look_up(step + 1);
        fetched();
        __syncwarp();
        if (lane == 0) arrive(rooms.full + 8 * group, 0);
        await(rooms.made + 16 * group + 8 * turned, step >> 1 & 1);
        if (step + 1 < longest && warp == 0) {
            const u32 tile = shared_address(rooms.before) + turned * TILE(H) + TILE(at.rank * U + group * 64), barrier = rooms.far + 8 * turned;
            if (lane == 0) arrive(barrier, (CS - 1) * TILE(64));
            else if (lane < CS) give_all(in_block(tile, (at.rank + lane) % CS), tile, TILE(64), in_block(barrier, (at.rank + lane) % CS));
        }
        if (keep && storing) store_all(notebook + step * (way * chunks * CS * NOTES), shared_address(rooms.given) + group * PART, PART);
        store_state(turned, step * one_step, false);
    }
    for (int t = longest; t < T; t++) store_state(longest & 1, (long)(t - begin) * B, at.back);  // beyond, the last state is handed on
    for (int t = -1; t <= T; t += T + 1) store_state(0, (long)(t - begin) * B, true);  // before and behind all
    if (keep && storing) all_stored();
}

// Those who compute: products, gates, what is kept.
__device__ __forceinline__ void step_forward(const Rooms& rooms, const Place& at, const bf16* weights, const float* biases, int keep) {
    const int lane = at.lane, longest = at.longest, way = at.back ? -1 : 1, begin = at.back ? longest - 1 : 0;
    u32 held[3][FORWARD_HELD][4];
    const u32 matrix = shared_address(rooms.matrix) + at.group * 3 * (FORWARD_STEPS - FORWARD_HELD) * WEIGHT_TILE;
    const auto from = [&](int gate, int m, int n) {  // the block's own units come first
        return weights + ((at.r * 3 + gate) * H + at.rank * U + at.group * 64 + m) * H + (at.rank + n / U) % CS * U + n % U;
    };
    const int in_group = threadIdx.x & 127, m = in_group >> 1, eighth = in_group & 1;
    load_shared<3, FORWARD_STEPS, FORWARD_HELD>(
        rooms.matrix + at.group * 3 * (FORWARD_STEPS - FORWARD_HELD) * WEIGHT_TILE,
        [&](int gate, int k) { return *(const uint4*)from(gate, m, k * 16 + eighth * 8); },
        [&](int gate, unsigned char* tile, uint4 v) {
            if (gate < 2) v = make_uint4(both_halved(v.x), both_halved(v.y), both_halved(v.z), both_halved(v.w));
            *(uint4*)(tile + weight_byte(m, eighth * 8)) = v;
        });
    load_held<3, FORWARD_STEPS, FORWARD_HELD>(held, [&](int gate, int row, int n) {
        const u32 two = *(const u32*)from(gate, row, n);
        return gate < 2 ? both_halved(two) : two;
    });
    show_tensor_cores();
    four_warps_meet(at.group);
    const float bias[2] = {biases[at.r * H + at.unit() + (lane >> 2)], biases[at.r * H + at.unit() + (lane >> 2) + 8]};
    const u32 mine = shared_address(rooms.given) + at.warp * PAGE * sizeof(Run), its = mine + at.blocks();
    float state[EIGHTS][4], sum[3][ACCUMULATORS];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) for (int e = 0; e < 4; e++) state[j][e] = 0;

    for (int step = 0; step < longest; step++) {
        const int t = begin + way * step, turn = step & 1;
        const auto tile_of = [&](int k) {
            const int block = k / NEAR;                    // after this one; the compiler knows it
            const u32 rank = CS == 1 || block == 0 ? at.rank : (at.rank + block) % CS;
            return shared_address(rooms.before) + turn * TILE(H) + rank * TILE(U) + k % NEAR * 2 * LINE;
        };
        const auto came = [&](u32 barrier) { if (step) await(barrier + 8 * turn, ((step - 1) >> 1) & 1); };
        for (int group = 0; group < GROUPS; group++) came(rooms.made + 16 * group);
        products<0, 3, 0, NEAR, FORWARD_STEPS, FORWARD_HELD>(sum, held, matrix, tile_of, [](int) {});
        if (CS > 1) {
            came(rooms.far);
            products<0, 2, NEAR, FORWARD_STEPS, FORWARD_STEPS, FORWARD_HELD>(sum, held, matrix, tile_of, [](int) {});
            products<2, 3, NEAR, FORWARD_STEPS, FORWARD_STEPS, FORWARD_HELD>(sum, held, matrix, tile_of, [](int) {});
        }
        await(rooms.full + 8 * at.group, step & 1);
        products_done<0, 2, CS == 1 ? 0 : 1>(sum);
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)                   // reset and update, while the products for new are made
#pragma unroll
            for (int gate = 0; gate < 2; gate++) {
                u32 x[2];
                take_two(x, its + gate * OWN + j * 128);
#pragma unroll
                for (int e = 0; e < 4; e++) sum[gate][4 * j + e] = sigmoid_of_twice(fmaf(e & 1 ? high(x[e >> 1]) : low(x[e >> 1]), 0.5f, sum[gate][4 * j + e]));
            }
        u32 given[EIGHTS][2];                              // of new
#pragma unroll
        for (int j = 0; j < EIGHTS; j++) take_two(given[j], its + 2 * OWN + j * 128);
        __syncwarp();                                      // where inputs were, notes will be
        products_done<2, 3, 0>(sum);
        u32 notes[KEPT][PER_RUN];
        const u32 fresh_tile = shared_address(rooms.before) + (turn ^ 1) * TILE(H) + TILE(at.unit());
#pragma unroll
        for (int j = 0; j < EIGHTS; j++) {
            const int2 size = *(const int2*)(rooms.sizes + j * 8 + (lane & 3) * 2);
            float note[KEPT - 1][4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int half = e >> 1, place = 4 * j + e;
                const float reset = sum[0][place], update = sum[1][place], product = sum[2][place] + bias[half];
                const float fresh = quick_tanh(fmaf(reset, product, e & 1 ? high(given[j][half]) : low(given[j][half])));
                const float apart = state[j][e] - fresh;
                if (t < (e & 1 ? size.y : size.x)) state[j][e] = fmaf(update, apart, fresh);
                const float to_new = (1 - update) * fmaf(-fresh, fresh, 1);
                note[0][e] = to_new;
                note[1][e] = apart * fmaf(-update, update, update);
                note[2][e] = to_new * product * fmaf(-reset, reset, reset);
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                for (int kind = 0; kind < KEPT - 1; kind++) notes[kind][(2 * j + half) % PER_RUN] = paired(note[kind][2 * half], note[kind][2 * half + 1]);
                const int place = 4 * j + 2 * half;
                notes[KEPT - 1][(2 * j + half) % PER_RUN] = in_bytes(sum[0][place], sum[1][place], sum[0][place + 1], sum[1][place + 1]);
            }
            put_two(fresh_tile + at.blocks() + j * 128, paired(state[j][0], state[j][1]), paired(state[j][2], state[j][3]));
            if (keep && (2 * j + 2) % PER_RUN == 0)
#pragma unroll
                for (int kind = 0; kind < KEPT; kind++) {
                    Run value;
                    collect(value, notes[kind]);
                    ((Run*)(rooms.given + at.warp * PAGE * sizeof(Run)))[(kind * RUNS + 2 * j / PER_RUN) * 32 + lane] = value;
                }
        }
        show_tensor_cores();
        __syncwarp();
        if (lane == 0) arrive(rooms.made + 16 * at.group + 8 * (turn ^ 1), 0);
    }
}

extern "C" __global__ void __cluster_dims__(CS, 1, 1) __launch_bounds__(THREADS + 128, 1) gru_forward(
    const bf16* table, const int* index, const bf16* weights, const float* biases, const int* lengths, bf16* states,
    unsigned char* kept, int rows, int T, int B, int chunks, int keep) {
    BLOCK_MEMORY(room);
    const Rooms rooms(room);
    const Place at(lengths, B, chunks);
    for (int place = threadIdx.x; place < (int)(2 * TILE(H) + GROUPS * PART) / 4; place += THREADS + 128) ((u32*)room)[place] = 0;
    if (threadIdx.x < NB) rooms.sizes[threadIdx.x] = at.size(lengths, B);
    if (threadIdx.x < 3 * GROUPS + 2) {
        const int number = threadIdx.x;                    // made by groups and turns, far by turns, full by groups
        prepare(rooms.made + 8 * number, number < 2 * GROUPS ? 4 : number < 2 * GROUPS + 2 ? GROUPS : MOVERS / 32);
    }
    show_tensor_cores();
    __syncthreads();
    meet();
    if (threadIdx.x >= THREADS) {
        if (GROUPS > 1) leave_registers();
        move_data(rooms, at, table, index, states, kept, rows, T, B, chunks, keep);
    } else {
        if (GROUPS > 1) take_registers();
        step_forward(rooms, at, weights, biases, keep);
    }
    __syncwarp();
    meet();
}

// Backward all threads of a block move 16 bytes at a time, 8 units of one sequence: whole lines of memory.
#define IN_A_ROW (U / 8)
#define AT_ONCE (THREADS / IN_A_ROW)
#define RESTING (5 * TILE(64) / (16 * ROW))    // products whose weights a warpgroup has room for where gates will be
#define PASSES ((NB + AT_ONCE - 1) / AT_ONCE)
__device__ __forceinline__ int piece_line() { return threadIdx.x % IN_A_ROW; }
__device__ __forceinline__ int piece_sequence(int pass) { return threadIdx.x / IN_A_ROW + pass * AT_ONCE; }
__device__ __forceinline__ u32 piece_byte(int pass) { return piece_line() * LINE + piece_sequence(pass) * 16; }

// The gradient from outside comes for every step, or (SCALED) as one for each sequence, with a scale for every step, the same
// for both directions of a reader (1) or not (2).
extern "C" __global__ void __cluster_dims__(CS, 1, 1) __launch_bounds__(THREADS, 1) gru_backward(
    const bf16* gradients, const float* scales, const bf16* weights, const int* lengths, const unsigned char* kept, bf16* out,
    float* bias_sums, int T, int B, int chunks) {
    BLOCK_MEMORY(room);
    unsigned char* own = room;                             // tiles of this block's gates: reset, update, product; new
    unsigned char* outer = own + 4 * TILE(U);      // a tile of the gradient from outside
    unsigned char* shares = outer + TILE(U);               // [2][CS - 1][RUNS][THREADS] Runs, by turns
    unsigned char* matrix = shares + 2 * (CS - 1) * SHARE;
    int* sizes = (int*)(matrix + GROUPS * CS * (BACKWARD_STEPS - BACKWARD_HELD) * WEIGHT_TILE);
    float* scale = (float*)(sizes + NB);                   // [2][NB] of the gradients from outside, by turns
    const u32 barriers = shared_address(scale + 2 * NB);
    const Place at(lengths, B, chunks);
    const int lane = at.lane, longest = at.longest, way = at.back ? 1 : -1, begin = at.back ? 0 : longest - 1;

    // Tile number i is block rank + i's share: so this block's own is always the first.
    u32 held[CS][BACKWARD_HELD][4];
    matrix += at.group * CS * (BACKWARD_STEPS - BACKWARD_HELD) * WEIGHT_TILE;
    if (threadIdx.x < 2) prepare(barriers + 8 * threadIdx.x, WARPS);
    if (threadIdx.x < NB) sizes[threadIdx.x] = at.size(lengths, B);
    const int in_group = threadIdx.x & 127, row = in_group & 15, eighth = in_group >> 4;
    const auto eight = [&](int tile, int k) {
        const int n = k * 16 + row;
        return *(const uint4*)(weights + ((at.r * 3 + n / U) * H + at.rank * U + n % U) * H + (at.rank + tile) % CS * U + at.group * 64 + eighth * 8);
    };
    load_shared<CS, BACKWARD_STEPS, BACKWARD_HELD>(matrix, eight, [&](int, unsigned char* to, const uint4& v) {  // here a row is a column
#pragma unroll
        for (int i = 0; i < 8; i++) *(bf16*)(to + weight_byte(eighth * 8 + i, row)) = word(v, i / 2) >> (i & 1) * 16;
    });
    const bf16* outside = gradients + ((SCALED ? at.r : at.r * T + begin) * B + at.first + piece_sequence(0)) * H + at.rank * U + piece_line() * 8;
    const float* scales_of = scales + ((SCALED == 2 ? at.r : at.r >> 1) * B + at.first) * T;
    bf16* result = out + ((at.r * T + begin) * B + at.first + piece_sequence(0)) * 4 * H + at.rank * U + piece_line() * 8;
    const Run* notebook = (const Run*)kept + at.notes(T, begin, chunks);
    const int one_step = way * B, one_page = way * chunks * CS * NOTES;
    auto there = [&](int pass) { return piece_sequence(pass) < at.count; };
    auto fetch = [&](int step) {
        const bf16* from = outside + (SCALED ? 0 : (long)(step * one_step) * H);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (there(pass)) fetch_16(shared_address(outer) + piece_byte(pass), from + pass * AT_ONCE * H);
    };
    auto store_gate = [&](int step, int gate, int pass, bool zero) {
        if (!there(pass)) return;
        bf16* here = result + ((long)(step * one_step) + pass * AT_ONCE) * (4 * H);
        const uint4 value = *(const uint4*)(own + gate * TILE(U) + piece_byte(pass));
        const int place = gate == 2 ? 0 : gate == 3 ? 3 : gate + 1;  // in memory: product, reset, update, new
        *(uint4*)(here + place * H) = zero ? make_uint4(0, 0, 0, 0) : value;
    };
    auto store_gates = [&](int step, bool zero) {
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
#pragma unroll
            for (int gate = 0; gate < 4; gate++) store_gate(step, gate, pass, zero);
    };
    Run notes[KEPT][RUNS];
    auto recall = [&](int step) {
        const Run* here = notebook + step * one_page;
#pragma unroll
        for (int kind = 0; kind < KEPT; kind++)
#pragma unroll
            for (int run = 0; run < RUNS; run++) notes[kind][run] = here[(kind * RUNS + run) * 32 + lane];
    };
    auto foresee_all = [&](int step) {
        if (step >= longest) return;
        if (threadIdx.x == 0) foresee(notebook + step * one_page, NOTES * sizeof(Run));
#pragma unroll
        for (int pass = 0; pass < PASSES && !SCALED; pass++)
            if (piece_line() == 0 && there(pass)) foresee(outside + ((long)(step * one_step) + pass * AT_ONCE) * H, U * 2);
    };
    float carried[EIGHTS][4], bias_sum[4][2] = {}, sum[CS][ACCUMULATORS];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) for (int e = 0; e < 4; e++) carried[j][e] = 0;
    for (int t = longest; t < T; t++) {  // there the last state is handed on: its gradients belong to the last real step
        store_gates((t - begin) * way, true);
        if (at.back) continue;
        for (int j = 0; j < EIGHTS; j++)
            for (int e = 0; e < 4; e++) {
                const int n = j * 8 + (lane & 3) * 2 + (e & 1);
                if (n >= at.count) continue;
                const bf16 its = gradients[((SCALED ? at.r : at.r * T + t) * B + at.first + n) * H + at.unit() + (lane >> 2) + (e >> 1) * 8];
                carried[j][e] += __uint_as_float((u32)its << 16) * (SCALED ? scales_of[n * T + t] : 1);
            }
    }
    auto scale_at = [&](int step) {  // of the sequence whose number is the thread's
        return SCALED && (int)threadIdx.x < at.count ? scales_of[threadIdx.x * T + begin + way * step] : 0;
    };
    load_turned<CS, BACKWARD_STEPS, BACKWARD_HELD, RESTING>(held, own + at.group * 5 * TILE(64), at.group, eight);
    __syncthreads();                                       // what rested there has gone
    for (int place = threadIdx.x; place < TILE(U) / 4; place += THREADS) ((u32*)outer)[place] = 0;
    if (SCALED && threadIdx.x < NB) scale[threadIdx.x] = scale_at(0);
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
            const float2 scaled = SCALED ? *(const float2*)(scale + turn * NB + j * 8 + (lane & 3) * 2) : make_float2(1, 1);
#pragma unroll
            for (int e = 0; e < 4; e++)
                total[e] = fmaf(e & 1 ? high(from_outside[e >> 1]) : low(from_outside[e >> 1]), e & 1 ? scaled.y : scaled.x, carried[j][e]);
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
                    carried[j][2 * half + i] = real ? whole * of_byte(note[3], 2 * i + 1) : whole;
                }
                const float fresh[2] = {used[0] * low(note[0]), used[1] * high(note[0])};
                const float product[2] = {fresh[0] * of_byte(note[3], 0), fresh[1] * of_byte(note[3], 2)};
                const float reset[2] = {used[0] * low(note[2]), used[1] * high(note[2])};
                const float update[2] = {used[0] * low(note[1]), used[1] * high(note[1])};
                bias_sum[0][half] += product[0] + product[1], bias_sum[1][half] += reset[0] + reset[1];
                bias_sum[2][half] += update[0] + update[1], bias_sum[3][half] += fresh[0] + fresh[1];
                gate[0][half] = paired(reset[0], reset[1]);
                gate[1][half] = paired(update[0], update[1]);
                gate[2][half] = paired(product[0], product[1]);
                gate[3][half] = paired(fresh[0], fresh[1]);
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
        const float next_scale = scale_at(step + 1);
        // First the other blocks' shares, which have a way to go; this block's own while they travel.
        const auto tile_of = [&](int k) { return shared_address(own) + k * 2 * LINE; };
        const auto beside = [&](int k) {
            constexpr int STORES = 4 * PASSES;
            const int first = k * STORES / BACKWARD_STEPS, last = (k + 1) * STORES / BACKWARD_STEPS;
            if (k == 0 && !SCALED) fetch(step + 1);
            if (k == 1) foresee_all(step + AHEAD);
#pragma unroll
            for (int number = first; number < last; number++) store_gate(step, number % 4, number / 4, false);
        };
        if (CS > 1) {
            products<1, CS, 0, BACKWARD_STEPS, BACKWARD_STEPS, BACKWARD_HELD>(sum, held, shared_address(matrix), tile_of, beside);
            products<0, 1, 0, BACKWARD_STEPS, BACKWARD_STEPS, BACKWARD_HELD>(sum, held, shared_address(matrix), tile_of, [](int) {});
            products_done<1, CS, 1>(sum);
        } else
            products<0, 1, 0, BACKWARD_STEPS, BACKWARD_STEPS, BACKWARD_HELD>(sum, held, shared_address(matrix), tile_of, beside);
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
        if (SCALED && threadIdx.x < NB) scale[(turn ^ 1) * NB + threadIdx.x] = next_scale;
        __syncwarp();
        if (lane == 0) arrive(barrier, (CS - 1) * SHARE / WARPS);  // what the gates have written may be written anew
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i++) carried[i / 4][i % 4] += sum[0][i];
    }
#pragma unroll
    for (int kind = 0; kind < 4; kind++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float whole = bias_sum[kind][half];
            whole += __shfl_xor_sync(0xffffffffu, whole, 1), whole += __shfl_xor_sync(0xffffffffu, whole, 2);
            if ((lane & 3) == 0) bias_sums[((at.r * chunks + at.chunk) * 4 + kind) * H + at.unit() + (lane >> 2) + half * 8] = whole;
        }
    meet();
}
