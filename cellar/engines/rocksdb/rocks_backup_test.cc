// What a backup says of itself. Making, verifying and restoring: tests/engine_contract.
#include "cellar/engines/rocksdb/rocks_backup.h"

#include <gtest/gtest.h>

namespace cellar::engines {
namespace {

// docs/formats/backup.md
constexpr std::string_view kGolden =
    "cellar backup 1\n"
    "store 000102030405060708090a0b0c0d0e0f\n"
    "format 1\n"
    "change 4711\n"
    "time 1767225600\n"
    "program 0.1.0\n"
    "check ff0d58cd\n";

BackupNote Example() {
  BackupNote note;
  for (uint8_t i = 0; i < 16; ++i) note.store.store_id[i] = i;
  note.store.format_version = 1;
  note.change = 4711;
  note.unix_seconds = 1767225600;
  note.program = "0.1.0";
  return note;
}

TEST(BackupNote, HasTheDocumentedText) { EXPECT_EQ(EncodeBackupNote(Example()), kGolden); }

TEST(BackupNote, ReadsAsItWasWritten) {
  const Result<BackupNote> note = ParseBackupNote(kGolden);
  ASSERT_TRUE(note.ok()) << note.status().ToString();
  EXPECT_EQ(note->store, Example().store);
  EXPECT_EQ(note->change, 4711u);
  EXPECT_EQ(note->unix_seconds, 1767225600);
  EXPECT_EQ(note->program, "0.1.0");
}

TEST(BackupNote, EveryTruncationAndEveryOtherByteIsNoticed) {
  for (size_t size = 0; size < kGolden.size(); ++size) {
    EXPECT_EQ(ParseBackupNote(kGolden.substr(0, size)).status().code(), Code::kCorruption) << size;
  }
  for (size_t at = 0; at < kGolden.size(); ++at) {
    std::string text(kGolden);
    text[at] ^= 1;
    EXPECT_FALSE(ParseBackupNote(text).ok()) << at;
  }
}

TEST(BackupNote, ANewerVersionIsRefusedAsSuch) {
  EXPECT_EQ(ParseBackupNote("cellar backup 2\nanything").status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace cellar::engines
