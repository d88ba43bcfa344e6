#include "discovery/dns.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::discovery {
namespace {

constexpr std::uint16_t kInternet = 1, kTopBit = 0x8000;
constexpr std::uint16_t kResponse = 0x8000, kAuthoritative = 0x0400, kOpcodeAndCode = 0x780F;
constexpr std::size_t kHeaderBytes = 12;

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

// The first mistake ends the reading: everything is empty or zero from then on.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : all_(bytes) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t at() const { return at_; }

  std::uint8_t octet() {
    if (!good_ || at_ >= all_.size()) return fail<std::uint8_t>();
    return std::to_integer<std::uint8_t>(all_[at_++]);
  }
  std::uint16_t word() {
    const unsigned high = octet(), low = octet();
    return static_cast<std::uint16_t>(high << 8 | low);
  }
  std::uint32_t long_word() {
    const std::uint32_t high = word(), low = word();
    return high << 16 | low;
  }
  std::string text(std::size_t size) {
    if (!good_ || size > all_.size() - at_) return fail<std::string>();
    std::string out(reinterpret_cast<const char*>(all_.data() + at_), size);
    at_ += size;
    return out;
  }
  void skip_to(std::size_t place) {
    if (!good_ || place > all_.size()) return void(fail<int>());
    at_ = place;
  }

  // A pointer leads backwards, and each further than the last: so it ends.
  Name name() {
    Name labels;
    std::size_t bytes = 1, earliest = at_;
    std::optional<std::size_t> after;
    while (good_) {
      const std::uint8_t length = octet();
      if (length == 0) break;
      if ((length & 0xC0) == 0xC0) {
        const std::size_t target = static_cast<std::size_t>(length & 0x3F) << 8 | octet();
        if (!after) after = at_;
        if (target >= earliest) return fail<Name>();
        earliest = at_ = target;
        continue;
      }
      bytes += 1U + length;
      if (length > kLabelBytesMax || bytes > kNameBytesMax) return fail<Name>();
      labels.push_back(text(length));
    }
    if (!good_) return {};
    if (after) at_ = *after;
    return labels;
  }

 private:
  template <class T>
  T fail() {
    good_ = false;
    return T{};
  }
  std::span<const std::byte> all_;
  std::size_t at_ = 0;
  bool good_ = true;
};

Kind kind_of(std::uint16_t type) {
  for (const Kind kind : {Kind::a, Kind::ptr, Kind::txt, Kind::srv})
    if (type == static_cast<std::uint16_t>(kind)) return kind;
  return Kind::any;
}

std::optional<Question> read_question(Reader& in) {
  Question question{.name = in.name()};
  const std::uint16_t type = in.word(), about = in.word();
  const bool known = type == static_cast<std::uint16_t>(Kind::any) || kind_of(type) != Kind::any;
  if (!in.good() || !known || (about & ~kTopBit) != kInternet) return std::nullopt;
  question.kind = kind_of(type);
  return question;
}

void read_texts(Reader& in, std::size_t end, Record& record) {
  while (in.good() && in.at() < end && record.texts.size() < kTextsMax) record.texts.push_back(in.text(in.octet()));
}

// Of its content no more is read than its length says; false: it reads more.
bool read_record(Reader& in, Record& record) {
  record.name = in.name();
  const std::uint16_t type = in.word(), about = in.word();
  record.seconds = in.long_word();
  const std::size_t size = in.word();
  if (!in.good()) return false;
  const std::size_t end = in.at() + size;
  record.unique = (about & kTopBit) != 0;
  record.kind = (about & ~kTopBit) == kInternet ? kind_of(type) : Kind::any;
  if (record.kind == Kind::ptr) record.target = in.name();
  if (record.kind == Kind::txt) read_texts(in, end, record);
  if (record.kind == Kind::srv) {
    in.long_word();  // priority and weight
    record.port = in.word();
    record.target = in.name();
  }
  if (record.kind == Kind::a) {
    if (size != record.ip.size()) return false;
    for (std::uint8_t& byte : record.ip) byte = in.octet();
  }
  if (!in.good() || in.at() > end) return false;
  in.skip_to(end);
  return in.good();
}

