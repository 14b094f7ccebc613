// Inputs, read 16 bytes at a time through one of two paths that the build chooses with LOAD: storage buffers (GPUs) or
// storage texel buffers (software drivers, where a storage-buffer load costs 30 times as much).
// Bits are loaded as uints, so that one module serves every element type and no load can touch a NaN.

// A kernel that may write its results over an input, element for element, defines IN_PLACE first.
//
// WORDS declares an input of which a kernel needs single words: a buffer is read word by word then.

#define BUFFER 1
#define TEXEL 2

#if LOAD == TEXEL
#define INPUT(slot, name) \
    layout(binding = slot, rgba32ui) readonly uniform uimageBuffer name##_texels; \
    uvec4 name(uint i) { return imageLoad(name##_texels, int(i)); }
#define WORDS(slot, name) \
    layout(binding = slot, rgba32ui) readonly uniform uimageBuffer name##_texels; \
    uint name(uint i) { return imageLoad(name##_texels, int(i >> 2))[i & 3u]; }
#elif LOAD == BUFFER
#ifdef IN_PLACE
#define UNALIASED
#else
#define UNALIASED restrict
#endif
#define INPUT(slot, name) \
    layout(binding = slot, std430) readonly UNALIASED buffer name##_block { uvec4 name##_words[]; }; \
    uvec4 name(uint i) { return name##_words[i]; }
#define WORDS(slot, name) \
    layout(binding = slot, std430) readonly UNALIASED buffer name##_block { uint name##_words[]; }; \
    uint name(uint i) { return name##_words[i]; }
#endif
