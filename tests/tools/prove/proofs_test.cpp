// SPDX-License-Identifier: Apache-2.0
// Every conversion and elementwise operation on every tier: its query is in the file of results, or
// is decided now; a sample, which the commit draws, is decided again.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tools/prove/query/counterexample.hpp"
#include "tools/prove/query/subjects.hpp"

namespace castor::prove {
namespace {

/// The commit's hash, or 1 where there is none; CASTOR_PROOF_SEED is taken first.
uint64_t seed() {
  if (const char* given = std::getenv("CASTOR_PROOF_SEED")) return std::strtoull(given, nullptr, 0);
  const std::string command = std::string("git -C ") + CASTOR_TEST_DATA + " rev-parse HEAD 2>&-";
  std::FILE* output = popen(command.c_str(), "r");
  char text[17] = {};
  const size_t size = output == nullptr ? 0 : std::fread(text, 1, sizeof text - 1, output);
  if (output != nullptr) pclose(output);
  return size == sizeof text - 1 ? std::strtoull(text, nullptr, 16) : 1;
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const Conversion& conversion : all_conversions()) {
    subjects.push_back(*subject_of(conversion));
  }
  for (const ElementwiseOp& op : all_elementwise_ops()) subjects.push_back(*subject_of(op));
  return subjects;
}

TEST(Proofs, NoneIsMissingAndASampleIsFoundAgain) {
  constexpr uint64_t parts = 100;
  // Where the sample is costly it ends: at some 10 seconds a million steps on a slow machine, with
  // another test beside it, in three minutes.
  constexpr uint64_t sample_steps = 20'000'000;
  const Result<Results> known = Results::read(std::string(CASTOR_TEST_DATA) + "/proofs.txt");
  ASSERT_TRUE(known) << known.error().message;
  const uint64_t drawn_by = seed();
  Prover prover(*known, {}, sample_of(drawn_by, parts), sample_steps);
  const auto report = [&](const Finding& finding) {
    if (finding.verdict.status == Status::wrong) {
      ADD_FAILURE() << counterexample_text(finding, "castor prove --name '" + finding.subject.name +
                                                        "' --isa " +
                                                        std::string(name_of(finding.tier)));
    }
  };
  for (const Subject& subject : all_subjects()) {
    for (const jit::TierInfo& row : jit::tier_table()) prover.prove(subject, row.tier, report);
  }
  const Tally& tally = prover.tally();
  std::printf(
      "seed %llu: %zu of %zu distinct queries decided in %.0f s and %.1f million steps; of %zu "
      "subjects x tiers %zu "
      "proved, %zu exhausted, %zu identity, %zu open\n",
      static_cast<unsigned long long>(drawn_by), tally.decided, tally.distinct, tally.seconds,
      static_cast<double>(tally.steps) / 1e6, tally.total(), tally.of(Status::proved),
      tally.of(Status::exhausted), tally.of(Status::identity), tally.of(Status::open));
  EXPECT_EQ(tally.of(Status::wrong), 0u);
  EXPECT_EQ(prover.contradictions(), 0u) << "known results that were not found again";
  EXPECT_EQ(prover.results().text(), prover.met().text())
      << "the file has results of queries that no longer exist; castor prove --all --results "
         "tests/data/proofs.txt --write tests/data/proofs.txt writes it again";
  EXPECT_EQ(known->text(), prover.met().text()) << "the file lacks results: write it again";
}

}  // namespace
}  // namespace castor::prove
