// SPDX-License-Identifier: Apache-2.0
// Which CPU features each instruction needs, and whether a tier has them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "jit/listing/decoder.hpp"
#include "jit/listing/listing.hpp"

namespace castor::jit {
namespace {

/// One row: an ISA set as Zydis names it, without its vector length.
struct IsaRow {
  std::string_view set;
  FeatureSet needs{};
};

constexpr IsaRow isa_table[] = {
    // Every x86-64 CPU.
    {.set = "I86"},
    {.set = "I186"},
    {.set = "I386"},
    {.set = "I486"},
    {.set = "I486REAL"},
    {.set = "PENTIUMREAL"},
    {.set = "PPRO"},
    {.set = "CMOV"},
    {.set = "LONGMODE"},
    {.set = "FAT_NOP"},
    {.set = "PREFETCH_NOP"},
    {.set = "SSE_PREFETCH"},
    {.set = "SSEMXCSR"},
    {.set = "X87"},
    {.set = "CET"},  // endbr64: does nothing where the CPU does not know it
    {.set = "SSE"},
    {.set = "SSE2"},
    // Older than the feature that stands for them.
    {.set = "SSE3", .needs = {Feature::avx2}},
    {.set = "SSSE3", .needs = {Feature::avx2}},
    {.set = "SSE4", .needs = {Feature::avx2}},
    {.set = "SSE42", .needs = {Feature::avx2}},
    {.set = "AVX", .needs = {Feature::avx2}},
    {.set = "BMI1", .needs = {Feature::bmi2}},
    {.set = "LZCNT", .needs = {Feature::bmi2}},
    {.set = "POPCNT", .needs = {Feature::bmi2}},
    // Features of their own.
    {.set = "AVX2", .needs = {Feature::avx2}},
    {.set = "AVX2GATHER", .needs = {Feature::avx2}},
    {.set = "FMA", .needs = {Feature::fma}},
    {.set = "F16C", .needs = {Feature::f16c}},
    {.set = "BMI2", .needs = {Feature::bmi2}},
    {.set = "AVX_VNNI", .needs = {Feature::avx_vnni}},
    {.set = "GFNI", .needs = {Feature::gfni}},
    {.set = "AVX_GFNI", .needs = {Feature::gfni, Feature::avx2}},
    {.set = "AVX512F", .needs = {Feature::avx512f}},
    {.set = "AVX512BW", .needs = {Feature::avx512f, Feature::avx512bw}},
    {.set = "AVX512CD", .needs = {Feature::avx512f, Feature::avx512cd}},
    {.set = "AVX512DQ", .needs = {Feature::avx512f, Feature::avx512dq}},
    {.set = "AVX512_VNNI", .needs = {Feature::avx512f, Feature::avx512_vnni}},
    {.set = "AVX512_VBMI", .needs = {Feature::avx512f, Feature::avx512_vbmi}},
    {.set = "AVX512_VBMI2", .needs = {Feature::avx512f, Feature::avx512_vbmi2}},
    {.set = "AVX512_GFNI", .needs = {Feature::avx512f, Feature::gfni}},
    {.set = "AVX512_FP16", .needs = {Feature::avx512f, Feature::avx512_fp16}},
    {.set = "AMX_TILE", .needs = {Feature::amx_tile}},
    {.set = "AMX_INT8", .needs = {Feature::amx_tile, Feature::amx_int8}},
    {.set = "AVX512_BITALG", .needs = {Feature::avx512f, Feature::avx512_bitalg}},
};

/// "AVX512BW_256" is AVX512BW at 256 bits; "_128N" needs no VL, "_KOP" is a mask operation.
struct IsaName {
  std::string_view set;
  std::string_view length;  // with its underscore; empty for most sets
};

IsaName split(std::string_view name) {
  constexpr std::array<std::string_view, 6> lengths = {"_128",  "_256", "_512",
                                                       "_128N", "_KOP", "_SCALAR"};
  for (std::string_view length : lengths) {
    if (!name.ends_with(length)) continue;
    return {name.substr(0, name.size() - length.size()), length};
  }
  return {name, {}};
}

/// The features that an ISA set needs; none when no tier has it.
std::optional<FeatureSet> features_of(std::string_view isa_set) {
  const IsaName name = split(isa_set);
  const auto* row = std::ranges::find(isa_table, name.set, &IsaRow::set);
  if (row == std::end(isa_table)) return std::nullopt;
  const bool short_vector = name.length == "_128" || name.length == "_256";
  return short_vector ? row->needs | FeatureSet{Feature::avx512vl} : row->needs;
}

std::string missing_names(FeatureSet needed, FeatureSet present) {
  std::string names;
  for (int i = 0; i < feature_count; ++i) {
    const auto feature = static_cast<Feature>(i);
    if (!needed.has(feature) || present.has(feature)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(feature));
  }
  return names;
}

Error outside_tier(const ListedInstruction& instruction, std::string_view needs,
                   const Target& target) {
  return {ErrorCode::internal,
          fmt::format("instruction at offset {:#x} '{}' needs {}, which tier {} does not have",
                      instruction.offset, instruction.text, needs, name_of(target.tier))};
}

}  // namespace

Status check_features(const MachineCode& code, const Target& target) {
  auto program = decode(code);
  if (!program) return program.error();
  const FeatureSet present = info(target.tier).features;
  for (size_t i = 0; i < program->size(); ++i) {
    const std::string_view isa_set = ZydisISASetGetString((*program)[i].instruction.meta.isa_set);
    const auto needed = features_of(isa_set);
    if (needed && present.contains(*needed)) continue;
    const auto listed = disassemble(code);
    if (!listed) return listed.error();
    return outside_tier((*listed)[i], needed ? missing_names(*needed, present) : isa_set, target);
  }
  return {};
}

}  // namespace castor::jit
