// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/tables.hpp"

#include <fmt/format.h>

#include "tools/prove/lane/step.hpp"
#include "tools/prove/query/subjects.hpp"
#include "tools/prove/spec/convert.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/exhaust.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

namespace {

std::string name_of(const Conversion& conversion) {
  return fmt::format("{} -> {} {}", castor::name_of(conversion.from),
                     castor::name_of(conversion.to), to_string(conversion.options));
}

std::optional<jit::ThresholdTable> table_of(ElementType from, const Conversion& conversion,
                                            const TableTamper& tamper) {
  std::optional<jit::ThresholdTable> table =
      jit::threshold_table(from, conversion.to, conversion.options);
  if (table && tamper) tamper(*table);
  return table;
}

Term is_wrong(const jit::ThresholdTable& table, const Term& number, const Term& x,
              const Conversion& conversion) {
  const Term code = encoded_by_thresholds(table, number);
  const Term specified =
      specified_conversion(x, conversion.from, conversion.to, conversion.options);
  return not_equal(truncate(code, specified.width()), specified);
}

/// What lowering makes tables for: floats of at most 8 bits.
bool has_codes(const Conversion& conversion) {
  return kind_of(conversion.to) == ElementKind::floating && castor::bits_of(conversion.to) <= 8;
}

/// bf16 that is cut off, with a last bit of 1 where bits that are not 0 were cut off.
Term rounded_to_odd(const Term& x) {
  if (x.width() == 32) {
    const Term upper = extract(x, 16, 16);
    return upper | extend_zero(not_equal(extract(x, 0, 16), extract(like(x, 0), 0, 16)), 16);
  }
  constexpr Rounding cut = Rounding::toward_zero;
  const Term narrow = x86::convert(f64_format, bf16_format, cut, x);
  const Term again = x86::convert(bf16_format, f64_format, cut, narrow);
  const Term is_cut = ~is_nan(f64_format, x) & not_equal(again, x);
  return narrow | extend_zero(is_cut, 16);
}

}  // namespace

void check_table(const Conversion& conversion, FactCheck& check, const TableTamper& tamper) {
  const auto table = table_of(conversion.from, conversion, tamper);
  if (!table) return;
  Terms terms;
  const Term x = terms.input("x", 16);
  const Term wrong = is_wrong(*table, x, x, conversion);
  const Exhaustion all = run_on_all_inputs(wrong, [](double) { return true; });
  const uint64_t found = all.inputs ? static_cast<uint64_t>(all.inputs->front()) : 0;
  check.holds(all.complete && !all.inputs,
              fmt::format("{}, x = {:#x}", name_of(conversion), found));
}

void check_rounded_to_odd(const Conversion& conversion, FactCheck& check,
                          const TableTamper& tamper) {
  const auto table = table_of(ElementType::bf16, conversion, tamper);
  if (!table) return;
  Terms terms;
  const Term x = terms.input("x", castor::bits_of(conversion.from));
  check.never(is_wrong(*table, rounded_to_odd(x), x, conversion), name_of(conversion));
}

namespace {

FactVerdict decide_tables(const FactEffort& effort) {
  FactCheck check(effort);
  for (const Conversion& conversion : all_conversions()) {
    const bool has_16_bits =
        conversion.from == ElementType::f16 || conversion.from == ElementType::bf16;
    if (has_16_bits && has_codes(conversion) && check.goes_on()) check_table(conversion, check);
  }
  return check.verdict("tables for all 16-bit floats", Status::exhausted);
}

FactVerdict decide_rounded_to_odd(ElementType from, const FactEffort& effort) {
  FactCheck check(effort);
  int met = 0;
  for (const Conversion& conversion : all_conversions()) {
    // Lowering clamps finite numbers before it asks for another table.
    const bool is_taken = conversion.from == from && has_codes(conversion) &&
                          conversion.options.overflow != Overflow::saturate_finite;
    if (!is_taken || met++ % step_of(effort, from == ElementType::f64 ? 4 : 1) != 0) continue;
    if (check.goes_on()) check_rounded_to_odd(conversion, check);
  }
  return check.verdict("conversions, for all numbers");
}

}  // namespace

std::vector<Fact> table_facts() {
  return {
      {"tables: thresholds", "every table's codes are the conversion's", decide_tables},
      {"tables: thresholds of f32 rounded to odd",
       "bf16 made by rounding to odd has the code of the f32",
       [](const FactEffort& effort) { return decide_rounded_to_odd(ElementType::f32, effort); }},
      {"tables: thresholds of f64 rounded to odd",
       "bf16 made by rounding to odd has the code of the f64",
       [](const FactEffort& effort) { return decide_rounded_to_odd(ElementType::f64, effort); }}};
}

}  // namespace castor::prove
