// A ledger file as a whole. The second half of the run gives the input's records right checksums, since random bytes
// never have them and the decoders behind the checksum would go untried.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "store/ledger.h"
#include "store/ledger_record.h"

namespace {

void check(std::string_view file) {
  auto parsed = motley::store::parse_ledger(file, "fuzz");
  if (!parsed) return;
  MOTLEY_ASSERT(parsed->intact_bytes <= file.size());
  if (!parsed->has_header) return;
  motley::store::Ledger ledger{parsed->header, parsed->steps, parsed->rollbacks, false};
  const auto audit = motley::store::audit(ledger);
  MOTLEY_ASSERT((audit.missing == 0 && audit.duplicate == 0) || !audit.findings.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  check(input);
  // Records of the form: type, length, payload.
  std::string file(motley::store::kLedgerMagic);
  while (input.size() >= 2) {
    const auto type = static_cast<motley::store::RecordType>(input[0]);
    const auto length = static_cast<unsigned char>(input[1]);
    const std::string_view payload = input.substr(2, length);
    motley::store::append_record(file, file.size(), type, payload);
    input.remove_prefix(2 + payload.size());
  }
  check(file);
  return 0;
}
