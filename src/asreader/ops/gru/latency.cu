// One recurrence of a GRU for NB sequences, in the shortest time: by a cluster of CS thread blocks that stay for all of it.
//
// Block `rank` owns U = H / CS units of the state: its rows of the recurrent weights live in registers, as operands of
// the tensor cores. Forward, every block multiplies them with the whole state before, which lies in its shared memory,
// and copies its new units to all other blocks of the cluster. Backward, every block multiplies its own gates' gradients,
// which no other needs, with the same weights transposed, and hands every other block its share of the sum.
// Products and sums are in float32; what is exchanged and stored is bfloat16.

#define THREADS 384
#define GROUPS 3                              // warpgroups, each of which multiplies 64 rows at a time
#define GATES (3 * U)                         // gate rows of a block: reset, update, new
#define FORWARD_TILES ((GATES + 63) / 64)
#define FORWARD_STEPS (H / 16)
#define BACKWARD_TILES ((H / 64 + GROUPS - 1) / GROUPS)  // of each warpgroup
#define BACKWARD_STEPS (GATES / 16)
#define TASKS ((U / 4 * NB + THREADS - 1) / THREADS)      // a task is four units of one sequence
#define SLICE (U * NB * 2)                    // bytes that a block gives to another in one step
#define PADDED(n) ((n) + (36 - (n) % 32) % 32)            // 4 modulo 32: rows that begin in different banks

