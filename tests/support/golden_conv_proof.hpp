// SPDX-License-Identifier: Apache-2.0
// Golden kernels of convolutions as subjects of proofs.
#pragma once

#include <optional>

#include "tests/support/golden_proof.hpp"
#include "tools/prove/kernel/conv_proof.hpp"

namespace castor::test {

/// A golden file's kernel with its code.
struct GoldenConvKernel {
  GoldenKernel kernel;
  std::optional<jit::TileEpilogue> epilogue{};
  jit::MachineCode code{};
};
inline Result<GoldenConvKernel> golden_conv_kernel(const std::filesystem::path& file) {
  auto kernel = read_golden_kernel(text_of_file(file));
  if (!kernel) return kernel.error();
  GoldenConvKernel made{.kernel = std::move(*kernel)};
  if (made.kernel.function) {
    auto epilogue = epilogue_of(made.kernel);
    if (!epilogue) return epilogue.error();
    made.epilogue = std::move(*epilogue);
  }
  auto code = emit_golden_spec(made.kernel);
  if (!code) return code.error();
  made.code = std::move(*code);
  return made;
}

/// Whether a spec's kernels have a proof: those of packers and convolutions.
inline bool is_of_convolution(const KernelSpec& spec) {
  return std::visit(
      []<class Spec>(const Spec&) {
        return requires(const prove::KernelSubject<Spec>& subject) {
          prove_kernel(subject, ask_solver);
        };
      },
      spec);
}

/// The kernel's proof, of a spec that has one.
inline Result<prove::ConvProof> prove_golden(const GoldenConvKernel& made) {
  return std::visit(
      [&]<class Spec>(const Spec& spec) -> Result<prove::ConvProof> {
        const prove::KernelSubject<Spec> subject{spec, made.kernel.target, made.code,
                                                 made.epilogue ? &*made.epilogue : nullptr};
        if constexpr (requires { prove_kernel(subject, ask_solver); }) {
          return prove_kernel(subject, ask_solver);
        } else {
          return Error{ErrorCode::unsupported, "no kernel of a convolution"};
        }
      },
      *made.kernel.spec);
}

}  // namespace castor::test
