// Sockets, threads and limits.
#include "cellar/pgwire/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "cellar/base/sqlstate.h"
#include "cellar/pgwire/connection.h"
#include "cellar/pgwire/login.h"

namespace cellar::pgwire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kBacklog = 1024;
constexpr milliseconds kSweepInterval{250};

// A file descriptor that closes itself.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

Peer PeerOf(const sockaddr_storage& address) {
  Peer peer;
  char text[INET6_ADDRSTRLEN] = "";
  in_addr v4{};
  bool is_v4 = false;
  if (address.ss_family == AF_INET) {
    v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    is_v4 = true;
  } else if (address.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      std::memcpy(&v4, v6.s6_addr + 12, 4);
      is_v4 = true;
    } else {
      ::inet_ntop(AF_INET6, &v6, text, sizeof(text));
      peer.loopback = IN6_IS_ADDR_LOOPBACK(&v6) != 0;
    }
  }
  if (is_v4) {
    ::inet_ntop(AF_INET, &v4, text, sizeof(text));
    peer.loopback = (ntohl(v4.s_addr) >> 24) == 127;
  }
  peer.address = text;
  return peer;
}

uint16_t PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

void SetPort(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

// One listening socket per address of `host`, all on one port.
Result<std::vector<Socket>> BindAll(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const char* node = host.empty() || host == "*" ? nullptr : host.c_str();
  if (const int code = ::getaddrinfo(node, "0", &hints, &found); code != 0) {
    return InvalidError("cannot listen on \"{}\": {}", host, ::gai_strerror(code));
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  std::vector<Socket> sockets;
  int error = 0;
  for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    Socket socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.fd() < 0) {
      error = errno;
      continue;
    }
    const int on = 1;
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (at->ai_family == AF_INET6) {
      ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    SetPort(at->ai_addr, port);
    if (::bind(socket.fd(), at->ai_addr, at->ai_addrlen) != 0 ||
        ::listen(socket.fd(), kBacklog) != 0) {
      error = errno;
      continue;
    }
    if (port == 0) port = PortOf(socket.fd());
    sockets.push_back(std::move(socket));
  }
  if (sockets.empty()) {
    return MakeError(Code::kUnavailable, "cannot listen on \"{}\" port {}: {}", host, port,
                     std::strerror(error));
  }
  return sockets;
}

class ThreadListener;

// A connection and the thread that serves it. Lives in the listener's list until the thread ends.
class Served : public Gate {
 public:
  Served(ThreadListener* listener, Socket socket, Peer peer, Clock::time_point deadline)
      : listener_(listener),
        socket_(std::move(socket)),
        peer_(std::move(peer)),
        login_deadline_(deadline) {}

  bool Admit(bool superuser) override;
  void Working(bool works) override;
  void LoggedIn() override;
  milliseconds LoginFailed(const Peer& peer, std::string_view user) override;
  bool stopping() const override;
  std::shared_ptr<const TlsContext> tls() const override;
  auth::LoginPolicy policy() const override;
  monitor::DoorMeters* meters() const override;

  void Serve();
  void Converse();

 private:
  friend class ThreadListener;
  ThreadListener* listener_;
  Socket socket_;
  Peer peer_;
  // Guarded by the listener's mutex.
  Clock::time_point login_deadline_;
  bool admitted_ = false, logged_in_ = false;
  std::list<Served>::iterator self_;
  Conversation* conversation_ = nullptr;  // while there is one
  uint64_t worked_ = 0;                   // work_ as the last sweep found it

  std::atomic<uint64_t> work_{0};  // odd while a message is worked on; grows with each
  std::atomic<bool> give_up_{false};
};

class ThreadListener : public Listener {
 public:
  ThreadListener(Host* host, const ListenerOptions& options, std::vector<Socket> sockets)
      : host_(host),
        options_(options),
        sockets_(std::move(sockets)),
        wake_(::eventfd(0, EFD_CLOEXEC)),
        port_(PortOf(sockets_.front().fd())),
        tls_(options.tls),
        login_(options.login) {
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~ThreadListener() override { Stop(milliseconds(0)); }

  uint16_t port() const override { return port_; }
  size_t sessions() const override {
    std::lock_guard lock(mutex_);
    return admitted_;
  }
  void SetTls(std::shared_ptr<const TlsContext> tls) override {
    std::lock_guard lock(mutex_);
    tls_ = std::move(tls);
  }
  void SetRules(std::shared_ptr<const auth::HbaRules> rules) override {
    std::lock_guard lock(mutex_);
    login_.rules = std::move(rules);
  }
  bool Stop(milliseconds grace) override;

 private:
  friend class Served;

  void Accept();
  void AcceptOne(int fd);
  void SweepLogins();
  void SweepClients();
  void Spawn(Socket socket, Peer peer);
  void Ended(std::list<Served>::iterator served);
  static void* ThreadMain(void* served);

  Host* host_;
  const ListenerOptions options_;
  std::vector<Socket> sockets_;
  Socket wake_;
  const uint16_t port_;
  std::thread acceptor_;
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  // All below are guarded by mutex_.
  std::list<Served> served_;
  size_t admitted_ = 0, half_open_ = 0;
  std::map<std::string, size_t, std::less<>> half_open_by_address_;
  std::shared_ptr<const TlsContext> tls_;
  auth::LoginPolicy login_;

  auth::FailureDelays failures_;
};

// ---- Served -------------------------------------------------------------------------------------

bool Served::Admit(bool superuser) {
  std::lock_guard lock(listener_->mutex_);
  const ListenerOptions& options = listener_->options_;
  const size_t kept = superuser ? 0 : options.reserved_connections;
  if (listener_->admitted_ + kept >= options.max_connections) return false;
  ++listener_->admitted_;
  admitted_ = true;
  return true;
}

void Served::Working(bool works) {
  const uint64_t now = work_.load(std::memory_order_relaxed);
  if (works == ((now & 1) == 0)) work_.store(now + 1, std::memory_order_relaxed);
}

void Served::LoggedIn() {
  std::lock_guard lock(listener_->mutex_);
  logged_in_ = true;
  --listener_->half_open_;
  auto at = listener_->half_open_by_address_.find(peer_.address);
  if (--at->second == 0) listener_->half_open_by_address_.erase(at);
}

milliseconds Served::LoginFailed(const Peer& peer, std::string_view user) {
  return listener_->failures_.Failed(peer.address, user);
}

bool Served::stopping() const { return listener_->stopping_.load(std::memory_order_relaxed); }

std::shared_ptr<const TlsContext> Served::tls() const {
  std::lock_guard lock(listener_->mutex_);
  return listener_->tls_;
}

auth::LoginPolicy Served::policy() const {
  std::lock_guard lock(listener_->mutex_);
  return listener_->login_;
}

monitor::DoorMeters* Served::meters() const { return listener_->options_.meters; }

void Served::Serve() {
  // What the session does guards itself; memory may run out beside it, and that ends one
  // connection.
  (void)CatchOutOfMemory([this] {
    Converse();
    return Status();
  });
}

void Served::Converse() {
  Channel channel(socket_.fd());
  channel.set_give_up(&give_up_);
  std::unique_ptr<Conversation> conversation = Login(&channel, peer_, listener_->host_, this);
  if (conversation == nullptr) return;
  monitor::DoorMeters* const counted = meters();
  if (counted != nullptr) counted->sessions.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(listener_->mutex_);
    conversation_ = conversation.get();
  }
  // The connection finds the stream at its end, and then why.
  conversation->SetWake([this] {
    give_up_.store(true, std::memory_order_relaxed);
    ::shutdown(socket_.fd(), SHUT_RD);
  });
  (void)CatchOutOfMemory([&] {
    Connection(&channel, conversation.get(), this).Run();
    return Status();
  });
  {
    std::lock_guard lock(listener_->mutex_);
    conversation_ = nullptr;
  }
  conversation.reset();
  if (counted != nullptr) counted->sessions.fetch_sub(1, std::memory_order_relaxed);
}

// ---- ThreadListener -----------------------------------------------------------------------------

void* ThreadListener::ThreadMain(void* argument) {
  auto* served = static_cast<Served*>(argument);
  served->Serve();
  served->listener_->Ended(served->self_);
  return nullptr;
}

void ThreadListener::Ended(std::list<Served>::iterator served) {
  std::list<Served> ended;  // closes the socket after the lock is gone
  std::lock_guard lock(mutex_);
  if (served->admitted_) --admitted_;
  if (!served->logged_in_) {
    --half_open_;
    auto at = half_open_by_address_.find(served->peer_.address);
    if (--at->second == 0) half_open_by_address_.erase(at);
  }
  ended.splice(ended.begin(), served_, served);
  ended.clear();
  // Under the lock: after it is released the listener may be gone.
  ended_.notify_all();
}

void ThreadListener::Spawn(Socket socket, Peer peer) {
  std::unique_lock lock(mutex_);
  size_t& from_address = half_open_by_address_[peer.address];
  if (half_open_ >= options_.max_half_open || from_address >= options_.max_half_open_per_address ||
      stopping_.load()) {
    if (from_address == 0) half_open_by_address_.erase(peer.address);
    return;  // closes the socket
  }
  ++from_address;
  ++half_open_;
  served_.emplace_back(this, std::move(socket), std::move(peer),
                       Clock::now() + options_.login_timeout);
  auto served = std::prev(served_.end());
  served->self_ = served;
  lock.unlock();
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, options_.stack_bytes);
  pthread_t thread;
  const int error = ::pthread_create(&thread, &attributes, &ThreadMain, &*served);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) Ended(served);
}

