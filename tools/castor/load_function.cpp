// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/load_function.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "ir/text/text.hpp"
#include "tools/castor/files.hpp"
#include "tools/castor/load_model.hpp"
#include "tools/castor/tensor_files.hpp"

namespace castor::tools {

namespace {

/// "@a, @b".
std::string names_of(const std::vector<FunctionPtr>& functions) {
  std::string names;
  for (const FunctionPtr& function : functions) {
    names += fmt::format("{}@{}", names.empty() ? "" : ", ", function->name);
  }
  return names;
}

Error in_file(const std::string& path, const Error& error) {
  if (!error.where.known()) return {error.code, fmt::format("{}: {}", path, error.message)};
  return {error.code,
          fmt::format("{}:{}:{}: {}", path, error.where.line, error.where.column, error.message)};
}

Result<std::vector<std::byte>> read_constant(const std::filesystem::path& folder,
                                             std::string_view name, const TensorType& type) {
  if (name.find('/') != std::string_view::npos) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("constant @{}: expected a name without '/'", name)};
  }
  const std::string stem = (folder / std::string(name)).string();
  if (file_exists(stem + ".npy")) return read_dense(stem + ".npy", type);
  if (file_exists(stem + ".bin")) return read_file(stem + ".bin");
  return Error{ErrorCode::io,
               fmt::format("constant @{}: neither '{}.npy' nor '{}.bin' exists", name, stem, stem)};
}

}  // namespace

Result<std::vector<FunctionPtr>> load_functions(const std::string& path, const std::string& name,
                                                const onnx::PlanOptions& plan) {
  if (is_model_file(path)) return load_model_functions(path, name, plan);
  const Result<std::vector<std::byte>> text = read_file(path, max_text_bytes);
  if (!text) return text.error();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  ParseOptions options;
  options.bind_constant = [&folder](std::string_view constant, const TensorType& type) {
    return read_constant(folder, constant, type);
  };
  const std::string_view view(reinterpret_cast<const char*>(text->data()), text->size());
  if (!name.empty()) {
    const Result<FunctionPtr> function = parse_function(view, name, options);
    if (!function) return in_file(path, function.error());
    return std::vector{*function};
  }
  Result<std::vector<FunctionPtr>> functions = parse(view, options);
  if (!functions) return in_file(path, functions.error());
  return functions;
}

Result<FunctionPtr> load_function(const std::string& path, const std::string& name,
                                  const onnx::PlanOptions& plan) {
  if (is_model_file(path) && name.empty()) return load_model_function(path, plan);
  const Result<std::vector<FunctionPtr>> functions = load_functions(path, name, plan);
  if (!functions) return functions.error();
  if (functions->size() == 1) return functions->front();
  return Error{ErrorCode::invalid_argument,
               fmt::format("{}: expected one function, found {}; choose one with --func", path,
                           functions->empty() ? "none" : names_of(*functions))};
}

}  // namespace castor::tools
