// CHECK finds what is planted in pages and in the delta over them, goes on behind it, and reads
// that meet it say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cellar/base/crc32c.h"
#include "cellar/codec/patch.h"
#include "cellar/table/keys_dump.h"
#include "cellar/table/pages.h"
#include "cellar/table/sealer.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kRows = 150;
constexpr int kFirstId = 1000;  // all keys are of one length
// docs/formats/page.md
constexpr size_t kFormatAt = 6, kChecksumAt = 10;
// Of a page's bytes each of the first so many is damaged, of the others every kFlipStep-th.
constexpr size_t kFlipAll = 120, kFlipStep = 5;
size_t NextFlip(size_t at) { return at < kFlipAll ? at + 1 : at + kFlipStep; }

struct StoredPage {
  std::string key, boundary, bytes;
};

// Pages that are keyed by an integer chunk, or by a key chunk.
class CheckPagesTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    TableDescriptor table;
    table.name = "t";
    table.layout = catalog::Layout::kPages;
    table.columns = {MakeColumn(1, "id", GetParam() ? TypeId::kInt4 : TypeId::kText, true),
                     MakeColumn(2, "a", TypeId::kText), MakeColumn(3, "u", TypeId::kInt4),
                     MakeColumn(4, "n", TypeId::kNumeric), MakeColumn(5, "f", TypeId::kFloat8)};
    table.indexes = {MakePrimary("t_pkey", {{1}}), MakeIndex("t_a_idx", {{2}}, false, {4}),
                     MakeIndex("t_u_key", {{3}}, true)};
    table_ = store_.Create(table);
    for (int i = 0; i < kRows; ++i) rows_.push_back(RowAt(i));
    auto transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    Must(InsertAll(&access, table_, rows_));
    Must(transaction->Commit());
    Seal();
    ASSERT_GE(Pages().size(), 4u);
  }

  static Row RowAt(int i) {
    return {std::to_string(kFirstId + i), "value " + std::to_string(i * 37 % 101),
            std::to_string(i * 2), std::to_string(i) + ".50",
            i % 9 == 0 ? Cell() : Cell(std::to_string(i) + ".25")};
  }
  void Seal() {
    Sealer sealer(store_.engine(), store_.tables());
    SealOptions options;
    options.page_bytes = 600;
    ASSERT_TRUE(Must(sealer.SealAll(table_, options, nullptr)).done);
  }
  const CompiledTable& Compiled() { return *Must(CompiledTable::Of(*table_)); }

  std::vector<StoredPage> Pages() {
    const codec::KeyRange range = codec::PrefixRange(Compiled().page_prefix());
    auto transaction = store_.engine()->Begin();
    std::unique_ptr<kv::Cursor> cursor = Must(transaction->Scan(range.start, range.end));
    std::vector<StoredPage> pages;
    kv::Block block;
    while (Must(cursor->NextBlock(&block))) {
      for (size_t i = 0; i < block.size(); ++i) {
        StoredPage& page = pages.emplace_back();
        page.key = block.key(i);
        page.boundary = Must(BoundaryOf(Compiled(), page.key));
        page.bytes = block.value(i);
      }
    }
    return pages;
  }
  void Write(const std::string& key, const std::optional<std::string>& value) {
    kv::TransactionOptions options;
    options.durable = false;
    auto transaction = store_.engine()->Begin(options);
    Must(value.has_value() ? transaction->Put(key, *value) : transaction->Delete(key));
    Must(transaction->Commit());
  }
  std::string RefOf(int i) {
    RowBatch batch = BatchOf(LivingTypes(*table_), {RowAt(i)});
    const IndexCodec& primary = Compiled().primary();
    std::string ref;
    codec::AppendKeyFields(batch, 0, primary.key_positions, primary.key_columns, &ref);
    return ref;
  }
  // As findings show it.
  static std::string DescribeKeyOf(int i) {
    const std::string id = std::to_string(kFirstId + i);
    return GetParam() ? id : "'" + id + "'";
  }
  std::string RowKeyOf(int i) {
    std::string key;
    AppendRowKey(Compiled().primary(), RefOf(i), &key);
    return key;
  }
  std::string PageKeyOf(std::string_view boundary) {
    std::string key;
    AppendPageKey(Compiled(), boundary, &key);
    return key;
  }
  std::string EntryKeyOf(size_t index, const Row& row, int i) {
    RowBatch batch = BatchOf(LivingTypes(*table_), {row});
    std::string key;
    Compiled().indexes()[index].AppendKey(batch, 0, RefOf(i), &key);
    return key;
  }
  // The place of the first row of a page among all.
  static int FirstRowOf(const StoredPage& page, const std::vector<StoredPage>& pages) {
    int first = 0;
    for (const StoredPage& other : pages) {
      if (other.key == page.key) return first;
      codec::PageView view;
      Must(view.Parse(other.bytes));
      first += static_cast<int>(view.rows());
    }
    return first;
  }
  static void FixChecksum(std::string* page) {
    const std::string_view all = *page;
    const uint32_t sum =
        Crc32c(all.substr(kChecksumAt + sizeof(uint32_t)), Crc32c(all.substr(0, kChecksumAt)));
    std::memcpy(page->data() + kChecksumAt, &sum, sizeof sum);
  }
  // With a fence of the same length.
  static std::string WithFence(const std::string& page, std::string_view fence) {
    codec::PageView view;
    Must(view.Parse(page));
    EXPECT_EQ(view.fence().size(), fence.size());
    std::string out = page;
    std::memcpy(out.data() + (view.fence().data() - page.data()), fence.data(), fence.size());
    FixChecksum(&out);
    return out;
  }
  static std::string PatchOf(uint32_t column, Datum value, TypeId type) {
    std::string patch;
    codec::BeginPatch(&patch);
    codec::AppendPatchColumn(ColumnId{column}, value, MakeType(type), &patch);
    return patch;
  }

  std::vector<std::string> Findings(uint64_t* rows = nullptr) {
    auto transaction = store_.engine()->Begin();
    return Check(table_, transaction.get(), rows);
  }
  // A directory of its own: nothing is known of the pages yet.
  Result<std::vector<Row>> Read(const ScanSpec& spec) {
    auto transaction = store_.engine()->Begin();
    TableStore store(store_.engine());
    Access access(transaction.get(), nullptr, &store);
    CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, access.Scan(spec));
    std::vector<Row> rows;
    RowBatch batch;
    while (true) {
      CELLAR_TRY_ASSIGN(const bool more, reader->Next(&batch));
      if (!more) return rows;
      for (Row& row : RowsOf(batch)) rows.push_back(std::move(row));
    }
  }
  Result<std::vector<Row>> ReadAllRows(bool reverse = false) {
    ScanSpec spec = SpecOf(table_, table_->primary());
    spec.reverse = reverse;
    return Read(spec);
  }
  Result<std::vector<Row>> ReadByIndex() { return Read(SpecOf(table_, table_->indexes[2])); }
  Result<std::vector<Row>> ReadRow(int i) {
    const std::string id = std::to_string(kFirstId + i);
    const Datum key = GetParam() ? Datum::Int(kFirstId + i) : Datum::Bytes(id);
    return Read(SpecOf(table_, table_->primary(), {PointOf({key})}));
  }
  static void ExpectDamaged(const Status& status) {
    EXPECT_EQ(status.code(), Code::kCorruption);
    EXPECT_EQ(status.sqlstate(), "XX001");
    EXPECT_THAT(std::string(status.message()), HasSubstr("table \"t\""));
  }
  static void ExpectDamagedPage(const Status& status) {
    ExpectDamaged(status);
    EXPECT_THAT(std::string(status.message()), HasSubstr("page /"));
  }
  static std::string Finding(std::string_view text) { return "table t: " + std::string(text); }

  Store store_;
  TablePtr table_;
  std::vector<Row> rows_;
};

