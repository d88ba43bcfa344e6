// Included before all else where C++ tests are compiled for macOS: Apple's math.h asks float.h for infinity alone, and
// in zig's copies of the two whoever includes float.h later has nothing more of it.
#include <math.h>
#undef _LIBCPP_FLOAT_H
#include <float.h>
