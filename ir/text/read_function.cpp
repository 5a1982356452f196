// SPDX-License-Identifier: Apache-2.0
// Reading functions: signature, operations and results, built through FunctionBuilder.
#include "ir/text/read_function.hpp"

#include <fmt/format.h>

#include "ir/builder.hpp"
#include "ir/support/guarded.hpp"
#include "ir/text/constant.hpp"
#include "ir/text/names.hpp"
#include "ir/text/op_names.hpp"
#include "ir/text/read_attributes.hpp"
#include "ir/text/read_type.hpp"

namespace castor::text {

namespace {

/// A mistake that the builder found, at `where` unless it says otherwise. Its message may quote
/// a whole operation of the text, however long.
Error placed(Error error, TextPosition where) {
  constexpr size_t longest = 1000;
  if (!error.where.known()) error.where = where;
  if (error.message.size() > longest) error.message.replace(longest, std::string::npos, "...");
  return error;
}

/// Reads one function.
class FunctionReader {
 public:
  FunctionReader(Cursor& cursor, const Token& name, const ParseOptions& options)
      : cursor_(cursor), name_(name), options_(options), builder_(std::string(name.name())) {
    builder_.limit(options.limits);
  }

  FunctionPtr read() {
    read_parameters();
    read_result_types();
    if (cursor_.accept("attributes")) {
      for (Attribute& attribute : read_function_attributes(cursor_)) {
        builder_.attribute(std::move(attribute));
      }
    }
    cursor_.expect('{');
    while (cursor_.at(TokenKind::value)) read_operation();
    read_return();
    cursor_.expect('}');
    return finish();
  }

 private:
  void check_builder(TextPosition where) {
    if (builder_.error()) cursor_.fail(placed(*builder_.error(), where));
  }

  void read_parameters() {
    cursor_.expect('(');
    if (cursor_.accept(')')) return;
    do {
      const Token name = cursor_.expect(TokenKind::value, "a parameter such as %x");
      cursor_.expect(':');
      const TensorType type = read_type(cursor_, printable(name.text));
      if (!cursor_.ok()) return;
      values_.add(cursor_, name);
      builder_.parameter(std::string(name.name()), type);
      check_builder(name.where);
    } while (cursor_.accept(','));
    if (!cursor_.accept(')')) cursor_.fail_found("',' or ')'");
  }

  void read_result_types() {
    if (!cursor_.at(TokenKind::arrow)) return cursor_.fail_found("'->'");
    cursor_.take();
    if (!cursor_.accept('(')) {
      declared_.push_back(read_type(cursor_, "result 0"));
      return;
    }
    if (cursor_.accept(')')) return;
    do {
      declared_.push_back(read_type(cursor_, fmt::format("result {}", declared_.size())));
    } while (cursor_.accept(','));
    if (!cursor_.accept(')')) cursor_.fail_found("',' or ')'");
  }

  /// Result names, `=` and the op's name; the row of the op, or null.
  const OpInfo* read_head(std::vector<Token>& names) {
    do {
      names.push_back(cursor_.expect(TokenKind::value, "a value to define, such as %y"));
    } while (cursor_.accept(','));
    if (!cursor_.accept('=')) cursor_.fail_found("',' or '='");
    const auto op = op_named(cursor_.at(TokenKind::word) ? cursor_.peek().text : "");
    if (!op) {
      cursor_.fail_found(expected_op(cursor_.peek().text));
      return nullptr;
    }
    cursor_.take();
    return &info(*op);
  }

  void read_operation() {
    std::vector<Token> names;
    Operation operation;
    operation.where = cursor_.where();
    const OpInfo* row = read_head(names);
    if (!row) return;
    operation.op = row->op;
    if (row->operands > 0) operation.operands = read_operands();
    const Cursor literals = cursor_;
    if (row->op == OpKind::constant) skip_data();
    operation.attributes = read_attributes(cursor_, *row);
    const TextPosition type_at = cursor_.where();
    const WrittenType written = read_suffix(cursor_, *row, printable(names[0].text));
    if (row->op == OpKind::constant) operation.data = read_data(literals, written, type_at);
    if (cursor_.ok()) append(std::move(operation), written, names);
  }