TEST_P(CheckPagesTest, HealthyTableHasNoFindings) {
  uint64_t count = 0;
  EXPECT_THAT(Findings(&count), IsEmpty());
  EXPECT_EQ(count, static_cast<uint64_t>(kRows));
  // A row of each kind over the pages.
  auto transaction = store_.engine()->Begin();
  Access access(transaction.get(), nullptr, store_.tables());
  const std::string gone = RefOf(7);
  const std::string_view gone_view = gone;
  Must(access.Delete(table_, {&gone_view, 1}, BatchOf(LivingTypes(*table_), {RowAt(7)})));
  Row changed = RowAt(8);
  changed[1] = "changed";
  const std::string ref = RefOf(8);
  const std::string_view view = ref;
  Must(access.Update(table_, {&view, 1}, BatchOf(LivingTypes(*table_), {RowAt(8)}),
                     BatchOf(LivingTypes(*table_), {changed})));
  Must(
      InsertAll(&access, table_, {{"2000", "new", "5000", "1", "1"}, {"999", "a", "1", "1", "1"}}));
  Must(transaction->Put(RowKeyOf(9), PatchOf(5, Datum::Double(1.5), TypeId::kFloat8)));
  Must(transaction->Commit());
  EXPECT_THAT(Findings(&count), IsEmpty());
  EXPECT_EQ(count, static_cast<uint64_t>(kRows) + 1);
}

