#pragma once
// Weights by their hash: who follows another worker puts the bytes that come from there into the places that the
// coordinator gave them, and hands all on in the coordinator's order. Nothing from there is believed. One thread at a
// time.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/time.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "plan/link_model.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::engine {

class Following {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(1);  // nothing came that is waited for, beside hops
  static constexpr std::size_t kEarlyBytesMax = 32U << 20;        // that came before their hashes, with what holds them
  static constexpr std::size_t kEarlyFramesMax = 4096;            // likewise

  /// `hasher`: null where nothing goes by its hash.
  explicit Following(wire::Hasher hasher) : hasher_(std::move(hasher)) {}

  /// A new session, with a model of so many chunks.
  void reset(std::size_t chunks);
  /// What the source of this number sends is what the coordinator may send hashes of. `hops`: workers that hand it on
  /// before that one, a segment at a time.
  void begin(std::uint64_t id, Time now, std::uint32_t hops = 0);
  [[nodiscard]] std::uint64_t source() const noexcept { return source_; }
  /// The coordinator is to send what is missing, and everything from now on. REQUIRES source() is not 0.
  wire::Unfollows give_up(bool wrong);
  /// Nothing is waited for any more, nor wanted of what is on its way by its hash. What to say of that, if it follows.
  wire::Unfollows forget();
  /// After give_up() of this number the coordinator sent again what it still has, which begins with `oldest`.
  void settled(std::uint64_t id, std::uint64_t oldest);
  /// What is waited for will not come.
  [[nodiscard]] bool lacks() const noexcept;
  /// Nothing came that is waited for, or all of it too slowly. REQUIRES called every 100 ms or so.
  [[nodiscard]] bool overdue(Time now);
  [[nodiscard]] bool wrong() const noexcept { return wrong_; }
  [[nodiscard]] std::size_t early_bytes() const noexcept { return early_bytes_; }
  /// How much later a segment may be for each worker that hands it on.
  [[nodiscard]] Duration hop() const noexcept;

  /// Of the coordinator, in its order. ErrorCode::protocol for what is no hash.
  Status add(const wire::Frame& frame, Time now);
  /// Of the source. False: these are not the coordinator's bytes.
  [[nodiscard]] bool add_from_source(const wire::Frame& frame, Time now);
  /// The one whose turn it is, if its bytes are there.
  [[nodiscard]] std::optional<wire::Frame> next();
  /// One that is to be handed on.
  [[nodiscard]] std::optional<wire::Frame> next_to_hand_on();

 private:
  struct Place {
    wire::FrameHeader header;  // of what is to come
    wire::BodyHash hash{};
    std::optional<wire::Frame> frame;
  };
  /// A version on its way from the coordinator alone.
  struct Arrival {
    std::uint64_t version = 0, bytes = 0;
    Time first{}, last{};
  };
  /// From when on something is waited for, and what of it came.
  struct Wait {
    Time since{}, newest{};
    std::size_t bytes = 0;
  };
  static bool is_of(const wire::FrameHeader& a, const wire::FrameHeader& b) noexcept {
    return a.version == b.version && a.chunk == b.chunk && a.offset == b.offset;
  }
  /// False: these are other bytes.
  bool fill(Place& place, const wire::Frame& frame, Time now);
  void fill_early(Place& place, Time now);
  void drop_early();
  void measure(const wire::Frame& frame, Time now);
  [[nodiscard]] double least_bytes_per_second() const noexcept;
  [[nodiscard]] Duration patience() const noexcept;
  void put(Place& place, const wire::FrameHeader& header, SharedBytes body);
  [[nodiscard]] const Place* awaited() const noexcept;

  wire::Hasher hasher_;
  std::size_t chunks_ = 0;
  std::uint64_t source_ = 0, newest_ = 0, forgotten_ = 0, settled_ = 0;  // numbers, which rise
  std::uint64_t oldest_ = 0;                                             // that the coordinator had when it settled
  std::deque<Place> places_;                                             // in the coordinator's order
  std::deque<wire::Frame> early_, hand_on_;
  std::size_t early_bytes_ = 0;
  // Of the newest versions, the segments by chunk and offset, with the length of the chunk.
  std::map<std::uint64_t, std::map<std::pair<ChunkId, std::uint32_t>, std::uint32_t>> by_hash_;
  plan::LinkModel link_;  // from the coordinator
  std::uint32_t hops_ = 0;
  Arrival arrival_;
  Wait wait_;
  Time looked_{};
  bool wrong_ = false;  // what came early was
};

}  // namespace motley::engine
