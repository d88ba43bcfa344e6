#pragma once
// Hands out blocks of the files that a head offers, to sessions that have proven themselves. It reads on a thread of
// its own: a slow disk holds up no step. Any thread.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "blocks/catalogue.h"
#include "blocks/serving.h"
#include "plan/background_flow.h"
#include "runtime/mailbox.h"
#include "transport/connection.h"

namespace motley::runtime {

/// What is offered; it outlives the runs of a script. Thread-safe.
class Offers {
 public:
  /// As Catalogue::add(). Every file is to stay as it is from now on. Errors: input, io besides.
  Status add(blocks::Catalogue::Offer offer);
  [[nodiscard]] std::size_t size() const;

  struct Named {
    blocks::Hash hash{};
    std::size_t bytes = 0;
  };
  /// The manifest of that offer; nothing: there is none.
  [[nodiscard]] std::optional<Named> named(std::uint64_t number) const;
  /// The content of that hash. Errors: input, where nothing of that hash is offered or the file is not what it was; io.
  [[nodiscard]] Result<SharedBytes> read(const blocks::Hash& hash) const;

 private:
  struct Place {
    std::filesystem::path path;
    std::filesystem::file_time_type changed;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  static Result<SharedBytes> read_file(const Place& place);

  mutable std::mutex mutex_;
  blocks::Catalogue catalogue_;
  std::vector<std::vector<std::filesystem::file_time_type>> changed_;  // by offer and file
};

class BlockDesk {
 public:
  using LinkId = std::uint64_t;

  BlockDesk(std::shared_ptr<const Offers> offers, std::uint64_t run);
  ~BlockDesk();
  BlockDesk(const BlockDesk&) = delete;
  BlockDesk& operator=(const BlockDesk&) = delete;

  void open(LinkId id, std::shared_ptr<transport::Connection> connection);
  /// Errors: protocol, see Serving::ask(). REQUIRES that it was opened.
  Status ask(LinkId id, const wire::Want& want);
  void close(LinkId id);
  /// A step is closed, or whether any are made: what is read for sessions is not to make them longer.
  void step(double seconds, std::uint64_t samples);
  void set_training(bool training);

 private:
  struct Session {
    std::shared_ptr<transport::Connection> connection;
    blocks::Serving serving{};
    Time heard{};                // of this desk
    std::size_t lent_bytes = 0;  // that it got while nothing flowed
  };
  /// On the desk's thread: answers what fits into the connection's queue.
  void answer(LinkId id);
  void answer_all();
  /// Who waits is told that the head is there.
  void reassure(Session& session);
  /// Bytes; nothing: that was the session's end.
  std::optional<std::size_t> answer_one(transport::Connection& connection, const blocks::Wanted& wanted);

  const std::shared_ptr<const Offers> offers_;
  const std::uint64_t run_;
  std::mutex mutex_;
  std::map<LinkId, Session> sessions_;
  plan::BackgroundFlow flow_;
  Mailbox mailbox_;
};

}  // namespace motley::runtime