TEST_P(CheckPagesTest, AFlippedBitAnywhereInAPageIsFound) {
  const std::vector<StoredPage> pages = Pages();
  const StoredPage& page = pages[1];
  const int first = FirstRowOf(page, pages);
  const int end = FirstRowOf(pages[2], pages);
  for (size_t at = 0; at < page.bytes.size(); at = NextFlip(at)) {
    SCOPED_TRACE(at);
    std::string flipped = page.bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    Write(page.key, flipped);
    uint64_t count = 0;
    // One finding, whatever became unreadable: entries of the page's rows are not held against it.
    ASSERT_THAT(
        Findings(&count),
        ElementsAre(AllOf(HasSubstr("table t: page /"),
                          HasSubstr(fmt::format("keys from ({}) to ({})", DescribeKeyOf(first),
                                                DescribeKeyOf(end))))));
    EXPECT_EQ(count, static_cast<uint64_t>(kRows - (end - first)));
    // No read answers other rows.
    for (const Result<std::vector<Row>>& rows :
         {ReadAllRows(), ReadAllRows(true), ReadRow(first), ReadByIndex()}) {
      ExpectDamaged(rows.status());
    }
    if (HasFailure()) return;
  }
}

// As if a writer had made it so: whatever is found, nothing crashes and the check comes to its end.
TEST_P(CheckPagesTest, AFlippedBitUnderARightChecksumDoesNoHarm) {
  const StoredPage page = Pages()[1];
  size_t found = 0, flips = 0;
  for (size_t at = 0; at < page.bytes.size(); at = NextFlip(at)) {
    if (at >= kChecksumAt && at < kChecksumAt + sizeof(uint32_t)) continue;
    SCOPED_TRACE(at);
    std::string flipped = page.bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    FixChecksum(&flipped);
    Write(page.key, flipped);
    ++flips;
    found += Findings().empty() ? 0 : 1;
    for (const Result<std::vector<Row>>& rows :
         {ReadAllRows(), ReadAllRows(true), ReadRow(25), ReadByIndex()}) {
      if (!rows.ok()) ExpectDamaged(rows.status());
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(found, flips / 2);
}

TEST_P(CheckPagesTest, ATruncatedPageIsFound) {
  const StoredPage page = Pages()[1];
  for (size_t size = 0; size < page.bytes.size(); size += 7) {
    Write(page.key, page.bytes.substr(0, size));
    ASSERT_THAT(Findings(), ElementsAre(HasSubstr("table t: page /"))) << size;
    ExpectDamagedPage(ReadAllRows().status());
  }
}

TEST_P(CheckPagesTest, AMissingPageIsFound) {
  const std::vector<StoredPage> pages = Pages();
  for (size_t place = 0; place < pages.size(); ++place) {
    SCOPED_TRACE(place);
    const StoredPage& page = pages[place];
    Write(page.key, std::nullopt);
    EXPECT_THAT(Findings(), ElementsAre(HasSubstr("lie in no page")));
    const int first = FirstRowOf(page, pages);
    ExpectDamagedPage(ReadRow(first).status());
    ExpectDamagedPage(ReadAllRows().status());
    ExpectDamagedPage(ReadAllRows(true).status());
    ExpectDamaged(ReadByIndex().status());
    Write(page.key, page.bytes);
  }
  EXPECT_THAT(Findings(), IsEmpty());
}

TEST_P(CheckPagesTest, AnOverlappingPageIsFound) {
  const std::vector<StoredPage> pages = Pages();
  const int middle = FirstRowOf(pages[1], pages) + 5;
  Write(PageKeyOf(RefOf(middle)), pages[1].bytes);
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings, Contains(HasSubstr("lies behind the next page")));
  EXPECT_THAT(findings,
              Contains(HasSubstr(fmt::format("5 of its rows do not belong there, the first is ({})",
                                             DescribeKeyOf(middle - 5)))));
  ExpectDamagedPage(ReadAllRows().status());
  ExpectDamagedPage(ReadAllRows(true).status());
}

TEST_P(CheckPagesTest, AWrongFenceIsFound) {
  const std::vector<StoredPage> pages = Pages();
  const StoredPage& page = pages[1];
  const int end = FirstRowOf(pages[2], pages);
  Write(page.key, WithFence(page.bytes, RefOf(end - 3)));
  std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings,
              Contains(HasSubstr(fmt::format("keys from ({}) to ({}) lie in no page",
                                             DescribeKeyOf(end - 3), DescribeKeyOf(end)))));
  EXPECT_THAT(findings, Contains(HasSubstr("3 of its rows do not belong there")));
  ExpectDamagedPage(ReadRow(end - 2).status());
  ExpectDamagedPage(ReadAllRows().status());
  ExpectDamagedPage(ReadAllRows(true).status());

  Write(page.key, WithFence(page.bytes, RefOf(end + 3)));
  EXPECT_THAT(Findings(), Contains(AllOf(HasSubstr("table t: page /"),
                                         HasSubstr("lies behind the next page"))));
  ExpectDamagedPage(ReadAllRows().status());

  Write(page.key, WithFence(page.bytes, page.boundary));
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("it ends before it begins")));
  ExpectDamagedPage(ReadRow(end - 1).status());
  ExpectDamagedPage(ReadAllRows().status());
}

