// Records of jobs: the frozen bytes of tests/formats/job_3.golden, and bytes that are none.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "cellar/session/jobs.h"

namespace cellar::session {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::map<std::string, std::string> Golden() {
  std::ifstream file(std::string(CELLAR_SOURCE_DIR) + "/tests/formats/job_3.golden");
  std::map<std::string, std::string> values;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t bar = line.find(" | ");
    values[line.substr(0, bar)] = FromHex(line.substr(bar + 3));
  }
  return values;
}

TEST(JobRecords, AreAsTheyWere) {
  const std::map<std::string, std::string> golden = Golden();
  ASSERT_EQ(golden.size(), 5u);
  std::map<std::string, Job> read;
  for (const auto& [name, bytes] : golden) {
    Result<Job> job = DecodeJob(bytes);
    ASSERT_TRUE(job.ok()) << name << ": " << job.status().ToString();
    EXPECT_EQ(EncodeJob(*job), bytes) << name;
    read[name] = std::move(*job);
  }
  EXPECT_EQ(read["building"].attempts, 1u);
  EXPECT_EQ(read["building"].doing(), JobState::kRunning);
  EXPECT_EQ(read["building"].object, "index \"i\" of table \"t\"");
  EXPECT_EQ(read["parked"].state, JobState::kParked);
  EXPECT_FALSE(read["parked"].ended());
  EXPECT_EQ(read["parked"].doing(), JobState::kRunning);
  EXPECT_EQ(read["parked"].attempts, 2u);
  EXPECT_EQ(read["parked"].parked_reason,
            "the process ended 2 times while it was filling; RESUME JOB 7 tries again");
  EXPECT_EQ(read["parked undoing"].doing(), JobState::kUndoing);
  EXPECT_EQ(read["cancel request"].kind, JobKind::kCancelRequest);
  EXPECT_EQ(read["progress"].progress_records, 3u);
}

TEST(JobRecords, OfUnknownKindsAndStatesAreRefused) {
  const auto refused = [](auto change) {
    Job job;
    job.id = 7;
    change(&job);
    return DecodeJob(EncodeJob(job)).status().code() == Code::kCorruption;
  };
  EXPECT_FALSE(refused([](Job*) {}));
  EXPECT_TRUE(refused([](Job* job) { job->kind = static_cast<JobKind>(7); }));
  EXPECT_TRUE(refused([](Job* job) { job->state = static_cast<JobState>(7); }));
  EXPECT_TRUE(refused([](Job* job) {
    job->state = JobState::kParked;
    job->resume_state = JobState::kDone;
  }));
}

}  // namespace
}  // namespace cellar::session
