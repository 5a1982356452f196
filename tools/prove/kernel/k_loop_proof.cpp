// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/k_loop_proof.hpp"

#include <fmt/format.h>

#include <array>

#include "tools/prove/kernel/loop_memory.hpp"
#include "tools/prove/kernel/products.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

using jit::DenseTile;
using jit::PixelSource;

// ---- accumulators

Accumulators::Accumulators(const DenseTile& tile, const jit::Target& target)
    : lanes_(target.vector_bits() / 32),
      vectors_(tile.vectors_of(lanes_)),
      rows_(tile.rows() + (tile.window_sums == jit::WindowSums::own ? 1 : 0)),
      is_reordered_(jit::reorders_sums(tile)) {}

Term Accumulators::at(const SymbolMachine& machine, int row, int position) const {
  int vector = position / lanes_;
  int lane = position % lanes_;
  if (is_reordered_) {  // 128 bits i of vector j have the pixels 4 j to 4 j + 3 of sixteen i
    const int sixteen = position % (4 * lanes_) / 16;
    const int in_sixteen = position % 16;
    vector = position / (4 * lanes_) * 4 + in_sixteen / 4;
    lane = 4 * sixteen + in_sixteen % 4;
  }
  const auto& bytes = machine.vector(row * vectors_ + vector);
  return Symbols::join(&bytes[static_cast<size_t>(4 * lane)], 4);
}

void Accumulators::make_inputs(SymbolMachine& machine) const {
  for (int id = 0; id < rows_ * vectors_; ++id) {
    machine::Vector<Symbols> vector = machine.vector(id);
    for (int lane = 0; lane < lanes_; ++lane) {
      Symbols::split(machine.domain().terms().input("a sum", 32),
                     &vector[static_cast<size_t>(4 * lane)]);
    }
    machine.set_vector(id, vector);
  }
}

namespace {

constexpr int k_steps_at_once = 2;

enum Variable : size_t { source, weights, input, offsets_end, offset, variable_count };

std::vector<Word> variables_of(const KLoopNumbers& numbers) {
  constexpr uint64_t in_no_register = 0x5a5a'0000'1111'2222;
  std::vector<Word> variables(variable_count);
  variables[source] = numbers.source;
  variables[weights] = numbers.weights;
  variables[input] = numbers.input == Word{} ? Word{in_no_register, 0} : numbers.input;
  variables[offsets_end] = numbers.k_steps_end;
  variables[offset] = numbers.offset;
  return variables;
}

/// The memory of one iteration, and what it should do.
class KStepsCall {
 public:
  KStepsCall(const KernelSubject<DenseTile>& kernel, int64_t input_step)
      : tile_(kernel.spec), sums_(kernel.spec, kernel.target), input_step_(input_step) {}

  /// Exactly what one iteration may touch.
  void lay_out(SymbolMachine& machine, std::span<const Word> variables) {
    const std::array<int32_t, k_steps_at_once> offsets = {1 << 20, -(3 << 20)};
    fill(machine.domain(),
         add_region(machine, "the offsets", variables[offsets_end] + variables[offset],
                    sizeof offsets),
         std::as_bytes(std::span(offsets)));
    for (int k = 0; k < k_steps_at_once; ++k) {
      const Word at = variables[source] + number(offsets[static_cast<size_t>(k)]);
      takes_input() ? add_input(machine, variables, at, k) : add_pixels(machine, at, k);
      const int width = jit::bytes_of_channel(tile_.engine);
      weights_.push_back(add_inputs(machine, fmt::format("w{}", k),
                                    variables[weights] + number(k * weight_bytes()),
                                    weight_bytes() / width, 8 * width));
    }
    sums_.make_inputs(machine);
  }

  /// Whether sums and packed input are what the iteration should make of those before.
  Status compare(const SymbolMachine& before, SymbolMachine& machine) const {
    if (Status status = compare_packed(machine); !status) return status;
    return compare_sums(before, machine);
  }

  /// Channels of a k group.
  int elements() const { return jit::channels_of_k_group(tile_.engine); }
  int weight_bytes() const {
    const int k_groups = is_along_pixels() ? tile_.rows() : sums_.vectors() * sums_.lanes();
    return k_groups * static_cast<int>(jit::k_group_bytes);
  }

 private:
  bool is_along_pixels() const { return tile_.vectorised == jit::Vectorised::pixels; }
  bool takes_input() const { return tile_.source != PixelSource::packed; }
  int element_bytes() const { return jit::bytes_of_channel(tile_.engine); }
  int row_bytes() const { return 4 * sums_.vectors() * sums_.lanes(); }

  void add_pixels(SymbolMachine& machine, const Word& at, int k) {
    if (is_along_pixels()) {
      pixels_.push_back(add_elements(machine, fmt::format("x{}", k), at, row_bytes()));
      return;
    }
    std::vector<Term> all;
    for (int row = 0; row < tile_.rows(); ++row) {
      const std::vector<Term> of_row = add_elements(machine, fmt::format("x{}.{}", k, row),
                                                    at + number(tile_.source_offset(row)), 4);
      all.insert(all.end(), of_row.begin(), of_row.end());
    }
    pixels_.push_back(all);
  }

  /// Pixels of a k group's channels, which may be packed for others.
  void add_input(SymbolMachine& machine, std::span<const Word> variables, const Word& at, int k) {
    const int count = sums_.vectors() * sums_.lanes();
    std::vector<std::vector<Term>> channels;
    for (int c = 0; c < elements(); ++c) {
      const int64_t step = (int64_t{elements()} * k + c) * input_step_;
      channels.push_back(add_inputs(machine, fmt::format("x{}.{}", k, c),
                                    variables[input] + number(step), count, 8));
    }
    std::vector<Term> all;
    for (int pixel = 0; pixel < count; ++pixel) {
      for (const std::vector<Term>& channel : channels) {
        all.push_back(pixel_as_multiplied(tile_, channel[static_cast<size_t>(pixel)]));
      }
    }
    pixels_.push_back(all);
    if (!tile_.reads_input_once) {
      add_region(machine, name_of_packed(k), at, static_cast<size_t>(row_bytes()), true);
    }
  }

