// SPDX-License-Identifier: Apache-2.0
// The tables of the port model's cores: each instruction that castor emits against figures measured
// on the core, and what the tables have in common.
#include "jit/listing/port_core.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "bench/ports/instruction_forms.hpp"
#include "bench/ports/instruction_timing.hpp"
#include "jit/listing/listing.hpp"
#include "jit/listing/port_notation.hpp"

namespace castor::jit {
namespace {

using bench::InstructionForm;
using bench::InstructionLoop;

constexpr PortModel all_models[] = {PortModel::zen4, PortModel::zen5, PortModel::golden_cove,
                                    PortModel::redwood_cove};

/// The model's cycles of independent instructions, each once.
std::optional<double> cycles_of(const std::vector<const InstructionForm*>& forms, PortModel model) {
  const auto loop = InstructionLoop::independent(forms);
  const auto cycles = port_cycles(loop->body(), loop->body_loop(), model);
  if (!cycles) return std::nullopt;
  return cycles->bound() / InstructionLoop::copies;
}

std::optional<double> cycles_of(const InstructionForm& form, PortModel model) {
  return cycles_of(std::vector{&form}, model);
}

std::string data_file(const std::string& name) {
  return std::string(CASTOR_TEST_DATA) + "/../../bench/data/ports/" + name;
}

/// What stands in quotation marks.
std::vector<std::string> quoted_words(const std::string& line) {
  std::vector<std::string> found;
  for (size_t begin = line.find('"'); begin != std::string::npos;) {
    const size_t end = line.find('"', begin + 1);
    found.push_back(line.substr(begin + 1, end - begin - 1));
    begin = line.find('"', end + 1);
  }
  return found;
}

TEST(PortCores, KnowEveryInstructionThatTheCoreHas) {
  for (const PortModel model : all_models) {
    const bool has_fp16 = port_core(model).has_tiles;  // both came with Sapphire Rapids
    for (const InstructionForm& form : bench::instruction_forms()) {
      const bool is_known = form.tier != Tier::avx512_fp16 || has_fp16;
      EXPECT_EQ(cycles_of(form, model).has_value(), is_known)
          << form.name << " on " << port_core(model).name;
    }
  }
}

TEST(PortCores, FormsShowEveryClass) {
  std::set<Cost> shown;
  for (const InstructionForm& form : bench::instruction_forms()) {
    const auto loop = InstructionLoop::independent({&form});
    const auto cost = cost_class_at(loop->body(), 0);
    ASSERT_TRUE(cost.ok()) << form.name;
    shown.insert(*cost);
  }
  for (size_t i = static_cast<size_t>(Cost::none); i < cost_count; ++i) {
    const auto cost = static_cast<Cost>(i);
    if (cost == Cost::jump || cost == Cost::gpr_divide) continue;  // ends a loop; follows two moves
    if (cost == Cost::float_to_bf16) continue;  // castor emits none: they flush subnormals
    EXPECT_TRUE(shown.contains(cost)) << name_of(cost);
  }
}

struct MeasuredForm {
  std::string name;
  double cycles = 0;
  std::optional<double> latency;
};

/// "form",cycles,model,latency,model latency
std::vector<MeasuredForm> measured_forms(const std::string& file) {
  std::ifstream stream(data_file(file));
  std::vector<MeasuredForm> forms;
  std::string line;
  std::getline(stream, line);
  while (std::getline(stream, line)) {
    MeasuredForm form;
    const size_t end = line.find('"', 1);
    form.name = line.substr(1, end - 1);
    std::istringstream cells(line.substr(end + 2));
    std::string cell;
    std::getline(cells, cell, ',');
    form.cycles = std::stod(cell);
    std::getline(cells, cell, ',');  // what the model said then
    if (std::getline(cells, cell, ',') && !cell.empty()) form.latency = std::stod(cell);
    forms.push_back(form);
  }
  return forms;
}

/// A core that was measured with castor-ports.
struct MeasuredCore {
  PortModel model;
  const char* name;
  /// Forms that take longer than ports explain: they wait for flags, for registers of masks, or for
  /// the cache lines of stores by turns with others.
  std::set<std::string> waiting;
};

void PrintTo(const MeasuredCore& core, std::ostream* stream) { *stream << core.name; }

class MeasuredCores : public testing::TestWithParam<MeasuredCore> {};

INSTANTIATE_TEST_SUITE_P(
    PortCores, MeasuredCores,
    testing::Values(MeasuredCore{PortModel::zen4,
                                 "zen4",
                                 {"adc r", "stmxcsr, ldmxcsr", "vptest ymm", "kmovq m, k",
                                  "kmovq k, r", "kortestw"}},
                    MeasuredCore{PortModel::zen5, "zen5", {"adc r", "vcvtps2ph m, zmm"}}),
    [](const auto& core) { return std::string(core.param.name); });

/// A bound may be below what was measured, hardly above. Classes have one latency each.
TEST_P(MeasuredCores, AreAsMeasured) {
  const auto& [model, core, waiting] = GetParam();
  const auto forms = measured_forms(fmt::format("instructions-{}.csv", core));
  ASSERT_GT(forms.size(), 250u);
  for (const MeasuredForm& measured : forms) {
    const InstructionForm* form = bench::form_named(measured.name);
    ASSERT_NE(form, nullptr) << measured.name;
    const auto cycles = cycles_of(*form, model);
    ASSERT_TRUE(cycles) << measured.name;
    EXPECT_LE(*cycles, 1.04 * measured.cycles + 0.01) << measured.name;
    const bool waits = waiting.contains(measured.name);
    EXPECT_GE(*cycles, waits ? 0 : 0.78 * measured.cycles - 0.02) << measured.name;
    if (!measured.latency || measured.name.starts_with("vscalefps")) continue;
    const auto loop = InstructionLoop::independent({form});
    EXPECT_NEAR(*latency_at(loop->body(), 0, model), *measured.latency, 1.05) << measured.name;
  }
}

/// Whether one of these pairs reads a third source just when it has been made, so that it needs no
/// port of the registers (zen5.cpp): they take 0.67 to 0.85 cycles, and their bound is 1.
bool reads_what_is_just_made(PortModel model, const std::string& name, const std::string& probe) {
  if (model != PortModel::zen5) return false;
  if (name == "vfmadd231ps ymm") return probe == "vmovd r, xmm";
  return name.starts_with("vpermi2") && probe == "vfmadd231ps zmm";
}

/// Two instructions by turns: a bound above their time would give them too few ports.
TEST_P(MeasuredCores, AreAboveNoMeasuredPair) {
  const PortModel model = GetParam().model;
  std::ifstream stream(data_file(fmt::format("pairs-{}.csv", GetParam().name)));
  std::string line;
  std::getline(stream, line);
  std::vector<std::string> probes = quoted_words(line);
  ASSERT_GE(probes.size(), 6u) << line;
  int pairs = 0;
  while (std::getline(stream, line)) {
    const std::string name = quoted_words(line).at(0);
    const InstructionForm* form = bench::form_named(name);
    ASSERT_NE(form, nullptr) << name;
    std::istringstream cells(line.substr(name.size() + 3));
    std::string cell;
    std::getline(cells, cell, ',');  // alone
    for (const std::string& probe : probes) {
      const InstructionForm* other = bench::form_named(probe);
      ASSERT_NE(other, nullptr) << probe;
      ASSERT_TRUE(std::getline(cells, cell, ',')) << line;
      const double measured = std::stod(cell);
      const double bound = *cycles_of({form, other}, model);
      const bool is_quicker = reads_what_is_just_made(model, name, probe);
      EXPECT_LE(bound, is_quicker ? 1 : 1.04 * measured + 0.01) << name << " beside " << probe;
      ++pairs;
    }
  }
  EXPECT_GE(pairs, 1500);
}

struct Published {
  const char* form;
  double cycles;
  double latency;  ///< 0: none is published
};

/// InstLatx64, GenuineIntel0090672_AlderLake_01_BC_AVX512: forms that the client's core runs as the
/// servers' does. (It lacks the second unit for products of 512 bits.)
TEST(PortCores, GoldenCoveIsAsPublished) {
  const Published rows[] = {
      {"vpaddd ymm", 0.33, 1},
      {"vpaddd zmm", 0.5, 1},
      {"vpternlogd zmm", 0.5, 1},
      {"vpmaxub ymm", 0.5, 1},
      {"vpmaxub zmm", 1, 1},
      {"vpmaxsq zmm", 1, 3},
      {"vpcmpgtq ymm", 1, 3},
      {"vpsubusw zmm", 1, 1},
      {"vpopcntb zmm", 1, 3},
      {"vpshufb ymm", 0.5, 1},
      {"vpshufb zmm", 1, 1},
      {"vpalignr ymm", 1, 1},
      {"vpackssdw ymm", 1, 3},
      {"vpunpcklbw ymm", 0.5, 1},
      {"vpunpcklbw zmm", 1, 1},
      {"vpermb zmm", 1, 3},
      {"vpermw zmm", 1, 4},
      {"vpermi2d zmm", 1, 3},
      {"vpermi2b zmm", 2, 5},
      {"vpermi2w zmm", 2, 7},
      {"vpmovzxbd zmm", 1, 3},
      {"vpmovsdb ymm", 1, 4},
      {"vpmovsdb zmm", 2, 4},
      {"vinserti128 ymm, m", 0.33, 0},
      {"vpcompressd zmm", 2, 3},
      {"vpslld ymm", 0.5, 1},
      {"vpslld zmm", 1, 1},
      {"vpmullw ymm", 0.5, 5},
      {"vpmulld ymm", 1, 10},
      {"vpmullq ymm", 1.5, 15},
      {"vpsadbw zmm", 1, 3},
      {"vhaddps ymm", 2, 5},
      {"vpmultishiftqb zmm", 1, 3},
      {"vpdpbusd ymm", 0.5, 5},
      {"vpblendvb ymm", 1, 3},
      {"vmulps ymm", 0.5, 4},
      {"vfmadd231ps ymm", 0.5, 4},
      {"vaddps ymm", 0.5, 2},
      {"vaddps zmm", 0.5, 3.4},
      {"vminps ymm", 0.5, 4},
      {"vcmpps k, zmm", 1, 0},
      {"vroundps ymm", 1, 8},
      {"vcvtdq2ps ymm", 0.5, 4},
      {"vcvtph2ps zmm", 1, 0},
      {"vcvtpd2ps zmm", 1, 7},
      {"vcvtps2ph zmm", 1, 8},
      {"vdivps ymm", 5, 11},
      {"vdivps zmm", 10, 17},
      {"vdivpd zmm", 16, 22},
      {"vsqrtps zmm", 12, 19},
      {"vaddph ymm", 0.5, 4},
      {"vcmpph k, zmm", 1, 0},
      {"vdivph zmm", 32, 41},
      {"vpcmpub k, zmm", 1, 0},
      {"vpmovb2m zmm", 1, 0},
      {"vpmovm2b zmm", 0.5, 0},
      {"kandq", 1, 1},
      {"kshiftrq", 1, 4},
      {"kmovq k, m", 1, 0},
      {"kmovq r, k", 1, 0},
      {"kmovq k, r", 1, 0},
      {"vpbroadcastd zmm, r", 1, 0},
      {"shlx r", 0.5, 1},
      {"popcnt r", 1, 3},
      {"imul r", 1, 3},
      {"vmovups ymm, m", 0.33, 0},
      {"vmovups zmm, m", 0.5, 0},
      {"vmovups m, ymm", 0.5, 0},
      {"vmovups m, zmm", 1, 0},
  };
  for (const Published& row : rows) {
    const InstructionForm* form = bench::form_named(row.form);
    ASSERT_NE(form, nullptr) << row.form;
    const auto loop = InstructionLoop::independent({form});
    EXPECT_NEAR(*cycles_of(*form, PortModel::golden_cove), row.cycles, 0.02 * row.cycles)
        << row.form;
    if (row.latency == 0) continue;
    EXPECT_EQ(*latency_at(loop->body(), 0, PortModel::golden_cove), row.latency) << row.form;
  }
}

TEST(PortCores, FollowTheTuningTableAndTheCpu) {
  const CpuIdentity sapphire = {"GenuineIntel", 6, 0x8f, true, true};
  const CpuIdentity granite = {"GenuineIntel", 6, 0xad, true, true};
  EXPECT_EQ(port_model_of(Core::golden_cove, sapphire), PortModel::golden_cove);
  EXPECT_EQ(port_model_of(Core::golden_cove, granite), PortModel::redwood_cove);
  EXPECT_EQ(port_model_of(Core::zen5, granite), PortModel::zen5);
  EXPECT_EQ(port_model_of(Core::zen4, {}), PortModel::zen4);
  EXPECT_EQ(port_model_of(Core::generic, granite), PortModel::zen4);
}

/// 00A06A4_MeteorLake_10_BC; else the two cores are alike.
TEST(PortCores, RedwoodCoveMultipliesFloatsInThreeCycles) {
  for (const InstructionForm& form : bench::instruction_forms()) {
    const auto loop = InstructionLoop::independent({&form});
    const auto golden = latency_at(loop->body(), 0, PortModel::golden_cove);
    const auto redwood = latency_at(loop->body(), 0, PortModel::redwood_cove);
    EXPECT_EQ(cycles_of(form, PortModel::golden_cove), cycles_of(form, PortModel::redwood_cove));
    if (!golden) continue;
    const bool multiplies = form.name.starts_with("vmulp") && !form.name.starts_with("vmulph");
    EXPECT_EQ(*redwood, multiplies ? 3 : *golden) << form.name;
  }
}

TEST(PortNotation, ReadsPortsCyclesAndCounts) {
  constexpr std::string_view ports[] = {"FP0", "FP1", "FP2", "ALU0", "p10", "branch"};
  constexpr CostRow::Form form = notation::form(ports, "FP12*1.5 ALU0|branch p10 FP012*2@2", 3);
  EXPECT_EQ(form.count, 4u);
  EXPECT_EQ(form.latency, 3);
  EXPECT_TRUE(form.is_measured);
  EXPECT_EQ(form.uses[0].ports, 0b000110);
  EXPECT_EQ(form.uses[0].cycles, 1.5);
  EXPECT_EQ(form.uses[1].ports, 0b101000);
  EXPECT_EQ(form.uses[2].ports, 0b010000);
  EXPECT_EQ(form.uses[3].ports, 0b000111);
  EXPECT_EQ(form.uses[3].cycles, 2);
  EXPECT_EQ(form.uses[3].at_most, 2);
  EXPECT_FALSE(notation::form(ports, "?", 0).is_measured);
  EXPECT_EQ(notation::form(ports, "-", 0).count, 0u);
  for (const char* wrong :
       {"", "FP3", "FP", "ALU1", "FP0*x", "FP0@x", "FP0 FP0 FP0 FP0 FP0 FP0 FP0"}) {
    EXPECT_THROW(notation::form(ports, wrong, 0), std::invalid_argument) << wrong;
  }
}

}  // namespace
}  // namespace castor::jit
