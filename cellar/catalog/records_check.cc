#include "cellar/catalog/records_check.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "cellar/catalog/catalog_internal.h"
#include "cellar/codec/key.h"

namespace cellar::catalog {
namespace {

class RecordsCheck {
 public:
  explicit RecordsCheck(kv::Transaction* transaction) : transaction_(transaction) {}

  Status Run() {
    CELLAR_TRY(ReadDescriptors());
    CELLAR_TRY(ReadNames());
    CheckParents();
    CompareNames();
    return CheckIds();
  }

  struct Finding {
    std::string text;
    // What mends it, and in words; without it nothing does.
    std::function<Status(kv::Transaction*)> mend;
    std::string mended;
  };
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  void Find(std::string text) { findings_.push_back({std::move(text), nullptr, ""}); }

  Status ForEach(std::string_view word,
                 const std::function<void(std::string_view, std::string_view)>& visit) {
    const codec::KeyRange range = codec::PrefixRange(codec::SystemPrefix(word));
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                      transaction_->Scan(range.start, range.end, kv::ScanOptions()));
    kv::Block block;
    while (true) {
      CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
      if (!more) return Status();
      for (size_t i = 0; i < block.size(); ++i) visit(block.key(i), block.value(i));
    }
  }

  Status ReadDescriptors() {
    return ForEach("desc", [this](std::string_view key, std::string_view value) {
      Result<AnyDescriptor> object = DecodeAny(key, value, 0);
      std::string_view in = key.substr(codec::SystemPrefix("desc").size());
      const Result<uint64_t> place = codec::TakeKeyUint(&in);
      const bool known = place.ok() && codec::DescriptorKey(*place) == key;
      if (known) greatest_id_ = std::max(greatest_id_, *place);
      if (!object.ok()) {
        Find(fmt::format("{} does not read: {}", codec::PrintKey(key), object.status().message()));
        if (known) unreadable_.insert(*place);
        return;
      }
      const uint64_t id = object->table ? object->table->id.value : object->space->id.value;
      greatest_id_ = std::max(greatest_id_, id);
      if (codec::DescriptorKey(id) != key) {
        Find(fmt::format("{} holds the descriptor of object {}", codec::PrintKey(key), id));
        if (known) unreadable_.insert(*place);
        return;
      }
      if (object->space) {
        spaces_[id] = object->space;
        return;
      }
      tables_[id] = object->table;
      greatest_id_ = std::max(greatest_id_, GreatestIdOf(*object->table));
    });
  }

  Status ReadNames() {
    return ForEach("name", [this](std::string_view key, std::string_view value) {
      std::string_view in = key.substr(codec::SystemPrefix("name").size());
      Result<uint64_t> parent = codec::TakeKeyUint(&in);
      Result<std::string> name =
          parent.ok() ? codec::TakeKeyText(&in) : Result<std::string>(parent.status());
      Result<NameRecord> record = DecodeNameRecord(key, value);
      if (!name.ok() || !in.empty() || !record.ok()) {
        Find(fmt::format("{} does not read", codec::PrintKey(key)));
        return;
      }
      names_[{*parent, std::move(*name)}] = *record;
    });
  }

  bool IsLivingSpace(NamespaceId id) const {
    if (unreadable_.contains(id.value)) return true;  // which was found
    const auto found = spaces_.find(id.value);
    return found != spaces_.end() && found->second->state == ObjectState::kPublic;
  }

  void CheckParents() {
    for (const auto& [id, space] : spaces_) {
      if (space->state != ObjectState::kPublic || space->id == kRootNamespace) continue;
      if (IsLivingSpace(space->parent)) continue;
      Find(fmt::format("namespace {} \"{}\" lies in namespace {}, which is not there", id,
                       space->name, space->parent.value));
    }
    for (const auto& [id, table] : tables_) {
      if (table->state != ObjectState::kPublic) continue;
      if (!IsLivingSpace(table->parent)) {
        Find(fmt::format("relation {} \"{}\" lies in namespace {}, which is not there", id,
                         table->name, table->parent.value));
      }
      for (const ForeignKey& key : table->foreign_keys) {
        const auto other = tables_.find(key.referenced_table.value);
        if (other != tables_.end() && other->second->state == ObjectState::kPublic) continue;
        if (unreadable_.contains(key.referenced_table.value)) continue;
        Find(
            fmt::format("constraint \"{}\" of relation {} \"{}\" references relation {}, which is "
                        "not there",
                        key.name, id, table->name, key.referenced_table.value));
      }
    }
  }

