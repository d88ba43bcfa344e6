#pragma once
// Notices which elements of a flat tensor the operations of this thread are about to read, whoever calls them: the
// models of this folder or TorchScript's interpreter. By torch's record functions, which see the inputs of every
// operator.

#include <torch/torch.h>

#include <ATen/record_function.h>

#include <cstdint>
#include <exception>
#include <functional>

namespace motley::torch_adapter {

class ReadWatch {
 public:
  /// While this lives, in this thread. One at a time.
  ReadWatch(const at::Tensor& flat, std::function<void(std::int64_t first, std::int64_t last)> before);
  ~ReadWatch();
  ReadWatch(const ReadWatch&) = delete;
  ReadWatch& operator=(const ReadWatch&) = delete;
  /// Throws what `before` threw; what was computed since is of no use then. Torch lets no exception through.
  void check() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static std::unique_ptr<at::ObserverContext> about_to_run(const at::RecordFunction& operation);
  void look_at(const c10::IValue& input);
  void look_at(const at::Tensor& input);

  const c10::StorageImpl* storage_;
  std::function<void(std::int64_t, std::int64_t)> before_;
  std::exception_ptr thrown_;
  at::CallbackHandle handle_;
};

}  // namespace motley::torch_adapter
