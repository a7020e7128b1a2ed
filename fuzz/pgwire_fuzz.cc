// Any bytes as a client's side of a connection: the server never crashes, and what it answers is
// always a sequence of whole frames.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/base/check.h"
#include "cellar/pgwire/connection.h"
#include "cellar/pgwire/fake_host.h"
#include "cellar/pgwire/login.h"

namespace {

using namespace cellar::pgwire;  // NOLINT: a small program

constexpr size_t kMaxOutputBytes = 1 << 20;

class MemoryTransport : public Transport {
 public:
  MemoryTransport(std::string_view input, std::string* output) : input_(input), output_(output) {}
  size_t Read(char* to, size_t capacity) override {
    // Pieces of changing size, so that messages are split in every place.
    step_ = step_ * 7 % 61 + 1;
    const size_t count = std::min({capacity, input_.size(), step_});
    std::memcpy(to, input_.data(), count);
    input_.remove_prefix(count);
    return count;
  }
  bool Write(std::string_view bytes) override {
    output_->append(bytes);
    return output_->size() < kMaxOutputBytes;
  }

 private:
  std::string_view input_;
  std::string* output_;
  size_t step_ = 3;
};

class OpenGate : public Gate {
 public:
  bool Admit(bool) override { return true; }
  void LoggedIn() override {}
  std::chrono::milliseconds LoginFailed(const Peer&, std::string_view) override {
    return std::chrono::milliseconds(0);
  }
  bool stopping() const override { return false; }
  std::shared_ptr<const TlsContext> tls() const override { return nullptr; }
  cellar::auth::LoginPolicy policy() const override { return {.trust_loopback = true}; }
};

// Frames, and the single bytes that answer requests for encryption.
void CheckFrames(std::string_view output) {
  while (!output.empty() && output[0] == 'N' && (output.size() == 1 || output[1] != '\0')) {
    output.remove_prefix(1);
  }
  while (!output.empty()) {
    CELLAR_CHECK(output.size() >= 5);
    uint32_t length = 0;
    for (int i = 1; i < 5; ++i) length = (length << 8) | static_cast<unsigned char>(output[i]);
    CELLAR_CHECK(std::strchr("RSKZTDCEIN123tnsGHdcAv", output[0]) != nullptr);
    CELLAR_CHECK(length >= 4 && length < output.size());
    output.remove_prefix(length + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.find("sleep") != std::string_view::npos) return 0;
  static FakeHost host;
  if (host.verifiers.empty()) {
    host.verifiers["ann"] = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$" + std::string(43, 'A') +
                            "=:" + std::string(43, 'A') + "=";
  }
  std::string output;
  {
    Channel channel(-1);
    channel.Secure(std::make_unique<MemoryTransport>(input, &output));
    OpenGate gate;
    Peer peer{"127.0.0.1", true};
    std::unique_ptr<Conversation> conversation = Login(&channel, peer, &host, &gate);
    if (conversation != nullptr) Connection(&channel, conversation.get(), &gate).Run();
  }
  if (output.size() < kMaxOutputBytes) CheckFrames(output);
  return 0;
}
