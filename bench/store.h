// A store under comparison, and one client of it. Programs measure all stores through these two
// interfaces, so that every store does the same work in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/rows.h"

namespace cellar::bench {

// What a store cannot do, or is not asked, is left out of the tables.
struct Abilities {
  bool load = true;
  bool import = true;  // into a table with its index
  bool index = true;   // also points, ranges, transactions
  bool analytics = true;
  bool scan = true;
  bool writes = true;
  bool wide = true;
};

// One connection; one thread at a time. Reads take all columns of their rows into the client's
// hands and answer how many rows there were. Any error ends the program.
class Client {
 public:
  virtual ~Client() = default;
  virtual void Begin() {}
  virtual void Commit() {}
  virtual int64_t PointById(int64_t) { Unable(); }
  virtual int64_t PointByK(int32_t) { Unable(); }
  // Rows with start <= id < end.
  virtual int64_t Range(int64_t, int64_t) { Unable(); }
  virtual int64_t SumQty() = 0;
  virtual int64_t Count() = 0;
  virtual int64_t CountFiltered() { Unable(); }
  virtual double Q6() { Unable(); }
  virtual int64_t GroupBy() { Unable(); }
  virtual int64_t ScanAll() { Unable(); }
  // From the next transaction on. Clients start as durable ones: what they commit is on disk.
  virtual void SetDurable(bool) { Unable(); }
  // Changed rows stay where changes go, as far as the store leaves a choice.
  virtual void KeepChangesApart() {}
  virtual void Insert(const Row&) { Unable(); }
  virtual void AddToQty(int64_t) { Unable(); }

 protected:
  [[noreturn]] static void Unable();
};

class Store {
 public:
  virtual ~Store() = default;
  virtual std::string name() const = 0;
  virtual Abilities abilities() const { return {}; }
  // An empty table, perhaps with its secondary index; what was there goes.
  virtual void Create(bool) {}
  // All rows in one transaction, in the order of their ids, from this file.
  virtual void Load(const std::string& csv) = 0;
  virtual void CreateIndex() = 0;
  // After loading: whatever an administrator would do.
  virtual void Settle() {}
  // Of the table and its indexes at their smallest; 0 when the store does not tell.
  virtual uint64_t Bytes() { return 0; }
  virtual std::unique_ptr<Client> Connect() = 0;
};

[[noreturn]] void Die(const std::string& what);
uint64_t BytesInDirectory(const std::string& path);
// Of this process so far.
double CpuSeconds();

// Each takes an absent directory to make.
std::unique_ptr<Store> OpenRocks(const std::string& directory, const Shape& shape);
std::unique_ptr<Store> OpenSqlite(const std::string& directory, const Shape& shape);
// `library` is libduckdb.so.
std::unique_ptr<Store> OpenDuckDb(const std::string& directory, const Shape& shape,
                                  const std::string& library);
// `layout`: row or pages.
std::unique_ptr<Store> OpenCellar(const std::string& directory, const Shape& shape,
                                  const std::string& layout);
// The same store below SQL; `cellar` was made by OpenCellar and is loaded through it.
std::unique_ptr<Store> OpenCellarTables(Store* cellar);
// Any server that speaks PostgreSQL's protocol.
std::unique_ptr<Store> OpenServer(const std::string& name, const std::string& conninfo,
                                  const Shape& shape);

}  // namespace cellar::bench
