// What libpg_query keeps for each thread that parses.
#pragma once

namespace cellar::sql {

// Readies this thread for calls into the library; what that takes is freed when the thread ends.
// Left to itself the library would do so at its first call, with a pthread key of its own in every
// thread, which it never deletes: after PTHREAD_KEYS_MAX threads nobody in the process gets one.
// Cost after the first call: a load.
void ReadyParserThread();

}  // namespace cellar::sql
