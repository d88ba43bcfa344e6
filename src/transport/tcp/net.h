#pragma once
// The one place that names Asio, so that Boost.Asio can take its place. Private to transport/.

// ThreadSanitizer knows no fences; the scheduler's mutex orders what they order.
#if defined(__SANITIZE_THREAD__)
#define ASIO_DISABLE_FENCED_BLOCK
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ASIO_DISABLE_FENCED_BLOCK
#endif
#endif

// Windows' threads in every file: whether Asio takes a mutex or none would follow from what was included before it.
#ifdef _WIN32
#define ASIO_HAS_THREADS 1
#undef _POSIX_THREADS
#endif

#include <asio.hpp>
#include <atomic>
#include <chrono>

#include "motley/bytes.h"

namespace motley::transport {

namespace net = asio;
using NetError = asio::error_code;
using Socket = net::generic::stream_protocol::socket;
using SocketAddress = net::generic::stream_protocol::endpoint;
using SteadyClock = std::chrono::steady_clock;

/// What sockets and timers live in. Held by every connection, so that a handle which outlives its Tcp is harmless.
struct Reactor {
  net::io_context io;
  BufferPool pool;
  std::atomic<bool> stopped{false};  // no handler runs any more
};

}  // namespace motley::transport
