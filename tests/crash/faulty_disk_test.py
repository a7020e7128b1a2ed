#!/usr/bin/python3
"""Power cuts and failing disks under the real server, at every n-th call that changes a file.

    faulty_disk_test.py PATH/TO/cellar PATH/TO/libfaulty_disk.so [--cuts N] [--faults N] [--seed N] [--only CASE]

faulty_disk.c does it. CELLAR_CUTS and CELLAR_FAULTS in the environment: how many values of n; 2,000 is every n up to
2,000. The load is mixed_load.py's, on a disk that looks so small that memory becomes files all the time.

A cut: the process ends at call n, and what was not synced is taken back, all or a part. After the restart all that was
acknowledged is there, no transaction by half, CHECK DATABASE FULL finds nothing; what was seen after a restart is
there after the next cut. Cuts come again in recovery.
A full disk: from call n on calls fail with ENOSPC. Writes say 53100, or 40003 where they were in flight, reads go on,
nothing ends, and when there is room again writes go on by themselves.
A failing disk, or no file descriptors (EIO, EMFILE): the same, but writes go on only after a restart.
"""

import argparse
import copy
import os
import random
import shutil
import sys
import tempfile
import time
import traceback

from faulty_disk import CUT, FAILING, FULL, HEALTHY, NO_FILES, Disk
from kill_test import Gone
from mixed_load import (Book, Connection, Load, Loader, OwnChanger, Payer, Refused, Server, SharedChanger, Unknown,
                        check_full, compare, make_schema, read_state, wait_for_jobs)

SPAN = 2000               # values of n
OPENS = 60                # values of n for opens
PAYERS = 3
TOTAL_BYTES = 128 << 20   # of the disk, as it is told
FREE_BYTES = 100 << 20
CASE_SECONDS = 15         # until the call comes that is waited for
RECOVERY_SECONDS = 3      # until writes go on by themselves


class WideLoader(Loader):
    widest = 500


class FaultyClient:
    """What clients may be told while the disk fails; the load ends with the first of them."""

    expected, told = (), []

    def refused(self, error, sql):
        if error.startswith(self.expected):
            self.told.append(error)
            raise Told(error)
        super().refused(error, sql)


class Told(Exception):
    """A client was told of the fault."""



KINDS = [Payer] * PAYERS + [WideLoader, SharedChanger, OwnChanger]


