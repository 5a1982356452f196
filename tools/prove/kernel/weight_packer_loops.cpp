// SPDX-License-Identifier: Apache-2.0
// The loop of the packers of weights, for every count, step and address.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "tools/prove/kernel/loop_memory.hpp"
#include "tools/prove/kernel/loop_model.hpp"
#include "tools/prove/kernel/packed_layout.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

using namespace packed_layout;

namespace {

class WeightLoops : public LoopModel {
 public:
  WeightLoops(const jit::PackWeights& unit, uint32_t stored, uint32_t flips)
      : LoopModel(variable_count, arguments_of_call(), {{units, units_left}},
                  bytes_of(jit::PackWeightsArguments{.lanes = stored, .flips = flips})),
        unit_(unit),
        stored_(stored),
        flips_(flips) {}

  void lay_out_operands(SymbolMachine& machine) const override {
    const Variables all = numbers();
    add_region(machine, "all weights", all[source], 0x2'0000);
    add_region(machine, "all packed weights", all[first_to], 0x2'0000, true);
    add_region(machine, "all sums", all[sums], vector_bytes, true);
  }

  void lay_out_entry(SymbolMachine& machine, const Variables& variables) override {
    begun_ = add_inputs(machine, "the sums", variables[sums], vector_bytes);
  }

  /// One of the partial sums is what the sums were, or all together are.
  Status compare_entry(SymbolMachine& machine) override {
    for (int channel = 0; channel < lanes; ++channel) {
      const auto first = begun_.begin() + 4 * channel;
      const Term begun = concat(concat(first[3], first[2]), concat(first[1], first[0]));
      if (!are_equal(sum_of_partials(machine, channel), begun)) return wrong_sum(channel);
    }
    return {};
  }

  void lay_out_iteration(SymbolMachine& machine, const Variables& variables, int) override {
    w_.clear();
    for (int channel = 0; channel < lanes; ++channel) {
      const Word at = variables[from] + channel * variables[channel_step];
      for (int input = 0; input < inputs_apart(); ++input) {
        w_.push_back(add_inputs(machine, fmt::format("w{}.{}", channel, input),
                                at + input * variables[input_step],
                                static_cast<int>(unit_.bytes_read())));
      }
    }
    const auto first = static_cast<uint64_t>(std::countr_zero(stored_));
    for (int slot = 0; slot < unit_.slots(); ++slot) {
      const Word at = variables[to] + slot * variables[step];
      add_region(machine, name_of(slot), {at.value + 4 * first, at.slope},
                 4 * static_cast<size_t>(std::popcount(stored_)), true);
    }
    const bool is_last = variables[units_left] == number(1);
    if (is_last) add_region(machine, "the sums", variables[sums], vector_bytes, true);
    for (const int id : std::span(partial_sums).first(added_to())) {
      machine::Vector<Symbols> vector;
      for (size_t lane = 0; lane < lanes; ++lane) {
        Symbols::split(machine.domain().terms().input("a partial sum", 32), &vector[4 * lane]);
      }
      machine.set_vector(id, vector);
    }
    begun_sums_.clear();
    for (int channel = 0; channel < lanes; ++channel) {
      begun_sums_.push_back(sum_of_partials(machine, channel));
    }
  }

  Status compare(SymbolMachine& machine, const Variables&, int, bool returns) override {
    for (int channel = 0; channel < lanes; ++channel) {
      Term sum = begun_sums_[static_cast<size_t>(channel)];
      for (int slot = 0; slot < unit_.slots(); ++slot) {
        for (int i = 0; i < elements; ++i) {
          const Term w = weight(channel, slot, i);
          sum = sum + extend_sign(w, 32);
          if (Status status = compare_byte(machine, channel, slot, i, w); !status) return status;
        }
      }
      const Term found = returns ? stored_in(machine, "the sums", 4 * channel, 4)
                                 : sum_of_partials(machine, channel);
      if (!found || !are_equal(found, sum)) return wrong_sum(channel);
    }
    return {};
  }

 protected:
  void derive(Variables& variables) const override {
    variables[three_steps] = 3 * variables[unit_.is_one_vector() ? channel_step : input_step];
  }
  void begin(size_t, Variables& variables) const override {
    variables[from] = variables[source];
    variables[to] = variables[first_to];
  }
  void advance(size_t, Variables& variables) const override {
    variables[from] = variables[from] + variables[unit_step];
    variables[to] = variables[to] + unit_.slots() * variables[step] + variables[skip];
  }

 private:
  enum Variable : size_t {
    units_left,
    from,
    to,
    three_steps,
    source,  // the call's arguments, from here on
    channel_step,
    input_step,
    unit_step,
    units,
    first_to,
    step,
    skip,
    sums,
    variable_count
  };

  static std::vector<Argument> arguments_of_call() {
    using Call = jit::PackWeightsArguments;
    return {{offsetof(Call, source), source, 0x1'0000'0000},
            {offsetof(Call, channel_step), channel_step, 0x900},
            {offsetof(Call, input_step), input_step, 0x120},
            {offsetof(Call, unit_step), unit_step, 0x70},
            {offsetof(Call, units), units, 5},
            {offsetof(Call, to), first_to, 0x2'0000'0000},
            {offsetof(Call, step), step, 0x240},
            {offsetof(Call, skip), skip, 0x18},
            {offsetof(Call, sums), sums, 0x3'0000'0000}};
  }

  /// Input channels that are loaded one by one.
  int inputs_apart() const { return unit_.is_one_vector() ? 1 : elements; }
  static std::string name_of(int slot) { return fmt::format("slot {}", slot); }
  static Error wrong_sum(int channel) {
    return wrong_layout(fmt::format("the sum of channel {}", channel));
  }
  static bool are_equal(const Term& a, const Term& b) {
    return polynomial_of(a) == polynomial_of(b);
  }

  static Term sum_of_partials(SymbolMachine& machine, int channel) {
    Term sum;
    for (const int id : partial_sums) {
      const Term part = Symbols::join(&machine.vector(id)[static_cast<size_t>(4 * channel)], 4);
      sum = sum ? sum + part : part;
    }
    return sum;
  }

  Term weight(int channel, int slot, int i) const {
    const int input = slot / unit_.positions * elements + i;
    const int region = unit_.is_one_vector() ? channel : channel * elements + input;
    const int at = slot % unit_.positions + (unit_.is_one_vector() ? input * unit_.input_step : 0);
    return w_[static_cast<size_t>(region)][static_cast<size_t>(at)] ^ (flips_ >> (8 * i) & 0xff);
  }

  Status compare_byte(SymbolMachine& machine, int channel, int slot, int i, const Term& w) const {
    if ((stored_ >> channel & 1) == 0) return {};
    const int at = 4 * (channel - std::countr_zero(stored_)) + i;
    const Term found = stored_in(machine, name_of(slot), at);
    if (found && found.same_as(w)) return {};
    return wrong_layout(fmt::format("byte {} of slot {}, channel {}", i, slot, channel));
  }

  /// The partial sums that slots are added to; the others stay 0.
  size_t added_to() const {
    return std::min(partial_sums.size(), static_cast<size_t>(unit_.slots()));
  }

  /// Vector registers that add up the weights of four slots in turn.
  static constexpr std::array partial_sums = {28, 29, 30, 31};

  const jit::PackWeights& unit_;
  const uint32_t stored_;
  const uint32_t flips_;
  std::vector<std::vector<Term>> w_;
  std::vector<Term> begun_;       ///< bytes of the sums
  std::vector<Term> begun_sums_;  ///< by channel
};

}  // namespace

Status prove_every_count(const KernelSubject<jit::PackWeights>& kernel, ConvProof& proof) {
  for (const uint32_t stored : {0xffffu, 0x7feu, 1u}) {
    for (const uint32_t flips : {uint32_t{0}, sign_flips}) {
      WeightLoops model(kernel.spec, stored, flips);
      if (Status status = prove_loops(kernel.code, model, proof); !status) return status;
    }
  }
  return {};
}

}  // namespace castor::prove
