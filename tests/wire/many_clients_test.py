#!/usr/bin/python3
"""100 clients at once, 1,000 idle ones, and what an idle one costs."""

import resource
import threading

from harness import CELLAR, RawConnection, ServerTest, main, skip

IDLE = 1000
ACTIVE = 100
IDLE_KILOBYTES = 72

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if hard < IDLE + 200:
    skip(f"only {hard} files may be open")
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def is_sanitized():
    """Sanitizers have memory of their own per thread."""
    with open(CELLAR, "rb") as file:
        program = file.read()
    return b"__asan_init" in program or b"__tsan_init" in program


class ManyClients(ServerTest):
    def test_many(self):
        self.server.psql("CREATE TABLE hits (client int, n int, PRIMARY KEY (client, n))")
        before = self.server.rss_kilobytes()
        idle = [RawConnection(self.server) for _ in range(IDLE)]
        each = (self.server.rss_kilobytes() - before) / IDLE
        print(f"an idle connection costs {each:.1f} KB")
        if not is_sanitized():
            self.assertLess(each, IDLE_KILOBYTES)
        failures = []

        def work(number):
            try:
                connection = RawConnection(self.server)
                for i in range(5):
                    kinds = [kind for kind, _ in connection.query(
                        f"INSERT INTO hits VALUES ({number}, {i})")]
                    if "C" not in kinds:
                        failures.append((number, kinds))
                connection.close()
            except OSError as error:
                failures.append((number, error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(ACTIVE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.server.psql("SELECT count(*) FROM hits"), f"{ACTIVE * 5}\n")
        for connection in idle[::100]:
            self.assertIn("D", [kind for kind, _ in connection.query("SELECT 1")])
        for connection in idle:
            connection.close()


if __name__ == "__main__":
    main()
