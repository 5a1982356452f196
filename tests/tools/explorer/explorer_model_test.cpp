// SPDX-License-Identifier: Apache-2.0
// The explorer's model: origins, loops, costs, and the page made of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "jit/listing/port_core.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/explorer_model.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"
#include "tools/explorer/page.hpp"

namespace castor::test {
namespace {

using namespace tools::explorer;

constexpr const char* fused_text =
    "func @fused(%x: u8[1, 32, 14, 14], %w: i8[32, 32, 3, 3], %s: f32[32, 1, 1])"
    " -> (u8[1, 32, 14, 14]) {\n"
    "  %y = conv_integer %x, %w {pads = [1, 1, 1, 1]}\n"
    "  %f = convert %y : f32\n"
    "  %m = mul %f, %s\n"
    "  %z = convert %m {overflow = saturate} : u8\n"
    "  return %z\n"
    "}\n";

constexpr const char* plain_text =
    "func @plain(%x: f32[?n, 3], %m: f32[3]) -> (f16[?n, 3]) {\n"
    "  %d = sub %x, %m\n"
    "  %h = convert %d : f16\n"
    "  return %h\n"
    "}\n";

template <class Visit>
void for_each_code(const Model& model, const Visit& visit) {
  for (const FunctionView& function : model.functions) {
    for (const TierView& tier : function.tiers) {
      for (const Nest& nest : tier.nests) {
        for (const Code& code : nest.codes) visit(function, code);
      }
    }
  }
}

bool is_index(Index index, size_t size) {
  return index == none || (index >= 0 && static_cast<size_t>(index) < size);
}

void expect_origins(const Code& code, size_t lines) {
  for (const Instruction& each : code.instructions) {
    ASSERT_TRUE(each.origin >= 0 && static_cast<size_t>(each.origin) < code.origins.size());
    const Origin& origin = code.origins[static_cast<size_t>(each.origin)];
    EXPECT_NE(origin.section, jit::CodeSection::none);
    EXPECT_TRUE(is_index(origin.lane, code.lanes.size()));
    EXPECT_TRUE(is_index(origin.operation, lines));
    EXPECT_EQ(each.bytes.size() % 2, 0u);
  }
}

TEST(ExplorerModel, HasOriginsForEveryInstruction) {
  for (const char* text : {fused_text, plain_text}) {
    size_t codes = 0;
    for_each_code(model_of(text), [&](const FunctionView& function, const Code& code) {
      expect_origins(code, function.lines.size());
      ++codes;
    });
    EXPECT_GE(codes, size_t{jit::tier_count});
  }
}

/// Every golden listing of a function can be shown.
TEST(ExplorerModel, TakesEveryGoldenKernel) {
  for (const auto& file : listing_files()) {
    const auto kernel = read_golden_kernel(text_of_file(file));
    ASSERT_TRUE(kernel.ok()) << file;
    const auto codes = golden_codes(*kernel);
    ASSERT_TRUE(codes.ok()) << file;
    for (const jit::MachineCode& machine_code : *codes) {
      const auto code = explore("nest", machine_code, jit::PortModel::zen4);
      ASSERT_TRUE(code.ok()) << file << ": " << code.error().message;
      expect_origins(*code, 100);
    }
  }
}

TEST(ExplorerModel, OperationsAreLinesOfTheFunction) {
  const Model model = model_of(fused_text);
  Index next = 0;
  for (const OperationLine& line : model.functions[0].lines) {
    if (line.operation == none) continue;
    EXPECT_EQ(line.operation, next++);
    EXPECT_NE(line.text.find(" = "), std::string::npos) << line.text;
  }
  EXPECT_EQ(next, 4);
}

/// Conversions that merge: the first becomes nothing. A composition becomes all of its definition.
TEST(ExplorerModel, WrittenLinesSayWhatTheyBecame) {
  const Model merged = model_of(
      "func @merged(%x: u8[4]) -> (f32[4]) {\n"
      "  %y = convert %x : u16\n  %z = convert %y : f32\n  return %z\n}\n");
  const std::vector<WrittenLine>& lines = merged.functions[0].written;
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].operation, none);
  EXPECT_EQ(lines[1].text, "  %y = convert %x : u16");
  EXPECT_EQ(lines[1].operation, 0);
  EXPECT_EQ(lines[1].became, std::vector<Index>{});
  EXPECT_EQ(lines[2].became, std::vector<Index>{0});

