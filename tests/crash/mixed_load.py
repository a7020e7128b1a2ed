"""A mixed load with a ledger, and the server under it: what the tests share that kill and starve the server.

Each client owns keys of its own in shared tables and keeps a book: what was acknowledged is there, what was
refused is not, and what was in flight when the server went, or said 40003, is there whole or not at all.

A transaction writes one thing into several tables, of layout row and of layout pages:
  ("order", n)   head (row) and three rows of body (pages), which refer to it, and two accounts, one of each layout,
                 the sum of which stays 0
  ("key", k)     one value in keys_row and in keys_pages, by ON CONFLICT
  ("load", n)    rows of loads_row and loads_pages, by COPY
  ("own", name)  a table that DDL makes, with its rows
  ("index", name), ("column", name): what DDL adds to the shared tables
"""

import os
import re
import select
import signal
import socket
import subprocess
import threading
import time

from kill_test import Connection as PlainConnection, Gone

ACCOUNTS = 60
PARENTS = 20
KEYS = 60           # of each client
PARTS = 3           # rows of body for a row of head
MOST_ORDERS = 60    # of each client
MOST_LOADS = 5
START_SECONDS = 120
ANSWER_SECONDS = 120

SCHEMA = f"""
CREATE TABLE parents (id int PRIMARY KEY, name text) WITH (layout = row);
CREATE TABLE accounts_row (id int PRIMARY KEY, balance bigint NOT NULL) WITH (layout = row);
CREATE TABLE accounts_pages (id int PRIMARY KEY, balance bigint NOT NULL) WITH (layout = pages);
CREATE TABLE head (client int, n int, parent int NOT NULL REFERENCES parents, a int NOT NULL REFERENCES accounts_row,
  b int NOT NULL REFERENCES accounts_pages, amount int NOT NULL, version int NOT NULL, note text,
  PRIMARY KEY (client, n)) WITH (layout = row);
CREATE UNIQUE INDEX head_unique ON head (n DESC, client);
CREATE INDEX head_amount ON head (amount DESC, note);
CREATE TABLE body (client int, n int, part int, amount int NOT NULL, version int NOT NULL,
  PRIMARY KEY (client, n, part), FOREIGN KEY (client, n) REFERENCES head ON DELETE CASCADE) WITH (layout = pages);
CREATE UNIQUE INDEX body_unique ON body (part, n DESC, client);
CREATE INDEX body_version ON body (version DESC);
CREATE TABLE keys_row (k int PRIMARY KEY, v int NOT NULL) WITH (layout = row);
CREATE TABLE keys_pages (k int PRIMARY KEY, v int NOT NULL) WITH (layout = pages);
CREATE INDEX keys_v ON keys_row (v DESC);
INSERT INTO parents SELECT n, 'parent ' || n FROM generate_series(1, {PARENTS}) n;
INSERT INTO accounts_row SELECT n, 0 FROM generate_series(1, {ACCOUNTS}) n;
INSERT INTO accounts_pages SELECT n, 0 FROM generate_series(1, {ACCOUNTS}) n;
"""
LOADS = ("CREATE TABLE loads_row (load int, row int, filler text, PRIMARY KEY (load, row)) WITH (layout = row)",
         "CREATE UNIQUE INDEX loads_unique ON loads_row (row, load DESC)",
         "CREATE TABLE loads_pages (load int, row int, filler text, PRIMARY KEY (load, row)) WITH (layout = pages)",
         "CREATE INDEX loads_row_number ON loads_pages (row DESC)")

# What a log must not say, whatever was done to the server's process.
BAD_WORDS = re.compile(r"corrupt|damaged|assert|check failed|sanitizer|internal error|terminate called", re.I)


class Unknown(Exception):
    """The server said 40003: whether the transaction is kept is not known yet."""


