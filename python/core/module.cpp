// motley._core: what Python sees of the core. motley/_core.pyi describes it.

#include "bindings.h"
#include "python_torch.h"

namespace motley::python {
namespace {

nb::object error_type;

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure& failure) {
    nb::object error = error_type(failure.error.message);
    error.attr("code") = nb::str(std::string(to_word(failure.error.code)).c_str());
    error.attr("hint") = nb::str(failure.error.hint.c_str());
    PyErr_SetObject(error_type.ptr(), error.ptr());
  }
}

}  // namespace

ErrorCode code_of(std::string_view word) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    if (to_word(static_cast<ErrorCode>(i)) == word) return static_cast<ErrorCode>(i);
  }
  return ErrorCode::internal;
}

void bind_errors(nb::module_& m) {
  error_type = nb::module_::import_("motley._errors").attr("Error");
  nb::register_exception_translator(translate);
  m.def("exit_status", [](const std::string& code) { return exit_status(code_of(code)); });
}

}  // namespace motley::python

NB_MODULE(_core, m) {
  using namespace motley::python;
  share_one_heap();
  m.attr("version") = MOTLEY_VERSION;
  bind_errors(m);
  bind_memory(m);
  bind_layout(m);
  bind_task(m);
  bind_script(m);
  bind_recipes(m);
  bind_files(m);
  bind_program(m);
  bind_head(m);
  bind_worker(m);
  // The module's objects live until the process ends: worker threads may still hold some.
  nanobind::set_leak_warnings(false);
}