TEST_P(CheckPagesTest, ALastPageWithAFenceIsFound) {
  const std::vector<StoredPage> pages = Pages();
  Write(pages.back().key, std::nullopt);
  const int first = FirstRowOf(pages.back(), pages);
  EXPECT_THAT(Findings(),
              ElementsAre(HasSubstr(fmt::format("keys from ({}) on lie in no page, behind page /",
                                                DescribeKeyOf(first)))));
}

TEST_P(CheckPagesTest, RowsOutsideOfTheirPageAreFound) {
  const std::vector<StoredPage> pages = Pages();
  const int first = FirstRowOf(pages[1], pages);
  // The page moves two rows upwards, and the one before it reaches up to there.
  Write(pages[1].key, std::nullopt);
  Write(PageKeyOf(RefOf(first + 2)), pages[1].bytes);
  ASSERT_TRUE(!pages[0].bytes.empty());
  Write(pages[0].key, WithFence(pages[0].bytes, RefOf(first + 2)));
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings,
              Contains(HasSubstr(fmt::format("2 of its rows do not belong there, the first is ({})",
                                             DescribeKeyOf(first)))));
  EXPECT_THAT(findings, Contains(HasSubstr("entry without a row")));
}

TEST_P(CheckPagesTest, APageOfUnknownFormatIsFound) {
  const std::vector<StoredPage> pages = Pages();
  StoredPage page = pages[1];
  page.bytes[kFormatAt] = 99;
  FixChecksum(&page.bytes);
  Write(page.key, page.bytes);
  EXPECT_THAT(Findings(), ElementsAre(AllOf(HasSubstr("table t: page /"),
                                            HasSubstr("it is of unknown row format 99"))));
  ExpectDamagedPage(ReadAllRows().status());
  ExpectDamagedPage(ReadRow(FirstRowOf(pages[1], pages)).status());
  // Other keys are not concerned.
  EXPECT_EQ(Must(ReadRow(0)), std::vector<Row>{RowAt(0)});
  EXPECT_EQ(Must(ReadRow(kRows - 1)), std::vector<Row>{RowAt(kRows - 1)});
}

