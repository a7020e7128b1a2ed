// Meters, exposition, the log's lines and the HTTP server.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cellar/monitor/exposition.h"
#include "cellar/monitor/http.h"
#include "cellar/monitor/log.h"

namespace cellar::monitor {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::HasSubstr;
using testing::Not;

TEST(LatencyHistogram, PutsDurationsUnderTheLeastUpperEnd) {
  LatencyHistogram histogram;
  for (uint64_t micros = 1; micros < 5000; ++micros) {
    LatencyHistogram one;
    one.Record(microseconds(micros));
    size_t at = 0;
    while (one.count(at) == 0) ++at;
    EXPECT_LE(static_cast<double>(micros) * 1e-6, LatencyHistogram::UpperSeconds(at) * 1.0000001);
    if (at > 0) {
      EXPECT_GT(static_cast<double>(micros) * 1e-6, LatencyHistogram::UpperSeconds(at - 1));
    }
  }
  histogram.Record(nanoseconds(0));
  histogram.Record(nanoseconds(-5));
  histogram.Record(nanoseconds(1001));
  histogram.Record(std::chrono::hours(24));
  EXPECT_EQ(histogram.count(0), 2u);
  EXPECT_EQ(histogram.count(1), 1u);
  EXPECT_EQ(histogram.count(LatencyHistogram::kBuckets - 1), 1u);
}

TEST(Exposition, ShowsDoorsAndReadings) {
  DoorMeters door("sql");
  door.Request(microseconds(3));
  door.Request(microseconds(300));
  door.Error("40001");
  door.Error("40P01");
  door.Error("x");
  door.rows_sent += 7;
  door.sessions += 2;
  const std::string text =
      RenderMetrics({&door}, {{"cellar_commits_total", "Commits.", true, 5.0}});
  EXPECT_THAT(text, HasSubstr("# TYPE cellar_request_seconds histogram"));
  EXPECT_THAT(text, HasSubstr("cellar_request_seconds_count{door=\"sql\"} 2"));
  EXPECT_THAT(text, HasSubstr("cellar_request_seconds_bucket{door=\"sql\",le=\"+Inf\"} 2"));
  EXPECT_THAT(text, HasSubstr("cellar_request_errors_total{door=\"sql\",class=\"40\"} 2"));
  EXPECT_THAT(text, HasSubstr("cellar_request_errors_total{door=\"sql\",class=\"ZZ\"} 1"));
  EXPECT_THAT(text, HasSubstr("cellar_rows_sent_total{door=\"sql\"} 7"));
  EXPECT_THAT(text, HasSubstr("# TYPE cellar_sessions gauge"));
  EXPECT_THAT(text, HasSubstr("cellar_sessions{door=\"sql\"} 2"));
  EXPECT_THAT(text, HasSubstr("cellar_commits_total 5"));
}

TEST(Log, WritesTextAndJson) {
  const LogFields fields = {{"user", "a\"b\nc"}, {"port", "1"}};
  EXPECT_EQ(FormatLogLine(LogFormat::kText, LogLevel::kInfo, 0, "hello", {}), "cellar: hello");
  EXPECT_EQ(FormatLogLine(LogFormat::kText, LogLevel::kWarning, 0, "hello", fields),
            "cellar: warning: hello (user=a\"b?c, port=1)");
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, LogLevel::kError, 1769860800123, "hello", fields),
            "{\"time\":\"2026-01-31T12:00:00.123Z\",\"level\":\"error\",\"message\":\"hello\","
            "\"user\":\"a\\\"b\\nc\",\"port\":\"1\"}");
  EXPECT_THAT(FormatLogLine(LogFormat::kJson, LogLevel::kInfo, 0, "bad \xff utf-8", {}),
              HasSubstr("bad \xef\xbf\xbd utf-8"));
}

// What comes back for `request` until the server closes or is silent for a second.
std::string Ask(uint16_t port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  timeval second{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    (void)!::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char chunk[4096];
    for (ssize_t got; (got = ::recv(fd, chunk, sizeof(chunk), 0)) > 0;) {
      answer.append(chunk, static_cast<size_t>(got));
    }
  }
  ::close(fd);
  return answer;
}

std::string Get(uint16_t port, const std::string& path, const std::string& method = "GET") {
  return Ask(port, method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

TEST(HttpServer, AnswersItsRoutes) {
  HttpRoutes routes;
  routes["/healthz"] = [] { return HttpAnswer{200, "text/plain", "ok\n"}; };
  routes["/readyz"] = [] { return HttpAnswer{503, "text/plain", "stopping\n"}; };
  auto server = HttpServer::Start("127.0.0.1", 0, routes);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const uint16_t port = (*server)->port();
  EXPECT_THAT(Get(port, "/healthz?x=1"), HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(Get(port, "/healthz"), HasSubstr("ok\n"));
  EXPECT_THAT(Get(port, "/healthz", "HEAD"), Not(HasSubstr("ok\n")));
  EXPECT_THAT(Get(port, "/readyz"), HasSubstr("503"));
  EXPECT_THAT(Get(port, "/nothing"), HasSubstr("404"));
  EXPECT_THAT(Get(port, "/healthz", "DELETE"), HasSubstr("405"));
  // A second server cannot have the place.
  EXPECT_EQ(HttpServer::Start("127.0.0.1", port, routes).status().code(), Code::kUnavailable);
}

TEST(HttpServer, SurvivesGarbage) {
  auto server = *HttpServer::Start("127.0.0.1", 0, {});
  for (const std::string& request :
       {std::string("\0\1\2\3\r\n\r\n", 8), std::string(100000, 'a'),
        std::string("GET / HTTP/9.9\r\n\r\n"),
        "GET / HTTP/1.1\r\nX: " + std::string(50000, 'b') + "\r\n\r\n",
        std::string("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")}) {
    Ask(server->port(), request);
  }
  EXPECT_THAT(Get(server->port(), "/"), HasSubstr("404"));
}

}  // namespace
}  // namespace cellar::monitor
