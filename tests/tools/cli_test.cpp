// SPDX-License-Identifier: Apache-2.0
// The castor command: info, run and convert, and wrong uses of every subcommand with their
// messages.
#include <gtest/gtest.h>

#include <cmath>

#include "castor/thread_pool.hpp"
#include "tests/support/cli.hpp"

namespace castor::test {
namespace {

TEST_F(Cli, InfoTellsVersionTiersAndTypes) {
  const CommandResult result = castor({"info"});
  expect_success(result);
  for (const char* part :
       {"castor 0.", "features:", "best tier:", "tier in use:", "core in use:", "avx512_vbmi",
        "boolean", "bf16            16  float 1-8-7    u2 (raw bits) ",
        "u4               4  unsigned       u1 (packed) ", " 0 to 15\n", " -448 to 448\n",
        " -1 to 1\n", " 5.877472e-39 to 1.7014118e+38\n", "u1.lsb_first",
        "bit stream, lowest bits first ", "3-byte groups, low bits then high bits"}) {
    expect_contains(result.out, part);
  }
}

TEST_F(Cli, EveryCommandHasHelp) {
  const CommandResult top = castor({"--help"});
  expect_success(top);
  for (const char* command : {"info", "run", "convert", "dump", "check", "onnx"}) {
    expect_contains(top.out, command);
    const CommandResult result = castor({command, "--help"});
    expect_success(result);
    expect_contains(result.out, std::string("Usage: castor ") + command);
    EXPECT_EQ(result.out.find("self-test"), std::string::npos);
  }
  expect_success(castor({"--version"}));
}

TEST_F(Cli, WrongUseIsStatusTwoAndOneLine) {
  const std::string text = write("f.castor", to_f16_text);
  const std::string in = write_array("in.npy", ElementType::f32, {1, 2}, std::vector{1.f, 2.f});
  const std::string out = path("out.npy");
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } rows[] = {
      {{}, "subcommand is required"},
      {{"fly"}, "fly"},
      {{"info", "extra"}, "extra"},
      {{"run"}, "FILE is required"},
      {{"run", text, "--bogus"}, "--bogus"},
      {{"run", text, "--in", in, "--out", out, "--isa", "mmx"},
       "unknown tier 'mmx', expected avx2"},
      {{"run", text, "--in", in, "--out", out, "--threads", "-2"}, "--threads"},
      {{"run", text, "--in", in, "--out", out, "--threads", "257"}, "--threads"},
      {{"run", text, "--out", out}, "@to_f16 has 1 input, found 0 --in"},
      {{"run", text, "--in", in, "--in", in, "--out", out}, "@to_f16 has 1 input, found 2 --in"},
      {{"run", text, "--in", in}, "@to_f16 has 1 output, found 0 --out"},
      {{"run", text, "--in"}, "--in"},
      {{"convert", in}, "OUT.npy is required"},
      {{"convert", in, out}, "--to is required"},
      {{"convert", in, out, "--to", "float"},
       "unknown element type 'float', expected boolean, u1, u2"},
      {{"convert", in, out, "--to", "F32"}, "unknown element type 'F32'"},
      {{"convert", in, out, "--to", "u2.lsb_first"}, "unknown element type 'u2.lsb_first'"},
      {{"convert", in, out, "--to", "u8", "--shape", "2,3"},
       "--shape is for --from with an element"},
      {{"convert", in, out, "--to", "u8", "--from", "f8e4m3", "--shape", "2"}, "--shape is for"},
      {{"convert", in, out, "--to", "u8", "--from", "u4", "--shape", "2,"},
       "unknown shape '2,', expected extents such as 2,3"},
      {{"convert", in, out, "--to", "u8", "--nan", "zero"}, "nan = zero does not apply"},
      {{"convert", in, out, "--to", "u8", "--overflow", "clip"},
       "unknown overflow mode 'clip', expected saturate, wrap, nan or saturate_finite"},
      {{"convert", in, out, "--to", "u8", "--overflow", "nan"}, "overflow = nan does not apply"},
      {{"convert", in, out, "--to", "u8", "--rounding", "even"}, "unknown rounding mode 'even'"},
      {{"convert", in, out, "--to", "f16", "--rounding", "up"}, "rounding = up does not apply"},
      {{"dump"}, "FILE is required"},
      {{"dump", text, "--stage", "soup"}, "unknown stage 'soup', expected ir, nest, lanes or asm"},
      {{"dump", text, "--isa", "all"}, "unknown tier 'all'"},
      {{"dump", text, "--core", "zen6"},
       "unknown core 'zen6', expected generic, zen4, zen5, golden_cove, zen3"},
      {{"check"}, "FILE is required"},
      {{"check", text, "--seed", "one"}, "--seed"},
      {{"check", text, "--isa", "none"}, "unknown tier 'none', expected avx2"},
  };
  for (const auto& row : rows) expect_one_line(castor(row.arguments), 2, row.message);
  EXPECT_EQ(read_text(out), "") << "an output was written although the use was wrong";
}

TEST_F(Cli, FailedRunIsStatusOneAndOneLine) {
  const std::string text = write("f.castor", to_f16_text);
  const std::string bad =
      write("bad.castor", "func @f(%x: f32[2]) -> (f16[2]) {\n  %y = twist %x\n");
  const std::string two = write("two.castor", to_f16_text +
                                                  "func @id(%x: u8[2]) -> (u8[2]) {\n"
                                                  "  return %x\n}\n");
  const std::string in = write_array("in.npy", ElementType::f32, {1, 2}, std::vector{1.f, 2.f});
  const std::string flat = write_array("flat.npy", ElementType::f32, {2}, std::vector{1.f, 2.f});
  const std::string wide = write_array("wide.npy", ElementType::f64, {1, 1}, std::vector{1.0});
  const std::string packed =
      write_array("packed.npy", ElementType::u8, {3}, std::vector<uint8_t>(3));
  const std::string packed_2d =
      write_array("packed_2d.npy", ElementType::u8, {3, 1}, std::vector<uint8_t>(3));
  const std::string nibbles =
      write("nibbles.castor", "func @f(%x: u4[2, 4]) -> (u4[2, 4]) {\n  return %x\n}\n");
  const std::string unknown =
      write("unknown.castor", "func @f(%x: u4[?, ?]) -> (u4[?, ?]) {\n  return %x\n}\n");
  const std::string junk = write("junk.npy", "this is no array");
  const std::string out = path("out.npy");
  const struct {
    std::vector<std::string> arguments;
    std::string message;
  } rows[] = {
      {{"run", path("absent.castor"), "--in", in, "--out", out}, "absent.castor"},
      {{"run", path(""), "--in", in, "--out", out}, "no regular file"},
      {{"run", bad, "--in", in, "--out", out}, bad + ":2:8: "},
      {{"dump", bad}, bad + ":2:8: "},
      {{"check", bad}, bad + ":2:8: "},
      {{"run", two, "--in", in, "--out", out}, "expected one function, found @to_f16, @id"},
      {{"run", two, "--func", "g", "--in", in, "--out", out},
       "found 2 functions (@to_f16, @id), expected @g"},
      {{"run", text, "--in", path("absent.npy"), "--out", out}, "absent.npy"},
      {{"run", text, "--in", junk, "--out", out}, "not an .npy file"},
      {{"run", text, "--in", wide, "--out", out}, "holds f64, expected f32"},
      {{"run", text, "--in", flat, "--out", out}, "x"},
      {{"run", text, "--in", in, "--out", path("no/folder.npy")}, "cannot write"},
      {{"convert", junk, out, "--to", "u8"}, "not an .npy file"},
      {{"convert", in, out, "--from", "bf16", "--to", "u8"}, "expected bf16 (as raw bits in u16)"},
      {{"convert", in, out, "--from", "u4", "--to", "u8"}, "expected u4 (as packed bytes in u8)"},
      {{"convert", packed, out, "--from", "u4", "--shape", "2,2", "--to", "u8"},
       "input: u4[2, 2] takes 2 packed bytes, found 3"},
      {{"convert", packed_2d, out, "--from", "u4", "--to", "u8"}, "expected one dimension"},
      {{"run", nibbles, "--in", packed_2d, "--out", out}, "expected one dimension"},
      {{"run", nibbles, "--in", packed, "--out", out}, "input %x: u4[2, 4] takes 4 packed bytes"},
      {{"run", unknown, "--in", packed, "--out", out}, "more than one unknown dimension"},
      {{"convert", in, "/dev/full", "--to", "u8"}, "cannot write '/dev/full'"},
  };
  for (const auto& row : rows) expect_one_line(castor(row.arguments), 1, row.message);
  EXPECT_EQ(read_text(out), "") << "an output was written although the run failed";
}

TEST_F(Cli, RunGivesTheSameBitsOnEveryTierAndInterpreted) {
  const std::string text = write("f.castor", to_f16_text);
  std::vector<float> values;
  for (int i = 0; i < 3 * 67; ++i) values.push_back(std::ldexp(1.f + 0.01f * i, i % 40 - 25));
  const std::string in = write_array("in.npy", ElementType::f32, {3, 67}, values);
  const std::string expected = path("expected.npy");
  expect_success(castor({"run", text, "--in", in, "--out", expected, "--interpret"}));
  const auto bits = read_array<uint16_t>("expected.npy", ElementType::f16, {3, 67});
  ASSERT_EQ(bits.size(), values.size());
  EXPECT_EQ(bits[25], 0x3D00) << "1.25 in f16";
  EXPECT_EQ(bits[24], 0x38F6) << "0.62 in f16";
  for (const std::string& tier : runnable_tiers()) {
    const std::string out = path(tier + ".npy");
    expect_success(castor({"run", text, "--in", in, "--out", out, "--isa", tier}));
    EXPECT_EQ(read_text(out), read_text(expected)) << tier;
  }
}

TEST_F(Cli, RunSplitsLargeTensors) {
  const std::string text = write("f.castor", to_f16_text);
  std::vector<float> values(2000 * 1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 4001) - 2000;
  const std::string in = write_array("in.npy", ElementType::f32, {2000, 1000}, values);
  const std::string expected = path("expected.npy");
  expect_success(castor({"run", text, "--in", in, "--out", expected}));
  for (const std::string threads : {"0", "2"}) {
    const std::string out = path(threads + ".npy");
    const CommandResult result =
        castor({"run", text, "--in", in, "--out", out, "--threads", threads});
    expect_success(result);
    EXPECT_TRUE(read_text(out) == read_text(expected)) << threads;
  }
}

TEST_F(Cli, RunTakesSeveralTensorsAndRawTypes) {
  const std::string text = write("two.castor",
                                 "func @other(%x: u8[1]) -> (u8[1]) {\n  return %x\n}\n"
                                 "func @f(%a: bf16[?n], %b: boolean[2]) -> (f32[?n], bf16[2]) {\n"
                                 "  %x = convert %a : f32\n"
                                 "  %y = convert %b : bf16\n"
                                 "  return %x, %y\n"
                                 "}\n");
  const std::string a =
      write_array("a.npy", ElementType::u16, {3}, std::vector<uint16_t>{0x3F80, 0xC000, 0x7F80});
  const std::string b = write_array("b.npy", ElementType::boolean, {2}, std::vector<uint8_t>{0, 7});
  expect_success(castor({"run", text, "--func", "f", "--in", a, "--in", b, "--out", path("x.npy"),
                         "--out", path("y.npy")}));
  EXPECT_EQ(read_array<float>("x.npy", ElementType::f32, {3}),
            (std::vector<float>{1.f, -2.f, INFINITY}));
  EXPECT_EQ(read_array<uint16_t>("y.npy", ElementType::u16, {2}),
            (std::vector<uint16_t>{0, 0x3F80}));
}

TEST_F(Cli, RunReadsFortranOrder) {
  std::string header = tools::make_npy_header(ElementType::f32, {2, 3});
  header.replace(header.find("False"), 5, "True ");
  const std::vector<float> columns = {1, 4, 2, 5, 3, 6};
  std::string file = header;
  file.append(reinterpret_cast<const char*>(columns.data()), columns.size() * sizeof(float));
  const std::string in = write("in.npy", file);
  const std::string text = write("f.castor",
                                 "func @f(%x: f32[?a, ?b]) -> (u8[?a, ?b]) {\n"
                                 "  %y = convert %x : u8\n"
                                 "  return %y\n"
                                 "}\n");
  for (const char* engine : {"--interpret", ""}) {
    std::vector<std::string> arguments = {"run", text, "--in", in, "--out", path("out.npy")};
    if (*engine != '\0') arguments.emplace_back(engine);
    expect_success(castor(arguments));
    EXPECT_EQ(read_array<uint8_t>("out.npy", ElementType::u8, {2, 3}),
              (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  }
  expect_success(castor({"convert", in, path("out.npy"), "--to", "i16"}));
  EXPECT_EQ(read_array<int16_t>("out.npy", ElementType::i16, {2, 3}),
            (std::vector<int16_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(Cli, ConstantsComeFromFilesBesideTheText) {
  const std::string text = write("f.castor",
                                 "func @f() -> (f32[2], f32[2]) {\n"
                                 "  %a = constant @first : i16[2]\n"
                                 "  %b = constant @second : bf16[2]\n"
                                 "  %x = convert %a : f32\n"
                                 "  %y = convert %b : f32\n"
                                 "  return %x, %y\n"
                                 "}\n");
  const std::vector<std::string> run = {"run",         text,    "--out",
                                        path("x.npy"), "--out", path("y.npy")};
  expect_one_line(castor(run), 1, "first.npy");
  write_array("first.npy", ElementType::i16, {2}, std::vector<int16_t>{-3, 300});
  write("second.bin", std::string("\x80\x3F\x00\xC0", 4));
  expect_success(castor(run));
  EXPECT_EQ(read_array<float>("x.npy", ElementType::f32, {2}), (std::vector<float>{-3, 300}));
  EXPECT_EQ(read_array<float>("y.npy", ElementType::f32, {2}), (std::vector<float>{1, -2}));
  write_array("first.npy", ElementType::i16, {1, 2}, std::vector<int16_t>{-3, 300});
  expect_one_line(castor(run), 1, "has shape [1, 2], expected [2]");
  write_array("first.npy", ElementType::i16, {2}, std::vector<int16_t>{-3, 300});
  write("second.bin", "abc");
  expect_one_line(castor(run), 1, "found 3 bytes, expected 4");
}

TEST_F(Cli, ConvertHonoursItsOptions) {
  const std::string in = write_array("in.npy", ElementType::f32, {6},
                                     std::vector{-1.5f, 0.5f, 1.5f, 2.5f, 254.5f, 300.f});
  const struct {
    std::vector<std::string> options;
    std::vector<uint8_t> expected;
  } rows[] = {
      {{}, {0, 0, 1, 2, 254, 255}},
      {{"--overflow", "saturate", "--rounding", "nearest_even"}, {0, 0, 2, 2, 254, 255}},
      {{"--rounding", "half_up"}, {0, 1, 2, 3, 255, 255}},
      {{"--overflow", "wrap"}, {255, 0, 1, 2, 254, 44}},
      {{"--overflow", "wrap", "--rounding", "up"}, {255, 1, 2, 3, 255, 44}},
  };
  for (const auto& row : rows) {
    for (const char* engine : {"--interpret", ""}) {
      std::vector<std::string> arguments = {"convert", in, path("out.npy"), "--to", "u8"};
      arguments.insert(arguments.end(), row.options.begin(), row.options.end());
      if (*engine != '\0') arguments.emplace_back(engine);
      expect_success(castor(arguments));
      EXPECT_EQ(read_array<uint8_t>("out.npy", ElementType::u8, {6}), row.expected);
    }
  }
}

// Elements narrower than a byte travel as their packed bytes.

TEST_F(Cli, ConvertPacksAndUnpacks) {
  const std::string in =
      write_array("in.npy", ElementType::f32, {5}, std::vector{1.f, 2.f, 3.f, 10.f, 15.f});
  expect_success(castor({"convert", in, path("u4.npy"), "--to", "u4"}));
  EXPECT_EQ(read_array<uint8_t>("u4.npy", ElementType::u8, {3}),
            (std::vector<uint8_t>{0x21, 0xA3, 0x0F}));
  const std::string packed = path("u4.npy");
  expect_success(castor({"convert", packed, path("all.npy"), "--from", "u4", "--to", "f32"}));
  EXPECT_EQ(read_array<float>("all.npy", ElementType::f32, {6}),
            (std::vector<float>{1, 2, 3, 10, 15, 0}));
  expect_success(castor(
      {"convert", packed, path("five.npy"), "--from", "u4", "--shape", "1,5", "--to", "i8"}));
  EXPECT_EQ(read_array<int8_t>("five.npy", ElementType::i8, {1, 5}),
            (std::vector<int8_t>{1, 2, 3, 10, 15}));
}

TEST_F(Cli, ConvertKnowsTheOlderLayouts) {
  const std::string in =
      write_array("in.npy", ElementType::u8, {4}, std::vector<uint8_t>{2, 0, 1, 3});
  expect_success(castor({"convert", in, path("old.npy"), "--to", "u2.msb_first"}));
  EXPECT_EQ(read_array<uint8_t>("old.npy", ElementType::u8, {1}), std::vector<uint8_t>{0x87});
  expect_success(castor(
      {"convert", path("old.npy"), path("new.npy"), "--from", "u2.msb_first", "--to", "u2"}));
  EXPECT_EQ(read_array<uint8_t>("new.npy", ElementType::u8, {1}), std::vector<uint8_t>{0xD2});
}

TEST_F(Cli, RunGivesPackedInputsTheirShapes) {
  const std::string text = write("f.castor",
                                 "func @f(%a: u6.split[?n], %b: i16[?n], %c: i4[2, ?]) -> "
                                 "(u8[?n], f8e4m3[?n], f32[2, ?]) {\n"
                                 "  %x = convert %a : u8\n"
                                 "  %y = convert %b : f8e4m3\n"
                                 "  %z = convert %c : f32\n"
                                 "  return %x, %y, %z\n"
                                 "}\n");
  const std::string a =
      write_array("a.npy", ElementType::u8, {3}, std::vector<uint8_t>{0x21, 0x30, 0x79});
  const std::string b = write_array("b.npy", ElementType::i16, {3}, std::vector<int16_t>{1, -2, 0});
  const std::string c =
      write_array("c.npy", ElementType::u8, {2}, std::vector<uint8_t>{0x21, 0xF3});
  for (const char* engine : {"--interpret", ""}) {
    std::vector<std::string> arguments = {"run", text, "--in", a, "--in", b, "--in", c};
    for (const char* out : {"x.npy", "y.npy", "z.npy"}) {
      arguments.insert(arguments.end(), {"--out", path(out)});
    }
    if (*engine != '\0') arguments.emplace_back(engine);
    expect_success(castor(arguments));
    EXPECT_EQ(read_array<uint8_t>("x.npy", ElementType::u8, {3}),
              (std::vector<uint8_t>{18, 49, 35}));
    EXPECT_EQ(read_array<uint8_t>("y.npy", ElementType::u8, {3}),
              (std::vector<uint8_t>{0x38, 0xC0, 0}));
    EXPECT_EQ(read_array<float>("z.npy", ElementType::f32, {2, 2}),
              (std::vector<float>{1, 2, 3, -1}));
  }
}

TEST_F(Cli, ConvertCarriesRawTypesAndAnyShape) {
  const std::string in = write_array("in.npy", ElementType::f64, {}, std::vector{-2.0});
  expect_success(castor({"convert", in, path("raw.npy"), "--to", "bf16"}));
  EXPECT_EQ(read_array<uint16_t>("raw.npy", ElementType::u16, {}), std::vector<uint16_t>{0xC000});
  expect_success(
      castor({"convert", path("raw.npy"), path("i.npy"), "--from", "bf16", "--to", "i8"}));
  EXPECT_EQ(read_array<int8_t>("i.npy", ElementType::i8, {}), std::vector<int8_t>{-2});
  expect_success(castor({"convert", path("i.npy"), path("i.npy"), "--to", "u16"}));
  EXPECT_EQ(read_array<uint16_t>("i.npy", ElementType::u16, {}), std::vector<uint16_t>{0xFFFE});
  const std::string empty =
      write_array("empty.npy", ElementType::i32, {4, 0, 2}, std::vector<int32_t>{});
  expect_success(castor({"convert", empty, path("out.npy"), "--to", "boolean"}));
  EXPECT_TRUE(read_array<uint8_t>("out.npy", ElementType::boolean, {4, 0, 2}).empty());
}

}  // namespace
}  // namespace castor::test
