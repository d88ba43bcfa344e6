#include <sys/stat.h>
#include <unistd.h>

#include "standard_streams.h"

namespace motley::cli {

bool same_stream(int one, int other) {
  struct stat a{};
  struct stat b{};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

}  // namespace motley::cli