extern "C" __global__ void __cluster_dims__(CS, 1, 1) __launch_bounds__(THREADS, 1) gru_forward(
    const bf16* table, const int* index, const bf16* weights, const float* biases, const int* lengths, bf16* states,
    bf16* kept, int rows, int T, int B, int chunks, int keep) {
    BLOCK_MEMORY(room);
    unsigned char* before = room;                                   // two tiles of the whole state, by turns
    float* gates = (float*)(room + 2 * H * NB * 2);                 // [NB][PADDED(GATES)]
    const u32 barriers = shared_address(gates + NB * PADDED(GATES));  // one for each of the two tiles
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, group = tid >> 7;
    const u32 rank = cluster_rank();
    const long r = blockIdx.x / CS / chunks;
    const int first = blockIdx.x / CS % chunks * NB, back = r & 1;
    const int longest = longest_of(lengths + (r >> 1) * B + first, min(NB, B - first));
    const int row = group * 64 + (warp & 3) * 16 + (lane >> 2), column = (lane & 3) * 2;

    u32 weight[FORWARD_STEPS][4];
#pragma unroll
    for (int k = 0; k < FORWARD_STEPS; k++)
#pragma unroll
        for (int part = 0; part < 4; part++) {
            const int own = row + (part & 1) * 8;
            const long line = (r * 3 + own / U) * H + rank * U + own % U;
            weight[k][part] = own < GATES ? *(const u32*)(weights + line * H + k * 16 + column + (part >> 1) * 8) : 0;
        }
    for (int place = tid; place < H * NB / 2; place += THREADS) ((u32*)before)[place] = 0;

    int sequence[TASKS] = {}, unit[TASKS] = {}, length[TASKS] = {}, word[TASKS] = {};
    float state[TASKS][4], bias[TASKS][4];
    uint2 given[TASKS][3];
    // A word's row of the table is looked up one step before its inputs are read, and they one step before they are used.
    auto look_up = [&](int task, int t) {
        if (length[task] >= 0 && t >= 0 && t < longest) word[task] = index[((r >> 1) * T + t) * B + first + sequence[task]];
    };
    auto fetch = [&](int task) {
        const bf16* from = table + (((r >> 1) * rows + word[task]) * 2 + back) * 3 * H + rank * U + unit[task];
        for (int gate = 0; gate < 3; gate++) given[task][gate] = length[task] < 0 ? make_uint2(0, 0) : *(const uint2*)(from + gate * H);
    };
    const int way = back ? -1 : 1, begin = back ? longest - 1 : 0;
#pragma unroll
    for (int task = 0; task < TASKS; task++) {
        const int number = tid + task * THREADS;
        sequence[task] = number / (U / 4), unit[task] = number % (U / 4) * 4;
        const bool real = sequence[task] < NB && first + sequence[task] < B;
        length[task] = real ? lengths[(r >> 1) * B + first + sequence[task]] : -1;
        for (int i = 0; i < 4; i++) state[task][i] = 0, bias[task][i] = biases[r * H + rank * U + unit[task] + i];
        look_up(task, begin), fetch(task), look_up(task, begin + way);
    }
    if (tid == 0) prepare(barriers, 1), prepare(barriers + 8, 1);
    const u32 to_barriers = barriers - shared_address(before);
    meet();

    for (int step = 0; step < longest; step++) {
        const int t = begin + way * step, turn = step & 1;
        if (tid == 0 && step + 1 < longest) arrive(barriers + 8 * (turn ^ 1), (CS - 1) * SLICE);
        if (step) await(barriers + 8 * turn, ((step - 1) >> 1) & 1);
        if (group < FORWARD_TILES) {
            float sum[ACCUMULATORS];
            show_tensor_cores();
            begin_products();
            const u32 from = shared_address(before) + turn * H * NB * 2;
#pragma unroll
            for (int k = 0; k < FORWARD_STEPS; k++) multiply(sum, weight[k], descriptor(from + k * 2 * NB * 16), k > 0);
            end_products();
            if (row - (lane >> 2) < GATES) spread(sum, gates, PADDED(GATES), row, column);  // the last tile may be half empty
        }
        __syncthreads();
#pragma unroll
        for (int task = 0; task < TASKS; task++) {
            if (sequence[task] >= NB) continue;
            float reset[4], update[4], fresh[4], product[4], x[3][4];
            const float* sums = gates + sequence[task] * PADDED(GATES) + unit[task];
            for (int gate = 0; gate < 3; gate++) unpack(given[task][gate], x[gate]);
            for (int i = 0; i < 4; i++) {
                reset[i] = sigmoid(x[0][i] + sums[i]);
                update[i] = sigmoid(x[1][i] + sums[U + i]);
                product[i] = sums[2 * U + i] + bias[task][i];
                fresh[i] = hyperbolic(x[2][i] + reset[i] * product[i]);
                if (t < length[task]) state[task][i] = fresh[i] + update[i] * (state[task][i] - fresh[i]);
            }
            const uint2 four = packed(state[task]);
            const u32 at = (turn ^ 1) * H * NB * 2 + tile_byte(rank * U + unit[task], sequence[task]);
            *(uint2*)(before + at) = four;
            if (length[task] < 0) continue;
            const long line = (r * T + t) * B + first + sequence[task];
            *(uint2*)(states + (line + (2 * r + 1) * B) * H + rank * U + unit[task]) = four;
            if (keep) {
                bf16* here = kept + line * 4 * H + rank * U + unit[task];
                *(uint2*)here = packed(reset), *(uint2*)(here + H) = packed(update);
                *(uint2*)(here + 2 * H) = packed(fresh), *(uint2*)(here + 3 * H) = packed(product);
            }
            if (step + 1 < longest) fetch(task), look_up(task, t + 2 * way);
        }
        if (step + 1 < longest) {
            show_tensor_cores();
            __syncthreads();
            const u32 at = (turn ^ 1) * H * NB * 2 + rank * SLICE;
            if (tid < CS && tid != rank) {
                const u32 to = in_block(shared_address(before), tid);
                give_all(to + at, shared_address(before) + at, SLICE, to + to_barriers + 8 * (turn ^ 1));
            }
        }
    }
#pragma unroll
    for (int task = 0; task < TASKS; task++)
        for (int t = longest; t <= T + 1 && length[task] >= 0; t++) {  // the last two: before all, and behind
            const long line = (r * (T + 2) + (t == T ? -1 : min(t, T)) + 1) * B + first + sequence[task];
            *(uint2*)(states + line * H + rank * U + unit[task]) = back || t >= T ? make_uint2(0, 0) : packed(state[task]);
        }
    meet();
}

