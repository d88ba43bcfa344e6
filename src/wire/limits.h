#pragma once
// Every limit on what comes from outside, in one place. Checked before anything is allocated.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace motley::wire {

inline constexpr std::size_t kBodyBytesMax = 1 << 20;  // body of a weights, gradient, statistic, block or blob frame
inline constexpr std::size_t kSegmentBytesMax = 256 << 10;  // of one that goes in the background
inline constexpr std::size_t kControlBytesMax = 8 << 20;    // body of a control frame (a layout may be long)
inline constexpr std::size_t kUnprovenBytesMax = 64 << 10;  // everything a connection may send before it is proven
inline constexpr std::chrono::seconds kUnprovenTime{5};     // from accept to proof
inline constexpr std::size_t kUnprovenMax = 32;             // connections not yet proven, at once
inline constexpr std::size_t kUnprovenPerAddressMax = 4;
inline constexpr std::size_t kSilentMax = 256;  // connections without a byte, where there is TLS: they cost a socket
inline constexpr std::size_t kSilentPerAddressMax = 64;
inline constexpr std::size_t kKnockedMax = 128;  // connections whose knock was good, not yet proven
inline constexpr std::size_t kHandshakesPerSecondMax = 50;
inline constexpr std::size_t kSessionsMax = 256;       // workers of a run
inline constexpr std::size_t kDataConnectionsMax = 8;  // of a session
inline constexpr std::size_t kStringBytesMax = 4096;   // any string field unless stated
inline constexpr std::size_t kNameCharactersMax = 64;  // shown of a name of a machine, a device, a program
inline constexpr std::size_t kNameBytesMax = 4 * kNameCharactersMax;
inline constexpr std::size_t kSentenceCharactersMax = 1000;  // shown of what another machine says
inline constexpr std::size_t kConfigBytesMax = 1 << 20;
inline constexpr std::size_t kLayoutEntriesMax = 65536;
inline constexpr std::size_t kShapeDimensionsMax = 16;
inline constexpr std::size_t kScriptBytesMax = 64 << 10;  // of Ready: what runs of a script
inline constexpr std::size_t kFeaturesMax = 64;           // of Hello
inline constexpr std::size_t kScoresMax = 64;             // of Finish
inline constexpr std::size_t kProbeBytesMax = 4 << 20;    // of Finish
inline constexpr std::size_t kSpansMax = 1024;            // of Grant
inline constexpr std::uint64_t kLocalStepsMax = 100'000;  // likewise
// Body of a control frame of a worker that was admitted: it has said its layout, and a probe is the longest that is
// left.
inline constexpr std::size_t kAdmittedControlBytesMax = kProbeBytesMax + (64 << 10);
inline constexpr std::size_t kChunkBitmapBytesMax = 16 << 10;  // of Taken: more chunks than a layout may have
inline constexpr std::size_t kMacBytesMax = 64;
inline constexpr std::size_t kShareBytes = 65;           // of Pair and PairShare: a point of P-256, uncompressed
inline constexpr std::size_t kTokenTextBytesMax = 2048;  // of Paired
inline constexpr std::size_t kHashBytesMax = 32;         // of Want and Offered
inline constexpr std::size_t kBlockBytesMax = 1 << 20;   // of a file that is offered; its last one may be shorter
inline constexpr std::uint64_t kManifestBytesMax = 64 << 20;
inline constexpr std::size_t kWantsMax = 64;                 // open of a session, and what it may ask for at once
inline constexpr std::size_t kLossStateBytesMax = 16 << 20;  // of a State, all its pieces
inline constexpr std::uint64_t kBlobBytesMax = std::uint64_t{4} << 30;  // files of a script, and what its runs left

}  // namespace motley::wire
