#if defined(__x86_64__)
#include "ps/loops_body.h"

namespace motley::ps {

constinit const Loops kAvx2 = make_loops("avx2");

}  // namespace motley::ps
#endif