extern "C" __global__ void __cluster_dims__(CS, 1, 1) __launch_bounds__(THREADS, 1) gru_backward(
    const bf16* gradients, const bf16* weights, const int* lengths, const bf16* states, const bf16* kept, bf16* out,
    int T, int B, int chunks) {
    BLOCK_MEMORY(room);
    unsigned char* own = room;                                       // a tile: gradients of this block's gates
    float* sums = (float*)(room + GATES * NB * 2);                   // [NB][PADDED(H)]
    unsigned char* shares = (unsigned char*)(sums + NB * PADDED(H)); // [2][CS][NB][U] bfloat16, by turns
    const u32 barriers = shared_address(shares + 2 * CS * SLICE);
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, group = tid >> 7;
    const u32 rank = cluster_rank();
    const long r = blockIdx.x / CS / chunks;
    const int first = blockIdx.x / CS % chunks * NB, back = r & 1;
    const int longest = longest_of(lengths + (r >> 1) * B + first, min(NB, B - first));
    const int row = (warp & 3) * 16 + (lane >> 2), column = (lane & 3) * 2;

    u32 weight[BACKWARD_TILES][BACKWARD_STEPS][4];
#pragma unroll
    for (int tile = 0; tile < BACKWARD_TILES; tile++)
#pragma unroll
        for (int k = 0; k < BACKWARD_STEPS; k++)
#pragma unroll
            for (int part = 0; part < 4; part++) {
                const int to = (group * BACKWARD_TILES + tile) * 64 + row + (part & 1) * 8;
                const int gate = k * 16 + column + (part >> 1) * 8;
                u32 pair = 0;
                if (to < H)
                    for (int i = 0; i < 2; i++) {
                        const long line = (r * 3 + (gate + i) / U) * H + rank * U + (gate + i) % U;
                        pair |= (u32)weights[line * H + to] << (16 * i);
                    }
                weight[tile][k][part] = pair;
            }

    int sequence[TASKS] = {}, unit[TASKS] = {}, length[TASKS] = {};
    float carried[TASKS][4];
    uint2 given[TASKS][6];  // reset, update, new, product, the state before, the gradient from outside
    auto fetch = [&](int task, int t) {
        if (length[task] < 0) return;
        const long line = (r * T + t) * B + first + sequence[task], own_unit = rank * U + unit[task];
        for (int gate = 0; gate < 4; gate++) given[task][gate] = *(const uint2*)(kept + (line * 4 + gate) * H + own_unit);
        given[task][4] = *(const uint2*)(states + (line + (2 * r + 2 * back) * B) * H + own_unit);
        given[task][5] = *(const uint2*)(gradients + line * H + own_unit);
    };
#pragma unroll
    for (int task = 0; task < TASKS; task++) {
        const int number = tid + task * THREADS;
        sequence[task] = number / (U / 4), unit[task] = number % (U / 4) * 4;
        const bool real = sequence[task] < NB && first + sequence[task] < B;
        length[task] = real ? lengths[(r >> 1) * B + first + sequence[task]] : -1;
        for (int i = 0; i < 4; i++) carried[task][i] = 0;
        for (int part = 0; part < 6; part++) given[task][part] = make_uint2(0, 0);
        for (int t = T - 1; t >= longest && length[task] >= 0; t--) {  // gradients there belong to the last real step
            const long line = (r * T + t) * B + first + sequence[task], own_unit = rank * U + unit[task];
            float outer[4];
            unpack(*(const uint2*)(gradients + line * H + own_unit), outer);
            for (int i = 0; i < 4; i++) carried[task][i] += back ? 0 : outer[i];
            for (int gate = 0; gate < 4; gate++) *(uint2*)(out + (line * 4 + gate) * H + own_unit) = make_uint2(0, 0);
        }
        fetch(task, back ? 0 : longest - 1);
    }
    for (int place = tid; place < GATES * NB / 2; place += THREADS) ((u32*)own)[place] = 0;
    for (int place = tid; place < CS * NB * U; place += THREADS) ((u32*)shares)[place] = 0;
    if (tid == 0) prepare(barriers, 1), prepare(barriers + 8, 1);
    const u32 to_barriers = barriers - shared_address(shares);
    meet();

    for (int step = 0; step < longest; step++) {
        const int t = back ? step : longest - 1 - step, turn = step & 1;
        if (tid == 0 && step + 1 < longest) arrive(barriers + 8 * (turn ^ 1), CS * SLICE);
        if (step) await(barriers + 8 * turn, ((step - 1) >> 1) & 1);
#pragma unroll
        for (int task = 0; task < TASKS; task++) {
            if (length[task] < 0) continue;
            float reset[4], update[4], fresh[4], product[4], last[4], total[4];
            unpack(given[task][0], reset), unpack(given[task][1], update), unpack(given[task][2], fresh);
            unpack(given[task][3], product), unpack(given[task][4], last), unpack(given[task][5], total);
            for (int i = 0; i < 4; i++) total[i] += carried[task][i];
            const unsigned char* share = shares + ((turn * CS * NB + sequence[task]) * U + unit[task]) * 2;
#pragma unroll
            for (int block = 0; block < CS; block++) {
                float part[4];
                unpack(*(const uint2*)(share + block * NB * U * 2), part);
                for (int i = 0; i < 4; i++) total[i] += part[i];
            }
            float to_new[4], to_update[4], to_reset[4], to_product[4];
            const bool real = t < length[task];
            for (int i = 0; i < 4; i++) {
                const float used = real ? total[i] : 0.0f;
                to_new[i] = used * (1 - update[i]) * (1 - fresh[i] * fresh[i]);
                to_update[i] = used * (last[i] - fresh[i]) * update[i] * (1 - update[i]);
                to_reset[i] = to_new[i] * product[i] * reset[i] * (1 - reset[i]);
                to_product[i] = to_new[i] * reset[i];
                carried[task][i] = real ? total[i] * update[i] : total[i];
            }
            const uint2 parts[3] = {packed(to_reset), packed(to_update), packed(to_product)};
            for (int gate = 0; gate < 3; gate++)
                *(uint2*)(own + tile_byte(gate * U + unit[task], sequence[task])) = parts[gate];
            bf16* here = out + ((r * T + t) * B + first + sequence[task]) * 4 * H + rank * U + unit[task];
            *(uint2*)here = parts[2], *(uint2*)(here + H) = parts[0], *(uint2*)(here + 2 * H) = parts[1];
            *(uint2*)(here + 3 * H) = packed(to_new);
        }
        if (step + 1 == longest) break;
        show_tensor_cores();
        __syncthreads();
        float sum[BACKWARD_TILES][ACCUMULATORS];
        begin_products();
#pragma unroll
        for (int k = 0; k < BACKWARD_STEPS; k++)
#pragma unroll
            for (int tile = 0; tile < BACKWARD_TILES; tile++)
                multiply(sum[tile], weight[tile][k], descriptor(shared_address(own) + k * 2 * NB * 16), k > 0);
        end_products();
#pragma unroll
        for (int tile = 0; tile < BACKWARD_TILES; tile++) {
            const int to = (group * BACKWARD_TILES + tile) * 64;
            if (to < H) spread(sum[tile], sums, PADDED(H), to + row, column);
        }
        __syncthreads();
        for (int piece = tid; piece < H / 8 * NB; piece += THREADS) {
            const int to = piece % (H / 8) * 8, n = piece / (H / 8);
            const float* at = sums + n * PADDED(H) + to;
            const uint4 eight = make_uint4(paired(at[0], at[1]), paired(at[2], at[3]), paired(at[4], at[5]), paired(at[6], at[7]));
            const u32 place = ((((turn ^ 1) * CS + rank) * NB + n) * U + to % U) * 2;
            const u32 there = in_block(shared_address(shares), to / U);
            give(there + place, eight, there + to_barriers + 8 * (turn ^ 1));
        }
#pragma unroll
        for (int task = 0; task < TASKS; task++) fetch(task, back ? t + 1 : t - 1);
    }
    meet();
}
