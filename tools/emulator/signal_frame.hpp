// SPDX-License-Identifier: Apache-2.0
// The registers of the code that a signal interrupted, in the frame that the kernel restores.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace castor::emulator {

using ZmmBytes = std::array<uint8_t, 64>;
using TileConfigBytes = std::array<uint8_t, 64>;

/// A view of one signal's frame (arch/x86/include/uapi/asm/sigcontext.h): FXSAVE's 512 bytes,
/// XSAVE's header, and components where cpuid leaf 0xd says. What XSTATE_BV does not name is zero.
class SignalFrame {
 public:
  explicit SignalFrame(ucontext_t& context);

  const uint8_t* instruction() const;
  void skip(size_t bytes);
  /// Goes on where the function that was just called returns to.
  void return_to_caller();
  uint32_t mxcsr() const;
  /// By its number in instructions: RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 and on.
  uint64_t general(int number) const;
  void set_general(int number, uint64_t value);
  /// Sets ZF and CF; clears the other flags that comparisons set.
  void set_flags(bool zero, bool carry);
  ZmmBytes zmm(int index) const;
  void set_zmm(int index, const ZmmBytes& bytes);
  uint64_t opmask(int index) const;
  void set_opmask(int index, uint64_t bits);
  /// The tile configuration, where the CPU has one and the kernel saves it: 64 zeros are none.
  std::optional<TileConfigBytes> tile_config() const;

 private:
  /// Components of XSAVE, by number.
  enum Component {
    sse = 1,
    avx = 2,
    opmasks = 5,
    upper_halves = 6,
    upper_registers = 7,
    tile_configuration = 17
  };
  /// A quarter or a half of a vector register.
  struct Part {
    Component component;
    size_t offset;  ///< in the area
    size_t bytes;
    size_t at;  ///< in the register
  };

  greg_t& general_slot(int number) const;
  size_t offset_of(Component component) const;
  std::array<Part, 3> parts(int zmm_index) const;
  bool is_present(Component component) const;
  /// Says that a component is no longer zero, and makes it so as far as it was.
  void make_present(Component component);

  ucontext_t& context_;
  std::byte* area_;
};

}  // namespace castor::emulator
