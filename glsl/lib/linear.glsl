// What kernels have in common that walk over elements by groups of four.

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint VEC4S = 8;  // groups of four elements per invocation
layout(constant_id = 2) const uint SUBGROUP = 8;  // neighbouring invocations that walk side by side: the subgroup
