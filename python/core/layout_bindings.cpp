// The layout of a model, made from what Python says of its tensors; orders and seeds that follow from numbers.

#include <nanobind/ndarray.h>

#include "base/philox.h"
#include "bindings.h"
#include "data/order.h"
#include "motley/layout.h"

namespace motley::python {
namespace {

using EntryTuple =
    std::tuple<std::string, std::vector<std::int64_t>, int, int, std::uint32_t, float, std::string, std::uint64_t>;

Layout make_layout(const std::vector<EntryTuple>& tuples) {
  std::vector<LayoutEntry> entries;
  for (const auto& [name, shape, dtype, kind, group, momentum, alias_of, content_hash] : tuples) {
    if (dtype < 1 || dtype > 8 || kind < 1 || kind > 6) throw nb::value_error("no such dtype or kind");
    entries.push_back({name, shape, static_cast<DType>(dtype), static_cast<TensorKind>(kind), group, momentum, alias_of,
                       content_hash});
  }
  return value_or_raise(Layout::make(std::move(entries)));
}

std::vector<EntryTuple> entries_of(const Layout& layout) {
  std::vector<EntryTuple> all;
  for (const LayoutEntry& entry : layout.entries()) {
    all.emplace_back(entry.name, entry.shape, static_cast<int>(entry.dtype), static_cast<int>(entry.kind), entry.group,
                     entry.momentum, entry.alias_of, entry.content_hash);
  }
  return all;
}

std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> placements(const Layout& layout) {
  std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> all;
  for (const Placement& place : layout.placements()) all.emplace_back(place.entry, place.offset, place.elements);
  return all;
}

// FNV-1a over words of eight bytes, the last one filled up with zeros.
std::uint64_t content_hash(const nb::bytes& data) {
  const auto* bytes = static_cast<const unsigned char*>(data.data());
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t at = 0; at < data.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = at; i < std::min(at + 8, data.size()); ++i) {
      word |= static_cast<std::uint64_t>(bytes[i]) << (8 * (i - at));
    }
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

void bind_layout(nb::module_& m) {
  nb::class_<Layout>(m, "Layout")
      .def("__init__",
           [](Layout* self, const std::vector<EntryTuple>& tuples) { new (self) Layout(make_layout(tuples)); })
      .def_prop_ro("flat_elements", &Layout::flat_elements)
      .def_prop_ro("parameters", &Layout::parameters)
      .def_prop_ro("entries", &entries_of)
      .def_prop_ro("placements", &placements);
  m.def("content_hash", &content_hash);
  m.def(
      "sample_order",
      [](std::uint64_t seed, std::uint64_t epoch, std::uint64_t size, std::uint64_t first, std::uint64_t count,
         bool shuffle) {
        if (size == 0 || size > data::SampleOrder::kSizeMax || first > size || count > size - first)
          throw nb::index_error();
        std::vector<std::uint64_t> numbers(count);
        data::SampleOrder(seed, epoch, size, shuffle).fill(first, numbers);
        return numbers;
      },
      nb::arg("seed"), nb::arg("epoch"), nb::arg("size"), nb::arg("first"), nb::arg("count"),
      nb::arg("shuffle") = true);
  m.def("mixed_seed", &mixed_seed, nb::arg("seed"), nb::arg("version"), nb::arg("position"));
}

}  // namespace motley::python
