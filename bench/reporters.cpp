// SPDX-License-Identifier: Apache-2.0
#include "bench/reporters.hpp"

#include <unistd.h>

#include <vector>

namespace castor::bench {

namespace {

template <class Reporter>
class PlainNames : public Reporter {
 public:
  using Reporter::Reporter;
  void ReportRuns(const std::vector<benchmark::BenchmarkReporter::Run>& runs) override {
    std::vector<benchmark::BenchmarkReporter::Run> renamed = runs;
    for (benchmark::BenchmarkReporter::Run& run : renamed) {
      benchmark::BenchmarkName name;
      name.function_name = run.run_name.function_name;
      run.run_name = name;
    }
    Reporter::ReportRuns(renamed);
  }
};

}  // namespace

std::unique_ptr<benchmark::BenchmarkReporter> make_text_reporter() {
  using Text = benchmark::ConsoleReporter;
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  return std::make_unique<PlainNames<Text>>(terminal ? Text::OO_Color : Text::OO_None);
}

std::unique_ptr<benchmark::BenchmarkReporter> make_json_reporter() {
  return std::make_unique<PlainNames<benchmark::JSONReporter>>();
}

}  // namespace castor::bench
