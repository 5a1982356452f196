// SPDX-License-Identifier: Apache-2.0
// The directory of functions and code: what is in the files, and that none is overwritten.
#include <gtest/gtest.h>
#include <castor/listing.hpp>

#include <cstdlib>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/published.hpp"

namespace castor {
namespace {

using test::ObservedRuntime;
using test::read_text;
using test::TemporaryFolder;

ObserveOptions dump_to(const TemporaryFolder& directory, ListingWriter listing = nullptr) {
  ObserveOptions options;
  options.dump_directory = directory.path();
  options.listing = listing;
  return options;
}

const std::string code_name = "castor_convert_f32_i8_contiguous_avx2";

TEST(DumpDirectory, HasTheFilesOfFunctionAndCode) {
  const TemporaryFolder directory;
  const ObservedRuntime runtime(dump_to(directory, listing_writer()));
  runtime.code_of(test::to_i8_text);
  EXPECT_EQ(directory.files(),
            (std::set<std::string>{"to_i8.castor", "to_i8.nests.txt", code_name + ".nest.txt",
                                   code_name + ".asm.txt"}));
  EXPECT_EQ(read_text(directory.path("to_i8.castor")), test::to_i8_text);
  const FunctionPtr canonical = canonicalize(test::parsed(test::to_i8_text));
  const jit::Target target = *runtime.state().target;
  EXPECT_NE(read_text(directory.path("to_i8.nests.txt")).find(*jit::dump_nest(*canonical, target)),
            std::string::npos);
  // What `castor dump --stage asm` prints on this machine.
  const auto core = jit::choose_core({}, jit::host().identity, std::getenv("CASTOR_CORE"));
  const jit::PortModel model = jit::port_model_of(core->core, jit::host().identity);
  EXPECT_EQ(read_text(directory.path(code_name + ".asm.txt")),
            *jit::listing(jit::emit_annotated(*canonical, target).value().at(0), {.model = model}));
  const std::string nest = read_text(directory.path(code_name + ".nest.txt"));
  EXPECT_TRUE(nest.starts_with(code_name + "\n")) << nest;
  EXPECT_NE(nest.find("source0  %x: f32, contiguous"), std::string::npos) << nest;
}

TEST(DumpDirectory, HasTheBytesWithoutAListing) {
  const TemporaryFolder directory;
  const ObservedRuntime runtime(dump_to(directory));
  const KernelCodePtr<jit::NestSpec> code = runtime.code_of(test::to_i8_text);
  const std::string bytes = read_text(directory.path(code_name + ".bin"));
  const FunctionPtr canonical = canonicalize(test::parsed(test::to_i8_text));
  const auto emitted = jit::emit_annotated(*canonical, *runtime.state().target).value();
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(bytes)), emitted.at(0).bytes));
  EXPECT_TRUE(test::is_published(emitted.at(0), code->block));
  const std::string nest = read_text(directory.path(code_name + ".nest.txt"));
  EXPECT_NE(nest.find("objdump -D -b binary"), std::string::npos) << nest;
  EXPECT_NE(nest.find(code_name + ".bin"), std::string::npos) << nest;
}

TEST(DumpDirectory, KeepsFunctionsOfOneNameApart) {
  const TemporaryFolder directory;
  const std::string_view other =
      "func @to_i8(%z: f64[?n]) -> (i8[?n]) {\n  %y = convert %z : i8\n  return %y\n}\n";
  for (int time = 0; time < 2; ++time) {  // a second process finds its files there
    const ObservedRuntime runtime(dump_to(directory));
    runtime.code_of(test::to_i8_text);
    runtime.code_of(other);
  }
  EXPECT_EQ(read_text(directory.path("to_i8.castor")), test::to_i8_text);
  int functions = 0;
  for (const std::string& file : directory.files()) {
    if (!file.ends_with(".castor")) continue;
    ++functions;
    EXPECT_TRUE(file.starts_with("to_i8"));
    if (file != "to_i8.castor") {
      EXPECT_EQ(read_text(directory.path(file)), other);
    }
  }
  EXPECT_EQ(functions, 2);
}

TEST(DumpDirectory, LeavesFilesOfOthersAlone) {
  const TemporaryFolder directory;
  std::ofstream(directory.path("to_i8.castor")) << "notes of mine";
  const ObservedRuntime runtime(dump_to(directory));
  runtime.code_of(test::to_i8_text);
  EXPECT_EQ(read_text(directory.path("to_i8.castor")), "notes of mine");
  EXPECT_EQ(directory.files().size(), 5u);
}

TEST(DumpDirectory, HasLargeConstantsBesideTheText) {
  const TemporaryFolder directory;
  std::vector<std::byte> weights(4096);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::byte>(i * 7);
  FunctionBuilder builder("add_weights");
  const ValueId x = builder.parameter("x", {ElementType::i8, {Dim(4096)}});
  const ValueId w = builder.constant({ElementType::i8, {Dim(4096)}}, weights);
  builder.result(builder.binary(OpKind::add, x, w));
  const FunctionPtr function = std::move(builder.finish()).value();

  RuntimeOptions options;
  options.observe = dump_to(directory);
  const Runtime runtime = Runtime::create(options).value();
  ASSERT_TRUE(runtime.compile(function).ok());
  ASSERT_TRUE(runtime.observation().ok());
  const std::string text = read_text(directory.path("add_weights.castor"));
  EXPECT_LT(text.size(), 400u);
  ParseOptions read;
  read.bind_constant = [&](std::string_view name,
                           const TensorType&) -> Result<std::vector<std::byte>> {
    const std::string bytes = read_text(directory.path(std::string(name) + ".bin"));
    const std::span all = std::as_bytes(std::span(bytes));
    return std::vector<std::byte>(all.begin(), all.end());
  };
  const auto again = parse_function(text, {}, read);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_TRUE(same_computation(**again, *function));
}

TEST(DumpDirectory, HasKernelsOfConvolutions) {
  const TemporaryFolder directory;
  RuntimeOptions options;
  options.tier = Tier::avx2;
  options.observe = dump_to(directory, listing_writer());
  const Runtime runtime = Runtime::create(options).value();
  const Result<Kernel> kernel = runtime.compile(
      "func @conv(%x: u8[1, 16, 14, 14], %w: i8[32, 16, 3, 3]) -> (i32[1, 32, 12, 12]) {\n"
      "  %y = conv_integer %x, %w\n  return %y\n}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const std::vector<Dims> shapes = {{1, 16, 14, 14}, {32, 16, 3, 3}};
  const Result<BoundKernel> bound = kernel->bind(shapes);
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  int listings = 0;
  for (const std::string& file : directory.files()) {
    if (!file.starts_with("castor_dense_vectorised_channels_") || !file.ends_with(".asm.txt"))
      continue;
    ++listings;
    EXPECT_NE(read_text(directory.path(file)).find("vpmaddwd"), std::string::npos) << file;
  }
  EXPECT_GE(listings, 1);
  EXPECT_TRUE(runtime.observation().ok());
}

TEST(DumpDirectory, HasFunctionsThatAreInterpreted) {
  const TemporaryFolder directory;
  RuntimeOptions options;
  options.interpret = true;
  options.observe = dump_to(directory);
  const Runtime runtime = Runtime::create(options).value();
  ASSERT_TRUE(runtime.compile(test::to_i8_text).ok());
  EXPECT_EQ(directory.files(), (std::set<std::string>{"to_i8.castor", "to_i8.nests.txt"}));
}

}  // namespace
}  // namespace castor
