// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/requantize_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "jit/requantize/methods.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/lane/execute.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/exhaust.hpp"

namespace castor::prove {

using jit::RequantizeForm;
using jit::RequantizeMethod;
using jit::SliceConstants;
using jit::SliceParameters;

namespace {

constexpr std::array tiers = {jit::Tier::avx2, jit::Tier::avx512};

constexpr std::array<std::optional<QuantizedFormat>, 5> formats = {
    std::nullopt, QuantizedFormat::fx8, QuantizedFormat::fx16, QuantizedFormat::sa8,
    QuantizedFormat::sa32};

std::string_view name_of_side(const std::optional<QuantizedFormat>& format) {
  return format ? info(*format).name : "f32";
}

jit::Target target_of(jit::Tier tier) {
  jit::Target target;
  target.tier = tier;
  return target;
}

bool is_asymmetric(const std::optional<QuantizedFormat>& format) {
  return format && info(*format).is_asymmetric;
}

}  // namespace

std::vector<const RequantizeMethod*> all_methods() {
  return {&jit::linear_method(),
          &jit::rounded_float_method(),
          &jit::split_rounded_float_method(),
          &jit::float_quotient_method(),
          &jit::embarc_from_float_method(),
          &jit::embarc_to_float_method(),
          &jit::to_float_method(),
          &jit::to_float_through_double_method(),
          &jit::saturating_i32_product_method(),
          &jit::i32_product_method(),
          &jit::rounded_double_method(),
          &jit::i32_accumulator_method(),
          &jit::double_method(),
          &jit::cut_accumulator_method()};
}

std::vector<RequantizeForm> forms_of(const RequantizeMethod& method) {
  std::vector<RequantizeForm> forms;
  for (const auto& from : formats) {
    for (const auto& to : formats) {
      if (!from && !to) continue;
      for (const auto arithmetic : {RequantizeArithmetic::exact, RequantizeArithmetic::embarc}) {
        for (const auto rounding :
             {RequantizeRounding::half_up, RequantizeRounding::nearest_even}) {
          const RequantizeForm form{from, to, {arithmetic, rounding}};
          if (method.takes(form)) forms.push_back(form);
        }
      }
    }
  }
  return forms;
}

std::string name_of(const RequantizeForm& form) {
  return fmt::format("{} -> {}, {}, {}", name_of_side(form.from), name_of_side(form.to),
                     form.is_exact() ? "exact" : "embarc",
                     form.rounds_half_up() ? "half_up" : "nearest_even");
}

std::string text_of(const RequantizeForm& form, const SliceParameters& s) {
  return fmt::format("{}, scale {} frac {} zero point {} -> scale {} frac {} zero point {}",
                     name_of(form), s.from_scale, s.from_frac, s.from_zero_point, s.to_scale,
                     s.to_frac, s.to_zero_point);
}

Term requantized(const RequantizeMethod& method, const RequantizeForm& form, jit::Tier tier,
                 const Term& x, std::span<const Term> constants, Term& broken,
                 const RequantizeTamper& tamper) {
  jit::LaneProgram program = jit::requantize_program(method, form, target_of(tier));
  if (tamper.program) tamper.program(program);
  std::vector<Term> elements = {x};
  elements.insert(elements.end(), constants.begin(), constants.end());
  const Result<LaneResult> result = execute(program, elements, x.terms());
  if (!result) {
    broken = x.terms().truth(true);
    return x.terms().constant(castor::bits_of(form.to_element()), 0);
  }
  broken = broken | result->broken;
  return result->elements[0];
}

Term is_wrong_for_slice(const RequantizeMethod& method, const RequantizeForm& form,
                        const SliceParameters& slice, const SliceConstants& constants,
                        const Term& x, const RequantizeTamper& tamper) {
  Terms& terms = x.terms();
  SliceConstants changed = constants;
  if (tamper.constants) tamper.constants(changed);
  std::vector<Term> bits;
  const auto types = method.constants(form);
  for (size_t i = 0; i < types.size(); ++i) {
    const int width = castor::bits_of(types[i]);
    bits.push_back(terms.constant(width, changed[i] & static_cast<uint64_t>(low_mask(width))));
  }
  Term wrong = terms.truth(false);
  for (const jit::Tier tier : tiers) {
    const Term y = requantized(method, form, tier, x, bits, wrong, tamper);
    wrong = wrong | ~is_specified_result(form, x, y, slice);
  }
  return wrong;
}

int32_t SliceSource::between(int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random_() % static_cast<uint64_t>(high - low + 1));
}