  const Model composed = model_of(
      "func @composed(%x: f32[?n, 64], %s: f32[]) -> (f32[?n, 64]) {\n"
      "  %q = quantize_linear %x, %s : i8\n  %y = dequantize_linear %q, %s : f32\n"
      "  return %y\n}\n");
  const FunctionView& view = composed.functions[0];
  std::vector<Index> all;
  for (const WrittenLine& line : view.written) {
    all.insert(all.end(), line.became.begin(), line.became.end());
  }
  EXPECT_GE(view.written[1].became.size(), 2u);
  EXPECT_GE(view.written[2].became.size(), 2u);
  const auto operations = std::ranges::count_if(
      view.lines, [](const OperationLine& line) { return line.operation != none; });
  EXPECT_EQ(std::ssize(all), operations);
  EXPECT_TRUE(std::ranges::is_sorted(all));
}

TEST(ExplorerModel, LoopsAreOfInstructions) {
  size_t loops = 0;
  for (const char* text : {fused_text, plain_text}) {
    for_each_code(model_of(text), [&](const FunctionView&, const Code& code) {
      for (const Loop& loop : code.loops) {
        ++loops;
        ASSERT_TRUE(loop.first >= 0 && loop.first < loop.end &&
                    static_cast<size_t>(loop.end) <= code.instructions.size());
        EXPECT_EQ(code.instructions[static_cast<size_t>(loop.first)].offset, loop.noted.begin);
        ASSERT_TRUE(loop.cycles.has_value()) << loop.refusal;
        EXPECT_GT(loop.cycles->bound(), 0);
      }
    });
  }
  EXPECT_GT(loops, 10u);
}

/// Cycles are those of the core's port model, and ports those of the core.
TEST(ExplorerModel, LoopsAreWeighedByTheCoresPortModel) {
  for (const jit::Core core : {jit::Core::generic, jit::Core::zen4, jit::Core::zen5,
                               jit::Core::golden_cove, jit::Core::zen3}) {
    const jit::PortModel expected = jit::port_model_of(core, jit::host().identity);
    size_t loops = 0;
    for_each_code(model_of(plain_text, core), [&](const FunctionView&, const Code& code) {
      for (const Loop& loop : code.loops) {
        ++loops;
        ASSERT_TRUE(loop.cycles.has_value()) << loop.refusal;
        EXPECT_EQ(loop.cycles->core, port_core(expected).name);
        ASSERT_EQ(loop.cycles->ports.size(), port_core(expected).ports.size());
        double busiest = 0;
        for (const jit::PortLoad& each : loop.cycles->ports) {
          busiest = std::max(busiest, each.cycles);
        }
        EXPECT_NEAR(busiest, loop.cycles->pipes, 1e-9);
      }
    });
    EXPECT_GT(loops, 5u) << name_of(core);
  }
}

TEST(ExplorerModel, CostsOfCandidatesAreSumsOfParts) {
  const Model model = model_of(fused_text);
  for (const TierView& tier : model.functions[0].tiers) {
    ASSERT_TRUE(tier.nests[0].convolution.has_value()) << name_of(tier.target.tier);
    double least = 0;
    for (const CandidateCost& each : tier.nests[0].convolution->candidates) {
      const auto add = [](double sum, const CostPart& part) { return sum + part.cycles; };
      const double sum = std::accumulate(each.parts.begin(), each.parts.end(), 0.0, add);
      EXPECT_NEAR(sum, each.cycles, 1e-6 * each.cycles) << each.name;
      EXPECT_GE(each.cycles, least) << "the cheapest comes first";
      least = each.cycles;
    }
  }
}

