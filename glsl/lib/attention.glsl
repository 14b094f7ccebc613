// What the kernels of attention share: operands, which keys a row sees, and its scores. Rows are queries of all heads
// that read one head of k and v, token by token: row = token * group + head in the group. Groups of four neighbours are
// "vec4s".
//
// Needs lib/load.glsl, lib/format.glsl, lib/math.glsl and lib/exp.glsl.

layout(local_size_x_id = 0) in;
layout(constant_id = 20) const uint Q_FORMAT = 0;      // as in lib/format.glsl
layout(constant_id = 28) const uint K_FORMAT = 0;
layout(constant_id = 29) const uint V_FORMAT = 0;
layout(constant_id = 21) const bool CAUSAL = false;    // no key behind a query's own place
layout(constant_id = 22) const bool WINDOWED = false;  // no key `window` places away, or farther
layout(constant_id = 23) const bool CAPPED = false;    // scores become cap * tanh(score / cap)
layout(constant_id = 24) const uint MASK = 0;          // 1: numbers to add, 2: zero where a key is not seen
layout(constant_id = 25) const bool MASK_FOURS = false;  // four neighbours of the mask are one load
layout(constant_id = 26) const bool MEASURED = false;  // the number of keys stands in a buffer
layout(constant_id = 27) const bool PARTIAL = false;   // sums of a part of the keys, for attention_join.comp

layout(push_constant, std430) uniform Push {
    uint units;        // tiles in this dispatch
    uint first_head;   // of k and v, through all batches
    uint rows;         // of one head of k and v
    uint tokens;
    uint group;        // heads of q that read one of k and v
    uint keys;
    uint depth;        // vec4s in a row of q and of k
    uint width;        // vec4s in a row of v
    uint tiles_m;      // tiles of rows
    uint tiles_n;      // tiles of columns of v
    uint parts;        // of the keys
    uint chunk;        // keys of a part
    uint heads;        // of k and v, in a batch
    uint shared_batch; // 1 if all batches read the same k and v
    uint window;
    float scale;
    float cap;
    uint mask_strides[4];  // batch, head, token, key; in elements
    uint out_origin;   // where the binding begins in the output, in vec4s
};

INPUT(0, q_words)
INPUT(1, k_words)
INPUT(2, v_words)
INPUT(3, mask_words)
layout(binding = 4, std430) readonly buffer Length { uint measured_keys[]; };
layout(binding = 5, std430) writeonly restrict buffer Out { uvec4 result[]; };

#define LOWEST -3.40282347e38
#define UNSEEN 0xff800000u

vec4 query_at(uint i) { return F(widened(Q_FORMAT, q_words(i >> packing(Q_FORMAT)), i)); }
vec4 key_at(uint i) { return F(widened(K_FORMAT, k_words(i >> packing(K_FORMAT)), i)); }
vec4 value_at(uint i) { return F(widened(V_FORMAT, v_words(i >> packing(V_FORMAT)), i)); }

// What a workgroup works on.
uint part, tile_m, tile_n;
uint batch, kv_head;     // of q's batches; the head of k and v in it
uint q_base, k_base, v_base, out_base;  // in vec4s
uint begin, end;         // keys that any of its rows sees
int known_keys, ahead;   // place of a query = token + ahead
// Copies of push constants: lavapipe reads them lane by lane where they are first read inside of a loop.
uint last_of_mask, mask_step;
float factor, limit;

// The last key that a token sees, and the first; there may be none in between.
int last_key(uint token) {
    int last = known_keys - 1;
    if (CAUSAL) last = min(last, int(token) + ahead);
    else if (WINDOWED) last = min(last, int(token) + ahead + int(window) - 1);
    return last;
}
int first_key(uint token) { return WINDOWED ? int(token) + ahead - int(window) + 1 : 0; }

// False if the grid is larger than the work. Keys begin at a multiple of `step`.
bool find_unit(uint tile_rows, uint step) {
    uint index = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (index >= units) return false;
    tile_m = index % tiles_m;
    index /= tiles_m;
    tile_n = index % tiles_n;
    index /= tiles_n;
    part = index % parts;
    uint head = index / parts, at = first_head + head;
    batch = at / heads;
    kv_head = at % heads;
    uint of_kv = shared_batch != 0 ? kv_head : at;
    q_base = at * rows * depth;
    k_base = of_kv * keys * depth;
    v_base = of_kv * keys * width;
    out_base = PARTIAL ? (head * parts + part) * rows * (width + 1) : at * rows * width - out_origin;
    known_keys = int(MEASURED ? min(measured_keys[0], keys) : keys);
    ahead = known_keys - int(tokens);
    uint first = tile_m * tile_rows / group, last = (min(tile_m * tile_rows + tile_rows, rows) - 1) / group;
    int from = max(first_key(first), int(part * chunk)), to = min(last_key(last) + 1, int((part + 1) * chunk));
    begin = uint(max(from, 0)) / step * step;
    end = uint(max(to, 0));
    last_of_mask = keys - 1;
    mask_step = mask_strides[3];
    factor = scale;
    limit = cap;
    return true;
}

// Rows lie head by head in memory.
uint row_at(uint row, uint token) { return (row - token * group) * tokens + token; }

// Where a row of the mask begins.
uint mask_at(uint row, uint token) {
    uint head = kv_head * group + (row - token * group);
    return batch * mask_strides[0] + head * mask_strides[1] + token * mask_strides[2];
}

// A product of a query with four keys, from `key` on, becomes a score. `at` is its row of the mask.
vec4 score(vec4 s, uint key, int first, int last, uint at) {
    s *= factor;
    if (CAPPED) s = limit * tanh_f32(s / limit);
    if (MASK != 0) {
        uvec4 m;
        if (MASK_FOURS) m = mask_words((at + min(key, last_of_mask & ~3u)) >> 2);
        else [[unroll]] for (uint j = 0; j < 4; j++) {
            uint i = at + min(key + j, last_of_mask) * mask_step;
            m[j] = mask_words(i >> 2)[i & 3u];
        }
        if (MASK == 1) s += F(m);
        else s = F(mix(U(s), uvec4(UNSEEN), equal(m, uvec4(0))));
    }
    ivec4 place = int(key) + ivec4(0, 1, 2, 3);
    s = F(mix(U(s), uvec4(UNSEEN), greaterThan(place, ivec4(last))));
    if (WINDOWED) s = F(mix(U(s), uvec4(UNSEEN), lessThan(place, ivec4(first))));
    return s;
}

// exp(t) for t <= 0. A NaN stays one.
vec4 weight_of(vec4 t) { return F(mix(U(rough_exp_not_above_one(t)), U(t), is_nan(U(t)))); }

// What a sum of weights divides by. Rows that see no key are zeros.
vec4 share_of(vec4 sum) { return F(mix(U(1.0 / sum), uvec4(0), equal(sum, vec4(0)))); }
