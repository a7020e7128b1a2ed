#!/usr/bin/python3
"""psycopg2: types, transactions, COPY, server-side cursors, errors, notifications."""

import datetime
import decimal
import io
import select
import threading
import uuid

from harness import ServerTest, main, skip

try:
    import psycopg2
    import psycopg2.errors
    import psycopg2.extensions
    import psycopg2.extras
except ImportError:
    skip("psycopg2 is not installed")


class Psycopg2(ServerTest):
    def connect(self, **options):
        return psycopg2.connect(host=self.server.host, port=self.server.port,
                                user=self.server.user, dbname=self.server.database, **options)

    def test_types_round_trip(self):
        psycopg2.extras.register_uuid()
        values = (True, -5, 2**40, 1.5, decimal.Decimal("12.340"), "naïve 日本", b"\0\xff",
                  datetime.date(2020, 2, 29), datetime.time(1, 2, 3, 4),
                  datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.timedelta(days=2, seconds=5),
                  uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), None)
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("""CREATE TABLE types (b bool, i int, l bigint, d float8, n numeric,
                t text, y bytea, da date, ti time, ts timestamp, iv interval, u uuid, z int)""")
            cursor.execute(f"INSERT INTO types VALUES ({', '.join(['%s'] * len(values))})",
                           (*values[:6], psycopg2.Binary(values[6]), *values[7:]))
            cursor.execute("SELECT * FROM types")
            row = list(cursor.fetchone())
            row[6] = bytes(row[6])
            self.assertEqual(tuple(row), values)
            self.assertEqual(cursor.description[4].type_code, 1700)

    def test_transactions_and_errors(self):
        connection = self.connect()
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE tx (a int PRIMARY KEY)")
        connection.commit()
        cursor.execute("INSERT INTO tx VALUES (1)")
        with self.assertRaises(psycopg2.errors.UniqueViolation) as caught:
            cursor.execute("INSERT INTO tx VALUES (1)")
        self.assertEqual(caught.exception.diag.constraint_name, "tx_pkey")
        self.assertEqual(caught.exception.diag.table_name, "tx")
        with self.assertRaises(psycopg2.errors.InFailedSqlTransaction):
            cursor.execute("SELECT 1")
        connection.rollback()
        cursor.execute("SELECT count(*) FROM tx")
        self.assertEqual(cursor.fetchone(), (0,))
        connection.close()

    def test_copy(self):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE cp (a int, b text)")
            rows = "".join(f"{i}\tvalue {i}\n" for i in range(20000))
            cursor.copy_expert("COPY cp FROM STDIN", io.StringIO(rows))
            self.assertEqual(cursor.rowcount, 20000)
            out = io.StringIO()
            cursor.copy_expert("COPY (SELECT * FROM cp ORDER BY a) TO STDOUT", out)
            self.assertEqual(out.getvalue(), rows)

    def test_server_side_cursor(self):
        with self.connect() as connection, connection.cursor("named") as cursor:
            cursor.itersize = 500
            cursor.execute("SELECT n FROM generate_series(1, 3000) n")
            self.assertEqual(sum(row[0] for row in cursor), 3000 * 3001 // 2)

    def test_autocommit_and_isolation(self):
        connection = self.connect()
        connection.set_session(isolation_level="SERIALIZABLE", autocommit=True)
        cursor = connection.cursor()
        cursor.execute("SHOW transaction_isolation")
        self.assertEqual(cursor.fetchone(), ("serializable",))
        self.assertEqual(connection.get_transaction_status(), 0)
        connection.close()

    def test_cancel(self):
        connection = self.connect()
        cursor = connection.cursor()
        threading.Timer(0.5, connection.cancel).start()
        with self.assertRaises(psycopg2.errors.QueryCanceled):
            cursor.execute("SELECT pg_sleep(20)")
        connection.close()

    def test_notifications_reach_idle_clients(self):
        listener, sender = self.connect(), self.connect()
        for connection in (listener, sender):
            connection.set_isolation_level(psycopg2.extensions.ISOLATION_LEVEL_AUTOCOMMIT)
        listener.cursor().execute("LISTEN news")
        sender.cursor().execute("NOTIFY news, 'hello'")
        self.assertTrue(select.select([listener], [], [], 5)[0])
        listener.poll()
        self.assertEqual([(n.channel, n.payload) for n in listener.notifies], [("news", "hello")])
        listener.close()
        sender.close()

    def test_serialization_failures_have_their_code(self):
        one, two = self.connect(), self.connect()
        with one.cursor() as cursor:
            cursor.execute("CREATE TABLE sf (a int PRIMARY KEY, b int)")
            cursor.execute("INSERT INTO sf VALUES (1, 0)")
        one.commit()
        for connection in (one, two):
            connection.set_session(isolation_level="SERIALIZABLE")
        a, b = one.cursor(), two.cursor()
        a.execute("SELECT b FROM sf WHERE a = 1")
        b.execute("SELECT b FROM sf WHERE a = 1")
        with self.assertRaises(psycopg2.errors.SerializationFailure):
            a.execute("UPDATE sf SET b = 1 WHERE a = 1")
            one.commit()
            b.execute("UPDATE sf SET b = 2 WHERE a = 1")
            two.commit()
        one.close()
        two.close()

    def test_unknown_database_and_role(self):
        for options in ({"dbname": "nowhere"}, {"user": "nobody"}):
            with self.assertRaises(psycopg2.OperationalError) as caught:
                psycopg2.connect(**{
                    "host": self.server.host, "port": self.server.port, "user": self.server.user,
                    "dbname": self.server.database, **options})
            self.assertIn("does not exist", str(caught.exception))


if __name__ == "__main__":
    main()