int32_t SliceSource::zero_point() {
  constexpr std::array<int32_t, 6> chosen = {0, -128, 127, -32768, 32767, 1};
  if (between(0, 3) == 0) return chosen[static_cast<size_t>(between(0, 5))];
  return between(0, 1) == 0 ? between(-128, 127) : between(-32768, 32767);
}

SliceParameters SliceSource::any() {
  constexpr std::array<int32_t, 6> chosen = {1, 2, 3, 16384, 16385, 32767};
  const auto scale = [&] {
    return between(0, 3) == 0 ? chosen[static_cast<size_t>(between(0, 5))] : between(1, 32767);
  };
  SliceParameters slice;
  if (is_asymmetric(form_.from)) {
    slice.from_scale = scale();
    slice.from_zero_point = zero_point();
  }
  if (is_asymmetric(form_.to)) {
    slice.to_scale = scale();
    slice.to_zero_point = zero_point();
  }
  const bool is_near = between(0, 7) != 0;
  if (form_.from) slice.from_frac = is_near ? between(-30, 30) : between(-128, 127);
  if (form_.to) {
    slice.to_frac = is_near ? slice.from_frac + between(-28, 28) : between(-128, 127);
  }
  return slice;
}

SliceParameters SliceSource::at_edge(SliceParameters inside) {
  struct Parameter {
    int32_t SliceParameters::*member;
    int32_t low, high;
    bool exists;
  };
  const std::array<Parameter, 6> all = {{
      {&SliceParameters::from_scale, 1, 32767, is_asymmetric(form_.from)},
      {&SliceParameters::from_frac, -128, 127, form_.from.has_value()},
      {&SliceParameters::from_zero_point, -32768, 32767, is_asymmetric(form_.from)},
      {&SliceParameters::to_scale, 1, 32767, is_asymmetric(form_.to)},
      {&SliceParameters::to_frac, -128, 127, form_.to.has_value()},
      {&SliceParameters::to_zero_point, -32768, 32767, is_asymmetric(form_.to)},
  }};
  const Parameter& parameter = all[static_cast<size_t>(between(0, 5))];
  if (!parameter.exists) return inside;
  SliceParameters outside = inside;
  outside.*parameter.member = between(0, 1) == 0 ? parameter.low : parameter.high;
  if (prepared(outside)) return outside;
  while (true) {
    const int32_t a = inside.*parameter.member, b = outside.*parameter.member;
    if (a - b == 1 || b - a == 1 || a == b) return inside;
    SliceParameters middle = inside;
    middle.*parameter.member = a + (b - a) / 2;
    (prepared(middle) ? inside : outside) = middle;
  }
}

std::optional<SliceParameters> SliceSource::next() {
  constexpr int tries = 2000;
  for (int i = 0; i < tries; ++i) {
    const SliceParameters slice = any();
    if (!prepared(slice)) continue;
    return drawn_++ % 2 == 0 ? slice : at_edge(slice);
  }
  return std::nullopt;
}

