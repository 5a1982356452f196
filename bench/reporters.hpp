// SPDX-License-Identifier: Apache-2.0
// Google Benchmark's reporters with plain names: without "/iterations:1/manual_time".
#pragma once

#include <benchmark/benchmark.h>

#include <memory>

namespace castor::bench {

/// Lines of text for people; colours only on a terminal.
std::unique_ptr<benchmark::BenchmarkReporter> make_text_reporter();

/// JSON as tools/bench-report reads it.
std::unique_ptr<benchmark::BenchmarkReporter> make_json_reporter();

}  // namespace castor::bench
