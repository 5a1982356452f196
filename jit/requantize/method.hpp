// SPDX-License-Identifier: Apache-2.0
// The methods of requantization: lane programs that differ in speed and in what they can do
// exactly, and the constants of each slice that they take.
//
// A slice is what shares parameters: the whole tensor, or one index of the axis of quantization.
// Its constants are computed on the host, once for each call (or when a kernel is bound, where the
// types have the parameters); the lane program reads them as operands along that axis.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/types/quantization.hpp"
#include "jit/lane/builder.hpp"

namespace castor::jit {

/// What a requantization is, but for its parameters.
struct RequantizeForm {
  std::optional<QuantizedFormat> from{};  ///< nothing: f32
  std::optional<QuantizedFormat> to{};    ///< nothing: f32; not both
  RequantizeOptions options{};

  ElementType from_element() const { return element_of(from); }
  ElementType to_element() const { return element_of(to); }
  bool is_exact() const { return options.arithmetic == RequantizeArithmetic::exact; }
  bool rounds_half_up() const { return options.rounding == RequantizeRounding::half_up; }
  /// Whether the library accumulates in 64 bits.
  bool has_32_bits() const { return from == QuantizedFormat::sa32 || to == QuantizedFormat::sa32; }

 private:
  static ElementType element_of(const std::optional<QuantizedFormat>& format) {
    return format ? info(*format).container : ElementType::f32;
  }
};

/// The parameters of one slice; fixed point has scale 1 and zero point 0, f32 those and frac 0.
struct SliceParameters {
  int32_t from_scale = 1;
  int32_t from_frac = 0;
  int32_t from_zero_point = 0;
  int32_t to_scale = 1;
  int32_t to_frac = 0;
  int32_t to_zero_point = 0;
};

/// How long the preparation of a slice may take.
enum class Effort : uint8_t {
  quick,     ///< tens of nanoseconds: in a call
  thorough,  ///< microseconds: when a kernel is bound
};

inline constexpr size_t max_slice_constants = 11;
/// The bits of a slice's constants, in the low bits of each number.
using SliceConstants = std::array<uint64_t, max_slice_constants>;

/// The operands of a method's lanes.
class RequantizeLanes {
 public:
  RequantizeLanes(LaneBuilder& to, std::span<const ElementType> constants)
      : builder(to), constants_(constants) {}
  LaneBuilder& builder;

  /// The source's elements; integers sign-extended to 32 bits.
  LaneId integers() const { return builder.load(0, LaneType::i32); }
  LaneId floats() const { return builder.load(0, LaneType::f32); }
  /// The lane's slice's constant.
  LaneId constant(size_t index) const;
  void store(LaneId lanes, Narrowing narrowing) const { builder.store(0, lanes, narrowing); }

 private:
  std::span<const ElementType> constants_;
};

/// One way to requantize. Immutable; thread safe. Methods are constants of the program: nothing
/// makes them at run time, and nothing destroys them.
class RequantizeMethod {
 public:
  virtual std::string_view name() const = 0;
  /// Whether it does such requantizations for some parameters.
  virtual bool takes(const RequantizeForm& form) const = 0;
  /// Types of a slice's constants: i32, f32 or f64.
  virtual std::span<const ElementType> constants(const RequantizeForm& form) const = 0;
  /// The constants of a slice, or nothing where the method does not give the right bits for every
  /// element of such a slice.
  virtual std::optional<SliceConstants> prepare(const RequantizeForm& form,
                                                const SliceParameters& slice,
                                                Effort effort) const = 0;
  virtual void lower(const RequantizeForm& form, const RequantizeLanes& lanes) const = 0;

 protected:
  ~RequantizeMethod() = default;
};

/// Every method that takes the form, the fastest first. The last does so for all parameters.
std::vector<const RequantizeMethod*> requantize_methods(const RequantizeForm& form);

/// The method's lanes: source 0 is x, then come the constants; sink 0 is the result.
LaneProgram requantize_program(const RequantizeMethod& method, const RequantizeForm& form,
                               const Target& target);

/// A positive number of f64 rounded to f32, infinity from 2^128 on.
constexpr float to_f32(double value) {
  return value < 0x1p128 ? static_cast<float>(value) : std::numeric_limits<float>::infinity();
}

constexpr uint64_t constant_bits(double value) { return std::bit_cast<uint64_t>(value); }
constexpr uint64_t constant_bits(float value) { return std::bit_cast<uint32_t>(value); }
constexpr uint64_t constant_bits(int32_t value) { return static_cast<uint32_t>(value); }

}  // namespace castor::jit