std::vector<Bits> SliceSource::elements(const SliceParameters& slice, size_t count) {
  const bool is_float = !form_.from;
  std::vector<Bits> all;
  const auto add = [&](double value) {
    if (is_float) {
      const double bounded = std::clamp(value, -0x1p127, 0x1p127);
      const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(bounded));
      for (const uint32_t near : {bits - 1, bits, bits + 1}) all.push_back(near);
    } else {
      const auto whole = static_cast<int64_t>(std::clamp(value, -0x1p31, 0x1p31 - 1));
      for (int64_t near = whole - 1; near <= whole + 1; ++near) {
        all.push_back(static_cast<uint32_t>(near));
      }
    }
  };
  const double step = std::ldexp(static_cast<double>(slice.to_scale) / slice.from_scale,
                                 slice.from_frac - slice.to_frac);
  const int bits = form_.to ? castor::bits_of(form_.to_element()) : 32;
  for (const double end : {-0x1p31, 0x1p31, 0.0, std::ldexp(step, bits - 1)}) {
    add(end + slice.from_zero_point);
    add(slice.from_zero_point - end);
  }
  for (const uint32_t special : {0x0u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                 0xffc00001u, 0x7f800001u, 0x1u, 0x7f7fffffu, 0x7fffffffu}) {
    all.push_back(special);
  }
  while (all.size() < count) {
    const int64_t far = static_cast<int64_t>(random_()) >> between(63 - bits, 63);
    add(slice.from_zero_point + (static_cast<double>(far) + 0.5) * step);
    all.push_back(static_cast<uint32_t>(random_()));
  }
  return all;
}

namespace {

/// One slice for all x, or for chosen ones.
class SliceCheck {
 public:
  SliceCheck(const RequantizeMethod& method, const RequantizeForm& form,
             const RequantizeTamper& tamper)
      : method_(method), form_(form), tamper_(tamper) {}

  void run(const SliceParameters& slice, SliceSource& source, FactCheck& check) {
    Terms terms;
    const int bits = castor::bits_of(form_.from_element());
    const Term x = terms.input("x", bits);
    const Term wrong =
        is_wrong_for_slice(method_, form_, slice, *source.prepared(slice), x, tamper_);
    const std::optional<Bits> found =
        bits > 16 ? first_of(wrong, source.elements(slice, 200)) : first_of_all(wrong, bits);
    check.holds(!found, fmt::format("{}, x = {:#x}", text_of(form_, slice),
                                    static_cast<uint64_t>(found.value_or(0))));
  }

 private:
  static std::optional<Bits> first_of(const Term& wrong, const std::vector<Bits>& elements) {
    Evaluator run(std::span(&wrong, 1));
    for (const Bits x : elements) {
      if (run(std::span(&x, 1))[0] != 0) return x;
    }
    return std::nullopt;
  }

  static std::optional<Bits> first_of_all(const Term& wrong, int bits) {
    const Exhaustion all = run_on_all_inputs(wrong, [](double) { return true; });
    if (all.complete && !all.inputs) return std::nullopt;
    if (all.inputs) return all.inputs->front();
    std::vector<Bits> elements(size_t{1} << bits);
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = i;
    return first_of(wrong, elements);
  }

  const RequantizeMethod& method_;
  const RequantizeForm& form_;
  const RequantizeTamper& tamper_;
};

}  // namespace

void check_programs(const RequantizeMethod& method, const ExpectedLane& expected, FactCheck& check,
                    const RequantizeTamper& tamper) {
  for (const RequantizeForm& form : forms_of(method)) {
    for (const jit::Tier tier : {jit::Tier::avx2, jit::Tier::avx512}) {
      Terms terms;
      const Term x = terms.input("x", castor::bits_of(form.from_element()));
      std::vector<Term> constants;
      for (const ElementType type : method.constants(form)) {
        constants.push_back(terms.input("constant", castor::bits_of(type)));
      }
      Term broken = terms.truth(false);
      const Term y = requantized(method, form, tier, x, constants, broken, tamper);
      check.never_for_any_arithmetic(broken | not_equal(y, expected(form, x, constants)),
                                     name_of(form) + ": the lane program");
    }
  }
}

FactVerdict check_slices(const RequantizeMethod& method, const FactEffort& effort,
                         const RequantizeTamper& tamper) {
  FactCheck check(effort);
  for (const RequantizeForm& form : forms_of(method)) {
    SliceSource source(method, form, effort.seed);
    for (int i = 0; i < effort.samples && check.goes_on(); ++i) {
      const std::optional<SliceParameters> slice = source.next();
      if (slice) SliceCheck(method, form, tamper).run(*slice, source, check);
    }
  }
  return check.verdict("slices", Status::exhausted);
}

}  // namespace castor::prove
