#pragma once
// Where exceptions of libtorch become errors as values. Every public function of this folder runs inside guarded().

#include <c10/core/DeviceGuard.h>
#include <torch/torch.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "motley/result.h"

namespace motley::torch_adapter {

inline Error error_of(std::string_view doing, std::string text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  // The CPU and MPS allocators and the CUDA libraries throw plain errors; only their words tell.
  if (has("out of memory") || has("can't allocate memory") || has("STATUS_ALLOC_FAILED")) {
    return {ErrorCode::memory, "out of memory while " + std::string(doing) + ": " + text,
            "use a smaller micro-batch, or close other programs that use the device"};
  }
  return {ErrorCode::internal, "torch failed while " + std::string(doing) + ": " + text, ""};
}

/// Makes an accelerator the current one: pinned memory belongs to the current card's context, which costs memory there.
inline c10::OptionalDeviceGuard guard_of(const at::Device& device) {
  return device.is_cpu() ? c10::OptionalDeviceGuard() : c10::OptionalDeviceGuard(device);
}

/// Runs `work`, which returns a Result; `doing` completes "torch failed while …".
template <class Work>
auto guarded(std::string_view doing, Work&& work) noexcept -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const c10::OutOfMemoryError& e) {
    return Error{ErrorCode::memory, "out of memory while " + std::string(doing) + ": " + e.what_without_backtrace(),
                 "use a smaller micro-batch, or close other programs that use the device"};
  } catch (const c10::Error& e) {
    return error_of(doing, e.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory, "out of memory while " + std::string(doing), "use a smaller micro-batch"};
  } catch (const std::exception& e) {
    return error_of(doing, e.what());
  }
}

}  // namespace motley::torch_adapter
