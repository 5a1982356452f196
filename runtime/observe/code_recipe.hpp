// SPDX-License-Identifier: Apache-2.0
// How a piece of code is made, and what it is called: what the cache of code asks for on a miss.
#pragma once

#include <string>
#include <string_view>

#include "ir/function.hpp"
#include "jit/code.hpp"
#include "jit/plan/nest.hpp"
#include "runtime/observe/code_name.hpp"

namespace castor {

/// Refers to what it was made from, which must outlive it.
class CodeRecipe {
 public:
  virtual Result<jit::MachineCode> emit() const = 0;
  /// See code_name.hpp; `key` is the specialisation key.
  virtual std::string name(std::string_view key) const = 0;
  /// What the code is, in lines of words.
  virtual std::string text() const = 0;
  /// The same code with notes, where the emitter writes any.
  virtual Result<jit::MachineCode> emit_annotated() const { return emit(); }

 protected:
  ~CodeRecipe() = default;
};

class NestRecipe final : public CodeRecipe {
 public:
  /// `function`: the canonical one that the nest is of, or null where that is unknown.
  NestRecipe(const jit::Nest& nest, const jit::NestForm& form, const jit::Target& target,
             const Function* function)
      : nest_(nest), form_(form), target_(target), function_(function) {}

  Result<jit::MachineCode> emit() const override;
  std::string name(std::string_view key) const override;
  std::string text() const override;
  Result<jit::MachineCode> emit_annotated() const override;

 private:
  /// Whether operations of the function are what the nest computes.
  bool computes_operations() const;

  const jit::Nest& nest_;
  const jit::NestForm& form_;
  const jit::Target& target_;
  const Function* function_;
};

/// The epilogue's lanes; empty for null.
std::string epilogue_text(const jit::TileEpilogue* epilogue);

/// A kernel of a form that `words_of` knows; `emit` makes its code.
template <class Form, class Emit>
class KernelRecipe final : public CodeRecipe {
 public:
  /// `target`: null where the code is the same for all; `epilogue`: null where there is none.
  KernelRecipe(const Form& form, const jit::Target* target, const jit::TileEpilogue* epilogue,
               Emit emit)
      : form_(form), target_(target), epilogue_(epilogue), emit_(std::move(emit)) {}

  Result<jit::MachineCode> emit() const override { return emit_(); }
  std::string name(std::string_view key) const override {
    return code_name(words_of(form_), target_, epilogue_, key);
  }
  std::string text() const override {
    return words_of(form_).parameters + epilogue_text(epilogue_);
  }

 private:
  const Form& form_;
  const jit::Target* target_;
  const jit::TileEpilogue* epilogue_;
  Emit emit_;
};

}  // namespace castor
