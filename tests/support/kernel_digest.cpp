// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_digest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "jit/listing/listing.hpp"
#include "jit/listing/origins.hpp"
#include "runtime/observe/code_name.hpp"

namespace castor::test {

namespace {

unsigned bit_of(jit::Tier tier) { return 1u << static_cast<unsigned>(tier); }

/// "avx512_vnni avx512_vbmi".
std::string names_of_tiers(unsigned tiers) {
  std::vector<std::string_view> names;
  for (const jit::TierInfo& row : jit::tier_table()) {
    if ((tiers & bit_of(row.tier)) != 0) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string hash_text(uint64_t hash) {
  return fmt::format("{:08x}", static_cast<uint32_t>(hash ^ hash >> 32));
}

/// Whether notes change nothing, and every instruction has an origin.
Status check_notes(const tools::RecordedKernel& kernel) {
  if (!kernel.annotated) return kernel.annotated.error();
  if (kernel.annotated->bytes != kernel.code.bytes) {
    return Error{ErrorCode::internal, kernel.name + ": notes change the code"};
  }
  const auto found = jit::origins(*kernel.annotated);
  if (found) return {};
  return Error{found.error().code, kernel.name + ": " + found.error().message};
}

}  // namespace

Status KernelDigest::add(const DigestCase& each) {
  if (groups_.empty() || groups_.back().name != each.group) groups_.push_back({each.group, {}});
  for (const jit::TierInfo& row : jit::tier_table()) {
    const auto kernels =
        tools::RecordingRuntime({row.tier}).bind(each.function, {each.shapes, each.strides});
    if (!kernels) return kernels.error();
    std::set<uint64_t> used;
    for (const tools::RecordedKernel& kernel : *kernels) {
      const uint64_t hash = content_hash(kernel.code.bytes);
      used.insert(hash);
      if (Status status = add_kernel(kernel, hash, row.tier); !status) return status;
    }
    Usage& usage = groups_.back().usage[static_cast<size_t>(row.tier)];
    for (const uint64_t hash : used) {
      ++usage.codes[hash];
      usage.sequence += hash_text(hash);
    }
    usage.sequence += '\n';
  }
  return {};
}

Status KernelDigest::add_kernel(const tools::RecordedKernel& kernel, uint64_t hash,
                                jit::Tier tier) {
  const auto [at, is_new] = lines_.try_emplace({kernel.name, hash});
  Line& line = at->second;
  const bool is_new_here = (line.tiers & bit_of(tier)) == 0;
  line.tiers |= bit_of(tier);
  if (is_new_here) {
    const Status features = check_features(kernel.code, {tier});
    if (!features) {
      return Error{features.error().code, kernel.name + ": " + features.error().message};
    }
  }
  if (!is_new) return {};
  const Status unwinding = check_unwinding(kernel.code);
  if (!unwinding) {
    return Error{unwinding.error().code, kernel.name + ": " + unwinding.error().message};
  }
  if (Status status = check_notes(kernel); !status) return status;
  const auto listed = disassemble(kernel.code);
  if (!listed) return listed.error();
  line.bytes = kernel.code.bytes.size();
  line.instructions = listed->size();
  line.spills = kernel.code.spills;
  line.group = groups_.size() - 1;
  return {};
}

/// "resnet50_stem: avx2 3 1a2b3c4d, ...", then its lines, which are ordered by what a change of the
/// code does not change as long as that will do.
std::string KernelDigest::group_text(size_t index) const {
  const Group& group = groups_[index];
  std::vector<std::string> usages;
  for (const jit::TierInfo& row : jit::tier_table()) {
    const Usage& usage = group.usage[static_cast<size_t>(row.tier)];
    usages.push_back(
        fmt::format("{} {} {}", row.name, usage.codes.size(), short_hash(usage.sequence)));
  }
  std::vector<std::pair<Identity, Line>> own;
  for (const auto& entry : lines_) {
    if (entry.second.group == index) own.emplace_back(entry);
  }
  std::ranges::stable_sort(own, {}, [](const auto& entry) {
    const auto& [identity, line] = entry;
    return std::tuple(identity.first, line.tiers, line.bytes, line.instructions, identity.second);
  });
  std::string text = fmt::format("{}: {}\n", group.name, fmt::join(usages, ", "));
  for (const auto& [identity, line] : own) {
    text += fmt::format("{:>7} {:>5} {:>2} {} {}: {}\n", line.bytes, line.instructions, line.spills,
                        hash_text(identity.second), identity.first, names_of_tiers(line.tiers));
  }
  return text;
}

std::string KernelDigest::text() const {
  std::string text = "# Sums over all kernels:\n";
  for (const jit::TierInfo& row : jit::tier_table()) {
    Line sum;
    size_t count = 0;
    for (const auto& [identity, line] : lines_) {
      if ((line.tiers & bit_of(row.tier)) == 0) continue;
      ++count;
      sum.bytes += line.bytes;
      sum.instructions += line.instructions;
      sum.spills += line.spills;
    }
    text += fmt::format("#   {:<12} {} kernels, {} bytes, {} instructions, {} spills\n", row.name,
                        count, sum.bytes, sum.instructions, sum.spills);
  }
  for (size_t i = 0; i < groups_.size(); ++i) text += "\n" + group_text(i);
  return text;
}

}  // namespace castor::test