class Refused(Exception):
    """The server did not start, and said why."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


class Connection(PlainConnection):
    """One that takes silence for a failure, not for the end of the server."""

    def __init__(self, url, seconds=ANSWER_SECONDS):
        self.url = url
        super().__init__(url)
        self.socket.settimeout(seconds)

    def take(self, count):
        try:
            return super().take(count)
        except Gone as gone:
            if isinstance(gone.__cause__, socket.timeout):
                raise AssertionError(f"no answer within {self.socket.gettimeout()} s") from gone
            raise


class Server:
    """`cellar serve` on a store, its log kept in a file."""

    def __init__(self, cellar, store, log, environment=None):
        self.cellar, self.store, self.log = cellar, store, log
        self.environment = {**os.environ, **(environment or {})}
        self.process, self.url = None, None
        self.log_from = 0
        self.options = []
        self.usage = subprocess.run([cellar, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        if "--trust-local" in self.usage:
            self.options.append("--trust-local")

    def use_files_in(self, folder):
        """Lets statements name files and backups there."""
        if "--copy-directory" in self.usage:
            self.options += ["--copy-directory", folder]

    def begin(self, *options):
        """Starts it and does not wait until it can answer."""
        self.log_from = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.cellar, "serve", "--store", self.store, "--listen", "127.0.0.1:0", *self.options, *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=self.environment)

    def start(self, *options):
        """Its URL. Refused, if it says why it does not start; an end by a signal is a failure."""
        self.begin(*options)
        return self.await_ready()

    def await_ready(self):
        line = b""
        until = time.monotonic() + START_SECONDS
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise AssertionError(f"the server is not ready after {START_SECONDS} s: {self.said()}")
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                code = self.process.wait()
                self.process.stdout.close()
                if code < 0 or not self.said().strip():
                    raise AssertionError(f"the start ended with {code}: {self.said()!r}")
                raise Refused(self.said(), code)
            line += piece
        if not line.startswith(b"ready "):
            raise AssertionError(f"the server said {line!r}")
        self.url = line.decode().split()[1]
        return self.url

    def said(self):
        """What the log got since the last start."""
        with open(self.log, "rb") as log:
            log.seek(self.log_from)
            return log.read().decode(errors="replace")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """With SIGKILL. That it had ended by itself is a failure."""
        code = self.process.poll()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if code is not None:
            raise AssertionError(f"the server ended by itself with {code}: {self.said()[-3000:]}")

    def stop(self):
        """With SIGTERM; its exit code. An end by a signal is a failure."""
        self.process.terminate()
        try:
            code = self.process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired as stuck:
            raise AssertionError(f"the server does not stop: {self.said()[-3000:]}") from stuck
        self.process.stdout.close()
        if code < 0:
            raise AssertionError(f"the server ended with {code}: {self.said()[-3000:]}")
        return code

    def discard(self):
        """At the end of a test, whatever state it is in."""
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def expect_good_log(self):
        bad = [line for line in self.said().splitlines() if BAD_WORDS.search(line)]
        if bad:
            raise AssertionError("the server's log says: " + "\n".join(bad[:10]))


class Book:
    """What one client knows of its keys."""

    def __init__(self, owner):
        self.owner = owner
        self.state = {}       # key -> value, acknowledged
        self.pending = None   # key -> value or None: in flight, all or nothing
        self.touched = set()  # keys that a transaction has named, whatever became of it
        self.acknowledged = self.refused = 0
        self.errors = {}      # SQLSTATE -> how often
        self.next = 1

    def settle(self, error):
        """The answer to what is pending."""
        changes, self.pending = self.pending, None
        self.touched.update(changes)
        if error is None:
            self.acknowledged += 1
            for key, value in changes.items():
                if value is None:
                    self.state.pop(key, None)
                else:
                    self.state[key] = value
            return
        self.errors[error[:5]] = self.errors.get(error[:5], 0) + 1
        if error.startswith("40003"):
            self.pending = changes
            raise Unknown(error)
        self.refused += 1

    def number(self):
        """Never given out before, not even to what is not known."""
        self.next += 1
        return self.next


class Client:
    """One session. step() runs a transaction; Gone and Unknown end it."""

    # Conflicts, and what is being changed by a job or by another session.
    allowed = ("40001", "40P01", "55")

    def __init__(self, connection, book, rng):
        self.connection, self.book, self.rng = connection, book, rng

    def refused(self, error, sql):
        """An answer that is neither success nor unknown: nothing of it is kept."""
        if not error.startswith(self.allowed):
            raise AssertionError(f"{error}: {sql[:300]}")

    def transact(self, statements, changes):
        """`statements`: texts, or (text, data of a COPY). True when it was acknowledged."""
        book, query = self.book, self.connection.query
        plain = all(isinstance(statement, str) for statement in statements)
        if plain and self.rng.random() < 0.5:
            sql = "BEGIN; " + "; ".join(statements) + "; COMMIT"
            book.pending = changes
            _, error = query(sql)
            book.settle(error)
        else:
            sql = "BEGIN"
            for statement in ("BEGIN", *statements):
                sql, data = (statement, None) if isinstance(statement, str) else statement
                _, error = query(sql, data)
                if error:
                    break
            if error is None:
                sql = "COMMIT"
                book.pending = changes
                _, error = query(sql)
                book.settle(error)
            else:
                book.refused += 1
                book.errors[error[:5]] = book.errors.get(error[:5], 0) + 1
        if error:
            query("ROLLBACK")
            self.refused(error, sql)
        return error is None

    def alone(self, sql, changes=None, also=()):
        """A statement that is a transaction of its own."""
        self.book.pending = changes or {}
        _, error = self.connection.query(sql)
        self.book.settle(error)
        if error and not error.startswith(also or "none"):
            self.refused(error, sql)
        return error is None


class Payer(Client):
    """Orders, changes of orders, deletions, and keys."""

    def step(self):
        rng, book = self.rng, self.book
        orders = [key for key in book.state if key[0] == "order"]
        kind = rng.random()
        if kind < 0.3:
            self.put_keys()
        elif not orders or (kind < 0.7 and len(orders) < MOST_ORDERS):
            self.order()
        elif kind < 0.85:
            self.change(rng.choice(orders))
        else:
            self.delete(rng.choice(orders))

    def order(self):
        rng, client, n = self.rng, self.book.owner, self.book.number()
        parent, a, b = rng.randint(1, PARENTS), rng.randint(1, ACCOUNTS), rng.randint(1, ACCOUNTS)
        amount = rng.randint(1, 100)
        parts = ", ".join(f"({client}, {n}, {part}, {amount}, 1)" for part in range(PARTS))
        self.transact([
            f"INSERT INTO head (client, n, parent, a, b, amount, version, note) VALUES "
            f"({client}, {n}, {parent}, {a}, {b}, {amount}, 1, 'note 1 {'x' * rng.randrange(300)}')",
            f"UPDATE accounts_row SET balance = balance - {amount} WHERE id = {a}",
            f"INSERT INTO body (client, n, part, amount, version) VALUES {parts}",
            f"UPDATE accounts_pages SET balance = balance + {amount} WHERE id = {b}",
        ], {("order", client, n): (parent, a, b, amount, 1)})

    def change(self, key):
        parent, a, b, amount, version = self.book.state[key]
        where = f"WHERE client = {key[1]} AND n = {key[2]}"
        self.transact([
            f"UPDATE body SET version = {version + 1} {where}",
            f"UPDATE head SET version = {version + 1}, note = 'note {version + 1}' {where}",
        ], {key: (parent, a, b, amount, version + 1)})

    def delete(self, key):
        _, a, b, amount, _ = self.book.state[key]
        self.transact([
            f"UPDATE accounts_row SET balance = balance + {amount} WHERE id = {a}",
            f"UPDATE accounts_pages SET balance = balance - {amount} WHERE id = {b}",
            f"DELETE FROM head WHERE client = {key[1]} AND n = {key[2]}",
        ], {key: None})

    def put_keys(self):
        changes = {}
        for _ in range(self.rng.choice([1, 1, 5, 20])):
            k = self.book.owner * 1000 + self.rng.randrange(KEYS)
            changes[("key", k)] = self.rng.randrange(1000)
        values = ", ".join(f"({key[1]}, {value})" for key, value in changes.items())
        self.transact([
            f"INSERT INTO {table} (k, v) VALUES {values} ON CONFLICT (k) DO UPDATE SET v = excluded.v"
            for table in ("keys_row", "keys_pages")], changes)


class Loader(Client):
    """COPY of some hundred rows into both layouts; TRUNCATE of both, or DROP and CREATE."""

    widest = 20  # times four bytes in a row

    def step(self):
        loads = [key for key in self.book.state if key[0] == "load"]
        if not loads or len(loads) < MOST_LOADS and self.rng.random() < 0.9:
            number, rows = self.book.number(), self.rng.randint(100, 600)
            lines = [f"{number}\t{row}\t{'load' * self.rng.randrange(self.widest)}\n" for row in range(rows)]
            data = ["".join(lines[at:at + 100]).encode() for at in range(0, rows, 100)]
            self.transact([("COPY loads_row FROM STDIN", data), ("COPY loads_pages FROM STDIN", data)],
                          {("load", number): rows})
        elif self.rng.random() < 0.4:
            key = self.rng.choice(loads)
            self.transact([f"DELETE FROM loads_row WHERE load = {key[1]}",
                           f"DELETE FROM loads_pages WHERE load = {key[1]}"], {key: None})
        elif self.rng.random() < 0.6:
            self.transact(["TRUNCATE loads_row", "TRUNCATE loads_pages"], {key: None for key in loads})
        else:
            self.transact(["DROP TABLE loads_row", "DROP TABLE loads_pages", *LOADS], {key: None for key in loads})


class SharedChanger(Client):
    """Indexes and columns of the shared tables; sealing, REINDEX, ANALYZE, and purges of what was dropped."""

    INDEXES = {
        "more_head": "INDEX more_head ON head (version, n DESC)",
        "more_body": "UNIQUE INDEX more_body ON body (version DESC, part, n, client)",
        "more_keys": "INDEX more_keys ON keys_pages (v DESC)",
        "more_accounts": "INDEX CONCURRENTLY more_accounts ON accounts_pages (balance)",
    }
    COLUMNS = {
        "head": "more_a int DEFAULT 7", "body": "more_b text", "keys_row": "more_c bigint NOT NULL DEFAULT 5",
        "keys_pages": "more_d int GENERATED ALWAYS AS (v + 1) STORED",
    }
    QUIET = (
        "ALTER TABLE body SEAL", "ALTER TABLE accounts_pages SEAL", "ALTER TABLE keys_pages SEAL FULL",
        "ALTER TABLE body SEAL FULL", "ANALYZE", "ANALYZE head", "REINDEX TABLE body", "REINDEX INDEX head_unique",
        "REINDEX TABLE keys_row", "PURGE ALL",
    )

    def step(self):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.4:
            name = rng.choice(list(self.INDEXES))
            if ("index", name) in self.book.state:
                self.alone(f"DROP INDEX {name}", {("index", name): None})
            else:
                self.alone(f"CREATE {self.INDEXES[name]}", {("index", name): 1})
        elif kind < 0.6:
            table = rng.choice(list(self.COLUMNS))
            name = self.COLUMNS[table].split()[0]
            if ("column", name) in self.book.state:
                self.alone(f"ALTER TABLE {table} DROP COLUMN {name}", {("column", name): None})
            else:
                self.alone(f"ALTER TABLE {table} ADD COLUMN {self.COLUMNS[table]}", {("column", name): 1})
        else:
            self.alone(rng.choice(self.QUIET), also="42704")  # PURGE of an empty bin


class OwnChanger(Client):
    """Tables of its own come, are filled, change and go."""

    def step(self):
        rng, tables = self.rng, [key for key in self.book.state if key[0] == "own"]
        kind = rng.random()
        if not tables or len(tables) < 4 and kind < 0.3:
            name, rows = f"own{self.book.number()}", rng.choice([0, 10, 700])
            layout = rng.choice(["row", "pages"])
            self.transact([
                f"CREATE TABLE {name} (id int PRIMARY KEY, v text, u int UNIQUE) WITH (layout = {layout})",
                f"INSERT INTO {name} SELECT n, 'v' || n, n FROM generate_series(1, {rows}) n",
            ], {("own", name): rows})
            return
        key = rng.choice(tables)
        name, rows = key[1], self.book.state[key]
        if kind < 0.5:
            self.alone(f"DROP TABLE {name}", {key: None})
        elif kind < 0.6:
            self.alone(f"TRUNCATE {name}", {key: 0})
        elif kind < 0.7:
            self.alone(f"ALTER TABLE {name} SEAL", also="0A000")
        elif kind < 0.8:
            self.transact([f"DROP TABLE {name}", f"CREATE TABLE {name} (id int PRIMARY KEY, v text, u int UNIQUE)"],
                          {key: 0})
        else:
            self.alone(f"INSERT INTO {name} SELECT n, 'w' || n, n FROM generate_series({rows + 1}, {rows + 50}) n",
                       {key: rows + 50})


class Backups(Client):
    """BACKUP STORE TO, where the server knows it. `made`: folders of those that were acknowledged."""

    def __init__(self, connection, book, rng, folder):
        super().__init__(connection, book, rng)
        self.folder, self.made = folder, []

    @staticmethod
    def known(connection, folder):
        path = os.path.join(folder, "backup0")
        _, error = connection.query(f"BACKUP STORE TO '{path}'")
        if error is None:
            return path
        if not error.startswith(("42601", "0A000")):
            raise AssertionError(f"BACKUP STORE: {error}")
        return None

    def step(self):
        path = os.path.join(self.folder, f"backup{self.book.number()}")
        if self.alone(f"BACKUP STORE TO '{path}'"):
            self.made.append(path)
        time.sleep(self.rng.uniform(0, 0.5))


def make_schema(connection):
    for sql in (SCHEMA, *LOADS):
        connection.rows(sql)


def wait_for_jobs(connection):
    """Changes that a kill has interrupted go on by themselves."""
    until = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < until:
        jobs = connection.rows("SELECT job, state FROM pg_catalog.cellar_jobs WHERE state NOT IN "
                               "('done', 'failed', 'cancelled')")
        if not jobs:
            return
        for job, state in jobs:
            if state == "parked":  # two kills at one step look like a step that ends the process
                connection.query(f"RESUME JOB {job}")
        time.sleep(0.05)
    raise AssertionError(f"a job does not end: {jobs}, {connection.rows('SHOW JOBS')[-3:]}")


def read_state(connection):
    """All keys with their values, as the tables have them; half a transaction is a failure."""
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    found = read_in_transaction(connection)
    connection.rows("COMMIT")
    return found


def read_in_transaction(connection):
    integers = lambda sql: [tuple(map(int, row)) for row in connection.rows(sql)]  # noqa: E731
    found = {}
    accounts = {"accounts_row": [0] * (ACCOUNTS + 1), "accounts_pages": [0] * (ACCOUNTS + 1)}
    parts = {}
    for client, n, part, amount, version in integers("SELECT client, n, part, amount, version FROM body"):
        parts.setdefault((client, n), []).append((part, amount, version))
    for client, n, parent, a, b, amount, version, noted in integers(
            "SELECT client, n, parent, a, b, amount, version, split_part(note, ' ', 2) FROM head"):
        expected = [(part, amount, version) for part in range(PARTS)]
        if sorted(parts.pop((client, n), [])) != expected or noted != version:
            raise AssertionError(f"order {client}, {n} is there by half")
        accounts["accounts_row"][a] -= amount
        accounts["accounts_pages"][b] += amount
        found[("order", client, n)] = (parent, a, b, amount, version)
    if parts:
        raise AssertionError(f"rows of body without head: {list(parts)[:5]}")
    for table, balances in accounts.items():
        for account, balance in integers(f"SELECT id, balance FROM {table}"):
            if balances[account] != balance:
                raise AssertionError(f"{table} {account} holds {balance}, not {balances[account]}")
    keys = dict(integers("SELECT k, v FROM keys_row"))
    if keys != dict(integers("SELECT k, v FROM keys_pages")):
        raise AssertionError("keys_row and keys_pages differ")
    found.update({("key", k): v for k, v in keys.items()})
    loads = dict(integers("SELECT load, count(*) FROM loads_row GROUP BY load"))
    if loads != dict(integers("SELECT load, count(*) FROM loads_pages GROUP BY load")):
        raise AssertionError("loads_row and loads_pages differ")
    found.update({("load", load): rows for load, rows in loads.items()})
    for (name,) in connection.rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'own%'"):
        found[("own", name)] = int(connection.rows(f"SELECT count(v) FROM {name}")[0][0])
    for (name,) in connection.rows("SELECT relname FROM pg_class WHERE relkind = 'i' AND relname LIKE 'more%'"):
        found[("index", name)] = 1
    for (name,) in connection.rows("SELECT attname FROM pg_attribute WHERE attname LIKE 'more\\_%' AND NOT "
                                   "attisdropped AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r')"):
        found[("column", name)] = 1
    return found


def compare(found, books):
    """What was read against what the clients know; settles what they did not know."""
    found = dict(found)
    for book in books:
        if book.pending:
            after = {key: found.get(key) for key in book.pending}
            if after == book.pending:
                book.settle(None)
            elif after == {key: book.state.get(key) for key in book.pending}:
                book.pending = None
            else:
                raise AssertionError(f"half a transaction: {after}, not {book.pending} and not what was before")
        book.pending = None
        for key, value in book.state.items():
            if found.pop(key, None) != value:
                raise AssertionError(f"acknowledged {key} = {value} is lost")
    if found:
        raise AssertionError(f"nobody was told that this is there: {list(found.items())[:5]}")


def check_full(connection):
    findings = connection.rows("CHECK DATABASE FULL")
    if findings:
        raise AssertionError(f"CHECK DATABASE FULL: {findings[:10]}")


class Load:
    """Clients on threads, until told to stop, the server goes, or says that it does not know."""

    def __init__(self, clients):
        self.failures, self.stopping = [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(client,)) for client in clients]
        self.clients = clients
        for thread in self.threads:
            thread.start()

    def run(self, client):
        try:
            while not self.stopping.is_set():
                client.step()
        except (Gone, Unknown):
            pass
        except Exception as failure:  # pylint: disable=broad-except
            self.failures.append(failure)
        finally:
            client.connection.close()

    def end(self, but=()):
        """Joins the threads, except clients of these classes; raises what one of them met."""
        self.stopping.set()
        for client, thread in zip(self.clients, self.threads):
            if not isinstance(client, tuple(but)):
                thread.join()
        if self.failures:
            raise self.failures[0]
