#include "cellar/kv/faulty_engine.h"

#include <gtest/gtest.h>

#include "cellar/kv/memory_engine.h"
#include "cellar/kv/store_header.h"

namespace cellar::kv {
namespace {

TEST(FaultyEngine, FailsCommitsAsAskedAndToldApart) {
  Fault next = Fault::kNone;
  FaultyEngine engine(MakeMemoryEngine(), [&](FaultPoint point) {
    return point == FaultPoint::kCommit ? next : Fault::kNone;
  });
  const auto put = [&](Fault fault, std::string_view key) {
    next = fault;
    auto transaction = engine.Begin();
    EXPECT_TRUE(transaction->Put(key, "v").ok());
    return transaction->Commit().status().code();
  };
  EXPECT_EQ(put(Fault::kNone, "a"), Code::kOk);
  EXPECT_EQ(put(Fault::kConflict, "b"), Code::kConflict);
  EXPECT_EQ(put(Fault::kUnknownApplied, "c"), Code::kCommitUnknown);
  EXPECT_EQ(put(Fault::kUnknownLost, "d"), Code::kCommitUnknown);
  EXPECT_EQ(put(Fault::kUnavailable, "e"), Code::kUnavailable);
  std::string found;
  auto reader = engine.inner().Begin({.read_only = true});
  PinnedValue value;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    if (*reader->Get(key, &value)) found += key;
  }
  EXPECT_EQ(found, "ac");
}

TEST(StoreHeader, IsTheDocumentedBytes) {
  StoreHeader header;
  for (uint8_t i = 0; i < 16; ++i) header.store_id[i] = i;
  const std::string bytes = EncodeStoreHeader(header);
  EXPECT_EQ(bytes, std::string("cellar\0\0\0\2\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 26));
  EXPECT_EQ(*ParseStoreHeader(bytes), header);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(ParseStoreHeader(bytes.substr(0, n)).status().code(), Code::kCorruption) << n;
  }
  // What programs of before wrote is read too.
  header.format_version = 1;
  EXPECT_EQ(*ParseStoreHeader(EncodeStoreHeader(header)), header);
  header.format_version = 3;
  EXPECT_EQ(ParseStoreHeader(EncodeStoreHeader(header) + "x").status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace cellar::kv
