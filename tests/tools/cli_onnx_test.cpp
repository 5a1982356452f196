// SPDX-License-Identifier: Apache-2.0
// castor onnx, and models in castor run, check and dump.
#include "tests/support/cli.hpp"
#include "tests/support/onnx_maker.hpp"

namespace castor::test {
namespace {

/// y = Relu(x + w), and z = Exp(y) where that is wanted.
OnnxMaker model(bool has_exp) {
  OnnxMaker maker;
  maker.graph().set_name("small model");
  maker.input("x", OnnxMaker::f32, {-1, 2});
  maker.constant<float>("w", OnnxMaker::f32, {2}, {1, -2});
  maker.node("Add", {"x", "w"}, {"sum"});
  maker.node("Relu", {"sum"}, {"y"});
  maker.output("y", OnnxMaker::f32, {-1, 2});
  if (has_exp) {
    maker.node("Exp", {"y"}, {"z"});
    maker.output("z", OnnxMaker::f32, {-1, 2});
  }
  return maker;
}

/// A convolution with more weights than a text writes out.
OnnxMaker convolution() {
  OnnxMaker maker;
  maker.input("x", OnnxMaker::u8, {1, 8, 6, 6});
  maker.constant("conv.weight", OnnxMaker::i8, {8, 8, 3, 3}, std::vector<int8_t>(576, 1));
  maker.node("ConvInteger", {"x", "conv.weight"}, {"y"});
  maker.output("y", OnnxMaker::i32, {1, 8, 4, 4});
  return maker;
}

class CliOnnx : public Cli {
 protected:
  std::string write_model(const std::string& name, const OnnxMaker& maker) {
    return write(name, const_cast<OnnxMaker&>(maker).model().SerializeAsString());
  }
};

TEST_F(CliOnnx, ListsEveryNode) {
  const CommandResult result = castor({"onnx", write_model("m.onnx", model(true))});
  expect_success(result);
  EXPECT_EQ(result.out,
            "node Add_0 (Add): @unit_0\n"
            "node Relu_1 (Relu): @unit_0\n"
            "node Exp_2 (Exp): left: castor has no Exp of ai.onnx\n"
            "2 of 3 nodes taken, in 1 function\n");
}

TEST_F(CliOnnx, WritesFunctionsThatRun) {
  const std::string file = write_model("c.onnx", convolution());
  expect_success(castor({"onnx", file, "--functions", path("functions")}));
  const std::string text = path("functions/unit_0.castor");
  expect_contains(read_text(text), "constant @conv_weight : i8[8, 8, 3, 3]");
  const std::string in =
      write_array("x.npy", ElementType::u8, {1, 8, 6, 6}, std::vector<uint8_t>(288, 2));
  expect_success(castor({"run", text, "--in", in, "--out", path("y.npy")}));
  EXPECT_EQ(read_array<int32_t>("y.npy", ElementType::i32, {1, 8, 4, 4}),
            std::vector<int32_t>(128, 144));
}

TEST_F(CliOnnx, RunsModels) {
  const std::string file = write_model("m.onnx", model(false));
  const std::string in =
      write_array("x.npy", ElementType::f32, {2, 2}, std::vector<float>{1, 1, -3, 7});
  for (const bool interprets : {false, true}) {
    std::vector<std::string> arguments = {"run", file, "--in", in, "--out", path("y.npy")};
    if (interprets) arguments.push_back("--interpret");
    expect_success(castor(arguments));
    EXPECT_EQ(read_array<float>("y.npy", ElementType::f32, {2, 2}),
              (std::vector<float>{2, 0, 0, 5}));
  }
}

TEST_F(CliOnnx, ModelsThatAreNotAllTakenDoNotRun) {
  const std::string file = write_model("m.onnx", model(true));
  expect_one_line(castor({"run", file}), 1, "node Exp_2 (Exp): castor has no Exp of ai.onnx");
}

TEST_F(CliOnnx, ChecksAndDumpsUnits) {
  const std::string file = write_model("m.onnx", model(true));
  const CommandResult check = castor({"check", file});
  expect_success(check);
  expect_contains(check.out, "identical to the interpreter");
  expect_contains(castor({"dump", file, "--stage", "ir"}).out, "func @unit_0(");
  expect_one_line(castor({"check", file, "--func", "unit_9"}), 1, "no unit is called @unit_9");
}

TEST_F(CliOnnx, FailuresNameTheFile) {
  expect_one_line(castor({"onnx", path("absent.onnx")}), 1, "absent.onnx is no file");
  expect_one_line(castor({"onnx", write("junk.onnx", "junk")}), 1, "junk.onnx is no model of ONNX");
  expect_one_line(castor({"onnx"}), 2, "FILE is required");
}

}  // namespace
}  // namespace castor::test
