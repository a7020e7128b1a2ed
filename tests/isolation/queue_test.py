#!/usr/bin/python3
"""A table as a job queue: workers take jobs at once, and each job is handed out exactly once.

    queue_test.py PATH/TO/cellar BUILD_DIR [--layout pages ...] [--only REGEX]
    queue_test.py --conninfo 'host=127.0.0.1 user=postgres dbname=postgres'    any other server

At READ COMMITTED none of the workers is ever refused, so that every error is a failure.
CELLAR_QUEUE_JOBS and CELLAR_QUEUE_WORKERS say how many there are.
"""

import argparse
import os
import re
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "wire"))
import harness  # noqa: E402

try:
    import psycopg2
except ImportError:
    harness.skip("psycopg2 is not installed")

JOBS = int(os.environ.get("CELLAR_QUEUE_JOBS", "2000"))
WORKERS = int(os.environ.get("CELLAR_QUEUE_WORKERS", "8"))
LAYOUTS = ("row", "pages", "cell")
# A way that comes to a stand ends here.
STATEMENT_SECONDS = 60
# Every so many jobs a worker gives its job back, as one that fails does.
GIVEN_BACK = 10

# name -> (how a job is taken, how it is finished; None: taking it finished it)
TAKE_FREE = "SELECT id FROM jobs WHERE state = 'new' {} LIMIT 1 FOR UPDATE SKIP LOCKED"
WAYS = {
    "delete": ("SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
               "DELETE FROM jobs WHERE id = %s"),
    "mark": (TAKE_FREE.format("ORDER BY id"),
             "UPDATE jobs SET state = 'done', worker = {} WHERE id = %s"),
    "mark_in_any_order": (TAKE_FREE.format(""),
                          "UPDATE jobs SET state = 'done', worker = {} WHERE id = %s"),
    "wait": ("SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE",
             "UPDATE jobs SET state = 'done', worker = {} WHERE id = %s"),
    "one_update": ("UPDATE jobs SET state = 'done', worker = {} WHERE id = "
                   f"({TAKE_FREE.format('ORDER BY id')}) RETURNING id", None),
    "one_delete": ("DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 "
                   "FOR UPDATE SKIP LOCKED) RETURNING id", None),
}
SCHEMA = """
DROP TABLE IF EXISTS jobs;
CREATE TABLE jobs (id int PRIMARY KEY, state text NOT NULL DEFAULT 'new', worker int, payload text);
INSERT INTO jobs (id, payload) SELECT i, repeat('x', 50) FROM generate_series(1, %s) i;
"""
INDEX = "CREATE INDEX jobs_new ON jobs (id) WHERE state = 'new'"


class Worker(threading.Thread):
    """Takes jobs until none is left; .done lists those it committed, .error what went wrong."""

    def __init__(self, connection, number, way):
        super().__init__()
        self.connection, self.number = connection, number
        self.take, self.finish = (sql and sql.format(number) for sql in WAYS[way])
        self.done, self.error, self.given_back = [], None, 0

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                while self.one(cursor) or self.any_left(cursor):
                    pass
        except psycopg2.Error as error:
            self.error = f"worker {self.number}: {error.pgcode}: {error}"
        finally:
            self.connection.close()

    def one(self, cursor):
        """Whether there was a job."""
        cursor.execute(self.take)
        row = cursor.fetchone()
        if row is None:
            self.connection.rollback()
            return False
        if self.finish:
            cursor.execute(self.finish, row)
            if cursor.rowcount != 1:
                raise psycopg2.Error(f"job {row[0]} was locked and is gone")
        if (len(self.done) + self.given_back + self.number) % GIVEN_BACK == 0:
            self.given_back += 1
            self.connection.rollback()
        else:
            self.connection.commit()
            self.done.append(row[0])
        return True

    def any_left(self, cursor):
        """What others hold now they may give back."""
        cursor.execute("SELECT count(*) FROM jobs WHERE state = 'new'")
        count = cursor.fetchone()[0]
        self.connection.commit()
        return count > 0


def connect(conninfo):
    connection = psycopg2.connect(conninfo)
    connection.set_session(isolation_level="READ COMMITTED")
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")
    connection.commit()
    return connection


def run(conninfo, way, indexed):
    """What was wrong, a line each."""
    with connect(conninfo) as connection, connection.cursor() as cursor:
        cursor.execute(SCHEMA, (JOBS,))
        if indexed:
            cursor.execute(INDEX)
    connection.close()
    workers = [Worker(connect(conninfo), number, way) for number in range(WORKERS)]
    started = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.monotonic() - started

    wrong = [worker.error for worker in workers if worker.error]
    done = sorted(job for worker in workers for job in worker.done)
    if len(done) != len(set(done)):
        wrong.append(f"handed out twice: {sorted({job for job in done if done.count(job) > 1})}")
    missing = sorted(set(range(1, JOBS + 1)) - set(done))
    if missing:
        wrong.append(f"{len(missing)} never handed out: {missing[:20]}")
    with connect(conninfo) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, state, worker FROM jobs ORDER BY id")
        rows = cursor.fetchall()
    connection.close()
    if "delete" in way:
        kept = []
    else:
        kept = sorted((job, "done", worker.number) for worker in workers for job in worker.done)
    if rows != kept:
        wrong.append(f"the table holds {len(rows)} rows, not what the workers committed")
    print(f"{'FAILED' if wrong else 'passed'} {way}{' (indexed)' if indexed else ''}: "
          f"{JOBS / max(seconds, 1e-9):.0f} jobs/s, "
          f"{' '.join(str(len(worker.done)) for worker in workers)} by worker, "
          f"{sum(worker.given_back for worker in workers)} given back")
    for line in wrong:
        print(f"  {line}")
    return wrong


def all_ways(conninfo, only):
    """Whether all went well."""
    wrong = []
    for way in WAYS:
        if re.search(only, way):
            wrong += run(conninfo, way, False)
            # What deletes jobs finds the next one by its key.
            if "delete" not in way:
                wrong += run(conninfo, way, True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("cellar", nargs="?", help="the program to test")
    parser.add_argument("workdir", nargs="?", default=tempfile.gettempdir())
    parser.add_argument("--layout", action="append", choices=LAYOUTS, help="default: all")
    parser.add_argument("--only", metavar="REGEX", default="", help="ways that match")
    parser.add_argument("--conninfo", help="test this server")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    if options.conninfo:
        sys.exit(0 if all_ways(options.conninfo, options.only) else 1)
    if not options.cellar:
        parser.error("name the program, or --conninfo")

    harness.CELLAR = os.path.abspath(options.cellar)
    good = True
    for layout in options.layout or LAYOUTS:
        print(f"layout {layout}:")
        os.environ["CELLAR_DEFAULT_TABLE_LAYOUT"] = layout
        with harness.Server("--no-sync") as server:
            good = all_ways(f"host={server.host} port={server.port} user={server.user} "
                            f"dbname={server.database}", options.only) and good
            code = server.process.poll()
            if code is None:
                code = server.stop()
            if code != 0:
                print(f"the server ended with {code}")
                good = False
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
