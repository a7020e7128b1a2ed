// cellar.v1.Data over cellar/table.h.
#pragma once

#include <memory>

#include "cellar/rpc/server/calls.h"

namespace grpc {
class Service;
}

namespace cellar::rpc {

// `calls` outlives it.
std::unique_ptr<grpc::Service> MakeDataService(Calls* calls);

}  // namespace cellar::rpc
