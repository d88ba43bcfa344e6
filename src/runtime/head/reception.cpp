#include "runtime/head/reception.h"

#include <filesystem>
#include <utility>

#include "base/assert.h"
#include "runtime/auth.h"
#include "runtime/data_lanes.h"
#include "store/secret_file.h"
#include "wire/limits.h"

namespace motley::runtime {

Reception::~Reception() {
  if (::getpid() == process_) {
    remove_file();
    return;
  }
  // In a child of the process that made it its threads are missing, and the sockets are the other's.
  static_cast<void>(tcp_.release());
  if (head_listener_) {
    static_cast<void>(head_listener_->listener.release());
    static_cast<void>(head_listener_->local.release());
  }
}

void Reception::close() {
  if (::getpid() != process_) return;
  pause();
  head_listener_.reset();
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }
  tcp_.reset();
  remove_file();
}

Status Reception::show_in(const std::string& file) {
  over_ = false;
  file_ = file;
  return write_token_file(file, token_);
}

// Not that of another head, which has taken its place.
void Reception::remove_file() {
  const std::string file = std::exchange(file_, {});
  if (file.empty() || !over_) return;
  const Result<std::string> text = store::read_secret_file(file, fleet::JoinToken::kTextBytesMax);
  const auto token = text ? fleet::parse_token(*text) : Result<fleet::JoinToken>(text.error());
  std::error_code ignored;
  if (token && *token == token_) std::filesystem::remove(file, ignored);
}

Status Reception::open(transport::Identity identity, const std::string& listen, std::uint16_t usual_port,
                       fleet::JoinToken token) {
  MOTLEY_ASSERT(!is_open());
  identity_ = std::move(identity);
  tcp_ = std::make_unique<transport::Tcp>(tcp_options(token, identity_));
  const auto accept = [this](std::shared_ptr<transport::Connection> link) { come(std::move(link)); };
  Result<HeadListener> head_listener = open_listener(*tcp_, listen, usual_port, accept);
  if (!head_listener) return head_listener.error();
  open_locally(*tcp_, token, accept, *head_listener);
  lead_to(token, *head_listener);
  token_ = std::move(token);
  head_listener_ = std::move(*head_listener);
  return {};
}

void Reception::receive(transport::AcceptHandler guest) {
  const std::lock_guard lock(mutex_);
  guest_ = std::move(guest);
  for (; !waiting_.empty(); waiting_.pop_front()) let_in(std::move(waiting_.front()));
}

void Reception::pause() {
  const std::lock_guard lock(mutex_);
  guest_ = {};
}

void Reception::come(std::shared_ptr<transport::Connection> link) {
  const std::lock_guard lock(mutex_);
  if (guest_) return let_in(std::move(link));
  if (waiting_.size() == wire::kUnprovenMax) {  // some of these have gone, and do not show it
    waiting_.front()->close();
    waiting_.pop_front();
  }
  waiting_.push_back(std::move(link));
}

void Reception::let_in(std::shared_ptr<transport::Connection> link) {
  tcp_->use_threads(data_connections(link->peer()));
  guest_(std::move(link));
}

}  // namespace motley::runtime
