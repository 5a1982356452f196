// SPDX-License-Identifier: Apache-2.0
// How libFuzzer's target for models changes them: beside its own changes of bytes, which seldom
// leave a message whole, changes of nodes, names, attributes and types.
#include <onnx.pb.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/onnx/rules.hpp"
#include "tools/fuzz/random.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace castor::libfuzzer {

namespace {

using fuzz::Random;
using onnx_file::AttributeProto;
using onnx_file::GraphProto;
using onnx_file::ModelProto;
using onnx_file::NodeProto;
using onnx_file::TensorProto;
using onnx_file::ValueInfoProto;

int64_t some_number(Random& random) {
  static const std::vector<int64_t> limits = {0,
                                              1,
                                              -1,
                                              2,
                                              3,
                                              7,
                                              16,
                                              255,
                                              65536,
                                              int64_t{1} << 31,
                                              int64_t{1} << 40,
                                              std::numeric_limits<int64_t>::max(),
                                              std::numeric_limits<int64_t>::min()};
  return random.percent(60) ? static_cast<int64_t>(random.below(5)) : random.pick(limits);
}

template <typename Repeated>
auto* any_of(Repeated* fields, Random& random) {
  using Field = std::remove_pointer_t<decltype(fields->Mutable(0))>;
  if (fields->empty()) return static_cast<Field*>(nullptr);
  return fields->Mutable(static_cast<int>(random.below(static_cast<size_t>(fields->size()))));
}

/// A value's name that the graph has.
std::string some_name(const GraphProto& graph, Random& random) {
  std::vector<std::string> names = {""};
  for (const NodeProto& node : graph.node()) {
    names.insert(names.end(), node.input().begin(), node.input().end());
    names.insert(names.end(), node.output().begin(), node.output().end());
  }
  for (const TensorProto& tensor : graph.initializer()) names.push_back(tensor.name());
  for (const ValueInfoProto& input : graph.input()) names.push_back(input.name());
  return random.pick(names);
}

void change_operator(GraphProto& graph, Random& random) {
  NodeProto* node = any_of(graph.mutable_node(), random);
  if (node == nullptr) return;
  const onnx::Rule& rule = onnx::rules()[random.below(onnx::rules().size())];
  node->set_op_type(std::string(rule.op_type));
  node->set_domain(std::string(rule.domain));
}

void change_edge(GraphProto& graph, Random& random) {
  NodeProto* node = any_of(graph.mutable_node(), random);
  if (node == nullptr) return;
  auto* names = random.percent(75) ? node->mutable_input() : node->mutable_output();
  if (random.percent(20) || names->empty()) {
    names->Add(some_name(graph, random));
  } else if (random.percent(20)) {
    names->RemoveLast();
  } else {
    *any_of(names, random) = some_name(graph, random);
  }
}

void change_nodes(GraphProto& graph, Random& random) {
  auto* nodes = graph.mutable_node();
  if (nodes->empty()) return;
  const auto any = [&] {
    return static_cast<int>(random.below(static_cast<size_t>(nodes->size())));
  };
  switch (random.below(3)) {
    case 0: nodes->DeleteSubrange(any(), 1); break;
    case 1: nodes->SwapElements(any(), any()); break;
    default: {
      NodeProto copy = nodes->Get(any());
      for (std::string& output : *copy.mutable_output()) output += "_again";
      *nodes->Add() = std::move(copy);
    }
  }
}

/// Names of attributes are those of the model's other nodes.
void change_attribute(GraphProto& graph, Random& random) {
  NodeProto* node = any_of(graph.mutable_node(), random);
  const NodeProto* other = any_of(graph.mutable_node(), random);
  if (node == nullptr) return;
  if (random.percent(25) && !other->attribute().empty()) {
    *node->add_attribute() = other->attribute(0);
  }
  AttributeProto* attribute = any_of(node->mutable_attribute(), random);
  if (attribute == nullptr) return;
  switch (random.below(5)) {
    case 0: attribute->set_i(some_number(random)); break;
    case 1: attribute->add_ints(some_number(random)); break;
    case 2:
      if (auto* number = any_of(attribute->mutable_ints(), random)) *number = some_number(random);
      break;
    case 3: attribute->set_type(static_cast<int32_t>(random.below(15))); break;
    default: attribute->set_f(static_cast<float>(some_number(random)));
  }
}

void change_tensor(GraphProto& graph, Random& random) {
  TensorProto* tensor = any_of(graph.mutable_initializer(), random);
  if (tensor == nullptr) return;
  switch (random.below(4)) {
    case 0: tensor->set_data_type(static_cast<int32_t>(random.below(30))); break;
    case 1:
      if (auto* extent = any_of(tensor->mutable_dims(), random)) *extent = some_number(random);
      break;
    case 2: tensor->add_dims(some_number(random)); break;
    default: {
      std::string* bytes = tensor->mutable_raw_data();
      if (bytes->empty()) return;
      (*bytes)[random.below(bytes->size())] = static_cast<char>(random.below(256));
    }
  }
}

void change_type(GraphProto& graph, Random& random) {
  ValueInfoProto* value =
      any_of(random.percent(70) ? graph.mutable_input() : graph.mutable_output(), random);
  if (value == nullptr) return;
  auto* type = value->mutable_type()->mutable_tensor_type();
  auto* shape = type->mutable_shape()->mutable_dim();
  if (random.percent(30)) return type->set_elem_type(static_cast<int32_t>(random.below(30)));
  auto* extent = random.percent(25) ? shape->Add() : any_of(shape, random);
  if (extent == nullptr) return;
  if (random.percent(30)) {
    extent->set_dim_param(random.percent(50) ? "n" : "m");
  } else {
    extent->set_dim_value(some_number(random));
  }
}

void change(ModelProto& model, Random& random) {
  GraphProto& graph = *model.mutable_graph();
  if (random.percent(4) && !model.opset_import().empty()) {
    model.mutable_opset_import(0)->set_version(static_cast<int64_t>(random.below(30)));
  }
  switch (random.below(8)) {
    case 0:
    case 1: return change_operator(graph, random);
    case 2:
    case 3: return change_edge(graph, random);
    case 4: return change_nodes(graph, random);
    case 5: return change_attribute(graph, random);
    case 6: return change_tensor(graph, random);
    default: return change_type(graph, random);
  }
}

}  // namespace

}  // namespace castor::libfuzzer

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace castor::libfuzzer;
  Random random(seed);
  ModelProto model;
  if (random.percent(10) || !model.ParseFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  for (size_t i = random.below(3) + 1; i > 0; --i) change(model, random);
  const std::string changed = model.SerializeAsString();
  if (changed.empty() || changed.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::ranges::copy(changed, data);
  return changed.size();
}
