// One logged-in client: reads messages, turns them into calls, sends what comes back (PostgreSQL
// manual 55.2.2 to 55.2.8).
//
// Invariants:
//   1. Each Query, Sync and FunctionCall is answered by exactly one ReadyForQuery, unless the
//      connection ends; nothing else sends one.
//   2. After an error in the extended protocol every message up to the next Sync is passed over.
//   3. Output is sent at ReadyForQuery, at Flush, when COPY waits for data, and when it is large.
//   4. A message is parsed where it was received; nothing is allocated for it that outlives it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/pgwire/backend.h"
#include "cellar/pgwire/channel.h"
#include "cellar/pgwire/wire_sink.h"

namespace cellar::pgwire {

// One thread.
class Connection {
 public:
  // All outlive the connection.
  Connection(Channel* channel, Conversation* conversation, Gate* gate);

  // Serves the client until it leaves, breaks the protocol, or the server stops.
  void Run();

 private:
  enum class Next : uint8_t { kGoOn, kClose };

  Next Dispatch(char type, std::string_view body);
  Next SimpleQuery(std::string_view body);
  Next FunctionCall();
  Next Sync(std::string_view body);
  // These answer an error that Extended() reports.
  Status Parse(std::string_view body);
  Status Bind(std::string_view body);
  Status Describe(std::string_view body);
  Status Execute(std::string_view body);
  Status Close(std::string_view body);
  Next Extended(Status status);
  // Sends an error; closes after a fatal one.
  Next Report(const Status& status);
  Next Ready();
  void Leave(std::string_view sqlstate, std::string_view message);
  // The server stops, or somebody ended the session; and says goodbye then.
  bool Ending() const;
  void LeaveAsTold();
  // Waits for the client's next message, if time limits or notifications ask for more than a plain
  // read. False: the connection is over.
  bool WaitForClient();
  void Count();  // what came and went since the last time
  std::span<const int16_t> FormatsOf(const std::string& portal) const;

  Channel* channel_;
  MessageWriter& out_;
  Conversation* conversation_;
  Gate* gate_;
  WireSink sink_;
  monitor::DoorMeters* meters_;  // may be null
  uint64_t counted_received_ = 0, counted_sent_ = 0, counted_rows_ = 0, counted_written_ = 0;
  bool skip_to_sync_ = false;
  int64_t idle_limit_ms_ = 0, idle_in_transaction_limit_ms_ = 0;
  // Result formats by portal. The unnamed one's are kept apart: it is the one in daily use.
  std::vector<int16_t> unnamed_formats_;
  std::unordered_map<std::string, std::vector<int16_t>> named_formats_;
  // Reused from message to message.
  std::string name_, other_name_;
  std::vector<uint32_t> oids_;
  std::vector<int16_t> parameter_formats_;
  std::vector<session::BoundParameter> parameters_;
};

}  // namespace cellar::pgwire
