#pragma once
// A connection to the head, beside the one by which a worker computes. Both sides prove that they know the secret of
// the token; what is said then is its user's. Any thread.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "fleet/token.h"
#include "motley/result.h"
#include "transport/tcp/tcp.h"
#include "wire/messages.h"

namespace motley::runtime {

class HeadLink {
 public:
  struct Connected {};
  /// The connection is gone, or there was none: dial() again. `done`: the head said that its run is over.
  struct Broken {
    std::string why;
    bool done = false;
  };
  /// Another try ends in the same way.
  struct Refused {
    Error error;
  };
  using End = std::variant<Broken, Refused>;
  /// What the link is for. Called with the mutex held.
  class User {
   public:
    virtual ~User() = default;
    virtual void connected() = 0;
    /// False: the other side may not say that.
    virtual bool hear(const wire::Message& message) = 0;
    /// What is no control message.
    virtual void take(const wire::Frame& frame) = 0;
    virtual void ended(End end) = 0;
  };

  /// `feature`: of Hello, what is wanted. REQUIRES mutex and user outlive this.
  HeadLink(fleet::JoinToken token, const std::string& name, transport::Identity identity, const std::string& feature,
           std::mutex& mutex, User& user);
  ~HeadLink();
  HeadLink(const HeadLink&) = delete;
  HeadLink& operator=(const HeadLink&) = delete;

  void dial();

  // With the mutex held.
  /// Lost where nobody is connected.
  void send(const wire::Message& message);
  void end(End end);

 private:
  class Receiver;
  void on_dialled(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result);
  void on_frame(std::uint64_t generation, const wire::Frame& frame);
  void on_closed(std::uint64_t generation, const std::string& why);
  // With the mutex held.
  void on_message(const wire::Message& message);
  void on_bye(const wire::Bye& bye);
  void on_reply(const wire::ProofReply& reply);

  const fleet::JoinToken token_;
  const transport::Identity identity_;
  wire::Hello hello_;
  std::mutex& mutex_;  // guards what follows
  User& user_;
  std::shared_ptr<transport::Connection> connection_;
  bool proven_ = false;
  bool done_ = false;
  std::uint64_t generation_ = 0;
  transport::Tcp tcp_;  // its threads end before what they call
};

}  // namespace motley::runtime
