// SPDX-License-Identifier: Apache-2.0
// The file of results: its form, and that an altered result is found.
#include <gtest/gtest.h>

#include "tools/prove/query/run.hpp"
#include "tools/prove/term/canonical.hpp"

namespace castor::prove {
namespace {

TEST(Results, ReadWhatTheyWrite) {
  Results results;
  results.set(0x0123456789abcdef, {Status::proved, false});
  results.set(0x1, {Status::identity, true});
  const Result<Results> read = Results::parse(results.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), 2u);
  EXPECT_EQ(read->find(0x0123456789abcdef)->status, Status::proved);
  EXPECT_FALSE(read->find(0x0123456789abcdef)->is_costly);
  EXPECT_EQ(read->find(1)->status, Status::identity);
  EXPECT_TRUE(read->find(1)->is_costly);
  EXPECT_FALSE(read->find(2));
}

TEST(Results, BadLinesAreRefusedWithTheirNumber) {
  for (const char* line : {"0123456789abcdef", "0123456789abcdef w", "0123456789abcde p",
                           "0123456789abcdeg p", "0123456789abcdef  p", "x"}) {
    const Result<Results> read = Results::parse(std::string("# comment\n") + line + "\n");
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_text);
    EXPECT_EQ(read.error().message.find("line 2: found '"), 0u) << read.error().message;
  }
}

/// u8 to i16, with a lane program that a test has spoilt.
Subject spoilt_subject() {
  Subject subject = *subject_of(Conversion{ElementType::u8, ElementType::i16, {}});
  subject.tamper = [](jit::LaneProgram& program) {
    program.sources[0].element = ElementType::i8;  // extended by the sign
  };
  return subject;
}

TEST(Results, AnAlteredResultIsFoundByTheSampleThatDrawsIt) {
  const Subject subject = spoilt_subject();
  Terms terms;
  const Result<Query> query = query_of(subject, jit::Tier::avx2, terms);
  ASSERT_TRUE(query);
  Results altered;
  altered.set(canonical_hash(query->is_wrong), {Status::proved, false});
  size_t reports = 0;
  const auto report = [&](const Finding& finding) {
    ++reports;
    EXPECT_EQ(finding.verdict.status, Status::wrong);
  };
  Prover believing(altered, {}, [](uint64_t, const Results::Entry&) { return false; });
  believing.prove(subject, jit::Tier::avx2, report);
  EXPECT_EQ(believing.contradictions(), 0u);
  Prover doubting(altered, {}, sample_of(1, 1));
  doubting.prove(subject, jit::Tier::avx2, report);
  EXPECT_EQ(doubting.contradictions(), 1u);
  EXPECT_EQ(reports, 1u);
}

TEST(Results, ASampleEndsWithItsSteps) {
  const Subject subject = spoilt_subject();
  Terms terms;
  const Result<Query> query = query_of(subject, jit::Tier::avx2, terms);
  ASSERT_TRUE(query);
  Results known;
  known.set(canonical_hash(query->is_wrong), {Status::proved, false});
  Prover prover(known, {}, sample_of(1, 1), 0);
  prover.prove(subject, jit::Tier::avx2, [](const Finding&) { ADD_FAILURE(); });
  EXPECT_EQ(prover.tally().decided, 0u);
}

TEST(Results, WhatWrapsToFewBitsFollowsFromMore) {
  const ConvertOptions wrap = {.overflow = Overflow::wrap};
  const Result<Subject> subject = subject_of(Conversion{ElementType::f64, ElementType::u8, wrap});
  ASSERT_TRUE(subject);
  Terms terms;
  const Result<Query> query = query_of(*subject, jit::Tier::avx512, terms);
  ASSERT_TRUE(query);
  int asked = 0;
  const Verdict verdict = decide(*query, {}, [&](const Query& wider) {
    ++asked;
    EXPECT_EQ(wider.computed.width(), 32);
    EXPECT_EQ(wider.specified.width(), 32);
    return true;
  });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(verdict.status, Status::proved);
}

TEST(Results, SeedsDrawDifferentSamplesOfTheExpectedSize) {
  const Results::Entry cheap = {Status::proved, false}, costly = {Status::proved, true};
  const Prover::Again one = sample_of(1, 10), two = sample_of(2, 10);
  size_t drawn = 0, drawn_costly = 0, in_both = 0;
  for (uint64_t hash = 0; hash < 10'000; ++hash) {
    drawn += one(hash, cheap);
    drawn_costly += one(hash, costly);
    in_both += one(hash, cheap) && two(hash, cheap);
  }
  EXPECT_NEAR(static_cast<double>(drawn), 1'000, 150);
  EXPECT_NEAR(static_cast<double>(drawn_costly), 20, 15);
  EXPECT_NEAR(static_cast<double>(in_both), 100, 60);
  EXPECT_FALSE(one(0, {Status::open, false}));
}

}  // namespace
}  // namespace castor::prove
