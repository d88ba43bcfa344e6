#pragma once
// The connections by which a machine fetches files that a head offers: the head's own, those to other machines that
// have the same set, which the head names, and the address that a file is from, which somebody else asks over HTTP.
// What they bring is checked by hashes that the head said; who sends anything else is asked for nothing more. One
// thread at a time, but for the inbox and what the origin says.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "blocks/sources.h"
#include "runtime/worker/block_link.h"

namespace motley::runtime {

class BlockFetch {
 public:
  /// Another machine, or the origin, is asked for nothing more.
  struct Dropped {
    std::string why;
    bool origin = false;
  };
  using Event = std::variant<BlockLink::Connected, wire::Offered, BlockLink::Content, BlockLink::Waits,
                             BlockLink::Broken, BlockLink::Refused, Dropped>;

  BlockFetch(fleet::JoinToken token, std::string name, transport::Identity identity);
  BlockFetch(const BlockFetch&) = delete;
  BlockFetch& operator=(const BlockFetch&) = delete;

  /// To the head. What is open there is asked for again once it is connected.
  void dial() { links_.at(BlockLink::kHead)->dial(); }
  void ask(std::uint64_t offer) { links_.at(BlockLink::kHead)->ask(offer); }
  /// From here on blocks of that set come from other machines, too, as far as the head names some. REQUIRES that it
  /// said Offered.sources.
  void find_sources(const blocks::Hash& set);
  [[nodiscard]] bool has_room() const;
  /// How many blocks should be open, where one connection deserves so many.
  [[nodiscard]] std::size_t window(std::size_t each) const noexcept { return each * sources_.size(); }
  /// REQUIRES has_room(). `waited_for`: by somebody; where it is asked for already, it is by now.
  void want(const blocks::Hash& hash, std::size_t bytes, bool waited_for = false);
  /// Content that did not come from the head.
  [[nodiscard]] std::uint64_t bytes_from_others() const noexcept { return from_others_; }
  [[nodiscard]] std::uint64_t bytes_from_origin() const noexcept { return from_origin_; }

  /// What the origin is to bring, since this was called last: one that was there before where it is waited for by now.
  [[nodiscard]] std::vector<blocks::Sources::Open> origin_asked() { return std::exchange(origin_asked_, {}); }
  /// From whoever asks it, on any thread: it can be asked from now on, once; one block is there; that was all.
  void origin_opens() { tell_of_origin(BlockLink::Connected{}); }
  void origin_brings(const blocks::Hash& hash, std::vector<std::byte> content);
  void origin_ends(const std::string& why) { tell_of_origin(BlockLink::Broken{why}); }

  /// What happened next, where anything did. Not with the inbox's mutex held.
  [[nodiscard]] std::optional<Event> take();
  [[nodiscard]] BlockLink::Inbox& inbox() { return *inbox_; }

 private:
  std::optional<Event> sift(std::uint64_t from, BlockLink::Event event);
  std::optional<Event> sift_other(std::uint64_t from, BlockLink::Event event);
  void tell_of_origin(BlockLink::Event event);
  void open_source(const wire::Source& source);
  Event drop(std::uint64_t number, const std::string& why);
  void ask_for(const blocks::Sources::Open& block);
  void ask_of(std::uint64_t number, const blocks::Sources::Open& block);

  const fleet::JoinToken token_;
  const std::string name_;
  const transport::Identity identity_;
  const std::shared_ptr<BlockLink::Inbox> inbox_ = std::make_shared<BlockLink::Inbox>();
  std::optional<blocks::Hash> set_;
  blocks::Sources sources_;
  std::set<std::string> distrusted_;  // keys of who sent what was not asked for
  std::uint64_t numbers_ = BlockLink::kHead;
  std::uint64_t from_others_ = 0, from_origin_ = 0;
  bool origin_over_ = false;
  std::vector<blocks::Sources::Open> origin_asked_;
  std::map<std::uint64_t, std::string> keys_;  // of other machines, by number
  std::map<std::uint64_t, std::unique_ptr<BlockLink>> links_;
};

}  // namespace motley::runtime
