#!/usr/bin/python3
"""How statements and sessions end: cancelled, terminated, left by their client, at the shutdown."""

import os
import struct
import time
import unittest

from harness import RawConnection, Server, ServerTest, main, need

need("psql")

# Sequential sessions, each of which parses; more than a process has keys for data of threads.
SESSIONS = int(os.environ.get("CELLAR_MANY_SESSIONS", "1200"))
SECONDS = 20  # until something that should happen within one or two has not


def doubling(depth=30):
    """2^depth rows out of nothing."""
    parts = ["c0 AS (SELECT 1 a)"]
    for i in range(1, depth + 1):
        parts.append(f"c{i} AS (SELECT a FROM c{i - 1} UNION ALL SELECT a FROM c{i - 1})")
    return f"WITH {', '.join(parts)} SELECT count(*) FROM c{depth}"


def joins(count=900):
    """A statement that takes long to plan."""
    text = "j0 t0"
    for i in range(1, count + 1):
        text = f"({text} JOIN j0 t{i} USING (a))"
    return f"EXPLAIN SELECT count(*) FROM {text}"


LONG = {
    "sleep": "SELECT pg_sleep(600)",
    "rows out of nothing": doubling(),
    "planning": joins(),
    "recursion": "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t) "
                 "SELECT count(*) FROM t",
    "nested loop": "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b "
                   "WHERE a + b < 0",
    "advisory lock": "SELECT pg_advisory_lock(4711)",
    "row lock": "UPDATE locked SET b = 1 WHERE a = 1",
    "table lock": "BEGIN; LOCK TABLE locked_whole IN EXCLUSIVE MODE",
    "unread result": "SELECT repeat('x', 1000) FROM generate_series(1, 100000000)",
}


def error_of(messages):
    """SQLSTATE and severity of the ErrorResponse among these."""
    for kind, body in messages:
        if kind == "E":
            fields = {part[:1]: part[1:] for part in body.decode().split("\0")}
            return fields["C"], fields["S"]
    return None


class Client(RawConnection):
    def pid(self):
        return struct.unpack("!I", self.key[:4])[0]

    def send(self, sql):
        self.socket.sendall(self.frame("Q", sql.encode() + b"\0"))

    def answer(self):
        """The error that comes, be it the last thing that does."""
        messages = []
        try:
            while True:
                messages.append(self.message())
                if messages[-1][0] == "Z":
                    break
        except ConnectionError:
            messages.append(("closed", b""))
        return error_of(messages), messages[-1][0]

    def rows(self, sql):
        rows = []
        for kind, body in self.query(sql):
            if kind == "E":
                raise AssertionError(body)
            if kind == "D":
                at, row = 2, []
                for _ in range(struct.unpack("!H", body[:2])[0]):
                    size = struct.unpack("!i", body[at:at + 4])[0]
                    at += 4
                    row.append(None if size < 0 else body[at:at + size].decode())
                    at += max(size, 0)
                rows.append(row)
        return rows


