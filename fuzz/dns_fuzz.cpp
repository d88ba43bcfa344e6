// What anybody in the network sends to port 5353: a message that is read has bounded parts, is written and read as the
// same again, and neither a head nor who looks for one trips over it.

#include <cstdint>
#include <span>

#include "base/assert.h"
#include "discovery/heads.h"

using namespace motley::discovery;

namespace {

std::size_t bytes_of(const Name& name) {
  std::size_t bytes = 1;
  for (const std::string& label : name) {
    MOTLEY_ASSERT(!label.empty() && label.size() <= kLabelBytesMax);
    bytes += 1 + label.size();
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = parse(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  MOTLEY_ASSERT(message->questions.size() + message->answers.size() + message->additional.size() <= kRecordsMax);
  for (const Question& question : message->questions) MOTLEY_ASSERT(bytes_of(question.name) <= kNameBytesMax);
  for (const auto* records : {&message->answers, &message->additional}) {
    for (const Record& record : *records) {
      MOTLEY_ASSERT(bytes_of(record.name) <= kNameBytesMax && bytes_of(record.target) <= kNameBytesMax);
      MOTLEY_ASSERT(record.texts.size() <= kTextsMax);
    }
  }
  const std::vector<std::byte> written = write(*message);
  if (written.size() <= kMessageBytesMax) {
    const auto again = parse(written);
    MOTLEY_ASSERT(again && again->answers.size() == message->answers.size());
    MOTLEY_ASSERT(write(*again) == written);
  }
  for (const FoundHead& head : heads_in(*message, "10.0.0.1")) {
    MOTLEY_ASSERT(head.port != 0 && !head.name.empty());
    MOTLEY_ASSERT(!head.addresses.empty() && head.addresses.size() <= kAddressesMax);
  }
  Announcement announcement("desktop", {1, 2, 3}, 7117);
  for (const std::uint16_t port : {kPort, std::uint16_t{40000}}) {
    const auto reply = announcement.answer(*message, 0, {10, 0, 0, 1}, port, {});
    if (reply) MOTLEY_ASSERT(reply->bytes.size() <= kMessageBytesMax && parse(reply->bytes));
  }
  return 0;
}
