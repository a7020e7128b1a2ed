// Which virtual tables are views to PostgreSQL's clients.
#pragma once

#include <cstdint>

namespace cellar::sql {

// Of VirtualTable::oid: from here on they are views.
inline constexpr uint32_t kFirstSystemView = 12000;

}  // namespace cellar::sql
