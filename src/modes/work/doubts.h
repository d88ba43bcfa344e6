#pragma once
// What no other worker comes near is not believed until a second one says it: which ranges are computed again for that,
// and what is learned of the contributions that count. One thread at a time.

#include "modes/work/declared.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class Doubts {
 public:
  /// REQUIRES it outlives this.
  explicit Doubts(PassWork& work) : work_(work) {}

  /// Others came near it, or too little is known of them.
  [[nodiscard]] bool likely(const Lease& lease, const Declared& said) const noexcept {
    return bounds_.likely(lease.worker, said);
  }
  /// Whether the range is to be computed by somebody else before this is believed. Then its worker is not to get it
  /// again.
  bool arise(const Lease& lease, const Declared& said);
  /// Whoever says otherwise is one other alone, who may be the one who is wrong.
  [[nodiscard]] bool undecided(const Lease& lease, const Declared& said) const noexcept {
    return bounds_.undecided(lease.worker, said);
  }
  /// The train pass is done: its contributions count.
  void learn();

 private:
  PassWork& work_;
  DeclaredBounds bounds_;
};

}  // namespace motley::modes
