#!/usr/bin/python3
"""Kills the server with SIGKILL under a mixed load, and again while it recovers.

    mixed_kill_test.py PATH/TO/cellar [--kills N] [--seed N] [--keep]

CELLAR_KILLS in the environment: how often (2,000 is the long form). After each restart that was let finish: all
that was acknowledged is there, no transaction by half, CHECK DATABASE FULL finds nothing, the log has nothing bad
to say. The load is mixed_load.py's.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from mixed_load import (Backups, Book, Connection, Load, Loader, OwnChanger, Payer, Server, SharedChanger,
                        check_full, compare, make_schema, read_state, wait_for_jobs)

PAYERS = 3
KEPT_BACKUPS = 2


class Test:
    def __init__(self, options, folder):
        self.rng = random.Random(options.seed)
        self.cellar, self.folder = options.cellar, folder
        self.server = Server(options.cellar, os.path.join(folder, "store"), os.path.join(folder, "log"))
        self.backup_folder = os.path.join(folder, "backups")
        os.mkdir(self.backup_folder)
        self.server.use_files_in(self.backup_folder)
        self.books = [Book(owner) for owner in range(PAYERS + 4)]
        self.kills = self.in_recovery = self.backups = 0
        self.backs_up = False

    def clients(self):
        made = []
        for book in self.books:
            rng = random.Random(self.rng.random())
            kind = ([Payer] * PAYERS + [Loader, SharedChanger, OwnChanger, Backups])[book.owner]
            if kind is not Backups:
                made.append(kind(Connection(self.server.url), book, rng))
            elif self.backs_up:
                made.append(Backups(Connection(self.server.url), book, rng, self.backup_folder))
        return made

    def verify(self):
        connection = Connection(self.server.url)
        wait_for_jobs(connection)
        compare(read_state(connection), self.books)
        check_full(connection)
        connection.close()
        self.server.expect_good_log()

    def verify_backup(self, path):
        """What is restored of it is a store, at one moment of the load."""
        restored = os.path.join(self.folder, "restored")
        for arguments in (["verify", "--from", path], ["restore", "--from", path, "--store", restored]):
            subprocess.run([self.cellar, "backup", *arguments], check=True, stdout=subprocess.DEVNULL)
        server = Server(self.cellar, restored, os.path.join(self.folder, "backup_log"))
        server.start()
        connection = Connection(server.url)
        wait_for_jobs(connection)
        read_state(connection)
        check_full(connection)
        connection.close()
        server.expect_good_log()
        if server.stop() != 0:
            raise AssertionError("the server on a backup did not end well")
        shutil.rmtree(restored)
        self.backups += 1

    def first(self):
        self.server.start()
        connection = Connection(self.server.url)
        make_schema(connection)
        self.backs_up = Backups.known(connection, self.backup_folder) is not None
        connection.close()

    def round(self):
        clients = self.clients()
        load = Load(clients)
        time.sleep(self.rng.choice([self.rng.uniform(0.02, 0.3), self.rng.uniform(0.3, 1.2)]))
        self.server.kill()
        load.end()
        self.kills += 1
        while self.rng.random() < 0.4:
            # Within a few milliseconds of the start, or of what it takes to be ready.
            self.server.begin()
            time.sleep(self.rng.choice([self.rng.uniform(0, 0.03), self.rng.uniform(0.03, 0.4)]))
            self.server.kill()
            self.kills += 1
            self.in_recovery += 1
        self.server.start()
        self.verify()
        made = [path for client in clients if isinstance(client, Backups) for path in client.made]
        if made:
            self.verify_backup(made[-1])
        for name in os.listdir(self.backup_folder):
            shutil.rmtree(os.path.join(self.backup_folder, name))

    def run(self, kills):
        begun = time.monotonic()
        self.first()
        told = 0
        while self.kills < kills:
            self.round()
            if self.kills >= told + 100:
                told = self.kills
                print(f"{self.kills} kills in {time.monotonic() - begun:.0f} s", flush=True)
        if self.server.stop() != 0:
            raise AssertionError("the server did not end well")
        self.server.start()
        self.verify()
        self.server.stop()
        errors = {}
        for book in self.books:
            for state, count in book.errors.items():
                errors[state] = errors.get(state, 0) + count
        print(f"{self.kills} kills, {self.in_recovery} of them in recovery, in {time.monotonic() - begun:.0f} s: "
              f"acknowledged {[book.acknowledged for book in self.books]}, refused {errors}, "
              f"{self.backups} backups read" + ("" if self.backs_up else " (the server knows none)"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cellar")
    parser.add_argument("--kills", type=int, default=int(os.environ.get("CELLAR_KILLS", 12)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_CRASH_SEED", 1)))
    parser.add_argument("--keep", action="store_true", help="leave the store of a failure behind")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="cellar-mixed-kill-")
    test, failed = Test(options, folder), True
    try:
        test.run(options.kills)
        failed = False
    finally:
        test.server.discard()
        if failed:
            print(f"after {test.kills} kills; the log ends with:\n{test.server.said()[-3000:]}", file=sys.stderr)
        if failed and options.keep:
            print(f"the store is in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