  void append(Operation operation, const WrittenType& written, const std::vector<Token>& names) {
    const TextPosition where = operation.where;
    std::vector<std::string> result_names;
    for (const Token& name : names) {
      values_.add(cursor_, name);
      result_names.emplace_back(name.name());
    }
    if (!cursor_.ok()) return;
    builder_.append(std::move(operation), written, result_names);
    check_builder(where);
  }

  std::vector<ValueId> read_operands() {
    std::vector<ValueId> operands;
    do {
      const bool absent = cursor_.accept("none");
      operands.push_back(absent ? no_value : read_use("a value or none"));
    } while (cursor_.accept(','));
    return operands;
  }

  /// A value that is defined above.
  ValueId read_use(std::string_view expected) {
    const Token token = cursor_.expect(TokenKind::value, expected);
    const std::optional<ValueId> id = values_.find(token.name());
    if (!id) {
      cursor_.fail(token.where, fmt::format("found '{}', expected a value that is defined above",
                                            printable(token.text)));
    }
    return id.value_or(no_value);
  }

  /// Passes over what a constant holds: its type follows it.
  void skip_data() {
    if (cursor_.at(TokenKind::symbol)) {
      cursor_.take();
    } else {
      skip_literals(cursor_);
    }
  }

  /// The data of a constant whose literals or binding stand at `start`.
  std::shared_ptr<const ConstantData> read_data(Cursor start, const WrittenType& written,
                                                TextPosition type_at) {
    if (!cursor_.ok()) return nullptr;
    const TensorType type = {*written.element, *written.shape, written.quantization};
    if (!is_fixed(type.shape)) {
      cursor_.fail(type_at, fmt::format("found ': {}', expected fixed extents for a constant",
                                        to_string(type)));
      return nullptr;
    }
    ConstantData data;
    if (start.at(TokenKind::symbol)) {
      data = bound(start, type);
    } else {
      data.bytes = read_literals(start, type);
    }
    if (!start.ok()) cursor_.fail(start.error());
    return std::make_shared<const ConstantData>(std::move(data));
  }

  /// What the caller's callback gives, or the error that stands for what it throws.
  Result<std::vector<std::byte>> bind(std::string_view name, const TensorType& type) const {
    try {
      return options_.bind_constant(name, type);
    } catch (...) {
      return callback_error("bind_constant");
    }
  }

  ConstantData bound(Cursor& start, const TensorType& type) const {
    const Token name = start.peek();
    if (!options_.bind_constant) {
      start.fail(name.where, fmt::format("found '{}', expected literals: no constants are bound",
                                         printable(name.text)));
      return {};
    }
    Result<std::vector<std::byte>> bytes = bind(name.name(), type);
    if (!bytes) {
      start.fail({bytes.error().code, bytes.error().message, name.where});
      return {};
    }
    return {std::string(name.name()), std::move(*bytes)};
  }

  void read_return() {
    const TextPosition where = cursor_.where();
    if (!cursor_.accept("return")) {
      return cursor_.fail_found("an operation such as '%y = ...', or 'return'");
    }
    size_t found = 0;
    if (cursor_.at(TokenKind::value)) {
      do {
        read_result(found++);
      } while (cursor_.accept(','));
    }
    if (found == declared_.size()) return;
    cursor_.fail(where, fmt::format("found {} returned, expected {} as {} declares",
                                    found == 1 ? "1 value" : fmt::format("{} values", found),
                                    declared_.size(), printable(name_.text)));
  }

  void read_result(size_t index) {
    const TextPosition where = cursor_.where();
    const ValueId value = read_use("a value to return");
    if (!cursor_.ok() || index >= declared_.size()) return;
    builder_.result(value, declared_[index]);
    check_builder(where);
  }

  FunctionPtr finish() {
    if (!cursor_.ok()) return nullptr;
    Result<FunctionPtr> function = builder_.finish();
    if (function) return *function;
    cursor_.fail(placed(function.error(), name_.where));
    return nullptr;
  }

  Cursor& cursor_;
  Token name_;
  const ParseOptions& options_;
  FunctionBuilder builder_;
  Names values_;  ///< their numbers are the builder's ids: both count definitions
  std::vector<TensorType> declared_;
};

}  // namespace

FunctionPtr read_function(Cursor& cursor, const Token& name, const ParseOptions& options) {
  return FunctionReader(cursor, name, options).read();
}

}  // namespace castor::text
