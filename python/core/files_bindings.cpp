// Files that a script offers, and the way by which another machine gets them.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <chrono>
#include <cstring>

#include "bindings.h"
#include "program.h"
#include "runtime/head/block_desk.h"
#include "runtime/inputs.h"
#include "runtime/worker/block_fetch.h"
#include "runtime/worker/data_share.h"
#include "runtime/worker/machine_key.h"
#include "runtime/worker/sample_stock.h"
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

template <class To>
void add(To& offers, const nb::bytes& manifest, const nb::bytes& hash, const Files& files) {
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

std::unique_ptr<runtime::BlockFetch> open_fetch(const cli::Launch& launch) {
  const nb::gil_scoped_release no_gil;
  return std::make_unique<runtime::BlockFetch>(launch.join.token, name_of(launch.join),
                                               runtime::machine_identity(runtime::key_file()));
}

std::shared_ptr<runtime::DataShare> open_share(cli::Launch& launch) {
  const nb::gil_scoped_release no_gil;
  launch.join.share = std::make_shared<runtime::DataShare>(launch.join.token, name_of(launch.join),
                                                           runtime::machine_identity(runtime::key_file()));
  return launch.join.share;
}

nb::object as_python(runtime::BlockFetch::Event event) {
  using Link = runtime::BlockLink;
  if (std::holds_alternative<Link::Connected>(event)) return nb::make_tuple("connected");
  if (const auto* offered = std::get_if<wire::Offered>(&event)) {
    return nb::make_tuple("offered", bytes_of(offered->sha256.data(), offered->sha256.size()), offered->bytes,
                          offered->offers, offered->sources);
  }
  if (const auto* content = std::get_if<Link::Content>(&event)) {
    return nb::make_tuple("content", bytes_of(content->hash.data(), content->hash.size()),
                          bytes_of(content->bytes.data(), content->bytes.size()));
  }
  if (std::holds_alternative<Link::Waits>(event)) return nb::make_tuple("waits");
  if (const auto* dropped = std::get_if<runtime::BlockFetch::Dropped>(&event))
    return nb::make_tuple("dropped", dropped->why, dropped->origin);
  if (const auto* broken = std::get_if<Link::Broken>(&event))
    return nb::make_tuple("broken", broken->why, broken->done);
  throw Failure(std::get<Link::Refused>(event).error);
}

/// What happened next, or None after so long. Ctrl-C becomes KeyboardInterrupt.
nb::object next(runtime::BlockFetch& fetch, double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                            std::chrono::duration<double>(seconds));
  runtime::BlockLink::Inbox& inbox = fetch.inbox();
  wait_interruptibly(inbox.mutex, inbox.changed,
                     [&] { return !inbox.events.empty() || std::chrono::steady_clock::now() >= until; });
  std::optional<runtime::BlockFetch::Event> event;
  {
    const nb::gil_scoped_release no_gil;
    event = fetch.take();
  }
  return event ? as_python(std::move(*event)) : nb::none();
}

}  // namespace

void bind_files(nb::module_& m) {
  nb::class_<runtime::Offers>(m, "Offers")
      .def("__init__", [](runtime::Offers* self) { new (self) runtime::Offers(); })
      .def("add", &add<runtime::Offers>, nb::arg("manifest"), nb::arg("hash"), nb::arg("files"))
      .def("__len__", &runtime::Offers::size);
  nb::class_<runtime::DataShare>(m, "DataShare")
      .def("add", &add<runtime::DataShare>, nb::arg("manifest"), nb::arg("hash"), nb::arg("files"))
      .def("close", &runtime::DataShare::close, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<runtime::BlockFetch>(m, "BlockFetch")
      .def("dial", &runtime::BlockFetch::dial, nb::call_guard<nb::gil_scoped_release>())
      .def("ask", &runtime::BlockFetch::ask, nb::arg("offer"), nb::call_guard<nb::gil_scoped_release>())
      .def(
          "find_sources", [](runtime::BlockFetch& fetch, const nb::bytes& set) { fetch.find_sources(hash_of(set)); },
          nb::arg("set"))
      .def("window", &runtime::BlockFetch::window, nb::arg("each"))
      .def_prop_ro("has_room", &runtime::BlockFetch::has_room)
      .def_prop_ro("bytes_from_others", &runtime::BlockFetch::bytes_from_others)
      .def(
          "want",
          [](runtime::BlockFetch& link, const nb::bytes& hash, std::uint64_t bytes, bool waited_for) {
            link.want(hash_of(hash), static_cast<std::size_t>(bytes), waited_for);
          },
          nb::arg("hash"), nb::arg("bytes"), nb::arg("waited_for") = false)
      .def_prop_ro("bytes_from_origin", &runtime::BlockFetch::bytes_from_origin)
      .def("origin_asked",
           [](runtime::BlockFetch& fetch) {
             nb::list all;
             for (const blocks::Sources::Open& each : fetch.origin_asked())
               all.append(nb::make_tuple(bytes_of(each.hash.data(), each.hash.size()), each.waited_for));
             return all;
           })
      .def("origin_opens", &runtime::BlockFetch::origin_opens, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "origin_brings",
          [](runtime::BlockFetch& fetch, const nb::bytes& hash, const nb::bytes& content) {
            const blocks::Hash wanted = hash_of(hash);
            const auto* first = reinterpret_cast<const std::byte*>(content.c_str());
            const std::size_t size = content.size();
            const nb::gil_scoped_release no_gil;
            fetch.origin_brings(wanted, {first, first + size});
          },
          nb::arg("hash"), nb::arg("content"))
      .def("origin_ends", &runtime::BlockFetch::origin_ends, nb::arg("why"), nb::call_guard<nb::gil_scoped_release>())
      .def("next", &next, nb::arg("seconds"));
  nb::class_<runtime::SampleStock>(m, "SampleStock")
      .def("__init__", [](runtime::SampleStock* self) { new (self) runtime::SampleStock(); })
      .def(
          "tell",
          [](runtime::SampleStock& stock, std::uint64_t epoch, std::uint64_t first, std::uint64_t count, bool all,
             bool lacks_tests) { stock.tell({epoch, first, count, all, lacks_tests}); },
          nb::arg("epoch"), nb::arg("first"), nb::arg("count"), nb::arg("all"), nb::arg("lacks_tests"))
      .def("place", [](const runtime::SampleStock& stock) -> nb::object {
        const auto place = stock.place();
        if (!place) return nb::none();
        const StepRange& pass = place->newest;
        return nb::make_tuple(place->seed, place->shuffles, pass.epoch, pass.order_first, pass.count);
      });
  m.def("open_block_fetch", &open_fetch, nb::arg("launch"));
  m.def("open_data_share", &open_share, nb::arg("launch"));
}

}  // namespace motley::python
