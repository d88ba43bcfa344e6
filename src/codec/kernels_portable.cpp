#define MOTLEY_KERNELS kPortable
#if defined(__aarch64__)
#define MOTLEY_KERNELS_NAME "neon"
#else
#define MOTLEY_KERNELS_NAME "portable"
#endif
#include "codec/kernels_loops.h"
