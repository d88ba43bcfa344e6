// Files that a script offers, and the way by which another machine gets them.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <chrono>
#include <cstring>

#include "bindings.h"
#include "program.h"
#include "runtime/head/block_desk.h"
#include "runtime/inputs.h"
#include "runtime/worker/block_link.h"
#include "runtime/worker/machine_key.h"
#include "transport/addresses.h"

namespace motley::python {
namespace {

blocks::Hash hash_of(const nb::bytes& bytes) {
  blocks::Hash hash{};
  if (bytes.size() != hash.size()) throw nb::value_error("expected a hash of 32 bytes");
  std::memcpy(hash.data(), bytes.c_str(), hash.size());
  return hash;
}

nb::bytes bytes_of(const void* data, std::size_t size) { return nb::bytes(data, size); }

using Files = std::vector<std::tuple<std::string, std::uint64_t, nb::bytes>>;

void add(runtime::Offers& offers, const nb::bytes& manifest, const nb::bytes& hash, const Files& files) {
  blocks::Catalogue::Offer offer;
  offer.hash = hash_of(hash);
  offer.manifest = SharedBytes::copy_of(std::as_bytes(std::span(manifest.c_str(), manifest.size())));
  for (const auto& [path, size, hashes] : files) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(hashes.c_str());
    offer.files.push_back({path, size, {first, first + hashes.size()}});
  }
  const nb::gil_scoped_release no_gil;
  raise_if(offers.add(std::move(offer)));
}

std::string name_of(const runtime::JoinOptions& join) {
  return join.name.empty() ? transport::machine_name() : join.name;
}

std::unique_ptr<runtime::BlockLink> open_link(const cli::Launch& launch) {
  const nb::gil_scoped_release no_gil;
  return std::make_unique<runtime::BlockLink>(launch.join.token, name_of(launch.join),
                                              runtime::machine_identity(runtime::key_file()));
}

nb::object as_python(runtime::BlockLink::Event event) {
  using Link = runtime::BlockLink;
  if (std::holds_alternative<Link::Connected>(event)) return nb::make_tuple("connected");
  if (const auto* offered = std::get_if<wire::Offered>(&event)) {
    return nb::make_tuple("offered", bytes_of(offered->sha256.data(), offered->sha256.size()), offered->bytes,
                          offered->offers);
  }
  if (const auto* content = std::get_if<Link::Content>(&event)) {
    return nb::make_tuple("content", bytes_of(content->hash.data(), content->hash.size()),
                          bytes_of(content->bytes.data(), content->bytes.size()));
  }
  if (std::holds_alternative<Link::Waits>(event)) return nb::make_tuple("waits");
  if (const auto* broken = std::get_if<Link::Broken>(&event))
    return nb::make_tuple("broken", broken->why, broken->done);
  throw Failure(std::get<Link::Refused>(event).error);
}

/// What happened next, or None after so long. Ctrl-C becomes KeyboardInterrupt.
nb::object next(runtime::BlockLink& link, double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                            std::chrono::duration<double>(seconds));
  wait_interruptibly(link.mutex(), link.changed(),
                     [&] { return link.has_event() || std::chrono::steady_clock::now() >= until; });
  std::optional<runtime::BlockLink::Event> event;
  {
    const nb::gil_scoped_release no_gil;
    const std::lock_guard lock(link.mutex());
    event = link.take();
  }
  return event ? as_python(std::move(*event)) : nb::none();
}

}  // namespace

void bind_files(nb::module_& m) {
  nb::class_<runtime::Offers>(m, "Offers")
      .def("__init__", [](runtime::Offers* self) { new (self) runtime::Offers(); })
      .def("add", &add, nb::arg("manifest"), nb::arg("hash"), nb::arg("files"))
      .def("__len__", &runtime::Offers::size);
  nb::class_<runtime::BlockLink>(m, "BlockLink")
      .def("dial", &runtime::BlockLink::dial, nb::call_guard<nb::gil_scoped_release>())
      .def("ask", &runtime::BlockLink::ask, nb::arg("offer"), nb::call_guard<nb::gil_scoped_release>())
      .def(
          "want",
          [](runtime::BlockLink& link, const nb::bytes& hash, std::uint64_t bytes) {
            link.want(hash_of(hash), static_cast<std::size_t>(bytes));
          },
          nb::arg("hash"), nb::arg("bytes"))
      .def("next", &next, nb::arg("seconds"));
  m.def("open_block_link", &open_link, nb::arg("launch"));
}

}  // namespace motley::python
