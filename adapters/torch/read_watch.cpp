#include "torch/read_watch.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace motley::torch_adapter {
namespace {

thread_local ReadWatch* watching = nullptr;

}  // namespace

ReadWatch::ReadWatch(const at::Tensor& flat, std::function<void(std::int64_t, std::int64_t)> before)
    : storage_(flat.storage().unsafeGetStorageImpl()),
      before_(std::move(before)),
      handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(about_to_run).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
  MOTLEY_ASSERT(watching == nullptr);
  watching = this;
}

ReadWatch::~ReadWatch() {
  watching = nullptr;
  at::removeCallback(handle_);
}

std::unique_ptr<at::ObserverContext> ReadWatch::about_to_run(const at::RecordFunction& operation) {
  ReadWatch& watch = *watching;
  if (watch.thrown_) return nullptr;
  const at::DisableRecordFunctionGuard only_theirs;
  try {
    for (const c10::IValue& input : operation.inputs()) watch.look_at(input);
  } catch (...) {
    watch.thrown_ = std::current_exception();
  }
  return nullptr;
}

void ReadWatch::look_at(const c10::IValue& input) {
  if (input.isTensor()) {
    look_at(input.toTensor());
  } else if (input.isList()) {
    for (const c10::IValue& element : input.toListRef()) look_at(element);
  }
}

void ReadWatch::look_at(const at::Tensor& input) {
  if (!input.defined() || !input.has_storage() || input.numel() == 0) return;
  if (input.storage().unsafeGetStorageImpl() != storage_) return;
  std::int64_t last = input.storage_offset();
  for (std::int64_t i = 0; i < input.dim(); ++i) last += (input.size(i) - 1) * input.stride(i);
  before_(input.storage_offset(), last);
}

}  // namespace motley::torch_adapter
