#include "runtime/worker/machine_key.h"

#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "store/secret_file.h"

namespace motley::runtime {
namespace {

constexpr std::uint64_t kKeyBytesMax = 16 << 10;

std::optional<transport::Identity> kept(const std::filesystem::path& file) {
  Result<std::string> pem = store::read_secret_file(file, kKeyBytesMax);
  if (!pem) return std::nullopt;
  Result<transport::Identity> identity = transport::identity_from_pem(std::move(*pem));
  if (!identity) return std::nullopt;
  return std::move(*identity);
}

}  // namespace

transport::Identity machine_identity(const std::filesystem::path& file) {
  if (file.empty()) return transport::make_identity();
  if (auto identity = kept(file)) return std::move(*identity);
  transport::Identity made = transport::make_identity();
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error || !store::write_secret_file(file, made.pem)) return made;
  // Another process may have written its own at the same time: both go on with what is there.
  if (auto identity = kept(file)) return std::move(*identity);
  return made;
}

}  // namespace motley::runtime