TEST_P(CheckPagesTest, AKeyThatIsNoPagesIsFound) {
  Write(Compiled().page_prefix() +
            "\x60"
            "ab",
        "x");
  EXPECT_THAT(Findings(), Contains(HasSubstr("a page has key")));
}

TEST_P(CheckPagesTest, KeysUnderReservedIdsAreFound) {
  for (const uint32_t part : {codec::kDirectoryOfPrimary, codec::kOverflowOfPrimary}) {
    std::string key = codec::TablePrefix(table_->id, IndexId{table_->primary().id.value + part});
    codec::AppendKeyInt(1, &key);
    Write(key, "x");
    EXPECT_THAT(Findings(), ElementsAre(part == codec::kDirectoryOfPrimary
                                            ? HasSubstr("keys of no index")
                                            : HasSubstr("1 pieces of long values are stored")));
    Write(key, std::nullopt);
  }
}

TEST_P(CheckPagesTest, APatchOverNothingIsFound) {
  const std::string patch = PatchOf(5, Datum::Double(1), TypeId::kFloat8);
  Write(RowKeyOf(2000), patch);
  EXPECT_THAT(Findings(), ElementsAre(AllOf(HasSubstr("table t: the patch of row /"),
                                            HasSubstr("it is over no row of a page"))));
  ExpectDamaged(ReadRow(2000).status());
  ExpectDamaged(ReadAllRows().status());
  ExpectDamaged(ReadAllRows(true).status());
  // Other keys are not concerned.
  EXPECT_EQ(Must(ReadRow(3)), std::vector<Row>{RowAt(3)});
  // Nor is a table without pages at all.
  for (const StoredPage& page : Pages()) Write(page.key, std::nullopt);
  EXPECT_THAT(Findings(), Contains(HasSubstr("it is over no row of a page")));
  ExpectDamaged(ReadAllRows().status());
}

TEST_P(CheckPagesTest, DamagedEntriesOfTheDeltaAreFound) {
  struct Case {
    std::string value, finding;
  };
  std::string twice = PatchOf(5, Datum::Double(1), TypeId::kFloat8);
  codec::AppendPatchColumn(ColumnId{5}, Datum::Double(2), MakeType(TypeId::kFloat8), &twice);
  for (const Case& damage : {
           Case{"\x05", "it is neither a row nor a patch"},
           Case{"\x01", "row /"},
           Case{PatchOf(77, Datum::Int(1), TypeId::kInt4), "it holds unknown column 77"},
           Case{PatchOf(5, Datum::Bytes("abc"), TypeId::kText), "column f: "},
           Case{PatchOf(4, Datum::Bytes("abc"), TypeId::kText), "column n: "},
           Case{twice, "it holds column f twice"},
           Case{twice.substr(0, twice.size() - 1), "a patch is broken"},
           Case{GetParam() ? PatchOf(1, Datum::Int(5), TypeId::kInt4)
                           : PatchOf(1, Datum::Bytes("x"), TypeId::kText),
                "it changes the primary key"},
       }) {
    SCOPED_TRACE(damage.finding);
    Write(RowKeyOf(25), damage.value);
    EXPECT_THAT(Findings(), Contains(HasSubstr(damage.finding)));
    for (const Result<std::vector<Row>>& rows : {ReadAllRows(), ReadRow(25)}) {
      if (!rows.ok()) ExpectDamaged(rows.status());
    }
  }
  Write(RowKeyOf(25), std::nullopt);
  std::string key = RowKeyOf(25);
  key.pop_back();
  Write(key, "");
  EXPECT_THAT(Findings(), Contains(HasSubstr("key does not end in column group 0")));
}

