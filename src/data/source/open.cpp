#include "data/source/file.h"
#include "data/source/source.h"

namespace motley::data {

Result<std::shared_ptr<const Source>> open_source(const std::string& uri) { return open_file(uri); }

}  // namespace motley::data