  static std::string name_of_packed(int k) { return fmt::format("packed input {}", k); }

  /// Elements of the engine's width that are inputs of the terms.
  std::vector<Term> add_elements(SymbolMachine& machine, const std::string& name, const Word& at,
                                 int count_of_bytes) const {
    return add_inputs(machine, name, at, count_of_bytes / element_bytes(), 8 * element_bytes());
  }

  /// A k group of an operand, by its number along the operand.
  std::span<const Term> k_group(const std::vector<Term>& operand, int index) const {
    const auto count = static_cast<size_t>(elements());
    return std::span(operand).subspan(static_cast<size_t>(index) * count, count);
  }

  /// Pixels as they are multiplied.
  std::vector<Term> pixel(int k, int index) const {
    std::vector<Term> some;
    for (const Term& x : k_group(pixels_[static_cast<size_t>(k)], index)) {
      some.push_back(tile_.has_sign_flip ? x ^ 0x80 : x);
    }
    return some;
  }

  Status compare_sums(const SymbolMachine& before, const SymbolMachine& machine) const {
    for (int row = 0; row < sums_.rows(); ++row) {
      for (int position = 0; position < sums_.vectors() * sums_.lanes(); ++position) {
        Term sum = sums_.at(before, row, position);
        for (int k = 0; k < k_steps_at_once; ++k) sum = with_k_step(sum, k, row, position);
        if (polynomial_of(sums_.at(machine, row, position)) == polynomial_of(sum)) continue;
        return Error(ErrorCode::internal,
                     fmt::format("an iteration over k steps: row {} at {} is not the sum of "
                                 "products",
                                 row, position));
      }
    }
    return {};
  }

  Term with_k_step(Term sum, int k, int row, int position) const {
    if (row == tile_.rows()) {  // the window sum
      for (const Term& x : pixel(k, position)) {
        sum = sum + widened(x, signs_of(tile_).x_is_signed);
      }
      return sum;
    }
    const int of_pixel = is_along_pixels() ? position : row;
    const int of_weights = is_along_pixels() ? row : position;
    return added_products(sum, pixel(k, of_pixel),
                          k_group(weights_[static_cast<size_t>(k)], of_weights), signs_of(tile_));
  }

  Status compare_packed(SymbolMachine& machine) const {
    for (int k = 0; takes_input() && !tile_.reads_input_once && k < k_steps_at_once; ++k) {
      for (int i = 0; i < row_bytes() / element_bytes(); ++i) {
        const Term expected = pixel(k, i / elements())[static_cast<size_t>(i % elements())];
        const Term found =
            stored_in(machine, name_of_packed(k), i * element_bytes(), element_bytes());
        if (found && found.same_as(expected)) continue;
        return Error(ErrorCode::internal,
                     fmt::format("an iteration over k steps: element {} of packed input is not the "
                                 "input's",
                                 i));
      }
    }
    return {};
  }

  const DenseTile& tile_;
  const Accumulators sums_;
  const int64_t input_step_;
  std::vector<std::vector<Term>> pixels_;  ///< elements by k step
  std::vector<std::vector<Term>> weights_;
};

}  // namespace

KLoop::KLoop(const KernelSubject<DenseTile>& kernel, const SymbolMachine& earlier,
             SymbolMachine later, const KLoopNumbers& numbers, int64_t input_step)
    : kernel_(kernel),
      input_step_(input_step),
      arrival_(earlier, std::move(later), variables_of(numbers)) {}

Status KLoop::check(const SymbolMachine& machine, const KLoopNumbers& numbers) const {
  return arrival_.check(machine, variables_of(numbers));
}

Status KLoop::prove_iterations(ConvProof& proof) {
  for (const bool is_last : {false, true}) {
    if (Status status = prove_iteration(is_last); !status) return status;
    ++proof.iterations;
  }
  return {};
}

Status KLoop::prove_iteration(bool is_last) {
  Variables variables(variable_count);
  for (Word& variable : variables) variable = words_.any(uint64_t{1} << 50);
  const Word left = is_last ? Word{k_steps_at_once, 0} : 2 * words_.any(k_steps_at_once);
  variables[offset] = -4 * left;
  SymbolMachine machine = arrival_.alone_at(variables, std::array{variables[offset]});
  KStepsCall call(kernel_, input_step_);
  call.lay_out(machine, variables);
  const SymbolMachine before = machine;
  const jit::CodeLoop& loop = kernel_.code.loops.front();
  if (Status status = run_to(machine, is_last ? loop.end : loop.begin); !status) {
    return in_iteration(status.error());
  }
  if (machine.is_done()) return Error(ErrorCode::internal, "the loop over k steps returns");
  const Variables next = after(variables);
  Status status = is_last ? arrival_.check_state(machine, next) : arrival_.check(machine, next);
  if (!status) return status;
  return call.compare(before, machine);
}

KLoop::Variables KLoop::after(Variables variables) const {
  const KStepsCall call(kernel_, input_step_);
  const auto add = [&](Variable moved, int64_t step) {
    variables[moved] = variables[moved] + number(step);
  };
  add(weights, int64_t{k_steps_at_once} * call.weight_bytes());
  add(offset, 4 * k_steps_at_once);
  add(input, int64_t{k_steps_at_once} * call.elements() * input_step_);
  return variables;
}

}  // namespace castor::prove
