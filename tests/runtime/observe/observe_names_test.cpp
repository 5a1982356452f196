// SPDX-License-Identifier: Apache-2.0
// Names of code: what they say, that they differ where code does, and how long they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ir/rewrite/canonicalize.hpp"
#include "jit/conv/dense/tile_spec.hpp"
#include "jit/conv/pack/pack_input.hpp"
#include "jit/conv/pack/pack_weights.hpp"
#include "jit/conv/sliding/sliding_spec.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/emit/tile_copy.hpp"
#include "jit/kernel/spec_key.hpp"
#include "jit/plan/access_pattern.hpp"
#include "jit/requantize/byte_table_kernel.hpp"
#include "jit/requantize/plan.hpp"
#include "runtime/observe/code_name.hpp"
#include "runtime/observe/kernel_description.hpp"
#include "tests/support/conversions.hpp"

namespace castor {
namespace {

using jit::Tier;

struct NamedCode {
  std::string name;
  std::string key;
};

NamedCode named(const Function& function, const jit::Nest& nest, const jit::NestForm& form,
                const jit::Target& target) {
  const std::string key = kernel_key(jit::NestSpec{&nest, &form}, target);
  return {code_name(&function, nest, form, target, key), key};
}

/// Names of all nests, in the forms that they most likely have.
std::vector<std::string> names_of(std::string_view text, Tier tier) {
  const Result<FunctionPtr> parsed = parse_function(text);
  EXPECT_TRUE(parsed.ok()) << parsed.error().to_string() << " in\n" << text;
  if (!parsed.ok()) return {};
  const FunctionPtr function = canonicalize(*parsed);
  const jit::Target target{tier};
  std::vector<std::string> names;
  for (const jit::Nest& nest : jit::plan_nests(*function, target)) {
    if (nest.convolution) continue;
    names.push_back(named(*function, nest, jit::likely_form(*function, nest, target), target).name);
  }
  return names;
}

bool is_identifier(std::string_view name) {
  return name.size() <= max_name_characters && name.starts_with("castor_") &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

/// The name without the hash after it, if it has one.
std::string without_hash(const std::string& name) {
  const size_t hash = name.size() - 9;
  const bool has_one = name.size() > 9 && name[hash] == '_' &&
                       name.find_first_not_of("0123456789abcdef", hash + 1) == std::string::npos;
  return has_one ? name.substr(0, hash) + "_HASH" : name;
}

struct NameRow {
  std::string_view text;
  Tier tier;
  std::string_view name;  ///< HASH stands for eight hexadecimal digits
};

const NameRow rows[] = {
    {"func @f(%x: f32[?n]) -> (i8[?n]) { %y = convert %x : i8 return %y }", Tier::avx512,
     "castor_convert_f32_i8_contiguous_avx512"},
    {"func @f(%x: f32[?n]) -> (i8[?n]) { %y = convert %x {overflow = wrap, rounding = down} : i8 "
     "return %y }",
     Tier::avx2, "castor_convert_wrap_down_f32_i8_contiguous_avx2"},
    // The types' own rule by its name is the same conversion.
    {"func @f(%x: f32[?n]) -> (i8[?n]) { %y = convert %x {rounding = toward_zero} : i8 return %y }",
     Tier::avx512_vbmi, "castor_convert_f32_i8_contiguous_avx512_vbmi"},
    {"func @f(%x: f32[?n], %y: f32[?n]) -> (f32[?n]) { %z = add %x, %y return %z }", Tier::avx2,
     "castor_add_f32x2_f32_contiguous_avx2"},
    // Operands that are one tensor make other code than two.
    {"func @f(%x: f32[?n]) -> (f32[?n]) { %z = add %x, %x return %z }", Tier::avx2,
     "castor_add_f32_f32_contiguous_avx2_HASH"},
    {"func @f(%x: f32[?n, ?c], %y: f32[?n, 1]) -> (f32[?n, ?c]) { %z = mul %x, %y return %z }",
     Tier::avx2, "castor_mul_f32x2_f32_contiguous_uniform_contiguous_loops2_avx2"},
    {"func @f(%x: f32[?n]) -> (f32[?n]) { %z = clamp %x {lo = 0.0, hi = 6.0} return %z }",
     Tier::avx2, "castor_clamp_f32_f32_contiguous_avx2_HASH"},
    {"func @f(%x: i32[?n], %s: f32[]) -> (u8[?n]) { %a = convert %x : f32 %b = mul %a, %s "
     "%c = round_even %b %d = convert %c : u8 return %d }",
     Tier::avx512_vnni,
     "castor_convert_mul_round_even_convert_i32_f32_u8_contiguous_uniform_contiguous_avx512_vnni_"
     "HASH"},
    {"func @f(%x: f32[?n]) -> (f32[?n]) { %a = neg %x %b = neg %a %c = abs %b %d = sqrt %c "
     "%e = floor %d %g = ceil %e return %g }",
     Tier::avx2, "castor_negx2_abs_sqrt_and_2_more_f32_f32_contiguous_avx2_HASH"},
    {"func @f(%x: f32[?n]) -> (f32[?n]) { %c = constant 2.0 : f32[] %z = mul %x, %c return %z }",
     Tier::avx2, "castor_mul_f32_f32_contiguous_avx2_HASH"},
};

TEST(CodeNames, SayWhatCodeComputes) {
  for (const NameRow& row : rows) {
    const std::vector<std::string> names = names_of(row.text, row.tier);
    EXPECT_EQ(names.size(), 1u) << row.text;
    if (names.empty()) continue;
    EXPECT_EQ(without_hash(names[0]), row.name) << row.text;
    EXPECT_TRUE(is_identifier(names[0])) << names[0];
    EXPECT_EQ(names_of(row.text, row.tier), names);
  }
}

TEST(CodeNames, AreBounded) {
  std::string text = "func @f(";
  for (int i = 0; i < 20; ++i) {
    const std::string type = i % 2 == 0 ? "f32" : "f16";
    text += (i == 0 ? "%x" : ", %x") + std::to_string(i) + ": " + type + "[?n]";
  }
  text += ") -> (f32[?n]) {\n";
  for (int i = 1; i < 20; i += 2) {
    text += "%c" + std::to_string(i) + " = convert %x" + std::to_string(i) + " : f32\n";
  }
  std::string sum = "%x0";
  for (int i = 1; i < 20; ++i) {
    const std::string next = "%s" + std::to_string(i);
    text += next + " = squared_difference " + sum + ", " + (i % 2 == 0 ? "%x" : "%c") +
            std::to_string(i) + "\n";
    sum = next;
  }
  text += "return " + sum + "\n}\n";
  for (const std::string& name : names_of(text, Tier::avx512_vbmi)) {
    EXPECT_TRUE(is_identifier(name)) << name;
    EXPECT_GE(name.size(), 60u) << name;
    EXPECT_NE(name.find("_avx512_vbmi_"), std::string::npos) << name;
  }
}

/// Every form that code of one conversion may have.
std::vector<jit::NestForm> forms_of_two_operands() {
  std::vector<jit::NestForm> forms;
  for (const jit::Access from : {jit::Access::contiguous, jit::Access::strided}) {
    for (const jit::Access to : {jit::Access::contiguous, jit::Access::strided}) {
      for (const int rank : {1, 2}) {
        jit::NestForm form;
        form.rank = rank;
        form.access = {from, to};
        forms.push_back(form);
      }
    }
  }
  jit::NestForm streaming = jit::NestForm::dense(2);
  streaming.stores = jit::Stores::streaming;
  forms.push_back(streaming);
  jit::NestForm prefetching = jit::NestForm::dense(2);
  prefetching.prefetch = {.input_bytes = 4096, .output_bytes = 1024};
  forms.push_back(prefetching);
  return forms;
}

TEST(CodeNames, DifferWhereKeysDo) {
  std::map<std::string, std::string> keys;  // by name
  const std::vector<jit::NestForm> forms = forms_of_two_operands();
  for (const test::Conversion& conversion : test::all_conversions()) {
    FunctionBuilder builder("f");
    const ValueId x = builder.parameter("x", {conversion.from, {"?n"}});
    builder.result(builder.convert(x, conversion.to, conversion.options));
    const FunctionPtr function = canonicalize(std::move(builder.finish()).value());
    const jit::Target target{Tier::avx512};
    for (const jit::Nest& nest : jit::plan_nests(*function, target)) {
      for (const jit::NestForm& form : forms) {
        const NamedCode code = named(*function, nest, form, target);
        const auto [at, is_new] = keys.try_emplace(code.name, code.key);
        ASSERT_TRUE(is_new || at->second == code.key) << conversion.name() << ": " << code.name;
      }
    }
  }
  EXPECT_GT(keys.size(), 1000u);
}

TEST(CodeNames, OfTiersDiffer) {
  std::map<std::string, Tier> tiers;
  for (const jit::TierInfo& row : jit::tier_table()) {
    for (const std::string& name : names_of(rows[0].text, row.tier)) {
      EXPECT_TRUE(tiers.emplace(name, row.tier).second) << name;
    }
  }
  EXPECT_EQ(tiers.size(), jit::tier_table().size());
}

TEST(CodeNames, OfRequantizationsNameTheMethod) {
  jit::RequantizeForm form;
  form.from = QuantizedFormat::sa8;
  form.to = QuantizedFormat::sa8;
  const jit::Target target{Tier::avx512};
  for (const jit::RequantizeMethod* method : jit::requantize_methods(form)) {
    const jit::Nest nest = jit::requantize_nest(*method, form, target);
    const jit::NestForm dense = jit::NestForm::dense(nest.operands());
    // Such a nest is of no operations, whatever function it belongs to.
    const std::string name = code_name(nullptr, nest, dense, target, "key");
    EXPECT_TRUE(name.starts_with("castor_requantize_" + as_identifier(method->name()))) << name;
    EXPECT_TRUE(is_identifier(name)) << name;
  }
}

struct KernelRow {
  jit::SpecWords words;
  std::string_view name;
};

TEST(CodeNames, OfKernelsNameTheirFields) {
  const KernelRow kernels[] = {
      {spec_words(jit::DenseTile{}), "castor_dense_avx512_vnni"},
      {spec_words(jit::DenseTile{.channels = 4,
                                 .vectors = 3,
                                 .window_sums = jit::WindowSums::i16_pairs,
                                 .store = jit::StorePolicy::compressed}),
       "castor_dense_channels4_vectors3_window_sums_i16_pairs_store_compressed_avx512_vnni"},
      {spec_words(jit::DenseTile{
           .channels = 14, .vectors = 2, .peeled_k_steps = 4, .prefetches_output = true}),
       "castor_dense_channels14_vectors2_peeled_k_steps4_prefetch_avx512_vnni"},
      {spec_words(jit::DenseTile{.engine = jit::ProductEngine::i16_pairs,
                                 .channels = 9,
                                 .source = jit::PixelSource::signed_input}),
       "castor_dense_engine_i16_pairs_channels9_source_signed_input_avx512_vnni"},
      {spec_words(jit::DenseTile{.vectorised = jit::Vectorised::channels,
                                 .channels = 64,
                                 .columns = 7,
                                 .store = jit::StorePolicy::transposed}),
       "castor_dense_vectorised_channels_channels64_columns7_store_transposed_avx512_vnni"},
      {spec_words(jit::DepthwiseSpec{{.rows = 3}}), "castor_depthwise_filter_rows3_avx512_vnni"},
      {spec_words(jit::DepthwiseSpec{{.rows = 3, .ranges = {{.outputs = 2}}}}),
       "castor_depthwise_filter_rows3_avx512_vnni_HASH"},
      {spec_words(jit::GroupedNhwcSpec{{}, 3, 1, 1, 0, true}),
       "castor_grouped_nhwc_filter_columns3_repeats_avx512_vnni"},
      {spec_words(jit::PackWeights{9, 1, 9}),
       "castor_pack_weights_positions9_input_step9_avx512_vnni"},
      {spec_words(jit::PackInput{.column_stride = 2}),
       "castor_pack_input_column_stride2_avx512_vnni"},
      {spec_words(jit::PackInput{.layout = jit::PackedLayout::im2col, .filter_rows = 9}),
       "castor_pack_input_layout_im2col_filter_rows9_avx512_vnni"},
      {spec_words(jit::TileCopySpec{4}), "castor_tile_copy_element_bytes4_avx512_vnni"},
      {spec_words(jit::ByteTableSpec{}), "castor_byte_table_avx512_vnni"},
  };
  const jit::Target target{Tier::avx512_vnni};
  for (const KernelRow& row : kernels) {
    const std::string name = kernel_name(row.words, target, nullptr, "key");
    EXPECT_EQ(without_hash(name), row.name);
    EXPECT_TRUE(is_identifier(name)) << name;
    const jit::TileEpilogue epilogue;
    const std::string fused = kernel_name(row.words, target, &epilogue, "another key");
    EXPECT_NE(fused.find("_epilogue_avx512_vnni_"), std::string::npos) << fused;
    EXPECT_TRUE(is_identifier(fused)) << fused;
    EXPECT_NE(fused, kernel_name(row.words, target, &epilogue, "a third key"));
  }
}

TEST(CodeNames, OfKernelsOfManyFieldsAreCut) {
  const jit::GroupedNhwcSpec all{
      {jit::ProductEngine::u8_i8_dot, 3, 2, true, true, true, true, {{}}},
      3,
      2,
      4,
      2,
      true,
      true,
      true};
  const std::string name = kernel_name(spec_words(all), {Tier::avx512_vbmi}, nullptr, "key");
  EXPECT_TRUE(is_identifier(name)) << name;
  EXPECT_EQ(without_hash(name).substr(0, 62),
            "castor_grouped_nhwc_filter_rows3_row_stride2_filter_columns3_c");
  EXPECT_TRUE(without_hash(name).ends_with("_avx512_vbmi_HASH")) << name;
}

TEST(CodeNames, OfKernelsStandOverTheirText) {
  jit::TileEpilogue epilogue;
  epilogue.program.sources = {{.element = ElementType::i32}};
  epilogue.program.code.push_back({.op = jit::LaneOp::load});
  const std::string text = kernel_text(spec_words(jit::DenseTile{.channels = 2}), &epilogue);
  EXPECT_TRUE(
      text.starts_with("  kernel: dense channels=2\n"
                       "  epilogue, on each tile of sums:\n    %0: i32 = load"))
      << text;
}

TEST(CodeNames, OfIdentifiersKeepLettersAndDigits) {
  EXPECT_EQ(as_identifier("to float, 8 bits"), "to_float_8_bits");
  EXPECT_EQ(as_identifier("../../etc/x"), "_etc_x");
  EXPECT_EQ(as_identifier(std::string(500, 'a')).size(), max_name_characters);
}

}  // namespace
}  // namespace castor