bool read_records(Reader& in, std::size_t count, std::vector<Record>* out) {
  for (std::size_t i = 0; i < count; ++i) {
    Record record;
    if (!read_record(in, record)) return false;
    if (out != nullptr && record.kind != Kind::any) out->push_back(std::move(record));
  }
  return true;
}

class Writer {
 public:
  void octet(std::size_t value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void word(std::size_t value) {
    octet(value >> 8 & 255);
    octet(value & 255);
  }
  void text(std::string_view text) {
    octet(text.size());
    for (const char letter : text) octet(static_cast<unsigned char>(letter));
  }
  void name(const Name& name) {
    std::size_t size = 1;
    for (const std::string& label : name) {
      MOTLEY_ASSERT(!label.empty() && label.size() <= kLabelBytesMax);
      size += 1 + label.size();
      text(label);
    }
    MOTLEY_ASSERT(size <= kNameBytesMax);
    octet(0);
  }
  void record(const Record& record) {
    name(record.name);
    word(static_cast<std::uint16_t>(record.kind));
    word(kInternet | (record.unique ? kTopBit : 0U));
    word(record.seconds >> 16);
    word(record.seconds & 0xFFFF);
    const std::size_t length_at = bytes_.size();
    word(0);
    content(record);
    const std::size_t length = bytes_.size() - length_at - 2;
    bytes_[length_at] = static_cast<std::byte>(length >> 8);
    bytes_[length_at + 1] = static_cast<std::byte>(length & 255);
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void content(const Record& record) {
    if (record.kind == Kind::ptr) name(record.target);
    if (record.kind == Kind::txt) {
      for (const std::string& each : record.texts) {
        MOTLEY_ASSERT(each.size() <= 255);
        text(each);
      }
      if (record.texts.empty()) octet(0);
    }
    if (record.kind == Kind::srv) {
      word(0);
      word(0);
      word(record.port);
      name(record.target);
    }
    if (record.kind == Kind::a)
      for (const std::uint8_t byte : record.ip) octet(byte);
  }
  std::vector<std::byte> bytes_;
};

}  // namespace

bool same_name(const Name& a, const Name& b) {
  return std::ranges::equal(a, b, [](const std::string& one, const std::string& other) {
    return std::ranges::equal(one, other, [](char x, char y) { return lower(x) == lower(y); });
  });
}

std::optional<Message> parse(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kMessageBytesMax) return std::nullopt;
  Reader in(bytes);
  Message message{.id = in.word()};
  const std::uint16_t flags = in.word();
  const std::size_t questions = in.word(), answers = in.word(), authorities = in.word(), additional = in.word();
  message.response = (flags & kResponse) != 0;
  if ((flags & kOpcodeAndCode) != 0 || questions + answers + authorities + additional > kRecordsMax)
    return std::nullopt;
  for (std::size_t i = 0; i < questions; ++i) {
    std::optional<Question> question = read_question(in);
    if (!in.good()) return std::nullopt;
    if (question) message.questions.push_back(std::move(*question));
  }
  if (!read_records(in, answers, &message.answers) || !read_records(in, authorities, nullptr) ||
      !read_records(in, additional, &message.additional))
    return std::nullopt;
  return message;
}

std::vector<std::byte> write(const Message& message) {
  Writer out;
  out.word(message.id);
  out.word(message.response ? kResponse | kAuthoritative : 0);
  out.word(message.questions.size());
  out.word(message.answers.size());
  out.word(0);
  out.word(message.additional.size());
  for (const Question& question : message.questions) {
    out.name(question.name);
    out.word(static_cast<std::uint16_t>(question.kind));
    out.word(kInternet);
  }
  for (const Record& record : message.answers) out.record(record);
  for (const Record& record : message.additional) out.record(record);
  return out.take();
}

}  // namespace motley::discovery
