#include "bindings.h"

namespace motley::python {

// No torch for Windows computes with libgomp.
void end_idle_openmp_threads() {}

}  // namespace motley::python
