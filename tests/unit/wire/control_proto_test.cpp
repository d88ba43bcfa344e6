// The table of fields.h and docs/formats/control.proto say the same: every message, field, number and type.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <type_traits>

#include "wire/fields.h"

namespace motley::wire {
namespace {

using Fields = std::map<std::string, std::string>;  // "pass" -> "fixed64 1"

template <class Member>
std::string type_word(Form form) {
  if constexpr (std::is_same_v<Member, std::string>) return "string";
  if constexpr (std::is_same_v<Member, double>) return "double";
  if constexpr (std::is_same_v<Member, float>) return "float";
  if constexpr (std::is_same_v<Member, bool>) return "bool";
  if constexpr (std::is_same_v<Member, std::uint32_t>) return "uint32";
  if constexpr (std::is_same_v<Member, std::uint64_t>) return form == Form::fixed ? "fixed64" : "uint64";
  if constexpr (std::is_same_v<Member, std::vector<std::uint8_t>>) return "bytes";
  if constexpr (std::is_same_v<Member, std::vector<std::string>>) return "repeated string";
  if constexpr (std::is_same_v<Member, std::vector<std::int64_t>>) return "repeated int64";
  if constexpr (std::is_same_v<Member, std::vector<double>>) return "repeated double";
  if constexpr (std::is_same_v<Member, std::vector<LayoutEntry>>) return "repeated LayoutEntry";
  if constexpr (std::is_same_v<Member, std::vector<StepRange>>) return "repeated Span";
  if constexpr (std::is_same_v<Member, DType>) return "DType";
  if constexpr (std::is_same_v<Member, TensorKind>) return "TensorKind";
  return "unknown";
}

template <class Owner, class Member>
void add(Fields& out, const Field<Owner, Member>& field) {
  out[std::string(field.name)] = type_word<Member>(field.form) + " " + std::to_string(field.number);
}

template <class Message>
Fields table_of() {
  Fields out;
  std::apply([&out](const auto&... field) { (add(out, field), ...); }, Table<Message>::kFields);
  return out;
}

struct Proto {
  std::map<std::string, Fields> messages;
  Fields kinds;  // "Grant" -> "11"
};

Proto read_proto() {
  std::ifstream file(MOTLEY_TEST_DATA "/../../../../docs/formats/control.proto");
  EXPECT_TRUE(file.good());
  const std::regex opens(R"(^\s*(message|enum|oneof) (\w+) \{\s*(\})?\s*$)");
  const std::regex field(R"(^\s*((?:repeated )?\w+) (\w+) = (\d+);.*$)");
  Proto out;
  std::string message;
  std::string line;
  bool in_enum = false;
  while (std::getline(file, line)) {
    std::smatch found;
    if (std::regex_match(line, found, opens)) {
      in_enum = found[1] == "enum";
      if (found[1] == "message") message = found[2];
      if (found[1] == "message" && message != "Control") out.messages[message];
    } else if (!in_enum && std::regex_match(line, found, field)) {
      if (message == "Control") {
        out.kinds[found[1]] = found[3];
      } else {
        out.messages[message][found[2]] = found[1].str() + " " + found[3].str();
      }
    }
  }
  return out;
}

template <class... Inner>
Proto table_of_all(std::type_identity<std::variant<Inner...>> /*all*/) {
  Proto out;
  ((out.messages[std::string(Table<Inner>::kName)] = table_of<Inner>()), ...);
  ((out.kinds[std::string(Table<Inner>::kName)] = std::to_string(Table<Inner>::kKind)), ...);
  out.messages["LayoutEntry"] = table_of<LayoutEntry>();
  out.messages["Span"] = table_of<StepRange>();
  return out;
}

TEST(ControlProto, SaysWhatTheTableSays) {
  const Proto proto = read_proto();
  const Proto table = table_of_all(std::type_identity<Message>{});
  EXPECT_EQ(proto.kinds, table.kinds);
  EXPECT_EQ(proto.messages, table.messages);
}

}  // namespace
}  // namespace motley::wire
