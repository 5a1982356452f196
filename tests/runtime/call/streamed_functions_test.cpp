// SPDX-License-Identifier: Apache-2.0
// Whole functions with stores past the caches: on every tier, with outputs that begin anywhere in a
// cache line, the bytes of the same call with cached stores, and nothing outside written.
#include <fmt/format.h>

#include <set>

#include "runtime/bind/bound_state.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"

namespace castor {
namespace {

using test::GuardedTensor;
using test::Layout;

struct StreamedCase {
  const char* name;
  std::string text;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs = {};  ///< unless dense
  Tier from = Tier::avx2;            ///< the lowest tier that must have streaming code for it
};

/// Where in a line each output begins, in bytes.
using LineOffsets = std::vector<int64_t>;

/// Every offset that streaming code is made for (all outputs equally many elements before the next
/// line), and offsets where outputs disagree, or begin inside an element.
std::set<LineOffsets> offsets_of(const Function& function) {
  std::set<LineOffsets> all;
  for (int64_t elements = 0; elements < 2 * Layout::line; ++elements) {
    LineOffsets offsets;
    for (ValueId result : function.results) {
      const int64_t bits = elements * bits_of(function.type_of(result).element);
      offsets.push_back(-(bits / 8) & (Layout::line - 1));
    }
    all.insert(offsets);
  }
  for (int64_t bytes : {0, 1, 2, 3, 4, 20, 32, 61, 63}) {
    LineOffsets offsets(function.results.size(), bytes);
    all.insert(offsets);
    offsets[0] = (bytes + 4) % Layout::line;
    all.insert(offsets);
  }
  return all;
}

/// A function and its inputs.
class StreamedCall {
 public:
  explicit StreamedCall(const StreamedCase& row) : function_(parse_function(row.text).value()) {
    std::vector<Dims> shapes;
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      const ElementType element = function_->type_of(function_->parameters[i]).element;
      inputs_.emplace_back(element, row.inputs[i], true).fill(i + 1);
      input_views_.push_back(inputs_.back().view());
      shapes.push_back(row.inputs[i].shape);
    }
    outputs_ = row.outputs;
    const BoundShapes bound = bind_shapes(*function_, shapes).value();
    for (size_t i = outputs_.size(); i < function_->results.size(); ++i) {
      outputs_.push_back({bound.values[function_->results[i]]});
    }
  }

  const FunctionPtr& function() const { return function_; }

  Result<BoundKernel> bind(const Runtime& runtime) {
    const std::vector<GuardedTensor> outputs = make_outputs(LineOffsets(outputs_.size(), 0), true);
    const Result<Kernel> kernel = runtime.compile(function_);
    if (!kernel.ok()) return kernel.error();
    return kernel->bind(input_views_, views_of(outputs));
  }

  /// The outputs of one call.
  std::vector<GuardedTensor> run(const BoundKernel& kernel, const LineOffsets& offsets,
                                 StorePolicy stores, bool at_end) {
    std::vector<GuardedTensor> outputs = make_outputs(offsets, at_end);
    const Status status = kernel.run(input_views_, views_of(outputs), {.stores = stores});
    EXPECT_TRUE(status.ok()) << status.error().message;
    return outputs;
  }

 private:
  std::vector<GuardedTensor> make_outputs(const LineOffsets& offsets, bool at_end) {
    std::vector<GuardedTensor> outputs;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Layout layout = outputs_[i];
      layout.line_offset = offsets[i];
      outputs.emplace_back(function_->type_of(function_->results[i]).element, layout, at_end);
    }
    return outputs;
  }

  static std::vector<View> views_of(const std::vector<GuardedTensor>& tensors) {
    std::vector<View> views;
    for (const GuardedTensor& tensor : tensors) views.push_back(tensor.view());
    return views;
  }

  FunctionPtr function_;
  std::vector<GuardedTensor> inputs_;
  std::vector<ConstView> input_views_;
  std::vector<Layout> outputs_;
};

