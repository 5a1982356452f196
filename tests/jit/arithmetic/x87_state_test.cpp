// SPDX-License-Identifier: Apache-2.0
// Remainders of floats are computed by x87 instructions where quotients are large: their results do
// not depend on the caller's x87 state, and the caller finds it as it was, flags included.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/conversions.hpp"

namespace castor {
namespace {

/// As fnstenv stores it.
struct X87State {
  uint32_t words[7];
  uint16_t control() const { return static_cast<uint16_t>(words[0]); }
  uint16_t status() const { return static_cast<uint16_t>(words[1]); }
};

/// fnstenv masks all exceptions, so the state is loaded again.
X87State x87_state() {
  X87State state;
  asm volatile("fnstenv %0\n\tfldenv %0" : "=m"(state));
  return state;
}

void set_x87_state(const X87State& state) { asm volatile("fldenv %0" : : "m"(state)); }

struct Row {
  const char* name;
  uint16_t control;
  uint16_t status;
};

// Control: exception masks in bits 0 to 5, precision in bits 8 and 9, rounding in bits 10 and 11.
constexpr Row rows[] = {
    {"default", 0x037f, 0},
    {"24-bit precision", 0x007f, 0},
    {"round up", 0x0b7f, 0},
    {"round toward zero, 24-bit precision", 0x0c7f, 0},
    {"flags and condition codes set", 0x037f, 0x457f & ~0x0040},
    {"exceptions unmasked", 0x0340, 0},
};

/// Runs the kernel in a state, and checks that it leaves that state.
void run_in(const Row& row, const BoundKernel& kernel, std::span<const ConstView> inputs,
            std::span<const View> outputs) {
  const X87State own = x87_state();
  X87State before = own;
  before.words[0] = (before.words[0] & 0xffff0000) | row.control;
  before.words[1] = (before.words[1] & 0xffff0000) | row.status;
  set_x87_state(before);
  const Status status = kernel.run(inputs, outputs);
  const X87State after = x87_state();
  set_x87_state(own);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(after.control(), row.control) << row.name;
  EXPECT_EQ(after.status(), row.status) << row.name;
}

template <class Float>
void check_remainders(const std::vector<Float>& x, const std::vector<Float>& y,
                      const std::vector<Float>& r) {
  for (size_t i = 0; i < x.size(); ++i) {
    const Float expected = std::fmod(x[i], y[i]);
    ASSERT_EQ(std::memcmp(&r[i], &expected, sizeof(Float)), 0)
        << x[i] << " mod " << y[i] << " is " << expected << ", not " << r[i];
  }
}

template <class Float>
void check(ElementType element, const std::vector<Float>& x, const std::vector<Float>& y) {
  const std::string type(name_of(element));
  const std::string text = "func @f(%x: " + type + "[?n], %y: " + type + "[?n]) -> (" + type +
                           "[?n]) {\n  %r = mod %x, %y\n  return %r\n}\n";
  const Dims shape = {static_cast<int64_t>(x.size())};
  const size_t bytes = x.size() * sizeof(Float);
  std::vector<Float> r(x.size());
  const ConstView inputs[] = {{x.data(), element, shape, bytes}, {y.data(), element, shape, bytes}};
  const View outputs[] = {{r.data(), element, shape, bytes}};
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    SCOPED_TRACE(name_of(tier));
    const Result<Kernel> kernel = runtime.compile(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    const Result<BoundKernel> bound = kernel->bind({shape, shape});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    for (const Row& row : rows) {
      run_in(row, *bound, inputs, outputs);
      check_remainders(x, y, r);
    }
  }
}

TEST(X87State, IsKeptByRemainders) {
  std::vector<float> singles;
  std::vector<float> divisors;
  std::vector<double> doubles;
  std::vector<double> double_divisors;
  for (int i = 0; i < 61; ++i) {
    singles.push_back(std::ldexp(1.0f + static_cast<float>(i) / 7, 4 * i - 120));
    divisors.push_back(std::ldexp(1.0f + static_cast<float>(i) / 3, -149 + 2 * i));
    doubles.push_back(-std::ldexp(1.0 + i / 7.0, 30 * i - 900));
    double_divisors.push_back(std::ldexp(1.0 + i / 3.0, -1074 + 11 * i));
  }
  check(ElementType::f32, singles, divisors);
  check(ElementType::f64, doubles, double_divisors);
}

}  // namespace
}  // namespace castor
