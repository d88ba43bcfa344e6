#include "runtime/head/block_desk.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/assert.h"
#include "runtime/lanes.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kQueuedBytesMax = 2U << 20;  // of a connection, before more is read for it
constexpr std::size_t kLentBytesMax = 64U << 20;   // to who begins, so that a small set comes in seconds
constexpr Duration kReassureAfter = std::chrono::seconds(2);

Error changed(const fs::path& path, const std::string& how) {
  return {ErrorCode::input, path.string() + " " + how + " while it was offered",
          "leave the files as they are while a run goes on, and start it again"};
}

}  // namespace

Status Offers::add(blocks::Catalogue::Offer offer) {
  std::vector<fs::file_time_type> times;
  for (const blocks::File& file : offer.files) {
    std::error_code failed;
    times.push_back(fs::last_write_time(file.path, failed));
    if (failed) return Error{ErrorCode::io, file.path + ": " + failed.message(), ""};
  }
  const std::lock_guard lock(mutex_);
  if (Status added = catalogue_.add(std::move(offer)); !added) return added;
  changed_.push_back(std::move(times));
  return {};
}

std::size_t Offers::size() const {
  const std::lock_guard lock(mutex_);
  return catalogue_.size();
}

std::optional<Offers::Named> Offers::named(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const blocks::Catalogue::Offer* offer = catalogue_.offer(number);
  if (offer == nullptr) return std::nullopt;
  return Named{offer->hash, offer->manifest.size()};
}

Result<SharedBytes> Offers::read(const blocks::Hash& hash) const {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    const std::optional<blocks::Place> found = catalogue_.find(hash);
    if (!found) return Error{ErrorCode::input, "content of a hash that is not offered here", "join again"};
    if (!found->file) return catalogue_.manifest(*found);
    const blocks::File& file = catalogue_.file(*found);
    place = {file.path, changed_[found->offer][*found->file], file.size, found->offset, found->bytes};
  }
  return read_file(place);
}

Result<SharedBytes> Offers::read_file(const Place& place) {
  std::error_code failed;
  const auto is_as_it_was = [&] {
    const fs::file_status status = fs::symlink_status(place.path, failed);
    return !failed && status.type() == fs::file_type::regular && fs::file_size(place.path, failed) == place.size &&
           fs::last_write_time(place.path, failed) == place.changed && !failed;
  };
  if (!is_as_it_was()) return changed(place.path, failed ? "went away" : "changed");
  std::ifstream file(place.path, std::ios::binary);
  auto bytes = std::make_shared<std::vector<std::byte>>(place.bytes);
  file.seekg(static_cast<std::streamoff>(place.offset));
  file.read(reinterpret_cast<char*>(bytes->data()), static_cast<std::streamsize>(place.bytes));
  if (!file) return Error{ErrorCode::io, place.path.string() + ": cannot be read", "look at the disk of the head"};
  if (!is_as_it_was()) return changed(place.path, failed ? "went away" : "changed");
  const std::span<const std::byte> all(*bytes);
  return SharedBytes(std::move(bytes), all);
}

BlockDesk::BlockDesk(std::shared_ptr<const Offers> offers, std::uint64_t run) : offers_(std::move(offers)), run_(run) {
  mailbox_.start("motley-blocks", [this] { answer_all(); }, kTick);
}

BlockDesk::~BlockDesk() { mailbox_.stop(); }

void BlockDesk::open(LinkId id, std::shared_ptr<transport::Connection> connection) {
  const std::lock_guard lock(mutex_);
  sessions_[id] = {.connection = std::move(connection), .heard = now()};
  flow_.set_wanted(true);
}

Status BlockDesk::ask(LinkId id, const wire::Want& want) {
  {
    const std::lock_guard lock(mutex_);
    const auto session = sessions_.find(id);
    MOTLEY_ASSERT(session != sessions_.end());
    if (Status asked = session->second.serving.ask(want); !asked) return asked;
  }
  mailbox_.post([this, id] { answer(id); });
  return {};
}

void BlockDesk::close(LinkId id) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(id);
  flow_.set_wanted(!sessions_.empty());
}

void BlockDesk::step(double seconds, std::uint64_t samples) {
  const std::lock_guard lock(mutex_);
  const bool flowed = flow_.flows();
  flow_.step(seconds, samples);
  if (!flowed && flow_.flows()) mailbox_.post([this] { answer_all(); });
}

void BlockDesk::set_training(bool training) {
  const std::lock_guard lock(mutex_);
  flow_.set_training(training);
}

void BlockDesk::answer(LinkId id) {
  for (;;) {
    std::shared_ptr<transport::Connection> connection;
    std::optional<blocks::Wanted> wanted;
    bool lent = false;
    {
      const std::lock_guard lock(mutex_);
      const auto session = sessions_.find(id);
      if (session == sessions_.end() || session->second.connection->queued_bytes() >= kQueuedBytesMax) return;
      lent = !flow_.flows();
      if (lent && (session->second.lent_bytes >= kLentBytesMax || !flow_.lends())) return reassure(session->second);
      session->second.heard = now();
      wanted = session->second.serving.next();
      connection = session->second.connection;
    }
    const std::optional<std::size_t> bytes = wanted ? answer_one(*connection, *wanted) : std::nullopt;
    if (!bytes) return;
    if (!lent) continue;
    const std::lock_guard lock(mutex_);
    flow_.lent(*bytes);
    if (const auto session = sessions_.find(id); session != sessions_.end()) session->second.lent_bytes += *bytes;
  }
}

void BlockDesk::answer_all() {
  std::vector<LinkId> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, session] : sessions_)
      if (session.serving.open() > 0) waiting.push_back(id);
  }
  for (const LinkId id : waiting) answer(id);
}

void BlockDesk::reassure(Session& session) {
  if (now() - session.heard < kReassureAfter) return;
  session.heard = now();
  session.connection->send(control_frame(run_, wire::Heartbeat{}), transport::Priority::control);
}

std::optional<std::size_t> BlockDesk::answer_one(transport::Connection& connection, const blocks::Wanted& wanted) {
  if (wanted.offer != 0) {
    wire::Offered offered{.offer = wanted.offer, .sha256 = {}, .bytes = 0, .offers = offers_->size()};
    if (const std::optional<Offers::Named> named = offers_->named(wanted.offer)) {
      offered.sha256.assign(named->hash.begin(), named->hash.end());
      offered.bytes = named->bytes;
    }
    connection.send(control_frame(run_, offered), transport::Priority::control);
    return 0;
  }
  const Result<SharedBytes> content = offers_->read(wanted.hash);
  if (!content) {
    const Error& error = content.error();
    const wire::Bye bye{"data", {}, error.message, error.hint};
    connection.send(control_frame(run_, bye), transport::Priority::control);
    connection.close();
    return std::nullopt;
  }
  wire::FrameHeader header;
  header.type = wire::FrameType::block;
  header.run = run_;
  header.subject = blocks::prefix_of(wanted.hash);
  header.total = static_cast<std::uint32_t>(content->size());
  const bool checksum = !connection.peer().encrypted && !connection.peer().same_machine;
  for (std::size_t offset = 0; offset < content->size(); offset += wire::kSegmentBytesMax) {
    header.offset = static_cast<std::uint32_t>(offset);
    const std::size_t count = std::min(wire::kSegmentBytesMax, content->size() - offset);
    connection.send(wire::seal(header, content->slice(offset, count), checksum), transport::Priority::background);
  }
  return content->size();
}

}  // namespace motley::runtime
