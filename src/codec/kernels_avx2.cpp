#if defined(__x86_64__)
#define MOTLEY_KERNELS kAvx2
#define MOTLEY_KERNELS_NAME "avx2"
#include "codec/kernels_loops.h"
#endif
