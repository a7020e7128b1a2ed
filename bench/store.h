// A store under comparison, and one client of it. Programs measure all stores through these two
// interfaces, so that every store does the same work in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/rows.h"

namespace cellar::bench {

// What a store cannot do is left out of the table.
struct Abilities {
  bool load = true;
  bool transactions = true;
  bool writes = true;
};

// One connection; one thread at a time. Reads take all ten columns of their rows into the client's
// hands and answer how many rows there were. Any error ends the program.
class Client {
 public:
  virtual ~Client() = default;
  virtual void Begin() {}
  virtual void Commit() {}
  virtual int64_t PointById(int64_t id) = 0;
  virtual int64_t PointByK(int32_t k) = 0;
  // Rows with start <= id < end.
  virtual int64_t Range(int64_t start, int64_t end) = 0;
  virtual int64_t SumQty() = 0;
  virtual int64_t Count() = 0;
  // Durable when they return.
  virtual void Insert(const Row& row) = 0;
  virtual void AddToQty(int64_t id) = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual std::string name() const = 0;
  virtual Abilities abilities() const { return {}; }
  // Before the clock runs: what the client of this store would have at hand.
  virtual void Prepare(const std::vector<Row>& rows) {}
  // An empty table, then all rows in one transaction, in the order of their ids.
  virtual void Load(const std::vector<Row>& rows) = 0;
  virtual void CreateIndex() = 0;
  // After loading: whatever an administrator would do.
  virtual void Settle() {}
  virtual std::unique_ptr<Client> Connect() = 0;
};

[[noreturn]] void Die(const std::string& what);

// Each takes an absent directory to make.
std::unique_ptr<Store> OpenRocks(const std::string& directory, int64_t rows);
std::unique_ptr<Store> OpenSqlite(const std::string& directory);
std::unique_ptr<Store> OpenCellar(const std::string& directory);
// The same store below SQL; `cellar` was made by OpenCellar and is loaded through it.
std::unique_ptr<Store> OpenCellarTables(Store* cellar);
// Any server that speaks PostgreSQL's protocol.
std::unique_ptr<Store> OpenServer(const std::string& name, const std::string& conninfo);

}  // namespace cellar::bench
