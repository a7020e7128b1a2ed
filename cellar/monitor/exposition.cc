#include "cellar/monitor/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>

namespace cellar::monitor {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

MetricFamily Family(std::string name, std::string help, MetricType type) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

void AddValue(double value, Labels labels, MetricFamily* family) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family->type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family->metric.push_back(std::move(metric));
}

void AddLatency(const DoorMeters& door, MetricFamily* family) {
  ClientMetric metric;
  metric.label = {{"door", door.door}};
  uint64_t cumulative = 0;
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    cumulative += door.latency.count(i);
    ClientMetric::Bucket bucket;
    bucket.cumulative_count = cumulative;
    bucket.upper_bound = i + 1 == LatencyHistogram::kBuckets
                             ? std::numeric_limits<double>::infinity()
                             : LatencyHistogram::UpperSeconds(i);
    metric.histogram.bucket.push_back(bucket);
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = door.latency.sum_seconds();
  family->metric.push_back(std::move(metric));
}

struct DoorCounter {
  const char* name;
  const char* help;
  double (*read)(const DoorMeters&);
  MetricType type = MetricType::Counter;
};

template <auto kMember>
double Read(const DoorMeters& door) {
  return static_cast<double>((door.*kMember).load(std::memory_order_relaxed));
}

constexpr DoorCounter kDoorCounters[] = {
    {"cellar_rows_sent_total", "Rows sent to clients.", &Read<&DoorMeters::rows_sent>},
    {"cellar_rows_written_total", "Rows that clients changed.", &Read<&DoorMeters::rows_written>},
    {"cellar_bytes_sent_total", "Bytes sent to clients.", &Read<&DoorMeters::bytes_sent>},
    {"cellar_bytes_received_total", "Bytes received.", &Read<&DoorMeters::bytes_received>},
    {"cellar_logins_refused_total", "Logins refused.", &Read<&DoorMeters::logins_refused>},
    {"cellar_sessions", "Clients that are logged in.", &Read<&DoorMeters::sessions>,
     MetricType::Gauge},
};

}  // namespace

std::vector<std::pair<std::string, uint64_t>> ErrorClasses::counts() const {
  constexpr char kText[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::vector<std::pair<std::string, uint64_t>> found;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const uint64_t count = counts_[i].load(std::memory_order_relaxed);
    if (count > 0) found.emplace_back(std::string{kText[i / kDigits], kText[i % kDigits]}, count);
  }
  return found;
}

std::string RenderMetrics(const std::vector<const DoorMeters*>& doors,
                          const std::vector<Reading>& readings) {
  std::vector<MetricFamily> families;
  families.push_back(
      Family("cellar_request_seconds", "Requests by the time they took.", MetricType::Histogram));
  for (const DoorMeters* door : doors) AddLatency(*door, &families.back());
  families.push_back(Family("cellar_request_errors_total",
                            "Requests that failed, by the class of their SQLSTATE.",
                            MetricType::Counter));
  for (const DoorMeters* door : doors) {
    for (const auto& [sqlstate_class, count] : door->errors.counts()) {
      AddValue(static_cast<double>(count), {{"door", door->door}, {"class", sqlstate_class}},
               &families.back());
    }
  }
  for (const DoorCounter& counter : kDoorCounters) {
    families.push_back(Family(counter.name, counter.help, counter.type));
    for (const DoorMeters* door : doors) {
      AddValue(counter.read(*door), {{"door", door->door}}, &families.back());
    }
  }
  for (const Reading& reading : readings) {
    families.push_back(Family(reading.name, reading.help,
                              reading.counter ? MetricType::Counter : MetricType::Gauge));
    AddValue(reading.value, {}, &families.back());
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace cellar::monitor