class Case:
    """One store, one disk, one value of n."""

    def __init__(self, test, mode, n, rng):
        self.test, self.rng, self.mode, self.n = test, rng, mode, n
        self.folder = tempfile.mkdtemp(prefix="case-", dir=test.folder)
        self.disk = Disk(test.library, self.folder)
        store = os.path.join(self.disk.root, "store")
        shutil.copytree(test.template, store)
        self.books = copy.deepcopy(test.books)
        self.server = Server(test.cellar, store, os.path.join(self.folder, "log"), self.disk.environment)
        self.disk.set(total_bytes=TOTAL_BYTES, free_bytes=FREE_BYTES)
        self.story = []

    def tell(self, text):
        self.story.append(text)

    def load(self, kinds=None):
        clients = []
        for book, kind in zip(self.books, kinds or KINDS):
            clients.append(kind(Connection(self.server.url), book, random.Random(self.rng.random())))
        return Load(clients)

    def verify(self, good_log=True):
        connection = Connection(self.server.url)
        wait_for_jobs(connection)
        compare(read_state(connection), self.books)
        check_full(connection)
        connection.close()
        if good_log:
            self.server.expect_good_log()

    def last_start(self):
        """On a disk that is well."""
        self.disk.set(recording=0, mode=HEALTHY)
        self.server.start()
        self.verify()
        if self.server.stop() != 0:
            raise AssertionError("the server did not end well")

    # Cuts.

    def is_cut(self):
        return self.disk.get("hit") > 0

    def start_until_cut(self):
        """True: it is ready."""
        try:
            self.server.start()
            return True
        except AssertionError:
            if not self.is_cut() or self.server.process.poll() != -9:
                raise
            return False

    def run_until_cut(self):
        try:
            if not self.start_until_cut():
                return "at the start"
            self.verify()  # and what was unknown is known now
            load = self.load()
        except Gone:
            self.server.process.wait()
            return "at once"
        until = time.monotonic() + CASE_SECONDS
        while self.server.alive() and time.monotonic() < until:
            time.sleep(0.01)
        self.disk.set(at=1)  # if n was too far away
        self.server.process.wait()
        load.end()
        return "under load"

    def cut(self):
        self.disk.record()
        n = self.n
        while True:
            self.disk.set(calls=0, hit=0, at=n, mode=CUT)
            if self.rng.random() < 0.25:
                # A kill before the cut: what is found after it may lie in the system's cache alone.
                self.disk.set(mode=HEALTHY)
                self.server.start()
                self.verify()
                load = self.load()
                time.sleep(self.rng.uniform(0.05, 0.4))
                self.server.kill()
                load.end()
                self.tell("killed")
                self.disk.set(calls=0, hit=0, at=n, mode=CUT)
            where = self.run_until_cut()
            if not self.is_cut() or self.server.process.returncode != -9:
                raise AssertionError(f"the server ended by itself with {self.server.process.returncode}: "
                                     f"{self.server.said()[-3000:]}")
            self.tell(f"cut at call {n} {where}, taken back: " + ", ".join(self.disk.cut(self.rng)))
            if self.rng.random() > 0.4:
                break
            n = self.rng.randint(1, 400)
        self.last_start()

    # Faults.

    def fault(self):
        errors = {FULL: ("53100",), FAILING: ("58030",), NO_FILES: ("58030", "53")}[self.mode]
        self.disk.set(short_write=self.rng.randint(0, 1), honest=self.rng.randint(0, 1), at=self.n, mode=self.mode)
        try:
            self.server.start()
        except Refused as refused:
            self.tell(f"refused: {refused}")
            if not self.disk.get("hit"):
                raise AssertionError(f"refused, and no call has failed: {refused}") from refused
            self.disk.set(mode=HEALTHY)
            self.last_start()
            return
        self.tell("started")
        kinds = []
        told = []
        for kind in KINDS:
            kinds.append(type("Faulty" + kind.__name__, (FaultyClient, kind), {
                "expected": errors, "told": told}))
        load = FaultLoad([kind(Connection(self.server.url), book, random.Random(self.rng.random()))
                          for book, kind in zip(self.books, kinds)])
        until = time.monotonic() + CASE_SECONDS
        while not self.disk.get("hit") and not load.failures and time.monotonic() < until:
            time.sleep(0.01)
        if not self.disk.get("hit"):
            self.disk.set(at=1)
        time.sleep(self.rng.choice([self.rng.uniform(0, 0.1), self.rng.uniform(0.1, 1)]))
        self.read()
        if self.mode != FULL or self.rng.random() < 0.5:
            load.end()
            self.read()
        if self.mode == FULL:
            self.disk.set(mode=HEALTHY)
            self.tell("room again")
        self.tell(f"told {sorted({error[:5] for error in told})}, {load.unknown} unknown")
        if self.mode == FULL:
            self.write_again()
            load.end()
            self.verify()
            load = self.load()
            time.sleep(0.2)
            load.end()
            self.verify()
        load.end()
        if self.rng.random() < 0.5:
            self.server.kill()
        elif self.server.stop() != 0 and self.mode == FULL:
            raise AssertionError("the server did not end well")
        self.last_start()

    def read(self):
        connection = Connection(self.server.url)
        read_state(connection)
        connection.close()

    def write_again(self):
        until = time.monotonic() + RECOVERY_SECONDS
        connection = Connection(self.server.url)
        tries = 0
        while True:
            tries += 1
            _, error = connection.query("INSERT INTO parents VALUES (0, 'again') ON CONFLICT (id) DO UPDATE SET "
                                        "name = 'again'")
            if error is None:
                break
            if not error.startswith(("53100", "40001")):
                raise AssertionError(f"after the disk was full: {error}")
            if time.monotonic() > until:
                raise AssertionError(f"writes do not go on: {error}")
            time.sleep(0.05)
        self.tell(f"wrote again at try {tries}")
        connection.close()

    def run(self):
        if self.mode == CUT:
            self.cut()
        else:
            self.fault()
        self.server.discard()
        shutil.rmtree(self.folder)


