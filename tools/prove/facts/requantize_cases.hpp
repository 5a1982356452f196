// SPDX-License-Identifier: Apache-2.0
// Methods of requantization on slices: lane programs beside what is specified.
#pragma once

#include <functional>
#include <random>

#include "jit/requantize/method.hpp"
#include "tools/prove/facts/fact.hpp"

namespace castor::prove {

/// What a test does to a method before it is compared: plants a fault.
struct RequantizeTamper {
  std::function<void(jit::LaneProgram&)> program{};
  std::function<void(jit::SliceConstants&)> constants{};
  double bound_of_errors = 1;  ///< what bounds of rounding errors are multiplied with
};

/// Every form that the method takes.
std::vector<jit::RequantizeForm> forms_of(const jit::RequantizeMethod& method);
/// Every method.
std::vector<const jit::RequantizeMethod*> all_methods();

/// "sa8 -> sa32, embarc, half_up".
std::string name_of(const jit::RequantizeForm& form);

/// A form and a slice, for reports.
std::string text_of(const jit::RequantizeForm& form, const jit::SliceParameters& slice);

/// What the method's program stores on a tier for an element x and constants given as terms, of the
/// types that the method has; a precondition that does not hold is in `broken`.
Term requantized(const jit::RequantizeMethod& method, const jit::RequantizeForm& form,
                 jit::Tier tier, const Term& x, std::span<const Term> constants, Term& broken,
                 const RequantizeTamper& tamper = {});

/// 1 where the program of any tier is wrong for a slice that the method admits with `constants`.
Term is_wrong_for_slice(const jit::RequantizeMethod& method, const jit::RequantizeForm& form,
                        const jit::SliceParameters& slice, const jit::SliceConstants& constants,
                        const Term& x, const RequantizeTamper& tamper = {});

/// What a lemma takes a form's lane program for: its result for an element and constants as terms.
using ExpectedLane = std::function<Term(const jit::RequantizeForm& form, const Term& x,
                                        std::span<const Term> constants)>;

/// That the method's lane programs, on avx2 and avx512, are the operations that lemmas are about.
void check_programs(const jit::RequantizeMethod& method, const ExpectedLane& expected,
                    FactCheck& check, const RequantizeTamper& tamper);

/// Draws parameters of slices, those at the edge of what a method admits among them.
class SliceSource {
 public:
  SliceSource(const jit::RequantizeMethod& method, const jit::RequantizeForm& form, uint64_t seed)
      : method_(method), form_(form), random_(seed) {}

  /// A slice that the method admits; nothing where none was found.
  std::optional<jit::SliceParameters> next();
  /// Any slice of the form.
  jit::SliceParameters any();
  /// Elements near the middles between the slice's results, at the ends, and others.
  std::vector<Bits> elements(const jit::SliceParameters& slice, size_t count);
  std::optional<jit::SliceConstants> prepared(const jit::SliceParameters& slice) const {
    return method_.prepare(form_, slice, jit::Effort::thorough);
  }

 private:
  int32_t between(int32_t low, int32_t high);
  int32_t zero_point();
  jit::SliceParameters at_edge(jit::SliceParameters inside);

  const jit::RequantizeMethod& method_;
  const jit::RequantizeForm& form_;
  std::mt19937_64 random_;
  uint64_t drawn_ = 0;
};

/// Slices of each form of the method, each for all x where an element has at most 16 bits, else for
/// chosen ones.
FactVerdict check_slices(const jit::RequantizeMethod& method, const FactEffort& effort,
                         const RequantizeTamper& tamper = {});

}  // namespace castor::prove
