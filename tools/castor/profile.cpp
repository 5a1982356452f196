// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "ir/verify/infer.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/call/call_profile.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/observe/code_name.hpp"
#include "runtime/state_access.hpp"
#include "tools/limits/machine_limits.hpp"

namespace castor::tools {

namespace {

using detail::BoundState;
using detail::CallProfile;
using detail::Work;
using detail::WorkTotals;
using Clock = std::chrono::steady_clock;

constexpr auto long_enough = std::chrono::milliseconds(500);
constexpr int min_calls = 3;

/// The nests that are done along with a convolution: by its nest, that of its epilogue.
std::map<size_t, size_t> fused_nests(const BoundState& bound) {
  std::map<size_t, size_t> fused;
  for (const detail::Step& step : bound.steps) {
    if (const auto* convolution = std::get_if<detail::ConvolutionStep>(&step)) {
      if (convolution->epilogue) fused[convolution->nest] = convolution->epilogue->nest;
    }
  }
  return fused;
}

/// Bytes of a nest's tensors, each counted once.
class NestTensors {
 public:
  NestTensors(const Function& function, const BoundShapes& shapes)
      : function_(function), shapes_(shapes) {}

  void add(const jit::Nest& nest) {
    for (const jit::NestInput& input : nest.inputs) read_.insert(input.value);
    for (const jit::NestOutput& output : nest.outputs) written_.insert(output.value);
  }
  /// What one of the nests leaves to another one of them stays within.
  int64_t bytes_read() const { return bytes_of(read_, written_); }
  int64_t bytes_written(bool is_fused) const {
    return bytes_of(written_, is_fused ? read_ : none_);
  }

 private:
  int64_t bytes_of(const std::set<ValueId>& values, const std::set<ValueId>& within) const {
    int64_t sum = 0;
    for (const ValueId value : values) {
      if (within.contains(value)) continue;
      const int64_t count = element_count(shapes_.values[value]).value_or(0);
      sum += byte_size(function_.type_of(value).element, count).value_or(0);
    }
    return sum;
  }

  const Function& function_;
  const BoundShapes& shapes_;
  std::set<ValueId> read_;
  std::set<ValueId> written_;
  const std::set<ValueId> none_;
};

/// The operations of a nest: "convert, mul and 3 more".
std::string operations_text(const Function& function, const std::vector<uint32_t>& operations) {
  constexpr size_t max_named = 3;
  std::string text;
  for (size_t i = 0; i < std::min(operations.size(), max_named); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", name_of(function.operations[operations[i]].op));
  }
  if (operations.size() > max_named) {
    text += fmt::format(" and {} more", operations.size() - max_named);
  }
  return text.empty() ? "copy" : text;
}

/// Makes the parts of a profile of one call.
class PartMaker {
 public:
  PartMaker(const BoundState& bound, const BoundShapes& shapes, const CallProfile& times)
      : compiled_(*bound.kernel->compiled),
        shapes_(shapes),
        times_(times),
        fused_(fused_nests(bound)) {}

  std::vector<ProfilePart> make() const {
    std::vector<ProfilePart> parts;
    for (size_t nest = 0; nest < compiled_.nests.size(); ++nest) {
      if (times_.totals(nest, Work::nest).parts == 0) continue;  // nothing, or along with another
      parts.push_back(part_of_nest(nest));
      for (const Work work : {Work::pack_weights, Work::pack_input, Work::window_sums, Work::block,
                              Work::transpose, Work::epilogue}) {
        const WorkTotals totals = times_.totals(nest, work);
        if (totals.parts > 0) parts.push_back(part_of(std::string(name_of(work)), false, totals));
      }
    }
    return parts;
  }

 private:
  static ProfilePart part_of(std::string name, bool is_nest, const WorkTotals& totals) {
    return {.name = std::move(name),
            .is_nest = is_nest,
            .parts = static_cast<double>(totals.parts),
            .nanoseconds = static_cast<double>(totals.nanoseconds),
            .bytes_read = static_cast<double>(totals.amount.bytes_read),
            .bytes_written = static_cast<double>(totals.amount.bytes_written),
            .products = static_cast<double>(totals.amount.products)};
  }

  /// Its tensors are those of the function; its products those of its blocks.
  ProfilePart part_of_nest(size_t nest) const {
    const Function& function = *compiled_.canonical;
    NestTensors tensors(function, shapes_);
    tensors.add(compiled_.nests[nest]);
    std::vector<uint32_t> operations = operations_of(function, compiled_.nests[nest]);
    const auto epilogue = fused_.find(nest);
    if (epilogue != fused_.end()) {
      tensors.add(compiled_.nests[epilogue->second]);
      std::ranges::copy(operations_of(function, compiled_.nests[epilogue->second]),
                        std::back_inserter(operations));
    }
    ProfilePart part =
        part_of(fmt::format("nest {}: {}", nest, operations_text(function, operations)), true,
                times_.totals(nest, Work::nest));
    part.bytes_read = static_cast<double>(tensors.bytes_read());
    part.bytes_written = static_cast<double>(tensors.bytes_written(epilogue != fused_.end()));
    part.products = static_cast<double>(times_.totals(nest, Work::block).amount.products);
    return part;
  }