class FaultLoad(Load):
    """Each client ends with the first error that the fault gives it."""

    def __init__(self, clients):
        self.unknown = 0
        super().__init__(clients)

    def run(self, client):
        try:
            while not self.stopping.is_set():
                try:
                    client.step()
                except Told:
                    if self.stopping.wait(0.05):
                        return
        except Unknown:
            self.unknown += 1
        except Gone:
            # Only by the test.
            if not self.stopping.is_set():
                self.failures.append(AssertionError("the server closed a connection"))
        except Exception as failure:  # pylint: disable=broad-except
            self.failures.append(failure)
        finally:
            client.connection.close()


class Test:
    def __init__(self, options, folder):
        self.cellar, self.library, self.folder = options.cellar, options.library, folder
        self.books = [Book(owner) for owner in range(len(KINDS))]
        self.template = os.path.join(folder, "template")
        self.seed = options.seed
        self.failed = 0

    def prepare(self):
        """A store with something in it."""
        server = Server(self.cellar, self.template, os.path.join(self.folder, "log"))
        try:
            server.start()
            connection = Connection(server.url)
            make_schema(connection)
            connection.close()
            load = Load([kind(Connection(server.url), book, random.Random(self.seed)) for book, kind in
                         zip(self.books, KINDS)])
            time.sleep(1)
            load.end()
            connection = Connection(server.url)
            wait_for_jobs(connection)
            compare(read_state(connection), self.books)
            connection.close()
            server.stop()
        finally:
            server.discard()

    def run(self, mode, n, keep):
        name = {CUT: "cut", FULL: "full", FAILING: "failing", NO_FILES: "no files"}[mode]
        case = Case(self, mode, n, random.Random(f"{self.seed} {mode} {n}"))
        try:
            case.run()
            print(f"{name} at {n}: {'; '.join(line[:200] for line in case.story)}", flush=True)
        except Exception:  # pylint: disable=broad-except
            self.failed += 1
            case.server.discard()
            print(f"FAILED: {name} at {n}, seed {self.seed}: {'; '.join(case.story)}", flush=True)
            traceback.print_exc(file=sys.stdout)
            print(f"the log ends with:\n{case.server.said()[-3000:]}", flush=True)
            if keep:
                print(f"all of it is in {case.folder}", flush=True)


def spread(count, span, rng):
    """Values of n up to `span`, closer at the beginning, or each."""
    if count >= span:
        return [1 + at % span for at in range(count)]
    return [1 + int(span * ((at + rng.random()) / count) ** 2) for at in range(count)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cellar")
    parser.add_argument("library")
    parser.add_argument("--cuts", type=int, default=int(os.environ.get("CELLAR_CUTS", 5)))
    parser.add_argument("--faults", type=int, default=int(os.environ.get("CELLAR_FAULTS", 5)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_CRASH_SEED", 1)))
    parser.add_argument("--keep", action="store_true", help="leave the stores of failures behind")
    parser.add_argument("--only", help="such as full:120")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print(f"seed {options.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="cellar-faulty-disk-")
    test = Test(options, folder)
    cases = [(CUT, n) for n in spread(options.cuts, SPAN, rng)]
    for at, n in enumerate(spread(options.faults, SPAN, rng)):
        mode = (FULL, FAILING, NO_FILES, FULL, FAILING, FULL)[at % 6]
        cases.append((mode, n if mode != NO_FILES else 1 + n % OPENS))
    if options.only:
        name, n = options.only.split(":")
        cases = [({"cut": CUT, "full": FULL, "failing": FAILING, "nofiles": NO_FILES}[name], int(n))]
    begun = time.monotonic()
    try:
        test.prepare()
        for mode, n in cases:
            test.run(mode, n, options.keep)
        print(f"{len(cases)} cases in {time.monotonic() - begun:.0f} s, {test.failed} failed")
    finally:
        if not (test.failed and options.keep):
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if test.failed else 0)


if __name__ == "__main__":
    main()