TEST_P(CheckPagesTest, EntriesWithoutRowsAndRowsWithoutEntriesAreFound) {
  Write(EntryKeyOf(1, RowAt(30), 30), std::nullopt);
  Row other = RowAt(31);
  other[1] = "other";
  Write(EntryKeyOf(1, other, 31), "");
  Write(EntryKeyOf(1, RowAt(500), 500), "");
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings, Contains(fmt::format("index t_a_idx of table t: no entry for row ({})",
                                             DescribeKeyOf(30))));
  EXPECT_THAT(findings,
              Contains(HasSubstr(fmt::format("is not that of its row ({})", DescribeKeyOf(31)))));
  EXPECT_THAT(findings, Contains(HasSubstr("index t_a_idx of table t: entry without a row")));
  EXPECT_THAT(findings, Contains(fmt::format("index t_a_idx of table t: {} entries for {} rows",
                                             kRows + 1, kRows)));
}

TEST_P(CheckPagesTest, ATombstoneWithoutItsEntriesDeletedIsFound) {
  Write(RowKeyOf(30), "");
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings, Contains(HasSubstr("index t_a_idx of table t: entry without a row")));
  EXPECT_THAT(findings, Contains(HasSubstr("index t_u_key of table t: entry without a row")));
  ExpectDamaged(ReadByIndex().status());
}

TEST_P(CheckPagesTest, DamageInOnePlaceDoesNotHideDamageInAnother) {
  const std::vector<StoredPage> pages = Pages();
  std::string flipped = pages[1].bytes;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  Write(pages[1].key, flipped);
  const int first = FirstRowOf(pages[1], pages);
  // In the page, where it cannot be judged, and behind it.
  Write(EntryKeyOf(1, RowAt(first), first), std::nullopt);
  Write(EntryKeyOf(1, RowAt(kRows - 1), kRows - 1), std::nullopt);
  Write(RowKeyOf(first + 1), "\x05");
  const std::vector<std::string> findings = Findings();
  EXPECT_THAT(findings, Contains(HasSubstr("its checksum is wrong")));
  EXPECT_THAT(findings, Contains(HasSubstr("it is neither a row nor a patch")));
  EXPECT_THAT(findings, Contains(fmt::format("index t_a_idx of table t: no entry for row ({})",
                                             DescribeKeyOf(kRows - 1))));
  EXPECT_THAT(findings, Not(Contains(HasSubstr(fmt::format("row ({})", DescribeKeyOf(first))))));
  EXPECT_THAT(findings, Not(Contains(HasSubstr("entry without a row"))));
}

TEST_P(CheckPagesTest, RepairDoesNotTakeRowsOfDamagedPagesForGone) {
  const std::vector<StoredPage> pages = Pages();
  for (const size_t place : {1, 2}) {
    std::string flipped = pages[place].bytes;
    flipped.back() = static_cast<char>(flipped.back() ^ 1);
    Write(pages[place].key, flipped);
  }
  const int lost = FirstRowOf(pages[3], pages) - FirstRowOf(pages[1], pages);
  auto transaction = store_.engine()->Begin();
  RepairReport report;
  Must(RepairTable(table_, transaction.get(), CheckOptions(), &report));
  EXPECT_THAT(report.done, IsEmpty());
  EXPECT_THAT(report.left, Contains(fmt::format("table t: not counted, 2 of its pages do not read, "
                                                "and {} rows are elsewhere",
                                                kRows - lost)));
}