  // What the names should say, by the living descriptors.
  std::map<NameInParent, NameRecord> ExpectedNames() {
    std::map<NameInParent, NameRecord> expected;
    const auto twice = [this](const NameInParent& name, uint64_t first, uint64_t second) {
      Find(fmt::format("objects {} and {} are both named \"{}\" in namespace {}", first, second,
                       name.second, name.first));
    };
    for (const auto& [id, space] : spaces_) {
      if (space->state != ObjectState::kPublic || space->id == kRootNamespace) continue;
      const NameInParent name{space->parent.value, space->name};
      NameRecord& record = expected[name];
      if (record.namespace_id != 0) {
        twice(name, record.namespace_id, id);
      } else {
        record.namespace_id = id;
      }
    }
    for (const auto& [id, table] : tables_) {
      if (table->state != ObjectState::kPublic) continue;
      for (const auto& [name, own] : NamesOf(*table)) {
        NameRecord& record = expected[name];
        if (record.relation_id != 0) {
          twice(name, record.relation_id, id);
          continue;
        }
        record.relation_id = own.relation_id;
        record.is_index = own.is_index;
        record.index = own.index;
      }
    }
    return expected;
  }

  static std::string Describe(const NameRecord& record) {
    std::string out;
    if (record.namespace_id != 0) out = fmt::format("namespace {}", record.namespace_id);
    if (record.relation_id == 0) return out.empty() ? "nothing" : out;
    if (!out.empty()) out += " and ";
    if (record.is_index) out += fmt::format("index {} of ", record.index.value);
    return out + fmt::format("relation {}", record.relation_id);
  }

  void CompareNames() {
    const std::map<NameInParent, NameRecord> expected = ExpectedNames();
    std::map<NameInParent, std::pair<NameRecord, NameRecord>> both;  // stored, expected
    for (const auto& [name, record] : names_) both[name].first = record;
    for (const auto& [name, record] : expected) both[name].second = record;
    for (const auto& [name, records] : both) {
      const NameRecord& stored = records.first;
      NameRecord should = records.second;
      // Whether an object that does not read has the name is not known, so it keeps it.
      if (should.namespace_id == 0 && unreadable_.contains(stored.namespace_id)) {
        should.namespace_id = stored.namespace_id;
      }
      if (should.relation_id == 0 && unreadable_.contains(stored.relation_id)) {
        should.relation_id = stored.relation_id;
        should.is_index = stored.is_index;
        should.index = stored.index;
      }
      if (EncodeNameRecord(stored) == EncodeNameRecord(should)) continue;
      const std::string what = fmt::format("name \"{}\" in namespace {}", name.second, name.first);
      findings_.push_back(
          {fmt::format("{} stands for {} rather than {}", what, Describe(stored), Describe(should)),
           [name = name, should = should](kv::Transaction* transaction) {
             const std::string key = codec::NameKey(NamespaceId{name.first}, name.second);
             return should.empty() ? transaction->Delete(key)
                                   : PutNameRecord(key, should, transaction);
           },
           fmt::format("{} stands for {} now", what, Describe(should))});
    }
  }

  Status CheckIds() {
    kv::PinnedValue value;
    CELLAR_TRY_ASSIGN(bool found, transaction_->Get(IdKey(), &value));
    Result<uint64_t> next = found ? DecodeIdSequence(value.view())
                                  : Result<uint64_t>(CorruptionError("it is not there"));
    if (next.ok() && *next > greatest_id_) return Status();
    if (!unreadable_.empty()) {
      Find(
          "the sequence of ids is damaged, and which ids are in use is not known: there are "
          "descriptors that do not read");
      return Status();
    }
    findings_.push_back(
        {next.ok()
             ? fmt::format("the sequence of ids is at {}, but {} is in use", *next, greatest_id_)
             : fmt::format("the sequence of ids does not read: {}", next.status().message()),
         [least = greatest_id_ + 1](kv::Transaction* transaction) {
           return PutIdSequence(least, transaction);
         },
         fmt::format("the sequence of ids goes on from {}", greatest_id_ + 1)});
    return Status();
  }

  kv::Transaction* transaction_;
  std::map<uint64_t, NamespacePtr> spaces_;
  std::map<uint64_t, TablePtr> tables_;
  std::set<uint64_t> unreadable_;  // ids of descriptors
  std::map<NameInParent, NameRecord> names_;
  uint64_t greatest_id_ = 1;
  std::vector<Finding> findings_;
};

}  // namespace

Status CheckRecords(kv::Transaction* transaction, std::vector<std::string>* findings) {
  RecordsCheck check(transaction);
  CELLAR_TRY(check.Run());
  for (const RecordsCheck::Finding& finding : check.findings()) findings->push_back(finding.text);
  return Status();
}

Status RepairRecords(kv::Transaction* transaction, std::vector<std::string>* done,
                     std::vector<std::string>* left) {
  RecordsCheck check(transaction);
  CELLAR_TRY(check.Run());
  for (const RecordsCheck::Finding& finding : check.findings()) {
    if (finding.mend == nullptr) {
      left->push_back(finding.text);
      continue;
    }
    CELLAR_TRY(finding.mend(transaction));
    done->push_back(finding.mended);
  }
  return Status();
}

}  // namespace cellar::catalog
