#include "ps/loops_body.h"

namespace motley::ps {

#if defined(__aarch64__)
constinit const Loops kPortable = make_loops("neon");
#else
constinit const Loops kPortable = make_loops("portable");
#endif

}  // namespace motley::ps
