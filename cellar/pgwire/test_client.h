// A client for tests: sends any bytes, collects messages.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace cellar::pgwire {

inline std::string Int16(int value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}
inline std::string Int32(uint32_t value) {
  return Int16(static_cast<int>(value >> 16)) + Int16(static_cast<int>(value & 0xFFFF));
}
inline std::string Text(std::string_view text) { return std::string(text) + '\0'; }
inline std::string Frame(char type, std::string_view body) {
  return type + Int32(static_cast<uint32_t>(body.size() + 4)) + std::string(body);
}
inline std::string Startup(std::string_view parameters, uint32_t version = 196608) {
  return Int32(static_cast<uint32_t>(parameters.size() + 8)) + Int32(version) +
         std::string(parameters);
}
inline std::string PlainStartup() { return Startup(Text("user") + Text("cellar") + '\0'); }
inline std::string Query(std::string_view text) { return Frame('Q', Text(text)); }
inline std::string Parse(std::string_view name, std::string_view text,
                         const std::vector<uint32_t>& oids = {}) {
  std::string body = Text(name) + Text(text) + Int16(static_cast<int>(oids.size()));
  for (uint32_t oid : oids) body += Int32(oid);
  return Frame('P', body);
}
inline std::string Bind(std::string_view portal, std::string_view statement) {
  return Frame('B', Text(portal) + Text(statement) + Int16(0) + Int16(0) + Int16(0));
}
inline std::string Execute(std::string_view portal, uint32_t max_rows = 0) {
  return Frame('E', Text(portal) + Int32(max_rows));
}
inline std::string Sync() { return Frame('S', ""); }

class TestClient {
 public:
  struct Message {
    char type;
    std::string body;
  };

  explicit TestClient(uint16_t port) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~TestClient() { ::close(fd_); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  int fd() const { return fd_; }
  bool connected() const { return connected_; }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void EndSending() { ::shutdown(fd_, SHUT_WR); }

  // The next `count` raw bytes; fewer at the end of the stream or after 5 s.
  std::string Take(size_t count) {
    while (buffer_.size() < count && ReadMore()) {
    }
    std::string taken = buffer_.substr(0, count);
    buffer_.erase(0, taken.size());
    return taken;
  }
  // The next message; type 0 when there is none.
  Message Next() {
    const std::string header = Take(5);
    if (header.size() < 5) return {0, ""};
    uint32_t length = 0;
    for (int i = 1; i < 5; ++i) length = (length << 8) | static_cast<unsigned char>(header[i]);
    return {header[0], Take(length - 4)};
  }
  // Messages up to ReadyForQuery or the end of the stream, as text: types in order, with what is
  // worth seeing of C, E, Z.
  std::string Collect() {
    std::string seen;
    last_rows.clear();
    while (true) {
      Message message = Next();
      if (message.type == 0) return seen + (seen.empty() ? "closed" : " closed");
      if (!seen.empty()) seen += ' ';
      seen += message.type;
      if (message.type == 'E' || message.type == 'N') {
        last_error = message.body;
        seen += ":" + Field(message.body, 'C');
      } else if (message.type == 'C') {
        seen += ":" + message.body.substr(0, message.body.size() - 1);
      } else if (message.type == 'D') {
        last_rows.push_back(message.body);
      } else if (message.type == 'T') {
        last_columns = message.body;
      } else if (message.type == 'Z') {
        return seen + ":" + message.body;
      }
    }
  }
  static std::string Field(const std::string& body, char field) {
    size_t at = 0;
    while (at < body.size() && body[at] != '\0') {
      const size_t end = body.find('\0', at);
      if (body[at] == field) return body.substr(at + 1, end - at - 1);
      at = end + 1;
    }
    return "";
  }
  // Logs in with trust; "R S S K Z:I".
  std::string LogIn() {
    Send(PlainStartup());
    return Collect();
  }

  std::string last_error, last_columns;
  std::vector<std::string> last_rows;

 private:
  bool ReadMore() {
    pollfd ready{fd_, POLLIN, 0};
    if (::poll(&ready, 1, 5000) <= 0) return false;
    char chunk[65536];
    const ssize_t got = ::recv(fd_, chunk, sizeof(chunk), 0);
    if (got <= 0) return false;
    buffer_.append(chunk, static_cast<size_t>(got));
    return true;
  }

  int fd_;
  bool connected_ = false;
  std::string buffer_;
};

}  // namespace cellar::pgwire
