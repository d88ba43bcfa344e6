#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/format.h"
#include "store/checkpoint_files.h"
#include "store/file.h"

namespace motley::store {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::size_t kDepthMax = 8;
// The last field; the checksum covers every byte before it.
constexpr std::string_view kTail = ",\n  \"crc32c\": \"";

constexpr std::array<std::string_view, 7> kKinds{"",        "trained", "frozen", "running_mean", "running_var",
                                                 "counter", "alias"};

std::string hex(std::uint64_t value, int digits) {
  return formatted("%0*llx", digits, static_cast<unsigned long long>(value));
}

std::uint32_t crc_of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

Json hash_json(const FileHash& hash) { return {{"bytes", hash.bytes}, {"crc32c", hex(hash.crc32c, 8)}}; }

Json entry_json(const LayoutEntry& entry) {
  Json out{{"name", entry.name},
           {"shape", entry.shape},
           {"dtype", dtype_word(entry.dtype)},
           {"kind", kKinds.at(static_cast<std::size_t>(entry.kind))}};
  if (entry.group != 0) out["group"] = entry.group;
  if (entry.momentum != 0) out["momentum"] = entry.momentum;
  if (!entry.alias_of.empty()) out["alias_of"] = entry.alias_of;
  if (entry.content_hash != 0) out["content_hash"] = hex(entry.content_hash, 16);
  return out;
}

// The reader below runs on text whose checksum is right, so what is wrong in it was written by another program or
// version; nlohmann's exceptions name the field and become one Error.
[[noreturn]] void reject(const std::string& why) { throw std::invalid_argument(why); }

std::uint64_t from_hex(const std::string& text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    reject(in_quotes(text) + " is no hexadecimal number");
  return value;
}

FileHash parse_hash(const Json& json) {
  return {json.at("bytes").get<std::uint64_t>(),
          static_cast<std::uint32_t>(from_hex(json.at("crc32c").get<std::string>()))};
}

LayoutEntry parse_entry(const Json& json) {
  LayoutEntry entry;
  entry.name = json.at("name").get<std::string>();
  entry.shape = json.at("shape").get<std::vector<std::int64_t>>();
  const auto dtype = json.at("dtype").get<std::string>();
  if (!parse_dtype(dtype, entry.dtype)) reject("unknown dtype " + in_quotes(dtype));
  const auto word = json.at("kind").get<std::string>();
  const auto* const kind = std::find(kKinds.begin() + 1, kKinds.end(), word);
  if (kind == kKinds.end()) reject("unknown kind " + in_quotes(word));
  entry.kind = static_cast<TensorKind>(kind - kKinds.begin());
  entry.group = json.value("group", std::uint32_t{0});
  entry.momentum = json.value("momentum", 0.0F);
  entry.alias_of = json.value("alias_of", std::string());
  entry.content_hash = from_hex(json.value("content_hash", std::string("0")));
  return entry;
}

bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

RunJson parse(std::string_view text) {
  const Json json = Json::parse(text);
  const int format = json.at("format").get<int>();
  if (format != kFormat) reject("format " + std::to_string(format) + "; this program reads format 1");
  RunJson run;
  CheckpointContent& content = run.content;
  content.run = from_hex(json.at("run").get<std::string>());
  content.step = json.at("step").get<std::uint64_t>();
  content.epoch = json.at("epoch").get<std::uint64_t>();
  content.position = json.at("position").get<std::uint64_t>();
  content.incarnation = json.at("incarnation").get<std::uint64_t>();
  content.updates_before = json.value("updates_before", std::uint64_t{0});
  content.model_kind = json.at("model_kind").get<std::string>();
  content.config = json.at("config").get<std::string>();
  run.model = parse_hash(json.at("files").at(kModelFile));
  run.optimizer = parse_hash(json.at("files").at(kOptimizerFile));
  run.optimizer_states = json.at("optimizer_states").get<std::vector<std::string>>();
  std::vector<LayoutEntry> entries;
  for (const Json& entry : json.at("layout")) entries.push_back(parse_entry(entry));
  auto layout = Layout::make(std::move(entries));
  if (!layout) reject("the layout: " + layout.error().message);
  content.layout = std::move(*layout);
  return run;
}

}  // namespace

Result<std::string> encode_run_json(const CheckpointContent& content, const FileHash& model,
                                    const FileHash& optimizer) {
  try {
    Json json{{"format", kFormat},
              {"run", hex(content.run, 16)},
              {"step", content.step},
              {"epoch", content.epoch},
              {"position", content.position},
              {"incarnation", content.incarnation},
              {"model_kind", content.model_kind},
              {"config", content.config},
              {"files", {{kModelFile, hash_json(model)}, {kOptimizerFile, hash_json(optimizer)}}}};
    if (content.updates_before != 0) json["updates_before"] = content.updates_before;
    json["optimizer_states"] = Json::array();
    for (const auto& [state, chunks] : content.optimizer) json["optimizer_states"].push_back(state);
    json["layout"] = Json::array();
    for (const LayoutEntry& entry : content.layout.entries()) json["layout"].push_back(entry_json(entry));
    std::string text = json.dump(2);
    text.resize(text.size() - 2);  // "\n}"
    const std::string crc = hex(crc_of(text), 8);
    return text + std::string(kTail) + crc + "\"\n}\n";
  } catch (const nlohmann::json::exception&) {
    return Error{ErrorCode::input, "checkpoint: a tensor's name or the configuration is not valid UTF-8", "rename it"};
  }
}

Result<RunJson> decode_run_json(std::string_view text, const std::string& name) {
  const auto damaged = [&](const std::string& why) {
    return Error{ErrorCode::input, name + ": " + why, "use an older checkpoint"};
  };
  const std::size_t tail = text.rfind(kTail);
  if (tail == std::string_view::npos || text.size() != tail + kTail.size() + 12 || !text.ends_with("\"\n}\n")) {
    return damaged("it does not end with its checksum; the file is cut short or was edited");
  }
  const std::string found(text.substr(tail + kTail.size(), 8));
  const std::string expected = hex(crc_of(text.substr(0, tail)), 8);
  if (found != expected) return damaged("the checksum is " + expected + ", " + in_quotes(found) + " was expected");
  if (too_deep(text)) return damaged("the JSON is nested too deeply");
  try {
    return parse(text);
  } catch (const std::exception& why) {
    return damaged(why.what());
  }
}

}  // namespace motley::store
