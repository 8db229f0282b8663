// SPDX-License-Identifier: MIT
// Any bytes give tensors or a FileError; what is read and written again is the same.
#include <algorithm>

#include <heed/io/safetensors.hpp>

#include "fuzz/fuzz.hpp"
#include "support/safetensors_mutation.hpp"

namespace {

void check(const heed::Safetensors& file) {
  heed::SafetensorsWriter writer;
  for (const heed::SafetensorsEntry& entry : file.entries()) {
    if (entry.rank == 2 && heed::is_readable_as<double>(entry.type)) {
      const auto tensor = file.tensor<double, 2>(entry.name);
      heed::fuzz::require(tensor.extent(0) == entry.extents[0]);
    }
    if (entry.name.empty()) return;  // which we read but do not write
    writer.add_bytes(entry.name, entry.type, entry.shape(), file.bytes(entry.name));
  }
  for (const auto& [key, value] : file.metadata()) writer.note(key, value);
  const heed::Safetensors again(heed::SharedBytes(writer.bytes()), "again");
  heed::fuzz::require(again.entries().size() == file.entries().size());
  heed::fuzz::require(again.metadata() == file.metadata());
  for (const heed::SafetensorsEntry& entry : file.entries()) {
    const heed::SafetensorsEntry& same = again.entry(entry.name);
    heed::fuzz::require(same.type == entry.type);
    heed::fuzz::require(std::ranges::equal(same.shape(), entry.shape()));
    heed::fuzz::require(std::ranges::equal(again.bytes(entry.name), file.bytes(entry.name)));
  }
}

}  // namespace

HEED_FUZZ_PIECES(heed::test::SafetensorsPieces);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = heed::fuzz::opened<heed::Safetensors>(data, size);
  if (!file) return 0;
  check(*file);  // of what was accepted nothing is refused
  return 0;
}
