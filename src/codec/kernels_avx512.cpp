#if defined(__x86_64__)
#define MOTLEY_KERNELS kAvx512
#define MOTLEY_KERNELS_NAME "avx512"
#include "codec/kernels_loops.h"
#endif
