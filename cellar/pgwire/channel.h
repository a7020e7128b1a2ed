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
  // Takes one of the places for sessions; false when all that are open to such a role are taken:
  // some are kept for superusers.
  virtual bool Admit(bool superuser) = 0;
  // The connection works on a message, or waits for the next: whose client leaves while it works is
  // told so.
  virtual void Working(bool works) { (void)works; }
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
  // Also for the transport of TLS that may come later.
  void set_give_up(const std::atomic<bool>* flag) {
    give_up = flag;
    transport().set_give_up(flag);
  }
  void Secure(std::unique_ptr<Transport> transport) {
    secure = std::move(transport);
    secure->set_give_up(give_up);
    reader.set_transport(secure.get());
    writer.set_transport(secure.get());
  }
  Transport& transport() { return secure != nullptr ? *secure : *plain; }

  int fd;  // borrowed
  const std::atomic<bool>* give_up = nullptr;
  std::unique_ptr<Transport> plain, secure;
  MessageReader reader;
  MessageWriter writer;
};

}  // namespace cellar::pgwire
