// A small HTTP server for operators: GET and HEAD of a few paths, no state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cellar/base/status.h"

namespace cellar::monitor {

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// By path, without the query. Called on the server's one thread: they must be quick.
using HttpRoutes = std::map<std::string, std::function<HttpAnswer()>, std::less<>>;

// Serves on a thread of its own until destroyed. Requests have 8 kB and ten seconds; answers end
// the connection unless the client keeps it alive.
class HttpServer {
 public:
  // `port` 0: a free one. Errors: kUnavailable (the address is taken), kInvalid (it is none).
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& host, uint16_t port,
                                                   HttpRoutes routes);
  virtual ~HttpServer() = default;
  virtual uint16_t port() const = 0;
};

}  // namespace cellar::monitor
