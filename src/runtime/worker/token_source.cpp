#include "runtime/worker/token_source.h"

#include <filesystem>
#include <utility>

#include "base/thread_name.h"
#include "store/secret_file.h"

namespace motley::runtime {

TokenSource::TokenSource(std::string file, fleet::JoinToken used)
    : file_(std::move(file)), used_(std::move(used)), thread_([this] { loop(); }) {}

TokenSource::~TokenSource() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  asked_.notify_all();
  thread_.join();
}

bool TokenSource::changed() {
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  asked_.notify_all();
  return other_.has_value();
}

bool TokenSource::look() {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = looks_;
  wanted_ = true;
  asked_.notify_all();
  looked_.wait(lock, [&] { return looks_ > before; });
  return other_.has_value();
}

bool TokenSource::gone() {
  const std::lock_guard lock(mutex_);
  return gone_;
}

std::optional<fleet::JoinToken> TokenSource::take() {
  const std::lock_guard lock(mutex_);
  if (other_) used_ = *other_;
  return std::exchange(other_, std::nullopt);
}

// A file that is being written, or is of somebody else, is as one that has the same token still.
void TokenSource::loop() {
  name_thread("motley-token");
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, [this] { return wanted_ || stops_; });
    if (stops_) return;
    wanted_ = false;
    lock.unlock();
    const Result<std::string> text = store::read_secret_file(file_, fleet::JoinToken::kTextBytesMax);
    const auto read = text ? fleet::parse_token(*text) : Result<fleet::JoinToken>(text.error());
    std::error_code unknown;
    const bool gone = !text && !std::filesystem::exists(file_, unknown) && !unknown;
    lock.lock();
    gone_ = gone;
    if (read) other_ = *read == used_ ? std::nullopt : std::optional(*read);
    ++looks_;
    looked_.notify_all();
  }
}

}  // namespace motley::runtime
