// A scan that begins anew as long as it has handed out nothing, for implementations of Table::Scan.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cellar/table.h"

namespace cellar {

class RestartingScanner : public Scanner {
 public:
  // Opens the scan again after the one before has ended with `failed`, for the attempt-th time from
  // 0; returns `failed` when that is no use.
  using Reopen = std::function<Result<std::unique_ptr<Scanner>>(const Status& failed, int attempt)>;

  RestartingScanner(std::unique_ptr<Scanner> scan, Reopen reopen)
      : reopen_(std::move(reopen)), scan_(std::move(scan)) {}

  EndReason end_reason() const override { return scan_->end_reason(); }
  std::string resume_token() const override { return scan_->resume_token(); }
  uint64_t rows_examined() const override { return scan_->rows_examined(); }

 protected:
  Result<const RowSet*> DoNext() override {
    for (int attempt = 0;; ++attempt) {
      const RowSet* rows = scan_->NextBatch();
      if (rows != nullptr || scan_->status().ok()) {
        handed_out_ |= rows != nullptr;
        return rows;
      }
      if (handed_out_) return scan_->status();
      CELLAR_TRY_ASSIGN(scan_, reopen_(scan_->status(), attempt));
    }
  }

 private:
  Reopen reopen_;                  // may keep what the scan lives by: goes last
  std::unique_ptr<Scanner> scan_;  // never null
  bool handed_out_ = false;
};

}  // namespace cellar