bool has_streaming_code(const BoundKernel& kernel) {
  return std::ranges::any_of(detail::StateAccess::of(kernel).steps, [](const detail::Step& step) {
    const auto* elementwise = std::get_if<detail::ElementwiseStep>(&step);
    return elementwise != nullptr && elementwise->streaming != nullptr;
  });
}

void check_alike(const std::vector<GuardedTensor>& found,
                 const std::vector<GuardedTensor>& expected) {
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(std::ranges::equal(found[i].bytes(), expected[i].bytes())) << "output " << i;
    ASSERT_TRUE(found[i].is_clean_around()) << "bytes around output " << i;
  }
}

void check(const StreamedCase& row) {
  SCOPED_TRACE(row.name);
  StreamedCall call(row);
  std::vector<GuardedTensor> expected;  // results of the first tier, with cached stores
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    SCOPED_TRACE(name_of(tier));
    const Result<BoundKernel> kernel = call.bind(runtime);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_TRUE(has_streaming_code(*kernel) || tier < row.from);
    const LineOffsets lines(call.function()->results.size(), 0);
    std::vector<GuardedTensor> cached = call.run(*kernel, lines, StorePolicy::cached, true);
    if (!expected.empty()) check_alike(cached, expected);
    if (expected.empty()) expected = std::move(cached);
    bool at_end = false;
    int number = 0;
    for (const LineOffsets& offsets : offsets_of(*call.function())) {
      if (jit::host().emulates(tier) && number++ % 32 != 0) continue;  // all would take minutes
      SCOPED_TRACE(fmt::format("outputs {} bytes after lines", fmt::join(offsets, ", ")));
      at_end = !at_end;
      check_alike(call.run(*kernel, offsets, StorePolicy::streaming, at_end), expected);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// ---- One result

const std::string add_rows =
    "func @f(%a: f32[?, ?], %b: f32[?]) -> (f32[?, ?]) {\n  %y = add %a, %b\n  return %y\n}\n";
const std::string add_matrices =
    "func @f(%a: f32[?, ?], %b: f32[?, ?]) -> (f32[?, ?]) {\n"
    "  %y = add %a, %b\n  return %y\n}\n";

const StreamedCase broadcasts[] = {
    {"same shape", add_matrices, {{{601, 300}}, {{601, 300}}}},
    {"row", add_rows, {{{1024, 300}}, {{300}}}},
    {"row, long", add_rows, {{{301, 1003}}, {{1003}}}},
    {"column", add_matrices, {{{1024, 300}}, {{1024, 1}}}},
    {"scalar",
     "func @f(%a: f32[?, ?], %b: f32[]) -> (f32[?, ?]) {\n  %y = max %b, %a\n  return %y\n}\n",
     {{{601, 300}}, {{}}}},
    {"outer product", add_matrices, {{{900, 1}}, {{1, 401}}}},
    {"middle axis",
     "func @f(%a: f32[?, ?, ?], %b: bf16[?, ?, ?]) -> (i8[?, ?, ?]) {\n"
     "  %w = convert %b : f32\n  %s = add %a, %w\n"
     "  %y = convert %s {overflow = saturate} : i8\n  return %y\n}\n",
     {{{7, 1, 1037}}, {{7, 60, 1037}}}},
    {"output rows apart", add_rows, {{{1024, 300}}, {{300}}}, {{{1024, 300}, {320, 1}}}},
    {"output rows apart by no whole line",
     add_rows,
     {{{1024, 300}}, {{300}}},
     {{{1024, 300}, {303, 1}}}},
};

TEST(StreamedFunctions, Broadcasts) {
  for (const StreamedCase& row : broadcasts) {
    check(row);
    if (HasFatalFailure()) return;
  }
}

const StreamedCase periods[] = {
    {"three to a row", add_rows, {{{90'001, 3}}, {{3}}}},
    {"normalised colours",
     "func @f(%x: u8[?, 3], %m: f32[3], %s: f32[3]) -> (f16[?, 3]) {\n  %a = convert %x : f32\n"
     "  %b = sub %a, %m\n  %c = mul %b, %s\n  %y = convert %c : f16\n  return %y\n}\n",
     {{{150'001, 3}}, {{3}}, {{3}}}},
    {"outer product of short rows", add_matrices, {{{110'003, 1}}, {{1, 3}}}, {}, Tier::avx512},
    {"last axis of one",
     "func @f(%a: f32[?, ?, 4], %b: f32[?, ?, 1]) -> (f32[?, ?, 4]) {\n"
     "  %y = mul %a, %b\n  return %y\n}\n",
     {{{231, 200, 4}}, {{231, 200, 1}}},
     {},
     Tier::avx512},
    {"column of short rows", add_matrices, {{{30'011, 7}}, {{30'011, 1}}}, {}, Tier::avx512},
    {"bytes of short rows",
     "func @f(%a: u8[?, ?], %b: u8[?, ?]) -> (u8[?, ?]) {\n  %y = mul %a, %b\n  return %y\n}\n",
     {{{200'001, 3}}, {{1, 3}}}},
};

TEST(StreamedFunctions, Periods) {
  for (const StreamedCase& row : periods) {
    check(row);
    if (HasFatalFailure()) return;
  }
}

const StreamedCase sub_byte_functions[] = {
    {"table of each row",
     "func @f(%x: u4[?, ?], %s: f16[?, ?], %z: u4[?, ?]) -> (f16[?, ?]) {\n"
     "  %a = convert %x : f16\n  %b = convert %z : f16\n  %c = sub %a, %b\n  %y = mul %c, %s\n"
     "  return %y\n}\n",
     {{{8192, 64}}, {{8192, 1}}, {{8192, 1}}},
     {},
     Tier::avx512},
    {"sums of nibbles",
     "func @f(%a: i4[?], %b: i4[?]) -> (i4[?]) {\n  %y = add %a, %b\n  return %y\n}\n",
     {{{1'200'013}}, {{1'200'013}}}},
    {"nibbles that begin inside a byte",
     "func @f(%a: i4[?], %b: i4[?]) -> (i4[?]) {\n  %y = add %a, %b\n  return %y\n}\n",
     {{{900'013}, {}, 1}, {{900'013}}},
     {{{900'013}, {}, 3}}},
    {"bits to nibbles",
     "func @f(%a: u1[?]) -> (u4[?]) {\n  %y = convert %a : u4\n  return %y\n}\n",
     {{{1'800'013}}},
     {},
     Tier::avx512},
    {"six bits to two",
     "func @f(%a: u6[?]) -> (i2[?]) {\n  %y = convert %a : i2\n  return %y\n}\n",
     {{{1'200'013}}},
     {},
     Tier::avx512},
    {"nibbles from floats",
     "func @f(%a: f32[?]) -> (u4[?], f32[?]) {\n  %b = sqrt %a\n"
     "  %y = convert %b {overflow = saturate} : u4\n  return %y, %b\n}\n",
     {{{200'013}}}},
};

TEST(StreamedFunctions, SubByteTypes) {
  for (const StreamedCase& row : sub_byte_functions) {
    check(row);
    if (HasFatalFailure()) return;
  }
}

const StreamedCase tiled[] = {
    {"transposed operand", add_matrices, {{{512, 640}, {1, 512}}, {{512, 640}}}},
    {"transposed operand, no whole lines", add_matrices, {{{530, 701}}, {{530, 701}, {1, 530}}}},
    {"transposed operand of another width, two results",
     "func @f(%a: f32[?, ?], %b: f16[?, ?]) -> (i32[?, ?], f32[?, ?]) {\n  %c = convert %b : f32\n"
     "  %s = mul %a, %c\n  %y = convert %s : i32\n  return %y, %s\n}\n",
     {{{317, 832}, {832, 1}}, {{317, 832}, {1, 320}}}},
    {"elements apart",
     "func @f(%a: f64[?], %b: f32[?]) -> (f32[?]) {\n  %c = convert %a : f32\n"
     "  %y = sub %c, %b\n  return %y\n}\n",
     {{{250'003}, {2}}, {{250'003}, {3}}}},
};

TEST(StreamedFunctions, Tiles) {
  for (const StreamedCase& row : tiled) {
    check(row);
    if (HasFatalFailure()) return;
  }
}

const StreamedCase look_ups[] = {
    {"one table of bytes",
     "func @f(%x: u8[?], %t: u8[256]) -> (u8[?]) {\n  %y = look_up %x, %t\n  return %y\n}\n",
     {{{1'100'003}}, {{256}}}},
    {"entries read one by one",
     "func @f(%x: i8[?], %t: f32[256]) -> (f32[?]) {\n  %y = look_up %x, %t\n  return %y\n}\n",
     {{{250'003}}, {{256}}}},
    {"a table for each channel of pixels",
     "func @f(%x: u8[?, ?], %t: f32[?, 256]) -> (f32[?, ?]) {\n"
     "  %y = look_up %x, %t {axis = 1}\n  return %y\n}\n",
     {{{800, 320}}, {{320, 256}}}},
};

TEST(StreamedFunctions, LookUps) {
  for (const StreamedCase& row : look_ups) {
    check(row);
    if (HasFatalFailure()) return;
  }
}

// ---- Several results and several nests

const StreamedCase several[] = {
    {"results of different widths",
     "func @f(%a: f32[?, ?], %b: f32[?]) -> (f32[?, ?], u8[?, ?]) {\n  %y = add %a, %b\n"
     "  %z = convert %y {overflow = saturate} : u8\n  return %y, %z\n}\n",
     {{{300, 1024}}, {{1024}}}},
    {"results of three widths in one nest",
     "func @f(%a: f64[?]) -> (i64[?], f16[?], boolean[?]) {\n  %y = convert %a : i64\n"
     "  %z = convert %a : f16\n  %t = less %a, %a\n  return %y, %z, %t\n}\n",
     {{{150'011}}}},
    {"periods and results of different widths",
     "func @f(%a: u8[?, 3], %b: u8[3]) -> (u8[?, 3], u16[?, 3]) {\n  %y = sub %a, %b\n"
     "  %z = convert %y : u16\n  return %y, %z\n}\n",
     {{{150'001, 3}}, {{3}}}},
};

TEST(StreamedFunctions, SeveralResults) {
  for (const StreamedCase& row : several) {
    check(row);
    if (HasFatalFailure()) return;
  }
}

/// Nests that store values in scratch, some of them beside results.
const StreamedCase with_scratch[] = {
    {"a result beside a value in scratch",
     "func @f(%x: f32[?n], %y: f32[?m, ?n]) -> (f32[?n], f32[?m, ?n]) {\n  %a = div %x, %x\n"
     "  %b = div %a, %x\n  %c = div %b, %a\n  %d = sqrt %c\n  %t = neg %x\n  %u = add %d, %y\n"
     "  return %t, %u\n}\n",
     {{{600'000}}, {{2, 600'000}}}},
    {"narrow results beside values in scratch",
     "func @f(%x: f16[?n], %y: f16[?m, ?n]) -> (i8[?n], f16[?m, ?n]) "
     "attributes {excess_precision = allow} {\n  %a = div %x, %x\n  %b = div %a, %x\n"
     "  %c = div %b, %a\n  %d = sqrt %c\n  %t = convert %x : i8\n  %u = add %d, %y\n"
     "  return %t, %u\n}\n",
     {{{300'007}}, {{2, 300'007}}}},
    {"one value, two spaces",
     "func @f(%r: f32[?n]) -> (f32[3, ?n], f32[?n, 3]) {\n  %a = sqrt %r\n  %b = div %a, %r\n"
     "  %c = sqrt %b\n  %d = div %r, %c\n  %y = broadcast %d : [3, ?n]\n"
     "  %z = broadcast %d {mode = explicit, axes = [0]} : [?n, 3]\n  return %y, %z\n}\n",
     {{{100'003}}}},
    {"a reshape of a view",
     "func @f(%x: f32[?, 300]) -> (f32[?]) {\n  %n = neg %x\n  %a = reshape %n : [?]\n"
     "  %y = sqrt %a\n  return %y\n}\n",
     {{{1024, 300}, {304, 1}}}},
};

TEST(StreamedFunctions, ResultsAndScratch) {
  for (const StreamedCase& row : with_scratch) {
    check(row);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace castor
