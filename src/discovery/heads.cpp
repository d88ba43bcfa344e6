#include "discovery/heads.h"

#include <algorithm>

#include "base/format.h"
#include "base/hex.h"
#include "wire/limits.h"
#include "wire/utf8.h"

namespace motley::discovery {
namespace {

constexpr std::uint32_t kSeconds = 120;      // an announcement is good for; asked anew where somebody keeps a list
constexpr std::uint32_t kSecondsOfOne = 10;  // where somebody asks who hears answers to all not (RFC 6762, 6.7)
constexpr unsigned kRepliesPerSecondMax = 20;
constexpr std::size_t kKeyLettersInName = 8;
constexpr std::size_t kNetworksMax = 64;
constexpr std::string_view kNameText = "name=", kKeyText = "key=", kVersionText = "v=1";

Name service_type() { return {"_motley", "_tcp", "local"}; }

std::string as_ip(std::array<std::uint8_t, 4> ip) {
  return formatted("%d.%d.%d.%d", int{ip[0]}, int{ip[1]}, int{ip[2]}, int{ip[3]});
}

const Record* find(const Message& message, const Name& name, Kind kind) {
  for (const auto* records : {&message.answers, &message.additional}) {
    for (const Record& record : *records)
      if (record.kind == kind && same_name(record.name, name)) return &record;
  }
  return nullptr;
}

// Nothing where it says too little, or another version.
std::optional<FoundHead> described(const Record& text) {
  FoundHead head;
  bool version = false, key = false;
  for (const std::string& each : text.texts) {
    if (each == kVersionText) version = true;
    if (each.starts_with(kKeyText)) key = from_hex(std::string_view(each).substr(kKeyText.size()), head.key);
    if (each.starts_with(kNameText)) {
      const std::string name = wire::to_utf8(std::string_view(each).substr(kNameText.size()), wire::kNameBytesMax);
      head.name = wire::to_printable(name, wire::kNameCharactersMax);
    }
  }
  if (!version || !key || head.name.empty()) return std::nullopt;
  return head;
}

void add_address(FoundHead& head, const std::string& address) {
  if (head.addresses.size() < kAddressesMax && std::ranges::count(head.addresses, address) == 0)
    head.addresses.push_back(address);
}

}  // namespace

std::vector<std::byte> question() {
  return write({.id = 0, .response = false, .questions = {{service_type(), Kind::ptr}}});
}

std::vector<FoundHead> heads_in(const Message& message, const std::string& from) {
  std::vector<FoundHead> heads;
  if (!message.response) return heads;
  for (const Record& pointer : message.answers) {
    if (pointer.kind != Kind::ptr || pointer.seconds == 0 || !same_name(pointer.name, service_type())) continue;
    const Record* service = find(message, pointer.target, Kind::srv);
    const Record* text = find(message, pointer.target, Kind::txt);
    if (service == nullptr || text == nullptr || service->port == 0 || heads.size() == kHeadsMax) continue;
    std::optional<FoundHead> head = described(*text);
    if (!head) continue;
    head->port = service->port;
    add_address(*head, from);
    for (const Record& address : message.additional)
      if (address.kind == Kind::a && same_name(address.name, service->target)) add_address(*head, as_ip(address.ip));
    heads.push_back(std::move(*head));
  }
  return heads;
}

bool add_heads(std::vector<FoundHead>& found, const std::vector<FoundHead>& more) {
  bool any = false;
  for (const FoundHead& head : more) {
    const auto known = std::ranges::find_if(
        found, [&](const FoundHead& each) { return each.key == head.key && each.port == head.port; });
    if (known != found.end()) {
      for (const std::string& address : head.addresses) add_address(*known, address);
    } else if (found.size() < kHeadsMax) {
      found.push_back(head);
      any = true;
    }
  }
  return any;
}

// The key is in both names, so that no two heads have the same one and nobody need be asked first whether it is free.
Announcement::Announcement(const std::string& machine, const std::array<std::uint8_t, 32>& key, std::uint16_t port) {
  const std::string digits = to_hex(key);
  const std::string shown = wire::to_printable(wire::to_utf8(machine, wire::kNameBytesMax), wire::kNameCharactersMax);
  const std::string tail = " " + digits.substr(0, kKeyLettersInName);
  Name instance = service_type();
  instance.insert(instance.begin(), wire::to_utf8(shown, kLabelBytesMax - tail.size()) + tail);
  const Name host{"motley-" + digits.substr(0, 2 * kKeyLettersInName), "local"};
  pointer_ = {.name = service_type(), .kind = Kind::ptr, .target = instance};
  service_ = {.name = instance, .kind = Kind::srv, .unique = true, .target = host, .port = port};
  text_ = {.name = instance, .kind = Kind::txt, .unique = true};
  text_.texts = {std::string(kVersionText), std::string(kNameText) + wire::to_utf8(shown, 255 - kNameText.size()),
                 std::string(kKeyText) + digits};
}

Message Announcement::message(std::array<std::uint8_t, 4> ip, bool to_all, std::uint32_t seconds) const {
  Record address{.name = service_.target, .kind = Kind::a, .unique = true};
  address.ip = ip;
  Message message{.id = 0, .response = true, .questions = {}, .answers = {pointer_}};
  message.additional = {service_, text_, address};
  for (auto* records : {&message.answers, &message.additional}) {
    for (Record& record : *records) {
      record.seconds = seconds;
      record.unique = record.unique && to_all;  // who asked alone may know no such bit
    }
  }
  return message;
}

std::vector<std::byte> Announcement::unasked(std::array<std::uint8_t, 4> ip, bool begins) const {
  return write(message(ip, true, begins ? kSeconds : 0));
}

bool Announcement::asked_for(const Message& message) const {
  const auto about_us = [this](const Question& question) {
    const auto asks = [&](const Record& record) {
      return (question.kind == record.kind || question.kind == Kind::any) && same_name(question.name, record.name);
    };
    const Record address{.name = service_.target, .kind = Kind::a};
    return asks(pointer_) || asks(service_) || asks(text_) || asks(address);
  };
  if (message.response || std::ranges::none_of(message.questions, about_us)) return false;
  // Who lists us already, and for longer than half of the time, need not be told (RFC 6762, 7.1).
  return std::ranges::none_of(message.answers, [this](const Record& known) {
    return known.kind == Kind::ptr && same_name(known.name, pointer_.name) &&
           same_name(known.target, pointer_.target) && known.seconds >= kSeconds / 2;
  });
}

std::optional<Announcement::Reply> Announcement::answer(const Message& asked, std::size_t network,
                                                        std::array<std::uint8_t, 4> ip, std::uint16_t source_port,
                                                        Time now) {
  if (network >= kNetworksMax || !asked_for(asked)) return std::nullopt;
  constexpr Duration kSecond = std::chrono::seconds(1);
  if (source_port == kPort) {
    if (said_.size() <= network) said_.resize(network + 1);
    std::optional<Time>& said = said_[network];
    if (said && now - *said < kSecond) return std::nullopt;
    said = now;
    return Reply{write(message(ip, true, kSeconds)), true};
  }
  if (!second_began_ || now - *second_began_ >= kSecond) {
    second_began_ = now;
    replies_in_second_ = 0;
  }
  if (++replies_in_second_ > kRepliesPerSecondMax) return std::nullopt;
  Message reply = message(ip, false, kSecondsOfOne);
  reply.id = asked.id;
  reply.questions = asked.questions;
  if (reply.questions.size() > 1) reply.questions.resize(1);
  return Reply{write(reply), false};
}

}  // namespace motley::discovery
