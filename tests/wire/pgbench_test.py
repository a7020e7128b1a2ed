#!/usr/bin/python3
"""pgbench: initialise, then its TPC-B-like and select-only scripts in every protocol."""

import re
import shutil

from harness import ServerTest, main, skip

PGBENCH = shutil.which("pgbench") or shutil.which("pgbench", path="/usr/lib/postgresql/15/bin")
if PGBENCH is None:
    skip("pgbench is not installed")


class Pgbench(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.run(PGBENCH, "-i", "-s", "1", "-q")

    def bench(self, *options):
        output = self.server.run(PGBENCH, "-n", *options).stdout
        failed = re.search(r"number of failed transactions: (\d+)", output)
        self.assertEqual(failed.group(1) if failed else "0", "0", output)
        return int(re.search(r"actually processed: (\d+)", output).group(1))

    def test_initialised(self):
        self.assertEqual(self.server.psql("SELECT count(*), sum(abalance) FROM pgbench_accounts"),
                         "100000|0\n")

    def test_select_only(self):
        for protocol in ("simple", "extended", "prepared"):
            done = self.bench("-S", "-M", protocol, "-c", "4", "-j", "2", "-t", "200")
            self.assertEqual(done, 800)

    def test_tpcb_like(self):
        before = int(self.server.psql("SELECT count(*) FROM pgbench_history"))
        done = 0
        for protocol in ("simple", "prepared"):
            done += self.bench("-M", protocol, "-c", "4", "-j", "2", "-t", "50",
                               "--max-tries=100")
        after = int(self.server.psql("SELECT count(*) FROM pgbench_history"))
        self.assertEqual(after, before + done)
        # Money is neither made nor lost. (Accounts also change in the simple script.)
        sums = self.server.psql("""
            SELECT (SELECT sum(tbalance) FROM pgbench_tellers)
                 = (SELECT sum(bbalance) FROM pgbench_branches),
                   (SELECT sum(abalance) FROM pgbench_accounts)
                 = (SELECT sum(delta) FROM pgbench_history)""")
        self.assertEqual(sums, "t|t\n")

    def test_simple_update(self):
        self.assertEqual(self.bench("-N", "-c", "2", "-t", "50", "--max-tries=100"), 100)


if __name__ == "__main__":
    main()
