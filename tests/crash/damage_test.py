#!/usr/bin/python3
"""Damages, cuts off, empties and deletes files of a store that was stopped, or killed.

    damage_test.py PATH/TO/cellar [--damages N] [--seed N] [--keep] [--only CASE]

CELLAR_FILE_DAMAGES in the environment: how many (2,000 is the long form). After each the server refuses the store and
says why; or it starts and all is there; or it starts and an answer, or CHECK DATABASE FULL, tells of the damage. Never
is anything lost in silence, and never does the server end by a signal. Where a refusal offers --accept-log-damage the
store is opened so too: then the log says what was given up.

What the newest second of commits before a kill wrote may be lost with the end of the log (docs/formats/store.md).
"""

import argparse
import copy
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback

from kill_test import Gone
from mixed_load import (Book, Connection, Load, Loader, OwnChanger, Payer, Refused, Server, SharedChanger, make_schema,
                        read_state, wait_for_jobs)

KINDS = [Payer, Payer, Loader, SharedChanger, OwnChanger]
RESERVE_BYTES = 2 << 20
ACCEPT = "--accept-log-damage"

def class_of(path):
    """Of a path below the store."""
    name = os.path.basename(path)
    if os.path.dirname(path) == "spill":
        return "spill"
    if name.endswith((".log", ".sst")):
        return name[-3:]
    return name.split("-")[0].split(".old")[0]


def read_known(connection):
    """What read_state reads, table by table, of whatever can be read: key -> value, and what was said."""
    try:
        return read_state(connection), None
    except AssertionError as error:
        return None, str(error)


class Store:
    """A store to damage, and what the clients know of it."""

    def __init__(self, test, name, stopped, rng):
        self.path, self.name, self.stopped = os.path.join(test.folder, name), name, stopped
        self.touched = set()  # keys that were written within the newest second before the kill
        books = [Book(owner) for owner in range(len(KINDS))]
        server = Server(test.cellar, self.path, os.path.join(test.folder, name + ".log"))
        try:
            server.start()
            connection = Connection(server.url)
            make_schema(connection)
            connection.close()
            for seconds in (0.6, 0.3):
                self.load(server, books, rng, seconds)
                server.stop()
                server.start()  # which makes a table of what the log holds
            self.load(server, books, rng, 0.3)
            connection = Connection(server.url)
            wait_for_jobs(connection)
            if stopped:
                self.surely = self.perhaps = read_state(connection)
                connection.close()
                server.stop()
            else:
                time.sleep(2.5)  # until log_end knows of it
                self.surely = read_state(connection)
                books = copy.deepcopy(books)
                for book in books:
                    book.touched.clear()
                load = Load([kind(Connection(server.url), book, rng) for kind, book in
                             zip((Payer, Payer, Loader), books)])
                filler = threading.Thread(target=self.spill, args=(server.url,))
                filler.start()
                time.sleep(0.4)
                server.kill()
                load.end()
                filler.join()
                for book in books:
                    self.touched.update(book.touched, book.pending or {})
            # What the server makes when there is little room.
            with open(os.path.join(self.path, "reserve"), "wb") as reserve:
                reserve.write(bytes(RESERVE_BYTES))
            os.makedirs(os.path.join(self.path, "spill"), exist_ok=True)
            shutil.copy(os.path.join(self.path, "IDENTITY"), os.path.join(self.path, "spill", "000001.sst"))
        finally:
            server.discard()
        if not stopped:
            self.perhaps = self.find_newest(test)

    @staticmethod
    def load(server, books, rng, seconds):
        load = Load([kind(Connection(server.url), book, random.Random(rng.random())) for kind, book in
                     zip(KINDS, books)])
        time.sleep(seconds)
        load.end()

    @staticmethod
    def spill(url):
        """A transaction in flight."""
        try:
            Connection(url).query("INSERT INTO keys_row SELECT n, n FROM generate_series(100000, 2000000) n")
        except Gone:
            pass

    def find_newest(self, test):
        """What a server finds in it undamaged."""
        folder = self.path + "-whole"
        shutil.copytree(self.path, folder)
        server = Server(test.cellar, folder, self.path + ".log")
        server.start()
        connection = Connection(server.url)
        found = read_state(connection)
        server.stop()
        shutil.rmtree(folder)
        return found

    def files(self):
        found = {}
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.path)
                found.setdefault(class_of(path), []).append(path)
        return found


def damage(path, kind, rng):
    """Says what it did, or None where there is nothing to do it to."""
    size = os.path.getsize(path)
    if kind == "delete":
        os.unlink(path)
        return "deleted"
    if size == 0:
        return None
    with open(path, "r+b") as file:
        if kind == "flip":
            at, bit = rng.randrange(size), rng.randrange(8)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << bit]))
            return f"bit {bit} of byte {at} of {size} flipped"
        if kind == "truncate":
            length = rng.choice([0, rng.randrange(size), rng.randrange(size), max(0, size - rng.randint(1, 100))])
            file.truncate(length)
            return f"cut off at {length} of {size}"
        at = rng.choice([0, rng.randrange(size)])
        length = rng.choice([size - at, min(size - at, rng.randint(1, 5000))])
        file.seek(at)
        if not file.read(length).strip(b"\0"):
            return None
        file.seek(at)
        file.write(bytes(length))
        return f"{length} of {size} bytes zeroed at {at}"


