// A session over an engine in memory, for the tests of this layer.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cellar/kv/memory_engine.h"
#include "cellar/session/session.h"

namespace cellar::session {

// Keeps rows as text, columns joined by "|".
class TextSink : public ResultSink {
 public:
  std::vector<std::string> rows;
  std::vector<std::string> notices;
  std::vector<Type> types;
  Session* session = nullptr;

  Status OnColumns(std::span<const ResultColumn> columns) override {
    types.clear();
    for (const ResultColumn& column : columns) types.push_back(column.type);
    return Status();
  }
  Status OnRows(const RowBatch& batch) override {
    for (size_t row = 0; row < batch.size(); ++row) {
      std::string& line = rows.emplace_back();
      for (size_t column = 0; column < batch.num_columns(); ++column) {
        if (column > 0) line += '|';
        if (batch.column(column).IsNull(row)) continue;
        session->AppendText(batch.column(column).Get(row), types[column], &line);
      }
    }
    return Status();
  }
  Status OnComplete(std::string_view) override { return Status(); }
  Status OnEmptyQuery() override { return Status(); }
  Status OnNotice(const Notice& notice) override {
    notices.push_back(notice.message);
    return Status();
  }
  Status OnParameter(std::string_view, std::string_view) override { return Status(); }
  Status OnNotification(int32_t, std::string_view, std::string_view) override { return Status(); }
  Status OnCopyIn(int, bool) override { return Status(); }
  Result<bool> ReadCopyData(std::string*) override { return false; }
  Status OnCopyOut(int, bool) override { return Status(); }
  Status OnCopyData(std::string_view) override { return Status(); }
  Status OnCopyOutEnd() override { return Status(); }
};

class TestSession {
 public:
  explicit TestSession(DatabaseOptions options = {}) {
    Result<std::unique_ptr<Database>> database = Database::Open(kv::MakeMemoryEngine(), options);
    EXPECT_TRUE(database.ok()) << database.status().ToString();
    database_ = std::move(*database);
    session_ = Open();
  }

  // A test that would wait for itself is told so.
  std::unique_ptr<Session> Open(SessionOptions options = {}) {
    options.settings.emplace_back("lock_timeout", "5s");
    Result<std::unique_ptr<Session>> session = Session::Open(database_.get(), options);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return std::move(*session);
  }
  // Rows of all statements; a failure fails the test.
  std::vector<std::string> Run(std::string_view text) {
    TextSink sink;
    const Status status = RunIn(session_.get(), text, &sink);
    EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
    return sink.rows;
  }
  Status Try(std::string_view text) {
    TextSink sink;
    return RunIn(session_.get(), text, &sink);
  }
  static Status RunIn(Session* session, std::string_view text, TextSink* sink) {
    sink->session = session;
    return session->ExecuteSimple(text, sink);
  }
  kv::Engine* engine() { return database_->engine(); }
  Database* database() { return database_.get(); }

 private:
  std::unique_ptr<Database> database_;
  std::unique_ptr<Session> session_;
};

// All records of a store, which is opened anew with others of them, as after a restart.
class StoredRecords {
 public:
  using Records = std::map<std::string, std::string>;

  ~StoredRecords() { Close(); }
  Status Open(const Records& records) {
    Close();
    std::unique_ptr<kv::Engine> engine = kv::MakeMemoryEngine();
    const std::unique_ptr<kv::Transaction> writer = engine->Begin();
    for (const auto& [key, value] : records) CELLAR_TRY(writer->Put(key, value));
    CELLAR_TRY(writer->Commit().status());
    CELLAR_TRY_ASSIGN(database_, Database::Open(std::move(engine), {}));
    CELLAR_TRY_ASSIGN(session_, Session::Open(database_.get(), {}));
    return Status();
  }
  void Close() {
    session_.reset();
    database_.reset();
  }
  Records Dump() {
    Records out;
    const std::unique_ptr<kv::Transaction> reader = database_->engine()->Begin();
    const Result<std::unique_ptr<kv::Cursor>> cursor = reader->Scan("", "\xff");
    EXPECT_TRUE(cursor.ok());
    kv::Block block;
    while (true) {
      const Result<bool> more = (*cursor)->NextBlock(&block);
      EXPECT_TRUE(more.ok());
      if (!more.ok() || !*more) return out;
      for (size_t i = 0; i < block.size(); ++i) out[std::string(block.key(i))] = block.value(i);
    }
  }

 protected:
  std::unique_ptr<Database> database_;
  std::unique_ptr<Session> session_;
};

}  // namespace cellar::session
