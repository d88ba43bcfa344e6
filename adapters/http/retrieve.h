#pragma once
// Downloads by libcurl, for programs without Python. Any thread may call what is returned.

#include <string>

#include "data/source/download.h"

namespace motley::http {

data::Retrieve retriever();

/// Protocols to which an answer from `url` may lead, as libcurl wants them: never from https to http.
const char* redirects_allowed(const std::string& url);

}  // namespace motley::http
