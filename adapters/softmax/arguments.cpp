#include "softmax/arguments.h"

#include <array>
#include <charconv>
#include <locale>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/nearest.h"

namespace motley::softmax {
namespace {

constexpr std::uint64_t kClassesMax = std::uint64_t{1} << 16;
constexpr double kRateMax = 1e6;
constexpr std::array<std::string_view, 7> kKeys{"samples", "features",  "classes", "test",
                                                "lr",      "optimizer", "momentum"};

Error wrong(const std::string& word, const std::string& expected, const std::string& hint = {}) {
  return {ErrorCode::input, "softmax: expected " + expected + ", found '" + word + "'", hint};
}

Status count(const std::string& word, std::string_view value, std::uint64_t low, std::uint64_t high,
             std::uint64_t& out) {
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (failed == std::errc{} && end == value.data() + value.size() && out >= low && out <= high) return {};
  return wrong(word, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
}

Status number(const std::string& word, std::string_view value, double high, const char* expected, double& out) {
  std::istringstream text{std::string(value)};
  text.imbue(std::locale::classic());
  if (text >> std::noskipws >> out && text.peek() == std::istringstream::traits_type::eof() && out >= 0 && out <= high)
    return {};
  return wrong(word, expected);
}

Status take(const std::string& word, Arguments& into) {
  const std::size_t equals = word.find('=');
  const std::string_view key = std::string_view(word).substr(0, equals);
  const std::string_view value = equals == std::string::npos ? "" : std::string_view(word).substr(equals + 1);
  if (equals == std::string::npos) return wrong(word, "key=value", "motley train softmax samples=4096");
  if (key == "samples") return count(word, value, 1, kSamplesMax, into.train.samples);
  if (key == "features") return count(word, value, 1, kSamplesMax, into.train.features);
  if (key == "classes") return count(word, value, 1, kClassesMax, into.train.classes);
  if (key == "test") return count(word, value, 0, kSamplesMax, into.test);
  if (key == "lr") return number(word, value, kRateMax, "a rate from 0 to 1e6", into.lr);
  if (key == "momentum") return number(word, value, 1, "a number from 0 to 1", into.momentum);
  if (key == "optimizer") {
    if (value != "sgd" && value != "adam") return wrong(word, "optimizer=sgd or optimizer=adam");
    into.optimizer = value;
    return {};
  }
  const std::string close = nearest(key, kKeys);
  return wrong(word, "one of samples, features, classes, test, optimizer, lr and momentum",
               close.empty() ? "" : "did you mean " + close + "=?");
}

// REQUIRES a, b <= kSamplesMax, so that the product is one.
Status at_most(const std::string& what, std::uint64_t a, std::uint64_t b, std::uint64_t most) {
  if (a * b <= most) return {};
  return Error{ErrorCode::input,
               "softmax: expected " + what + " of at most " + std::to_string(most) + " numbers, found " +
                   std::to_string(a) + " times " + std::to_string(b),
               "ask for less"};
}

}  // namespace

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments found;
  for (const std::string& word : words) {
    if (Status taken = take(word, found); !taken) return taken.error();
  }
  const auto& [samples, features, classes] = found.train;
  for (const Status& fits :
       {at_most("samples", samples, features, kSamplesMax), at_most("test samples", found.test, features, kSamplesMax),
        at_most("weights", classes, features, kWeightsMax)}) {
    if (!fits) return fits.error();
  }
  if (found.optimizer == "adam" && found.momentum != 0)
    return Error{ErrorCode::input, "softmax: momentum is of optimizer=sgd", "leave it out, or optimizer=sgd"};
  return found;
}

}  // namespace motley::softmax
