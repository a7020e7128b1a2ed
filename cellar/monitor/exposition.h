// Meters as Prometheus reads them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cellar/monitor/meters.h"

namespace cellar::monitor {

// A number that its owner keeps elsewhere.
struct Reading {
  std::string name, help;
  bool counter = false;  // grows only; else a gauge
  double value = 0;
};

// Prometheus' text exposition format, version 0.0.4.
std::string RenderMetrics(const std::vector<const DoorMeters*>& doors,
                          const std::vector<Reading>& readings);

}  // namespace cellar::monitor
