#!/usr/bin/python3
"""Kills the server with SIGKILL in the midst of COPY and of small transactions, again and again.

    kill_test.py PATH/TO/cellar [--cycles N] [--seed N] [--keep]

Clients keep a ledger of what was acknowledged. After each restart:
  - every acknowledged commit is there, and what was not acknowledged is there whole or not at all;
  - a COPY that was not acknowledged has left either all of its rows or none;
  - the sums of the bank agree with its history;
  - now and then, and at the end, `cellar check` finds every index in agreement with its table.
"""

import argparse
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

CLIENTS = 4
ACCOUNTS = 100
COPY_ROWS = 3000
CHECK_EVERY = 10
START_SECONDS = 60

SCHEMA = """
CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE history (client int, n int, account int NOT NULL, delta int NOT NULL,
                      PRIMARY KEY (client, n));
CREATE INDEX history_account ON history (account, delta DESC);
CREATE TABLE loads (load int, row int, filler text, PRIMARY KEY (load, row));
CREATE UNIQUE INDEX loads_unique ON loads (row, load);
INSERT INTO accounts SELECT n, 0 FROM generate_series(1, %d) n;
""" % ACCOUNTS


class Gone(Exception):
    """The server went away."""


class Connection:
    """Simple protocol, text rows."""

    def __init__(self, url):
        parts = urlsplit(url)
        try:
            self.socket = socket.create_connection((parts.hostname, parts.port), 30)
        except OSError as error:
            raise Gone(str(error)) from error
        body = f"user\0{parts.username}\0database\0{parts.path[1:]}\0\0".encode()
        self.buffer = b""
        self.send(struct.pack("!II", len(body) + 8, 196608) + body)
        self.collect()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Gone(str(error)) from error

    def take(self, count):
        while len(self.buffer) < count:
            try:
                more = self.socket.recv(65536)
            except OSError as error:
                raise Gone(str(error)) from error
            if not more:
                raise Gone("closed")
            self.buffer += more
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def collect(self, copy_data=None):
        """Rows and the error's SQLSTATE, up to ReadyForQuery."""
        rows, error = [], None
        while True:
            kind, length = struct.unpack("!cI", self.take(5))
            body = self.take(length - 4)
            if kind == b"D":
                row, at = [], 2
                for _ in range(struct.unpack("!H", body[:2])[0]):
                    size = struct.unpack("!i", body[at:at + 4])[0]
                    at += 4
                    row.append(None if size < 0 else body[at:at + size].decode())
                    at += max(size, 0)
                rows.append(row)
            elif kind == b"E":
                fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
                error = fields[b"C"] + " " + fields[b"M"]
            elif kind == b"G":
                for piece in copy_data:
                    self.send(b"d" + struct.pack("!I", len(piece) + 4) + piece)
                self.send(b"c\0\0\0\4")
            elif kind == b"Z":
                return rows, error

    def query(self, sql, copy_data=None):
        body = sql.encode() + b"\0"
        self.send(b"Q" + struct.pack("!I", len(body) + 4) + body)
        return self.collect(copy_data)

    def rows(self, sql):
        rows, error = self.query(sql)
        if error:
            raise AssertionError(f"{sql}: {error}")
        return rows

    def close(self):
        self.socket.close()


class Ledger:
    """What clients know: acknowledged for certain, and begun without an answer."""

    def __init__(self):
        self.lock = threading.Lock()
        self.acknowledged = {}   # (client, n) -> (account, delta)
        self.unknown = {}        # the same, at most one per client and crash
        self.loads = set()       # acknowledged COPYs
        self.unknown_loads = set()
        self.next_load = 1
        self.retries = 0


def pay(url, client, ledger, rng, start):
    """Moves money and writes history, until the server goes."""
    n = start
    try:
        connection = Connection(url)
        while True:
            n += 1
            account, delta = rng.randint(1, ACCOUNTS), rng.randint(-100, 100)
            with ledger.lock:
                ledger.unknown[(client, n)] = (account, delta)
            _, error = connection.query(
                f"BEGIN; UPDATE accounts SET balance = balance + {delta} WHERE id = {account}; "
                f"INSERT INTO history VALUES ({client}, {n}, {account}, {delta}); COMMIT")
            with ledger.lock:
                del ledger.unknown[(client, n)]
                if error is None:
                    ledger.acknowledged[(client, n)] = (account, delta)
                elif error.startswith("40"):
                    ledger.retries += 1
                else:
                    raise AssertionError(error)
            if error:
                connection.query("ROLLBACK")
    except Gone:
        pass


