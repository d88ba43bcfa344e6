#pragma once
// A device of the tests. What lies in its memory can be read inside of its kernels alone: whoever touches it elsewhere
// crashes. What it is given to do is done as late as can be, when somebody waits for it, and every byte that crosses is
// counted.

#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "motley/device_server.h"
#include "ps/server.h"

namespace motley::ps {

class Accelerator {
 public:
  /// Pages of the device, of so many bytes; given back with the last handle.
  [[nodiscard]] std::shared_ptr<std::byte> allocate(std::size_t bytes) {
    const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
    return {take(whole), [whole](std::byte* pages) { give_back(pages, whole); }};
  }
  /// A copy of these bytes, which are read now; it is made later.
  [[nodiscard]] SharedBytes put(std::span<const std::byte> bytes, const OnDevice* about = nullptr) {
    const std::shared_ptr<std::byte> to = allocate(bytes.size());
    later([to, bytes = std::vector<std::byte>(bytes.begin(), bytes.end())] {
      const Kernel kernel({to.get(), bytes.size()});
      std::memcpy(to.get(), bytes.data(), bytes.size());
    });
    return {to, {to.get(), bytes.size()}, about};
  }
  void later(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  /// All that was given is done.
  void wait() {
    const std::lock_guard lock(mutex_);
    for (const std::function<void()>& work : std::exchange(queue_, {})) work();
  }

  /// Meanwhile the bytes can be read.
  class Kernel {
   public:
    explicit Kernel(std::span<const std::byte> bytes) : bytes_(bytes) { allow(true); }
    ~Kernel() { allow(false); }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

   private:
    void allow(bool allowed) {
      const auto first = reinterpret_cast<std::uintptr_t>(bytes_.data()) / kPage * kPage;
      const auto last = reinterpret_cast<std::uintptr_t>(bytes_.data() + bytes_.size());
      set_access(reinterpret_cast<void*>(first), last - first, allowed);  // NOLINT(performance-no-int-to-ptr)
    }
    std::span<const std::byte> bytes_;
  };

  std::size_t up = 0, down = 0;  // bytes that crossed

 private:
#ifdef _WIN32
  static std::byte* take(std::size_t bytes) {
    void* pages = ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_NOACCESS);
    if (pages == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(pages);
  }
  static void give_back(std::byte* pages, std::size_t) { ::VirtualFree(pages, 0, MEM_RELEASE); }
  static void set_access(void* first, std::size_t bytes, bool allowed) {
    DWORD before = 0;
    ::VirtualProtect(first, bytes, allowed ? PAGE_READWRITE : PAGE_NOACCESS, &before);
  }
#else
  static std::byte* take(std::size_t bytes) {
    void* pages = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(pages);
  }
  static void give_back(std::byte* pages, std::size_t bytes) { munmap(pages, bytes); }
  static void set_access(void* first, std::size_t bytes, bool allowed) {
    mprotect(first, bytes, allowed ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
#endif

  static constexpr std::size_t kPage = 4096;
  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
};

/// Whose arithmetic is that of a server, so that its steps have the bits of any other's.
class AcceleratorServer final : public DeviceServer {
 public:
  /// `server`: of the settings that settle() will meet.
  AcceleratorServer(Accelerator& device, Server server) : device_(device), server_(std::move(server)) {}

  /// What a task of the device leaves: a chunk of its gradient.
  [[nodiscard]] SharedBytes keep(std::span<const float> values) {
    abouts_.push_back(std::make_unique<OnDevice>(OnDevice{codec::Encoded(values).largest()}));
    return device_.put(std::as_bytes(values), abouts_.back().get());
  }

  Status settle(const Snapshot& state, OptimizerKind) override {
    if (full) return Error{ErrorCode::memory, "full", ""};
    for (const SharedBytes& chunk : state.weights) device_.up += chunk.size();
    for (const auto& [name, chunks] : state.optimizer)
      for (const SharedBytes& chunk : chunks) device_.up += chunk.size();
    server_.adopt(state);
    weights_ = state.weights;
    settled_ = true;
    return {};
  }
  [[nodiscard]] bool settled() const noexcept override { return settled_; }
  [[nodiscard]] bool has(std::span<const SharedBytes> weights) const override {
    const auto place = [](const SharedBytes& bytes) { return bytes.bytes().data(); };
    return std::ranges::equal(weights, weights_, {}, place, place);
  }
  Status sum(std::span<const std::vector<GradientPart>> chunks) override {
    if (fails_to_sum) return Error{ErrorCode::memory, "full", ""};
    sums_.assign(chunks.begin(), chunks.end());
    for (std::vector<GradientPart>& parts : sums_) {
      for (GradientPart& part : parts) {
        if (part.bytes.on_device() != nullptr) continue;
        device_.up += part.bytes.size();
        part.bytes = device_.put(part.bytes.bytes());
      }
    }
    return {};
  }
  Result<StepNumbers> reduce(double weight, std::uint64_t samples) override {
    device_.wait();
    for (ChunkId chunk = 0; chunk < sums_.size(); ++chunk) {
      const std::size_t elements = server_.layout().chunks()[chunk].elements;
      std::vector<std::unique_ptr<Accelerator::Kernel>> kernels;
      std::vector<codec::Encoded> parts;
      for (const GradientPart& part : sums_[chunk]) {
        kernels.push_back(std::make_unique<Accelerator::Kernel>(part.bytes.bytes()));
        parts.push_back(*codec::Encoded::make(static_cast<codec::CodecId>(part.codec), part.bytes.bytes(), elements));
      }
      server_.reduce(chunk, parts, weight, samples);
    }
    sums_.clear();
    return StepNumbers{0, server_.gradient_norm()};
  }
  Status update(std::span<const StepScalars>, float) override {
    if (gone) return Error{ErrorCode::internal, "the device is gone", ""};
    if (Status closed = server_.close_gradient(); !closed) return closed;
    for (ChunkId chunk = 0; chunk < server_.layout().chunks().size(); ++chunk) server_.apply(chunk);
    server_.finish_step();
    return {};
  }
  Result<std::vector<SharedBytes>> download_weights() override {
    weights_ = down(server_.snapshot().weights);
    return weights_;
  }
  Result<Snapshot> download(bool) override {
    if (gone) return Error{ErrorCode::internal, "the device is gone", ""};
    Snapshot found = server_.snapshot();
    for (auto& [name, chunks] : found.optimizer) chunks = down(chunks);
    return found;
  }
  Result<SharedBytes> fetch(const SharedBytes& on_device) override {
    device_.wait();
    device_.down += on_device.size();
    const Accelerator::Kernel kernel(on_device.bytes());
    return SharedBytes::copy_of(on_device.bytes());
  }
  void leave() override { settled_ = false; }

  bool full = false, fails_to_sum = false, gone = false;

 private:
  std::vector<SharedBytes> down(const std::vector<SharedBytes>& chunks) {
    std::vector<SharedBytes> found;
    for (const SharedBytes& chunk : chunks) {
      device_.down += chunk.size();
      found.push_back(chunk.empty() ? SharedBytes() : SharedBytes::copy_of(chunk.bytes()));
    }
    return found;
  }

  Accelerator& device_;
  Server server_;
  std::vector<std::vector<GradientPart>> sums_;
  std::vector<SharedBytes> weights_;
  std::vector<std::unique_ptr<OnDevice>> abouts_;
  std::atomic<bool> settled_ = false;
};

}  // namespace motley::ps