class Case:
    def __init__(self, test, number):
        self.rng = random.Random(f"{test.seed} {number}")
        self.test, self.number = test, number
        self.source = test.stores[number % len(test.stores)]
        self.folder = os.path.join(test.folder, f"case{number}")
        self.store = os.path.join(self.folder, "store")
        self.server = None
        self.story = []

    def choose(self):
        """Each class in turn, in random order, those with the data oftener."""
        files = self.source.files()
        classes = sorted(files) + ["log", "sst", "MANIFEST", "sst", "log"]
        round_number, place = divmod(self.number // len(self.test.stores), len(classes))
        random.Random(f"{self.test.seed} {self.source.name} {round_number}").shuffle(classes)
        kinds = ("flip", "truncate", "delete", "zero", "flip")
        return self.rng.choice(files[classes[place]]), self.rng.choice(kinds)

    def run(self):
        path, kind = self.choose()
        shutil.copytree(self.source.path, self.store)
        done = damage(os.path.join(self.store, path), kind, self.rng)
        if done is None:
            shutil.rmtree(self.folder)
            return None
        self.story.append(f"{self.source.name}, {path}: {done}")
        self.server = Server(self.test.cellar, self.store, os.path.join(self.folder, "log"))
        accepts = False
        try:
            self.server.start()
        except Refused as refused:
            message = str(refused)
            self.story.append("refused: " + message.strip().splitlines()[0])
            accepts = ACCEPT in message
            if not accepts:
                shutil.rmtree(self.folder)
                return "refused"
            try:
                self.server.start(ACCEPT)
            except Refused as again:
                self.story.append(f"with {ACCEPT}: {str(again).strip().splitlines()[0]}")
                shutil.rmtree(self.folder)
                return "refused both ways"
        result = self.look(accepts)
        self.server.discard()
        shutil.rmtree(self.folder)
        return result

    def look(self, accepted):
        """The server has started: does anything that is missing go with a word?"""
        said = self.server.said().lower()
        told = accepted and ("given up" in said or "lost" in said)
        if accepted and not told:
            raise AssertionError(f"{ACCEPT} went without a word: {said}")
        connection = Connection(self.server.url)
        found, error = read_known(connection)
        connection.close()
        missing = wrong = {}
        if found is not None:
            # Of a killed store those keys may have any value that they had in its newest second.
            sure, newest = self.source.surely, self.source.perhaps
            wrong = {key: found.get(key) for key in set(found) | set(newest) | set(sure)
                     if found.get(key) != newest.get(key)}
            missing = {key: value for key, value in wrong.items() if key not in self.source.touched}
        connection = Connection(self.server.url)
        rows, check_error = connection.query("CHECK DATABASE FULL")
        connection.close()
        if check_error and check_error.startswith("XX000"):
            raise AssertionError(f"CHECK DATABASE FULL: {check_error}")
        finds = bool(rows) or check_error is not None
        if found is None:
            self.story.append("does not read: " + error[:150])
        if finds:
            self.story.append(f"CHECK finds {str(rows[:2] or check_error)[:200]}")
        code = self.server.stop()  # not by a signal
        if code != 0:
            self.story.append(f"the stop ended with {code}")
        newest_lost = wrong and not missing and not self.source.stopped and self.in_log()
        if found is not None and not missing and (not wrong or newest_lost):
            return "newest lost" if newest_lost else "found and whole" if finds else "whole"
        if not finds and not told and "XX00" not in (error or ""):
            raise AssertionError(f"lost in silence: {list((missing or wrong).items())[:5]}, {error}")
        return "given up" if told else "found"

    def in_log(self):
        return ".log" in self.story[0] or "log_end" in self.story[0]


class Test:
    def __init__(self, options, folder):
        self.cellar, self.folder, self.seed = options.cellar, folder, options.seed
        self.stores, self.failed, self.results = [], 0, {}

    def prepare(self):
        for name, stopped in (("stopped", True), ("killed", False)):
            self.stores.append(Store(self, name, stopped, random.Random(f"{self.seed} {name}")))

    def run(self, number, keep, aloud):
        case = Case(self, number)
        try:
            result = case.run()
            if result is not None:
                self.results[result] = self.results.get(result, 0) + 1
            if aloud and result is not None:
                print(f"{number}: {result}: {'; '.join(case.story)}", flush=True)
            return result is not None
        except Exception:  # pylint: disable=broad-except
            self.failed += 1
            print(f"FAILED: {number}, seed {self.seed}: {'; '.join(case.story)}", flush=True)
            traceback.print_exc(file=sys.stdout)
            if case.server is not None:
                case.server.discard()
                print(f"the log ends with:\n{case.server.said()[-2000:]}", flush=True)
            if keep:
                print(f"all of it is in {case.folder}", flush=True)
            else:
                shutil.rmtree(case.folder, ignore_errors=True)
            return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cellar")
    parser.add_argument("--damages", type=int, default=int(os.environ.get("CELLAR_FILE_DAMAGES", 18)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_CRASH_SEED", 1)))
    parser.add_argument("--keep", action="store_true", help="leave the stores of failures behind")
    parser.add_argument("--only", type=int, help="the case of this number")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = tempfile.mkdtemp(prefix="cellar-damage-")
    test, begun, done, number = Test(options, folder), time.monotonic(), 0, 0
    try:
        test.prepare()
        if options.only is not None:
            test.run(options.only, options.keep, True)
        while options.only is None and done < options.damages:
            done += test.run(number, options.keep, options.damages <= 200)
            number += 1
        print(f"{done} damages in {time.monotonic() - begun:.0f} s: {test.results}, {test.failed} failed")
    finally:
        if not (test.failed and options.keep):
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if test.failed else 0)


if __name__ == "__main__":
    main()
