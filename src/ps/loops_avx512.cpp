#if defined(__x86_64__)
#include "ps/loops_body.h"

namespace motley::ps {

constinit const Loops kAvx512 = make_loops("avx512");

}  // namespace motley::ps
#endif
