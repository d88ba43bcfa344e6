#include "runtime/persist/speed_store.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "store/file.h"

namespace motley::runtime {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kSpeedsMax = 256;

Json read(const std::filesystem::path& file) {
  std::ifstream in(file);
  Json all = in ? Json::parse(in, nullptr, false) : Json();
  return all.is_object() ? all : Json::object();
}

double number(const Json& entry, const char* field) {
  const auto found = entry.find(field);
  return found != entry.end() && found->is_number() ? found->get<double>() : -1;
}

}  // namespace

std::optional<plan::Affine> SpeedStore::find(const std::string& key) const {
  if (file_.empty()) return std::nullopt;
  const Json all = read(file_);
  const auto entry = all.find(key);
  if (entry == all.end() || !entry->is_object()) return std::nullopt;
  const plan::Affine speed{number(*entry, "fixed_s"), number(*entry, "per_sample_s")};
  const bool sane = std::isfinite(speed.fixed) && speed.fixed >= 0 && std::isfinite(speed.per_sample);
  if (!sane || speed.per_sample <= 0) return std::nullopt;
  return speed;
}

void SpeedStore::keep(const std::string& key, const plan::Affine& speed) const {
  if (file_.empty()) return;
  Json all = read(file_);
  all.erase(key);  // the newest stand last
  all[key] = {{"fixed_s", speed.fixed}, {"per_sample_s", speed.per_sample}};
  while (all.size() > kSpeedsMax) all.erase(all.begin());
  const std::string text = all.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
  if (!store::make_directories(file_.parent_path())) return;
  (void)store::replace_file(file_, text);
}

}  // namespace motley::runtime