void ThreadListener::AcceptOne(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  Socket socket(::accept4(fd, reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC));
  if (socket.fd() < 0) {
    // Out of descriptors or memory: the connection waits, and so do we.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    return;
  }
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  LimitWrites(socket.fd());
  Spawn(std::move(socket), PeerOf(address));
}

void ThreadListener::SweepLogins() {
  const Clock::time_point now = Clock::now();
  std::lock_guard lock(mutex_);
  if (half_open_ == 0) return;
  for (Served& served : served_) {
    if (!served.logged_in_ && served.login_deadline_ <= now) {
      ::shutdown(served.socket_.fd(), SHUT_RDWR);
    }
  }
}

// Tells conversations whose client has left since the message that they work on came. A message
// that is worked on for less than from one sweep to the next is left to its end.
void ThreadListener::SweepClients() {
  std::vector<pollfd> polled;
  std::vector<Served*> waiting;
  std::lock_guard lock(mutex_);
  for (Served& served : served_) {
    const uint64_t work = served.work_.load(std::memory_order_relaxed);
    const bool same = work == served.worked_;
    served.worked_ = work;
    if (served.conversation_ == nullptr || (work & 1) == 0 || !same) continue;
    polled.push_back({served.socket_.fd(), POLLRDHUP, 0});
    waiting.push_back(&served);
  }
  if (polled.empty() || ::poll(polled.data(), polled.size(), 0) <= 0) return;
  for (size_t i = 0; i < polled.size(); ++i) {
    if ((polled[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
      waiting[i]->conversation_->ClientGone();
  }
}

void ThreadListener::Accept() {
  std::vector<pollfd> polled;
  for (const Socket& socket : sockets_) polled.push_back({socket.fd(), POLLIN, 0});
  polled.push_back({wake_.fd(), POLLIN, 0});
  Clock::time_point swept = Clock::now();
  while (!stopping_.load()) {
    const int ready =
        ::poll(polled.data(), polled.size(), static_cast<int>(kSweepInterval.count()));
    if (Clock::now() - swept >= kSweepInterval) {
      SweepLogins();
      SweepClients();
      swept = Clock::now();
    }
    if (ready <= 0) continue;
    for (size_t i = 0; i + 1 < polled.size(); ++i) {
      if (polled[i].revents != 0) AcceptOne(polled[i].fd);
    }
  }
}

bool ThreadListener::Stop(milliseconds grace) {
  const bool first = !stopping_.exchange(true);
  if (first) {
    const uint64_t one = 1;
    (void)!::write(wake_.fd(), &one, sizeof(one));
  }
  if (acceptor_.joinable()) acceptor_.join();
  sockets_.clear();
  std::unique_lock lock(mutex_);
  // Who waits for its client's next message wakes up and says goodbye.
  for (Served& served : served_) ::shutdown(served.socket_.fd(), SHUT_RD);
  const bool clean = ended_.wait_for(lock, grace, [this] { return served_.empty(); });
  if (!clean) {
    for (Served& served : served_) ::shutdown(served.socket_.fd(), SHUT_RDWR);
    ended_.wait(lock, [this] { return served_.empty(); });
  }
  return clean;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Start(Host* host, const ListenerOptions& options) {
  CELLAR_TRY_ASSIGN(std::vector<Socket> sockets, BindAll(options.host, options.port));
  return std::unique_ptr<Listener>(
      std::make_unique<ThreadListener>(host, options, std::move(sockets)));
}

}  // namespace cellar::pgwire
