#include "cellar/server/superuser_url.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "cellar/auth/scram.h"
#include "cellar/auth/scram_keys.h"
#include "cellar/base/small_file.h"
#include "cellar/session/first_user.h"

namespace cellar::server {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr size_t kMaxFileBytes = size_t{64} << 10;
// 192 bits: nobody guesses it, and as base64 it has no padding.
constexpr size_t kSecretBytes = 24;
constexpr std::string_view kScheme = "postgresql://";

struct Found {
  std::string content;
  mode_t mode = 0;  // permissions
};

// nullopt: there is none. A link is not followed.
Result<std::optional<Found>> ReadSmallFile(const std::string& path) {
  const std::string what = fmt::format("could not read \"{}\"", path);
  const File file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (file.fd() < 0) {
    if (errno == ENOENT) return std::optional<Found>();
    if (errno == ELOOP) return std::optional(Found());
    return IoError(what, errno);
  }
  struct stat found {};
  if (::fstat(file.fd(), &found) != 0) return IoError(what, errno);
  Found read;
  read.mode = found.st_mode & 07777U;
  if (!S_ISREG(found.st_mode)) return std::optional(std::move(read));
  read.content.resize(kMaxFileBytes);
  size_t size = 0;
  while (size < read.content.size()) {
    const ssize_t got = ::read(file.fd(), read.content.data() + size, read.content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(what, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  read.content.resize(size);
  return std::optional(std::move(read));
}

std::string MakeSecret() {
  std::string secret = auth::Base64Encode(auth::RandomBytes(kSecretBytes));
  for (char& c : secret) {  // the letters that a URL takes as they are: RFC 4648, section 5
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  return secret;
}

std::string UrlText(const std::string& user, std::string_view secret, std::string_view authority,
                    std::string_view database_name) {
  return fmt::format("{}{}:{}@{}/{}\n", kScheme, PercentEncoded(user), secret, authority,
                     PercentEncoded(database_name));
}

// The password of a URL as UrlText writes it; empty when it is none.
std::string_view SecretOf(std::string_view text) {
  if (!text.starts_with(kScheme)) return {};
  text.remove_prefix(kScheme.size());
  text = text.substr(0, text.find('/'));
  const size_t at = text.rfind('@'), colon = text.find(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) return {};
  return text.substr(colon + 1, at - colon - 1);
}

bool Fits(std::string_view secret, const std::string& verifier) {
  if (secret.empty()) return false;
  const std::optional<auth::ScramVerifier> parsed = auth::ParseScramVerifier(verifier);
  return parsed.has_value() && auth::PasswordFits(secret, *parsed);
}

}  // namespace

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

Result<SuperuserUrl> PrepareSuperuserUrl(session::Database* database, const std::string& directory,
                                         bool may_make, std::string_view authority,
                                         std::string_view database_name) {
  session::FirstUser first = session::FindFirstUser(database);
  SuperuserUrl url;
  url.path = fmt::format("{}/{}", directory, kSuperuserUrlFile);
  url.user = std::move(first.name);
  url.verifier = std::move(first.verifier);
  CELLAR_TRY_ASSIGN(const std::optional<Found> file, ReadSmallFile(url.path));
  if (file && Fits(SecretOf(file->content), url.verifier)) {
    url.secret = SuperuserSecret::kKept;
    return url;
  }
  if (may_make && first.can_login && url.verifier.empty()) {
    const std::string secret = MakeSecret();
    CELLAR_TRY(ReplaceFile(url.path, UrlText(url.user, secret, authority, database_name)));
    CELLAR_TRY_ASSIGN(url.verifier, auth::MakePasswordVerifier(secret));
    CELLAR_TRY(session::SetFirstUserVerifier(database, url.verifier));
    url.secret = SuperuserSecret::kMade;
    return url;
  }
  if (file) {
    if (::unlink(url.path.c_str()) != 0) {
      return IoError(fmt::format("could not remove \"{}\"", url.path), errno);
    }
    url.stale = true;
  }
  return url;
}

Status UpdateSuperuserUrl(const SuperuserUrl& url, std::string_view authority,
                          std::string_view database_name) {
  if (url.secret == SuperuserSecret::kNone) return Status();
  CELLAR_TRY_ASSIGN(const std::optional<Found> file, ReadSmallFile(url.path));
  const std::string_view secret = file ? SecretOf(file->content) : std::string_view();
  if (secret.empty()) return Status();  // somebody has taken it away
  const std::string text = UrlText(url.user, secret, authority, database_name);
  if (file->content == text && file->mode == kOwnerOnly) return Status();
  return ReplaceFile(url.path, text);
}

}  // namespace cellar::server
