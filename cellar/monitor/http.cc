#include "cellar/monitor/http.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <thread>

namespace cellar::monitor {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr size_t kMaxHeaderBytes = 8 << 10;
constexpr size_t kMaxBodyBytes = 1 << 10;  // which nothing reads
constexpr size_t kMaxConnections = 100;
constexpr std::chrono::seconds kTimeout{10};

// One connection. Keeps itself alive through the handlers that wait.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const HttpRoutes* routes, size_t* open)
      : stream_(std::move(socket)), routes_(routes), open_(open) {
    ++*open_;
  }
  ~Connection() { --*open_; }

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(kMaxBodyBytes);
    stream_.expires_after(kTimeout);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](Error error, size_t) {
      if (!error) self->Answer();
    });
  }

 private:
  void Answer() {
    const http::request<http::string_body>& request = parser_->get();
    HttpAnswer answer;
    const bool readable =
        request.method() == http::verb::get || request.method() == http::verb::head;
    const std::string target(request.target());
    const auto route = routes_->find(target.substr(0, target.find('?')));
    if (!readable) {
      answer = {405, "text/plain; charset=utf-8", "only GET and HEAD\n"};
    } else if (route == routes_->end()) {
      answer = {404, "text/plain; charset=utf-8", "not found\n"};
    } else {
      answer = route->second();
    }
    response_ = {};
    response_.version(request.version());
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, answer.content_type);
    response_.set(http::field::cache_control, "no-store");
    if (!readable) response_.set(http::field::allow, "GET, HEAD");
    response_.keep_alive(request.keep_alive());
    response_.content_length(answer.body.size());
    if (request.method() != http::verb::head) response_.body() = std::move(answer.body);
    stream_.expires_after(kTimeout);
    http::async_write(stream_, response_, [self = shared_from_this()](Error error, size_t) {
      if (error) return;
      if (self->response_.keep_alive()) return self->Read();
      Error ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  const HttpRoutes* routes_;
  size_t* open_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

class BeastServer : public HttpServer {
 public:
  explicit BeastServer(HttpRoutes routes) : routes_(std::move(routes)), acceptor_(context_) {}
  ~BeastServer() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status Listen(const std::string& host, uint16_t port) {
    Error error;
    tcp::resolver resolver(context_);
    const auto found =
        resolver.resolve(host == "*" ? "0.0.0.0" : host, std::to_string(port),
                         tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) return InvalidError("\"{}\" is not an address: {}", host, error.message());
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Status(Code::kUnavailable,
                    fmt::format("cannot listen on {}:{}: {}", host, port, error.message()));
    }
    port_ = acceptor_.local_endpoint(error).port();
    Accept();
    thread_ = std::thread([this] { context_.run(); });
    return Status();
  }
  uint16_t port() const override { return port_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](Error error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error && open_ < kMaxConnections) {
        std::make_shared<Connection>(std::move(socket), &routes_, &open_)->Read();
      }
      Accept();
    });
  }

  const HttpRoutes routes_;
  size_t open_ = 0;  // connections; the thread's
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& host, uint16_t port,
                                                      HttpRoutes routes) {
  auto server = std::make_unique<BeastServer>(std::move(routes));
  CELLAR_TRY(server->Listen(host, port));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace cellar::monitor