  const detail::Compiled& compiled_;
  const BoundShapes& shapes_;
  const CallProfile& times_;
  const std::map<size_t, size_t> fused_;
};

/// Sets what the machine needs at least for the bytes and for the products of a part: of a nest's
/// bytes as a whole, of others' as each of their parts moves them.
Status set_limit(ProfilePart& part, limits::MachineLimits& machine) {
  if (part.nanoseconds <= 0) return {};
  const double at_a_time = part.is_nest ? 1 : std::max(part.parts, 1.0);
  const auto bytes = [&](double all) { return static_cast<int64_t>(all / at_a_time); };
  const auto stream = machine.stream_ns(bytes(part.bytes_read), bytes(part.bytes_written));
  if (!stream) return stream.error();
  const double for_bytes = stream->value_or(0) * at_a_time;
  const double for_products = part.products > 0 ? part.products / machine.products_per_ns() : 0;
  const double needed = std::max(for_bytes, for_products);
  if (needed <= 0) return {};
  part.limit_fraction = needed / part.nanoseconds;
  part.limit = for_products > for_bytes ? "products" : "stream";
  return {};
}

std::string bytes_text(double bytes) {
  if (bytes <= 0) return "-";
  for (const char* unit : {"B", "KiB", "MiB"}) {
    if (bytes < 10000) return fmt::format("{:.{}f} {}", bytes, *unit == 'B' ? 0 : 1, unit);
    bytes /= 1024;
  }
  return fmt::format("{:.1f} GiB", bytes);
}

std::string rate_text(double amount, double nanoseconds) {
  if (amount <= 0 || nanoseconds <= 0) return "-";
  return fmt::format("{:.1f}", amount / nanoseconds);
}

std::string line_of(std::string_view name, double nanoseconds, double fraction,
                    std::string_view others) {
  return fmt::format("{:<44} {:>10.2f} {:>6.1f} %{}\n", name, nanoseconds / 1000, 100 * fraction,
                     others);
}

std::string line_of(const ProfilePart& part, double whole) {
  const std::string limit = part.limit_fraction > 0
                                ? fmt::format("{:.2f} {}", part.limit_fraction, part.limit)
                                : std::string("-");
  const std::string others =
      fmt::format(" {:>8.0f} {:>12} {:>12} {:>8} {:>8}  {}", part.parts,
                  bytes_text(part.bytes_read), bytes_text(part.bytes_written),
                  rate_text(part.bytes_read + part.bytes_written, part.nanoseconds),
                  rate_text(part.products, part.nanoseconds), limit);
  return line_of((part.is_nest ? "" : "  ") + part.name, part.nanoseconds, part.nanoseconds / whole,
                 others);
}

}  // namespace

Result<Profile> take_profile(const BoundKernel& bound, std::span<const ConstView> inputs,
                             std::span<const View> outputs) {
  const BoundState& state = detail::StateAccess::of(bound);
  if (bound.engine() != Engine::jit) {
    return Error{ErrorCode::unsupported,
                 fmt::format("a profile is of machine code, but the interpreter runs: {}",
                             bound.engine_reason())};
  }
  std::vector<Dims> shapes;
  for (const ConstView& input : inputs) shapes.push_back(input.shape);
  const Result<BoundShapes> values = bind_shapes(*state.kernel->compiled->canonical, shapes);
  if (!values) return values.error();
  if (Status first = bound.run(inputs, outputs); !first) return first.error();

  std::unique_ptr<CallProfile> fastest;
  Profile profile;
  const auto begin = Clock::now();
  while (profile.calls < min_calls || Clock::now() - begin < long_enough) {
    auto times = std::make_unique<CallProfile>(state.kernel->compiled->nests.size());
    const auto call_begin = Clock::now();
    Status called = detail::run_profiled(state, inputs, outputs, {}, *times);
    const std::chrono::duration<double, std::nano> time = Clock::now() - call_begin;
    if (!called) return called.error();
    if (profile.calls++ > 0 && time.count() >= profile.nanoseconds) continue;
    profile.nanoseconds = time.count();
    fastest = std::move(times);
  }
  profile.parts = PartMaker(state, *values, *fastest).make();

  limits::MachineLimits machine(state.target.tier);
  for (ProfilePart& part : profile.parts) {
    if (Status status = set_limit(part, machine); !status) return status.error();
    if (part.products > 0) profile.products_per_ns = machine.products_per_ns();
  }
  profile.products_by = machine.products_by();
  return profile;
}

std::string print(const Profile& profile) {
  std::string text =
      fmt::format("{} calls, the fastest {:.2f} us", profile.calls, profile.nanoseconds / 1000);
  if (profile.products_per_ns > 0) {
    text +=
        fmt::format("; at most {:.0f} GMAC/s by {}", profile.products_per_ns, profile.products_by);
  }
  text += fmt::format("\n{:<44} {:>10} {:>8} {:>8} {:>12} {:>12} {:>8} {:>8}  {}\n", "", "us",
                      "of call", "parts", "read", "written", "GB/s", "GMAC/s", "of the limit");
  double outside = profile.nanoseconds;
  for (const ProfilePart& part : profile.parts) {
    text += line_of(part, profile.nanoseconds);
    if (part.is_nest) outside -= part.nanoseconds;
  }
  return text +
         line_of("checks, scratch, taking times", outside, outside / profile.nanoseconds, "");
}

}  // namespace castor::tools
