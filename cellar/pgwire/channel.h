// One client's connection as the parts of this layer share it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/auth/policy.h"
#include "cellar/monitor/meters.h"
#include "cellar/pgwire/frames.h"
#include "cellar/pgwire/transport.h"

namespace cellar::pgwire {

struct Peer {
  std::string address;    // "127.0.0.1", "::1"; IPv4 in IPv6's clothes is written as IPv4
  bool loopback = false;  // of this machine
};

// What connections ask of who accepted them. Thread-safe.
class Gate {
 public:
  virtual ~Gate() = default;
  // Takes one of the places for sessions; false when all are taken.
  virtual bool Admit() = 0;
  // The login is over: its time limit no longer counts.
  virtual void LoggedIn() = 0;
  // How long to wait before the answer to a wrong password; grows with each one.
  virtual std::chrono::milliseconds LoginFailed(const Peer& peer, std::string_view user) = 0;
  virtual bool stopping() const = 0;
  // Null: no TLS.
  virtual std::shared_ptr<const TlsContext> tls() const = 0;
  virtual auth::LoginPolicy policy() const = 0;
  // What counts the requests. Null: nothing does.
  virtual monitor::DoorMeters* meters() const { return nullptr; }
};

// One thread at a time.
struct Channel {
  explicit Channel(int socket)
      : fd(socket), plain(MakePlainTransport(socket)), reader(plain.get()), writer(plain.get()) {}
  void Secure(std::unique_ptr<Transport> transport) {
    secure = std::move(transport);
    reader.set_transport(secure.get());
    writer.set_transport(secure.get());
  }
  Transport& transport() { return secure != nullptr ? *secure : *plain; }

  int fd;  // borrowed
  std::unique_ptr<Transport> plain, secure;
  MessageReader reader;
  MessageWriter writer;
};

}  // namespace cellar::pgwire