TEST_P(CheckPagesTest, TheSealerDoesNotPackDamagedPages) {
  const std::vector<StoredPage> pages = Pages();
  std::string flipped = pages[1].bytes;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  Write(pages[1].key, flipped);
  Write(RowKeyOf(FirstRowOf(pages[1], pages)), "");
  Sealer sealer(store_.engine(), store_.tables());
  ExpectDamagedPage(sealer.SealAll(table_, SealOptions(), nullptr).status());
  const std::vector<StoredPage> after = Pages();
  ASSERT_EQ(after.size(), pages.size());
  EXPECT_EQ(after[1].bytes, flipped);
}

// ---- Keys for people ----

TEST_P(CheckPagesTest, DumpsSayWhatLiesInPagesAndOverThem) {
  Write(RowKeyOf(3), "");
  std::string patch = PatchOf(5, Datum::Double(123456.5), TypeId::kFloat8);
  codec::AppendPatchColumn(ColumnId{2}, Datum(), MakeType(TypeId::kText), &patch);
  Write(RowKeyOf(4), patch);
  StoredPage damaged = Pages().back();
  damaged.bytes.back() = static_cast<char>(damaged.bytes.back() ^ 1);
  Write(damaged.key, damaged.bytes);
  for (const bool bounds : {false, true}) {
    DumpOptions options;
    options.table = table_->id;
    options.bounds = bounds;
    std::vector<std::string> lines;
    auto transaction = store_.engine()->Begin();
    const DumpTotals totals = Must(DumpKeys(transaction.get(), *store_.catalog()->Current(),
                                            options, [&](const DumpedKey& key) {
                                              lines.push_back(key.ToString());
                                              return Status();
                                            }));
    EXPECT_EQ(totals.unreadable, 0u);
    const std::string id = DescribeKeyOf(4);
    EXPECT_THAT(lines[0], HasSubstr("/cellar/t tombstone t_pkey (id="));
    EXPECT_THAT(lines[1], HasSubstr("/cellar/t patch t_pkey (id=" + id + ", group=0) of f, a  "));
    const std::vector<StoredPage> pages = Pages();
    const std::string second = DescribeKeyOf(FirstRowOf(pages[1], pages));
    const std::string third = DescribeKeyOf(FirstRowOf(pages[2], pages));
    EXPECT_THAT(lines[2], HasSubstr("/cellar/t pages t_pkey to (" + second + "), "));
    EXPECT_THAT(lines[3], HasSubstr("/cellar/t pages t_pkey (id=" + second + ", group=0) to (" +
                                    third + "), "));
    EXPECT_THAT(lines[3],
                HasSubstr(fmt::format(" rows, {} bytes, format ", pages[1].bytes.size())));
    EXPECT_THAT(lines[3], HasSubstr("\n    u: sequence by 2, "));
    EXPECT_THAT(lines[3], HasSubstr("\n    n: "));
    EXPECT_THAT(lines[3], HasSubstr(" NULL"));
    const int first = FirstRowOf(pages[1], pages) * 2, last = FirstRowOf(pages[2], pages) * 2 - 2;
    const auto told = HasSubstr(fmt::format(", {} to {}", first, last));
    if (bounds) {
      EXPECT_THAT(lines[3], told);
    } else {
      EXPECT_THAT(lines[3], Not(told));
    }
    EXPECT_THAT(lines[1 + pages.size()], HasSubstr("to (the end), "));
    EXPECT_THAT(lines[1 + pages.size()], HasSubstr(" DAMAGED page makes no sense: its checksum"));
    // Values of users are in keys alone.
    EXPECT_THAT(lines, Not(Contains(HasSubstr("123456"))));
  }
}

INSTANTIATE_TEST_SUITE_P(Keys, CheckPagesTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return std::string(info.param ? "Int" : "Refs");
                         });

}  // namespace
}  // namespace cellar::table