def load(url, ledger):
    """COPYs batches of rows, until the server goes."""
    try:
        connection = Connection(url)
        while True:
            with ledger.lock:
                number = ledger.next_load
                ledger.next_load += 1
                ledger.unknown_loads.add(number)
            lines = [f"{number}\t{row}\t{'x' * 50}\n" for row in range(COPY_ROWS)]
            pieces = ["".join(lines[at:at + 100]).encode() for at in range(0, COPY_ROWS, 100)]
            _, error = connection.query("COPY loads FROM STDIN", pieces)
            with ledger.lock:
                ledger.unknown_loads.discard(number)
                if error is None:
                    ledger.loads.add(number)
                elif not error.startswith("40"):
                    raise AssertionError(error)
    except Gone:
        pass


def start(cellar, store):
    process = subprocess.Popen(
        [cellar, "serve", "--store", store, "--listen", "127.0.0.1:0", "--trust-local"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline().strip()
    if not line.startswith("ready "):
        process.kill()
        raise AssertionError(f"the server does not start: {line!r} {process.stderr.read()}")
    return process, line.split(" ", 1)[1]


def verify(connection, ledger):
    """Compares the store with the ledger, and moves what was unknown to where it belongs."""
    found = {(int(c), int(n)): (int(a), int(d)) for c, n, a, d in connection.rows(
        "SELECT client, n, account, delta FROM history")}
    for key, value in ledger.acknowledged.items():
        if found.get(key) != value:
            raise AssertionError(f"acknowledged payment {key} = {value} is {found.get(key)}")
    for key, value in found.items():
        if key not in ledger.acknowledged:
            if ledger.unknown.get(key) != value:
                raise AssertionError(f"nobody made payment {key} = {value}")
            ledger.acknowledged[key] = value
    ledger.unknown.clear()
    expected = [0] * (ACCOUNTS + 1)
    for account, delta in found.values():
        expected[account] += delta
    for account, balance in connection.rows("SELECT id, balance FROM accounts"):
        if expected[int(account)] != int(balance):
            raise AssertionError(f"account {account} holds {balance}, not {expected[int(account)]}")
    counts = {int(number): int(count) for number, count in connection.rows(
        "SELECT load, count(*) FROM loads GROUP BY load")}
    for number in ledger.loads:
        if counts.get(number) != COPY_ROWS:
            raise AssertionError(f"acknowledged load {number} has {counts.get(number)} rows")
    for number, count in counts.items():
        if number in ledger.loads:
            continue
        if number not in ledger.unknown_loads or count != COPY_ROWS:
            raise AssertionError(f"load {number} was not acknowledged and has {count} rows")
        ledger.loads.add(number)
    ledger.unknown_loads.clear()


def check(cellar, store):
    result = subprocess.run([cellar, "check", "--store", store], capture_output=True, text=True,
                            timeout=300, check=False)
    if result.returncode != 0:
        raise AssertionError(f"cellar check: {result.stdout}{result.stderr}")
    return result.stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cellar")
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_CRASH_SEED", 1)))
    parser.add_argument("--keep", action="store_true", help="leave the store behind")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print(f"seed {options.seed}")
    folder = tempfile.mkdtemp(prefix="cellar-crash-")
    store = os.path.join(folder, "store")
    ledger = Ledger()
    failed = True
    process = None
    begun = time.monotonic()
    try:
        process, url = start(options.cellar, store)
        connection = Connection(url)
        _, error = connection.query(SCHEMA)
        if error:
            raise AssertionError(error)
        for cycle in range(1, options.cycles + 1):
            failures = []

            def guarded(function, *arguments):
                try:
                    function(*arguments)
                except Exception as error:  # pylint: disable=broad-except
                    failures.append(error)

            threads = [threading.Thread(target=guarded, args=(
                pay, url, client, ledger, random.Random(rng.random()),
                max((n for c, n in ledger.acknowledged if c == client), default=0) + 1000))
                for client in range(CLIENTS)]
            threads.append(threading.Thread(target=guarded, args=(load, url, ledger)))
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.2, 1.2))
            process.kill()
            process.wait()
            connection.close()
            for thread in threads:
                thread.join()
            if failures:
                raise failures[0]
            if cycle % CHECK_EVERY == 0:
                print(check(options.cellar, store), flush=True)
            process, url = start(options.cellar, store)
            connection = Connection(url)
            verify(connection, ledger)
            if len(ledger.loads) > 20:  # keeps the store, and the time of a cycle, small
                connection.rows("DELETE FROM loads")
                ledger.loads.clear()
        process.terminate()
        if process.wait(60) != 0:
            raise AssertionError("the server did not end well")
        print(check(options.cellar, store))
        print(f"{options.cycles} kills in {time.monotonic() - begun:.0f} s: "
              f"{len(ledger.acknowledged)} payments, {ledger.next_load - 1} loads, "
              f"{ledger.retries} conflicts")
        failed = False
    finally:
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
        if failed and options.keep:
            print(f"the store is in {store}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
