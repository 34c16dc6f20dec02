// What a run of the benchmark has found: rows, as a table for people or JSON for programs. PURE but
// for write_json, which writes a file.
#ifndef XCE_BENCH_REPORT_H_
#define XCE_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace xce::bench {

// One figure. Numbers are kept beside the words, so that programs need not read the words.
struct Row {
  std::string id;    // short and stable: what --only takes
  std::string what;  // for people
  double value = 0;  // in `unit`
  std::string unit;
  std::string detail;           // more of the same measurement: "p99 12.1 ms"
  std::string beside;           // what it is measured against, in the same run
  std::optional<double> ratio;  // value / beside
  std::string target;           // of DESIGN; empty: there is none
  std::optional<bool> met;      // unset: no target, or not measured
  std::string bound;            // what keeps it from being better
};

class Report {
 public:
  explicit Report(std::string title) : title_(std::move(title)) {}
  void add(Row row);
  // A row that could not be measured, and why (for example: how to install what is missing).
  void skip(const std::string& id, const std::string& what, const std::string& why);
  bool empty() const { return rows_.empty(); }

  std::string table() const;
  std::string json() const;
  absl::Status write_json(const std::string& path) const;

 private:
  const std::string title_;
  std::vector<Row> rows_;
};

}  // namespace xce::bench

#endif  // XCE_BENCH_REPORT_H_