TEST(ExplorerModel, KernelsThatApplyTheEpilogueLeaveItsNestWithoutCodeOfItsOwn) {
  const Model model = model_of(fused_text);
  for (const TierView& tier : model.functions[0].tiers) {
    ASSERT_EQ(tier.nests.size(), 2u);
    const bool applies = tier.nests[0].convolution->candidates[0].applies_epilogue;
    const auto is_own = [](const Code& code) { return code.name == "nest"; };
    EXPECT_EQ(std::ranges::none_of(tier.nests[1].codes, is_own), applies)
        << name_of(tier.target.tier);
    EXPECT_EQ(tier.nests[0].codes[0].lanes.empty(), !applies);
  }
}

/// What cannot be planned is said, and is no failure.
TEST(ExplorerModel, SaysWhatCannotBePlanned) {
  const Model model = model_of(
      "func @none(%x: u8[0, 4, 9, 9], %w: i8[8, 4, 3, 3]) -> (i32[0, 8, 7, 7]) {\n"
      "  %y = conv_integer %x, %w\n  return %y\n}\n");
  for (const TierView& tier : model.functions[0].tiers) {
    EXPECT_TRUE(tier.nests.empty());
    EXPECT_NE(tier.refusal.find("nothing to multiply"), std::string::npos) << tier.refusal;
  }
}

// ---- the page

TEST(ExplorerPage, HoldsTheModelAsJson) {
  const Model model = model_of(fused_text);
  const std::string page = to_page(model);
  const std::string begin = "<script type=\"application/json\" id=\"model\">";
  const size_t at = page.find(begin) + begin.size();
  const auto json = nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
  EXPECT_EQ(json["functions"][0]["name"], "fused");
  EXPECT_EQ(json["selected"], "avx512_vbmi");
  EXPECT_EQ(json["sections"].size(), size_t{jit::code_section_count});
  EXPECT_EQ(json["functions"][0]["tiers"].size(), size_t{jit::tier_count});
  for (const char* mark : {"/*STYLE*/", "/*SCRIPT*/", "/*MODEL*/"}) {
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
  }
}

TEST(ExplorerPage, TextsOfTheUserAreNoMarkup) {
  Model model = model_of(plain_text);
  const std::string plain = to_page(model);
  const auto count = [](const std::string& page) { return std::ranges::count(page, '<'); };
  model.file = "</script><script>alert(1)</script><!-- /*MODEL*/ /*STYLE*/";
  model.functions[0].name = "<b>\xff";
  model.functions[0].written = {{.text = "<img src=x>", .operation = none, .became = {}}};
  const std::string page = to_page(model);
  EXPECT_EQ(count(page), count(plain));
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
}

// ---- the command

TEST_F(Cli, DumpWritesAPage) {
  const std::string text = write("f.castor", to_f16_text);
  const CommandResult result = castor({"dump", text, "--html", path("f.html"), "--isa", "avx2"});
  expect_success(result);
  EXPECT_EQ(result.out, "");
  const std::string page = text_of_file(path("f.html"));
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("\"selected\":\"avx2\""), std::string::npos);
  EXPECT_NE(page.find("\"file\":\"f.castor\""), std::string::npos) << "without its folder";
  EXPECT_NE(page.find("vcvtps2ph"), std::string::npos);
}

TEST_F(Cli, DumpRefusesAPageOfOneStageAndFilesThatCannotBe) {
  const std::string text = write("f.castor", to_f16_text);
  const CommandResult both = castor({"dump", text, "--html", path("f.html"), "--stage", "asm"});
  EXPECT_EQ(both.status, 2) << both.err;
  const CommandResult nowhere = castor({"dump", text, "--html", path("no/f.html")});
  EXPECT_EQ(nowhere.status, 1);
  expect_contains(nowhere.err, "no/f.html");
}

}  // namespace
}  // namespace castor::test
