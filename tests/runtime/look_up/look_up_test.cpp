// SPDX-License-Identifier: Apache-2.0
// look_up by machine code on every tier, against the interpreter: codes and tables of all types,
// tables in memory, in constants and computed, one for all elements or for each index of an axis,
// in views with gaps and transposed, alone and among elementwise operations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/function_case.hpp"

namespace castor {
namespace {

using test::check_function;
using test::Layout;

constexpr ElementType code_types[] = {ElementType::u8, ElementType::i8,     ElementType::u4,
                                      ElementType::i4, ElementType::f4e2m1, ElementType::nf4};

/// `%y = look_up %x, %t` of these types and shapes, then `after`, whose result is %r.
std::string function_text(ElementType codes, const Dims& shape, ElementType element,
                          std::optional<int> axis) {
  const int64_t entries = int64_t{1} << bits_of(codes);
  const Dims table = axis ? Dims{shape[*axis], entries} : Dims{entries};
  return fmt::format(
      "func @f(%x: {}{}, %t: {}{}) -> ({}{}) {{\n  %y = look_up %x, %t{}\n  return %y\n}}\n",
      name_of(codes), to_string(shape), name_of(element), to_string(table), name_of(element),
      to_string(shape), axis ? fmt::format(" {{axis = {}}}", *axis) : "");
}

std::vector<Layout> dense_layouts(ElementType codes, const Dims& shape, std::optional<int> axis) {
  const int64_t entries = int64_t{1} << bits_of(codes);
  return {{.shape = shape}, {.shape = axis ? Dims{shape[*axis], entries} : Dims{entries}}};
}

void check(ElementType codes, const Dims& shape, ElementType element, std::optional<int> axis) {
  check_function({function_text(codes, shape, element, axis), dense_layouts(codes, shape, axis)});
}

TEST(LookUp, TakesAllCodesAndTables) {
  for (const ElementType codes : code_types) {
    for (const ElementInfo& element : element_table) {
      for (const int64_t count : {1, 67, 515}) {
        check(codes, {count}, element.type, std::nullopt);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LookUp, HasATableForEachIndexOfAnyAxis) {
  using enum ElementType;
  const Dims shapes[] = {{5}, {70}, {3, 1}, {1, 3}, {3, 200}, {200, 3}, {2, 3, 65}, {4, 1, 2, 33}};
  for (const ElementType codes : {u8, i4}) {
    for (const ElementType element : {u8, i4, f16, f32, f64}) {
      for (const Dims& shape : shapes) {
        for (int axis = 0; axis < shape.rank(); ++axis) {
          check(codes, shape, element, axis);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(LookUp, SizesAroundVectors) {
  using enum ElementType;
  for (const ElementType element : {u8, u16, u64}) {
    for (const int64_t count : {0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 300}) {
      check(u8, {count}, element, std::nullopt);
      check(u4, {count}, element, std::nullopt);
      check(i8, {2, count}, element, 0);
      check(i8, {3, count}, element, 1);
      if (HasFatalFailure()) return;
    }
  }
}

/// Views with gaps, transposed and reversed in their axes, tables too.
TEST(LookUp, TakesViewsOfAnyStrides) {
  using enum ElementType;
  for (const ElementType element : {u8, f32}) {
    for (const int axis : {0, 1, 2}) {
      const Dims shape = {3, 37, 20};
      const std::string text = function_text(u8, shape, element, axis);
      const Layout dense_x = {.shape = shape};
      const Layout dense_table = {.shape = {shape[axis], 256}};
      const Layout spaced = {.shape = shape, .strides = {2000, 50, 2}, .offset = 3};
      const Layout transposed = {.shape = shape, .strides = {1, 3, 111}};
      const Layout rows = {.shape = shape, .strides = {1000, 25, 1}, .offset = 7};
      const Layout spaced_table = {.shape = {shape[axis], 256}, .strides = {600, 2}, .offset = 1};
      const Layout row_table = {.shape = {shape[axis], 256}, .strides = {300, 1}};
      const Layout turned_table = {.shape = {shape[axis], 256}, .strides = {1, shape[axis]}};
      for (const Layout& x : {dense_x, spaced, transposed, rows}) {
        check_function({text, {x, dense_table}});
        check_function({text, {x, turned_table}, {transposed}});
        check_function({text, {x, row_table}, {spaced}});
        check_function({text, {x, spaced_table}, {rows}});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LookUp, OneTableInAView) {
  using enum ElementType;
  for (const ElementType element : {i8, f64, u4, nf4}) {
    const std::string text = function_text(u8, {1000}, element, std::nullopt);
    for (const int64_t stride : {1, 2, 5}) {
      check_function({text, {{.shape = {1000}}, {.shape = {256}, .strides = {stride}}}});
      if (HasFatalFailure()) return;
    }
  }
}

/// Sub-byte codes that begin inside a byte.
TEST(LookUp, TakesCodesFromAnyBitOn) {
  using enum ElementType;
  for (const ElementType element : {u8, u4, f32}) {
    const std::string text = function_text(i4, {3, 41}, element, 0);
    for (const int64_t offset : {0, 1}) {
      check_function({text,
                      {{.shape = {3, 41}, .strides = {43, 1}, .offset = offset},
                       {.shape = {3, 16}, .strides = {17, 1}}}});
      if (HasFatalFailure()) return;
    }
  }
}

std::string ramp(int entries, int factor) {
  std::string list;
  for (int i = 0; i < entries; ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : ", ", (i * factor + 5) % 128);
  }
  return "[" + list + "]";
}

TEST(LookUp, ConstantTables) {
  for (const char* codes : {"u8", "i8", "u4", "nf4"}) {
    const int entries = std::string_view(codes).ends_with("8") ? 256 : 16;
    for (const char* element :
         {"u8", "i8", "f8e5m2", "f16", "i16", "f32", "i64", "boolean", "i4"}) {
      const std::string_view type = element;
      const std::string list = type == "boolean" ? ramp(entries, 0) : ramp(entries, 37);
      std::string values = list;
      if (type == "boolean" || type == "i4") {  // as bit patterns
        values = "[";
        for (int i = 0; i < entries; ++i) {
          values += fmt::format("{}0x{:x}", i == 0 ? "" : ", ", i * 7 % (type == "i4" ? 16 : 256));
        }
        values += "]";
      }
      check_function({fmt::format("func @f(%x: {0}[3, 129]) -> ({1}[3, 129]) {{\n"
                                  "  %t = constant {2} : {1}[{3}]\n"
                                  "  %y = look_up %x, %t\n  return %y\n}}\n",
                                  codes, element, values, entries),
                      {{.shape = {3, 129}}}});
      if (HasFatalFailure()) return;
    }
  }
}

/// Functions with look-ups among other operations; %x is u8[2, 5, 130], %t and %u are tables.
TEST(LookUp, AmongOtherOperations) {
  const char* const bodies[] = {
      // Before and after.
      "%c = convert %f {overflow = saturate} : u8\n  %y = look_up %c, %t\n  %r = mul %y, %f",
      "%y = look_up %x, %t\n  %s = sqrt %y\n  %r = add %s, %y",
      "%a = shift_right %x, %x\n  %y = look_up %a, %u {axis = 1}\n  %r = neg %y",
      // One table twice, two tables, a table of tables' indices.
      "%y = look_up %x, %t\n  %n = bitwise_not %x\n  %z = look_up %n, %t\n  %r = sub %y, %z",
      "%y = look_up %x, %t\n  %z = look_up %x, %u {axis = 1}\n  %r = add %y, %z",
      "%b = look_up %x, %v\n  %r = look_up %b, %t",
      "%b = look_up %x, %w {axis = 2}\n  %r = look_up %b, %t",
      // A table that is computed, and one that others read, too.
      "%s = mul %t, %t\n  %r = look_up %x, %s",
      "%s = add %u, %t\n  %y = look_up %x, %s {axis = 1}\n  %q = reshape %s : [256, 5]\n"
      "  %r = add %y, %f",
      "%s = reshape %u : [1280]\n  %q = reshape %s : [5, 256]\n"
      "  %r = look_up %x, %q {axis = 1}",
      // Codes that are broadcast.
      "%k = constant [0, 3, 129, 200, 255] : u8[5]\n  %y = look_up %k, %u {axis = 0}\n"
      "  %q = reshape %y : [5, 1]\n  %r = mul %f, %q",
      "%b = broadcast %p : [2, 5, 130]\n  %y = look_up %b, %u {axis = 1}\n  %r = add %y, %f",
      "%y = look_up %p, %t\n  %r = add %f, %y",
      // Narrow codes and narrow tables.
      "%c = convert %x : u4\n  %k = constant [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, "
      "16] : f32[16]\n  %y = look_up %c, %k\n  %r = mul %y, %f",
      "%s = convert %t {overflow = saturate} : i4\n  %y = look_up %x, %s\n  %r = convert %y : f32",
      // A float of 8 bits holds the codes.
      "%c = convert %f {overflow = saturate} : f4e2m1\n  %k = constant [1, 2, 3, 4, 5, 6, 7, 8, 9, "
      "10, 11, 12, 13, 14, 15, 16] : u8[16]\n  %y = look_up %c, %k\n  %z = look_up %y, %v\n"
      "  %r = convert %z : f32",
  };
  for (const char* body : bodies) {
    for (const bool excess : {false, true}) {
      const std::string text = fmt::format(
          "func @f(%x: u8[2, 5, 130], %f: f32[2, 5, 130], %t: f32[256], %u: f32[5, 256], "
          "%v: u8[256], %w: u8[130, 256], %p: u8[5, 1]) -> (f32[2, 5, 130]){} {{\n  {}\n"
          "  return %r\n}}\n",
          excess ? " attributes {excess_precision = allow}" : "", body);
      check_function({text,
                      {{.shape = {2, 5, 130}},
                       {.shape = {2, 5, 130}},
                       {.shape = {256}},
                       {.shape = {5, 256}},
                       {.shape = {256}},
                       {.shape = {130, 256}},
                       {.shape = {5, 1}}}});
      if (HasFatalFailure()) return;
    }
  }
}

/// What a table for each index of an axis gives is repeated by blocks of that axis, directly and as
/// a part of what is computed (the fuzzer found tables that went on with the elements).
TEST(LookUp, RepeatedByBlocks) {
  const char* const bodies[] = {
      "%r = broadcast %y {mode = blocked, axes = [1], block = [2]} : [3, 77]",
      "%n = add %y, %y\n  %r = add %f, %n {broadcast = blocked, axes = [1], block = [2]}",
      "%n = neg %f\n  %r = mul %n, %y {broadcast = blocked, axes = [1], block = [2]}",
  };
  for (const char* body : bodies) {
    for (const char* element : {"u16", "f32", "i8"}) {
      const std::string text = fmt::format(
          "func @f(%x: u8[3, 39], %t: {0}[39, 256], %f: {0}[3, 77]) -> ({0}[3, 77]) {{\n"
          "  %y = look_up %x, %t {{axis = 1}}\n  {1}\n  return %r\n}}\n",
          element, body);
      check_function({text, {{.shape = {3, 39}}, {.shape = {39, 256}}, {.shape = {3, 77}}}});
      if (HasFatalFailure()) return;
    }
  }
}

/// Under excess precision a table is rounded to its type, also where other operations take it as
/// f32.
TEST(LookUp, RoundsComputedTables) {
  for (const char* element : {"f16", "bf16", "f8e4m3"}) {
    const std::string text = fmt::format(
        "func @f(%x: u8[3, 77], %a: {0}[256], %b: {0}[256]) -> ({0}[3, 77], {0}[256], {0}[3, 77]) "
        "attributes {{excess_precision = allow}} {{\n"
        "  %t = mul %a, %b\n  %y = look_up %x, %t\n  %u = add %t, %a\n"
        "  %s = mul %y, %y\n  %r = add %s, %y\n  return %y, %u, %r\n}}\n",
        element);
    check_function({text, {{.shape = {3, 77}}, {.shape = {256}}, {.shape = {256}}}});
    if (HasFatalFailure()) return;
  }
}

/// An activation after a convolution: the codes are computed where its result is stored.
TEST(LookUp, AfterConvolutions) {
  const char* const tables[] = {"%t: u8[256]", "%t: i32[256]"};
  for (const char* table : tables) {
    for (const bool per_channel : {false, true}) {
      const std::string shape = per_channel ? "[12, 256]" : "[256]";
      std::string parameter = table;
      parameter.replace(parameter.find("[256]"), 5, shape);
      const std::string element = parameter.substr(4, parameter.find('[') - 4);
      for (const char* layout : {"nchw", "nhwc"}) {
        const bool nhwc = std::string_view(layout) == "nhwc";
        const std::string x = nhwc ? "[2, 9, 9, 8]" : "[2, 8, 9, 9]";
        const std::string y = nhwc ? "[2, 7, 7, 12]" : "[2, 12, 7, 7]";
        const std::string text = fmt::format(
            "func @f(%x: u8{}, %w: i8[12, 8, 3, 3], {}) -> ({}{}) {{\n"
            "  %c = conv_integer %x, %w {{layout = {}}}\n  %q = convert %c {{overflow = saturate}} "
            ": u8\n  %y = look_up %q, %t{}\n  return %y\n}}\n",
            x, parameter, element, y, layout,
            per_channel ? (nhwc ? " {axis = 3}" : " {axis = 1}") : "");
        check_function({text,
                        {{.shape = nhwc ? Dims{2, 9, 9, 8} : Dims{2, 8, 9, 9}},
                         {.shape = {12, 8, 3, 3}},
                         {.shape = per_channel ? Dims{12, 256} : Dims{256}}}});
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// Kernels of convolutions apply constant tables of bytes; wider ones are in memory.
TEST(LookUp, ConstantsAfterConvolutions) {
  for (const char* element : {"u8", "i8", "f32"}) {
    for (const char* layout : {"nchw", "nhwc"}) {
      const bool nhwc = std::string_view(layout) == "nhwc";
      const Dims x = nhwc ? Dims{1, 12, 12, 16} : Dims{1, 16, 12, 12};
      const Dims y = nhwc ? Dims{1, 12, 12, 24} : Dims{1, 24, 12, 12};
      const std::string text = fmt::format(
          "func @f(%x: u8{0}, %w: i8[24, 16, 3, 3]) -> ({1}{2}) {{\n"
          "  %c = conv_integer %x, %w {{layout = {3}, pads = [1, 1, 1, 1]}}\n"
          "  %f = convert %c : f32\n  %s = constant 0.01 : f32[]\n  %m = mul %f, %s\n"
          "  %q = convert %m {{overflow = saturate, rounding = nearest_even}} : u8\n"
          "  %t = constant {4} : {1}[256]\n  %y = look_up %q, %t\n  return %y\n}}\n",
          to_string(x), element, to_string(y), layout, ramp(256, 37));
      check_function({text, {{.shape = x}, {.shape = {24, 16, 3, 3}}}});
      if (HasFatalFailure()) return;
    }
  }
}

/// Bytes of x, of the table, and of y in the memory of one of them.
struct Shared {
  std::vector<uint8_t> x = std::vector<uint8_t>(256);
  std::vector<uint8_t> table = std::vector<uint8_t>(256);

  Shared() {
    for (int i = 0; i < 256; ++i) {
      x[static_cast<size_t>(i)] = static_cast<uint8_t>(i * 5 + 1);
      table[static_cast<size_t>(i)] = static_cast<uint8_t>(i * 3 + 7);
    }
  }
  static View view(std::vector<uint8_t>& bytes) {
    return {reinterpret_cast<std::byte*>(bytes.data()), ElementType::u8, {256}, bytes.size()};
  }
  /// Runs `y = look_up(x, table)` with y in the memory of `result`.
  Status run(const Runtime& runtime, std::vector<uint8_t>& result) {
    const std::vector<ConstView> inputs = {view(x), view(table)};
    const std::vector<View> outputs = {view(result)};
    const auto function =
        parse_function(function_text(ElementType::u8, {256}, ElementType::u8, std::nullopt));
    const Result<Kernel> kernel = runtime.compile(*function);
    if (!kernel) return kernel.error();
    const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
    return bound ? bound->run(inputs, outputs) : Status(bound.error());
  }
};

TEST(LookUp, OverwritesItsCodesButNotItsTable) {
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    Shared expected;
    std::vector<uint8_t> y(256);
    ASSERT_TRUE(expected.run(runtime, y).ok());
    Shared in_place;
    ASSERT_TRUE(in_place.run(runtime, in_place.x).ok());
    EXPECT_EQ(in_place.x, y) << name_of(tier);
    Shared over_table;
    const std::vector<uint8_t> before = over_table.table;
    EXPECT_FALSE(over_table.run(runtime, over_table.table).ok()) << name_of(tier);
    EXPECT_EQ(over_table.table, before) << name_of(tier);
  }
}

/// Rows that share a table because axes are exchanged, with and without operands that forbid it.
TEST(LookUp, ChannelsOfPixels) {
  using enum ElementType;
  for (const ElementType element : {u8, f16, f32}) {
    for (const Dims& shape :
         {Dims{1, 9, 8, 64}, Dims{2, 70, 3}, Dims{600, 5}, Dims{1, 64, 1, 65}}) {
      check(i8, shape, element, shape.rank() - 1);
      if (HasFatalFailure()) return;
    }
  }
  const char* const bodies[] = {"%r = look_up %y, %u {axis = 2}",
                                "%z = convert %y : f32\n  %r = mul %z, %s",
                                "%z = add %y, %x\n  %r = look_up %z, %v"};
  for (const char* body : bodies) {
    const bool wide = std::string_view(body).find("mul") != std::string_view::npos;
    check_function({fmt::format("func @f(%x: u8[3, 99, 33], %t: u8[33, 256], %u: u8[33, 256], %v: "
                                "u8[256], %s: f32[3, 99, 1]) -> ({0}[3, 99, 33]) {{\n"
                                "  %y = look_up %x, %t {{axis = 2}}\n  {1}\n  return %r\n}}\n",
                                wide ? "f32" : "u8", body),
                    {{.shape = {3, 99, 33}},
                     {.shape = {33, 256}},
                     {.shape = {33, 256}},
                     {.shape = {256}},
                     {.shape = {3, 99, 1}}}});
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace castor
