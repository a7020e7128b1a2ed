// From the first byte of a connection to its session: encryption, start-up, authentication
// (PostgreSQL manual 55.2.1, 55.2.9-55.2.12, 55.3).
#pragma once

#include <memory>

#include "cellar/pgwire/backend.h"
#include "cellar/pgwire/channel.h"

namespace cellar::pgwire {

// Speaks with the client until it is logged in; everything up to the first ReadyForQuery is then in
// the writer, not yet sent. Null: the connection is over, and what there was to say has been sent.
// A cancel request ends so too.
std::unique_ptr<Conversation> Login(Channel* channel, const Peer& peer, Host* host, Gate* gate);

// ReadyForQuery, into the writer.
void PutReady(const Conversation& conversation, MessageWriter* out);
void PutParameter(std::string_view name, std::string_view value, MessageWriter* out);

}  // namespace cellar::pgwire
