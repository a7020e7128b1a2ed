#!/usr/bin/python3
"""CREATE INDEX on a large table: beside SQLite's, and beside writers.

    index_beside_writers.py PATH/TO/cellar [--rows N] [--rounds N] [--writers N] [--layout NAME]

Prints, as medians of the rounds: how long the statement takes with nobody else and with writers, SQLite's
time for the same rows, and how many durable single-row updates the writers commit in a second, before
and meanwhile. In the end also how long RENAME and DROP of the table take.
"""

import argparse
import io
import os
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "crash"))
from kill_test import Connection, start  # pylint: disable=wrong-import-position


def run(connection, sql, copy_data=None):
    rows, error = connection.query(sql, copy_data)
    if error:
        raise RuntimeError(f"{sql}: {error}")
    return rows


def timed(function, *arguments):
    begun = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begun


class Writers:
    """Update rows at random places until they are stopped."""

    def __init__(self, url, count, rows):
        self.stop, self.commits = threading.Event(), [0] * count
        self.threads = [threading.Thread(target=self.work, args=(url, i, rows)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def work(self, url, number, rows):
        connection, rng = Connection(url), random.Random(number)
        while not self.stop.is_set():
            _, error = connection.query(
                f"UPDATE t SET k = {rng.randrange(10 ** 9)} WHERE id = {rng.randrange(rows)}")
            if not error:
                self.commits[number] += 1
            elif not error.startswith("40"):
                raise RuntimeError(error)

    def pace(self, function, *arguments):
        """Commits a second, and seconds, while the function runs."""
        before = sum(self.commits)
        seconds = timed(function, *arguments)
        return (sum(self.commits) - before) / seconds, seconds

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def keys(rows):
    numbers = list(range(rows))
    random.Random(1).shuffle(numbers)
    return numbers


def sqlite_seconds(folder, numbers, rounds):
    path = os.path.join(folder, "peer.db")
    peer = sqlite3.connect(path)
    peer.execute("CREATE TABLE t (id integer PRIMARY KEY, k int, v text, w int)")
    peer.executemany("INSERT INTO t VALUES (?, ?, ?, ?)",
                     ((i, k, f"value {i}", i % 100) for i, k in enumerate(numbers)))
    peer.commit()
    seconds = []
    for _ in range(rounds):
        seconds.append(timed(lambda: (peer.execute("CREATE INDEX i ON t (k)"), peer.commit())))
        peer.execute("DROP INDEX i")
    peer.close()
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cellar")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--layout", default="row")
    options = parser.parse_args()
    numbers = keys(options.rows)
    folder = tempfile.mkdtemp(prefix="cellar-index-")
    process, url = start(options.cellar, os.path.join(folder, "store"))
    try:
        connection = Connection(url)
        connection.socket.settimeout(600)
        run(connection, "CREATE TABLE t (id bigint PRIMARY KEY, k int, v text, w int) "
            f"WITH (layout = {options.layout})")
        lines = io.StringIO()
        for i, k in enumerate(numbers):
            lines.write(f"{i}\t{k}\tvalue {i}\t{i % 100}\n")
        run(connection, "COPY t FROM STDIN", [lines.getvalue().encode()])
        peer = sqlite_seconds(folder, numbers, options.rounds)
        alone, beside, before, meanwhile = [], [], [], []
        for _ in range(options.rounds):
            alone.append(timed(run, connection, "CREATE INDEX i ON t (k)"))
            run(connection, "DROP INDEX i")
        writers = Writers(url, options.writers, options.rows)
        time.sleep(1)
        for _ in range(options.rounds):
            before.append(writers.pace(time.sleep, 1.5)[0])
            pace, seconds = writers.pace(run, connection, "CREATE INDEX i ON t (k)")
            meanwhile.append(pace)
            beside.append(seconds)
            run(connection, "DROP INDEX i")
        writers.end()
        middle = statistics.median
        print(f"{options.rows} rows, layout {options.layout}, {options.writers} writers")
        print(f"CREATE INDEX alone    {middle(alone):.3f} s, {middle(alone) / peer:.2f} of SQLite's {peer:.3f} s")
        print(f"CREATE INDEX beside   {middle(beside):.3f} s, {middle(beside) / peer:.2f} of SQLite's")
        print(f"writers               {middle(before):.0f} commits/s before, {middle(meanwhile):.0f} meanwhile: "
              f"{middle(m / b for m, b in zip(meanwhile, before)):.2f}")
        findings = run(connection, "CHECK TABLE t")
        if findings:
            raise RuntimeError(f"CHECK finds {findings[:3]}")
        rename = [timed(run, connection, f"ALTER TABLE t{a} RENAME TO t{b}")
                  for a, b in [("", 1), (1, 2), (2, 3), (3, 4), (4, "")]]
        print(f"RENAME                {middle(rename) * 1e3:.1f} ms")
        print(f"DROP                  {timed(run, connection, 'DROP TABLE t') * 1e3:.1f} ms")
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
