// The reference engine: an ordered map of versions in memory. Everything is lost when it is closed.
// The contract suite compares other engines with it.
#pragma once

#include <memory>

#include "cellar/kv/engine.h"

namespace cellar::kv {

std::unique_ptr<Engine> MakeMemoryEngine();

}  // namespace cellar::kv