class Ends(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.psql(
            "CREATE TABLE j0 (a int PRIMARY KEY, b int); CREATE TABLE locked (a int PRIMARY KEY, b int);"
            "CREATE TABLE locked_whole (a int); INSERT INTO locked VALUES (1, 1);"
            "CREATE ROLE e_user LOGIN; CREATE ROLE e_other LOGIN; CREATE ROLE e_signaller LOGIN;"
            "GRANT pg_signal_backend TO e_signaller")
        cls.holder = Client(cls.server)
        cls.holder.query("SELECT pg_advisory_lock(4711)")
        cls.holder.query("BEGIN; UPDATE locked SET b = 2 WHERE a = 1;"
                         "LOCK TABLE locked_whole IN EXCLUSIVE MODE")
        cls.watcher = Client(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.holder.close()
        cls.watcher.close()
        super().tearDownClass()

    def wait_for(self, sql, wanted):
        end = time.monotonic() + SECONDS
        while True:
            rows = self.watcher.rows(sql)
            if rows == wanted:
                return
            self.assertLess(time.monotonic(), end, f"{sql}: {rows}")

    def started(self, sql):
        """A client whose statement runs."""
        client = Client(self.server)
        client.send(sql)
        self.wait_for(f"SELECT state FROM pg_stat_activity WHERE pid = {client.pid()}", [["active"]])
        return client

    def gone(self, pid):
        self.wait_for(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}", [["0"]])

    def test_cancel(self):
        for name, sql in LONG.items():
            if name == "unread result":  # as in PostgreSQL: nothing may come between its rows
                continue
            with self.subTest(name):
                client = self.started(sql)
                began = time.monotonic()
                self.assertEqual(
                    self.watcher.rows(f"SELECT pg_cancel_backend({client.pid()})"), [["t"]])
                self.assertEqual(client.answer(), (("57014", "ERROR"), "Z"))
                self.assertLess(time.monotonic() - began, SECONDS)
                client.close()

    def test_terminate(self):
        for name, sql in LONG.items():
            with self.subTest(name):
                client = self.started(sql)
                self.assertEqual(self.watcher.rows(
                    f"SELECT pg_terminate_backend({client.pid()}, {SECONDS * 1000})"), [["t"]])
                self.gone(client.pid())
                if name != "unread result":
                    self.assertEqual(client.answer(), (("57P01", "FATAL"), "closed"))
                client.close()

    def test_terminate_idle(self):
        for before in ("SELECT 1", "BEGIN", "BEGIN; SELECT 1/0"):
            with self.subTest(before):
                client = Client(self.server)
                client.query(before)
                self.watcher.rows(f"SELECT pg_terminate_backend({client.pid()})")
                self.assertEqual(client.answer(), (("57P01", "FATAL"), "closed"))
                self.gone(client.pid())
                client.close()

    def test_client_leaves(self):
        for name, sql in LONG.items():
            with self.subTest(name):
                client = self.started(sql)
                pid = client.pid()
                client.close()
                self.gone(pid)

    def test_timeouts(self):
        client = Client(self.server)
        client.query("SET statement_timeout = 300")
        for name, sql in LONG.items():
            if name == "unread result":
                continue
            with self.subTest(name):
                client.send(sql)
                self.assertEqual(client.answer(), (("57014", "ERROR"), "Z"))
                client.query("ROLLBACK")
        # Each statement of a message has the whole time.
        self.assertIsNone(error_of(client.query(
            "SELECT pg_sleep(0.2); SELECT pg_sleep(0.2); SELECT pg_sleep(0.2)")))
        client.query("SET statement_timeout = 0; SET lock_timeout = 100")
        for name in ("row lock", "table lock"):
            client.send(LONG[name])
            self.assertEqual(client.answer(), (("55P03", "ERROR"), "Z"))
            client.query("ROLLBACK")
        client.query("SET idle_in_transaction_session_timeout = 100; BEGIN")
        self.assertEqual(client.answer(), (("25P03", "FATAL"), "closed"))
        client.close()

    def warning(self, client, sql):
        for kind, body in client.query(sql):
            if kind == "N":
                return {part[:1]: part[1:] for part in body.decode().split("\0")}["M"]
        return None

    def test_who_may(self):
        root, user = Client(self.server), Client(self.server, user="e_user")
        other = Client(self.server, user="e_other")
        signaller = Client(self.server, user="e_signaller")
        for function in ("pg_cancel_backend", "pg_terminate_backend"):
            self.assertEqual(error_of(other.query(f"SELECT {function}({root.pid()})")),
                             ("42501", "ERROR"))
            self.assertEqual(error_of(other.query(f"SELECT {function}({user.pid()})")),
                             ("42501", "ERROR"))
            self.assertEqual(error_of(signaller.query(f"SELECT {function}({root.pid()})")),
                             ("42501", "ERROR"))
            self.assertEqual(self.warning(root, f"SELECT {function}(999999)"),
                             "PID 999999 is not a PostgreSQL backend process")
            self.assertEqual(root.rows(f"SELECT {function}(999999)"), [["f"]])
        self.assertEqual(signaller.rows(f"SELECT pg_cancel_backend({user.pid()})"), [["t"]])
        self.assertEqual(error_of(root.query(f"SELECT pg_terminate_backend({user.pid()}, -1)")),
                         ("22003", "ERROR"))
        self.assertEqual(signaller.rows(f"SELECT pg_terminate_backend({user.pid()}, 20000)"),
                         [["t"]])
        for client in (root, user, other, signaller):
            client.close()

    def test_activity(self):
        user = Client(self.server, user="e_user")
        user.query("SET application_name = 'mine'")
        user.query("BEGIN; SELECT 1 AS one")
        seen = ("SELECT state, query, application_name, usename, backend_start <= xact_start, "
                "xact_start <= query_start, query_start <= state_change, wait_event "
                f"FROM pg_stat_activity WHERE pid = {user.pid()}")
        self.assertEqual(self.watcher.rows(seen), [[
            "idle in transaction", "BEGIN; SELECT 1 AS one", "mine", "e_user", "t", "f", "t",
            "ClientRead"]])
        user.query("SELECT 1/0")
        self.assertEqual(self.watcher.rows(seen)[0][0], "idle in transaction (aborted)")
        user.query("ROLLBACK")
        self.assertEqual(self.watcher.rows(seen)[0][:2], ["idle", "ROLLBACK"])
        self.assertEqual(
            user.rows("SELECT DISTINCT query FROM pg_stat_activity WHERE usename = 'cellar'"),
            [["<insufficient privilege>"]])
        self.assertEqual(user.rows("SELECT current_query() AS q"), [["SELECT current_query() AS q"]])
        user.close()


class Stops(unittest.TestCase):
    def test_shutdown_ends_what_runs(self):
        with Server() as server:
            server.psql("CREATE TABLE j0 (a int PRIMARY KEY, b int);"
                        "CREATE TABLE locked (a int PRIMARY KEY, b int);"
                        "CREATE TABLE locked_whole (a int); INSERT INTO locked VALUES (1, 1)")
            holder, watcher = Client(server), Client(server)
            holder.query("SELECT pg_advisory_lock(4711)")
            holder.query("BEGIN; UPDATE locked SET b = 2 WHERE a = 1;"
                         "LOCK TABLE locked_whole IN EXCLUSIVE MODE")
            clients = [Client(server) for _ in LONG]
            for client, sql in zip(clients, LONG.values()):
                client.send(sql)
            active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
            while watcher.rows(active) != [[str(len(LONG) + 1)]]:
                pass
            began = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - began, SECONDS)
            for client, name in zip(clients, LONG):
                error, last = client.answer()
                if last == "Z":  # what it waited for came as its holder went
                    error, last = client.answer()
                if name != "unread result":
                    self.assertEqual((error, last), (("57P01", "FATAL"), "closed"), name)
                client.close()

    def test_places_for_superusers(self):
        with Server("--max-connections", "4", "--superuser-reserved-connections", "2") as server:
            first = Client(server)
            first.query("CREATE ROLE e_user LOGIN")
            self.assertEqual(first.rows("SHOW superuser_reserved_connections"), [["2"]])
            self.assertEqual(first.rows("SHOW max_connections"), [["4"]])
            second = Client(server, user="e_user")
            with self.assertRaises(ConnectionError) as refused:
                Client(server, user="e_user")
            self.assertIn("53300", str(refused.exception))
            others = [Client(server), Client(server)]
            with self.assertRaises(ConnectionError) as refused:
                Client(server)
            self.assertIn("53300", str(refused.exception))
            for client in [first, second, *others]:
                client.close()

    def test_sessions_one_after_the_other(self):
        with Server() as server:
            for _ in range(SESSIONS):
                client = Client(server)
                client.query("SELECT 1")
                client.close()
            server.psql("CREATE ROLE e_secret LOGIN PASSWORD 'secret'")
            out = server.run("psql", "-X", "-A", "-t", "-c", "SELECT current_user",
                             environment={"PGUSER": "e_secret", "PGPASSWORD": "secret"})
            self.assertEqual(out.stdout, "e_secret\n")


if __name__ == "__main__":
    main()
