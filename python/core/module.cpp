// motley._core: what Python sees of the core. motley/_core.pyi describes it.

#include <new>

#include "bindings.h"

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
  return ErrorCode::input;
}

Error error_of(const std::exception& raised, const std::string& what, ErrorCode code, const std::string& hint) {
  const auto* python = dynamic_cast<const nb::python_error*>(&raised);
  const nb::handle value = python != nullptr ? python->value() : nb::handle();
  if (python != nullptr && nb::isinstance(value, error_type))
    return {code_of(nb::cast<std::string>(value.attr("code"))), nb::cast<std::string>(nb::str(value.attr("args")[0])),
            nb::cast<std::string>(nb::str(value.attr("hint")))};
  const std::string_view text = raised.what();  // torch's allocators are known by their words alone
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&raised) != nullptr ||
                         (python != nullptr && python->matches(PyExc_MemoryError)) ||
                         text.find("OutOfMemoryError") != std::string_view::npos ||
                         text.find("can't allocate memory") != std::string_view::npos;
  return {no_memory ? ErrorCode::memory : code, what + ": " + std::string(text), hint};
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
  bind_files(m);
  bind_program(m);
  bind_head(m);
  bind_worker(m);
  // The module's objects live until the process ends: worker threads may still hold some.
  nanobind::set_leak_warnings(false);
}
