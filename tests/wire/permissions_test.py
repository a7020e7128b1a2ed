#!/usr/bin/python3
"""Logins, connection rules, grants across sessions, and what stays out of the log."""

import os
import signal
import subprocess
import sys
import time

from harness import ServerTest, main, need

need("psql")
try:
    import psycopg2
except ImportError:
    print("skipped: no psycopg2", file=sys.stderr)
    sys.exit(77)


class Permissions(ServerTest):
    def connect(self, user="cellar", **options):
        return psycopg2.connect(host=self.server.host, port=self.server.port, user=user,
                                dbname="cellar", sslmode="disable", **options)

    def refused(self, code, user, **options):
        with self.assertRaises(psycopg2.OperationalError) as caught:
            self.connect(user, **options)
        self.assertIn(code, str(caught.exception))

    def denied(self, cursor, sql, *values):
        with self.assertRaises(psycopg2.errors.InsufficientPrivilege) as caught:
            cursor.execute(sql, *values)
        return caught.exception.diag.message_primary

    def test_login(self):
        self.server.psql("CREATE ROLE l_no; CREATE ROLE l_two LOGIN CONNECTION LIMIT 2;"
                         "CREATE ROLE l_old LOGIN PASSWORD 'x' VALID UNTIL '2001-01-01';"
                         "CREATE ROLE l_out LOGIN; CREATE DATABASE l_shut;"
                         "REVOKE CONNECT ON DATABASE l_shut FROM PUBLIC")
        self.refused('role "l_no" is not permitted to log in', "l_no")
        self.refused('password authentication failed for user "l_old"', "l_old", password="x")
        first, second = self.connect("l_two"), self.connect("l_two")
        self.refused('too many connections for role "l_two"', "l_two")
        first.close()
        for _ in range(100):  # the server notices soon
            try:
                self.connect("l_two").close()
                break
            except psycopg2.OperationalError:
                time.sleep(0.05)
        else:
            self.fail("the place of a closed connection stays taken")
        second.close()
        with self.assertRaises(psycopg2.OperationalError) as caught:
            psycopg2.connect(host=self.server.host, port=self.server.port, user="l_out",
                             dbname="l_shut", sslmode="disable")
        self.assertIn('permission denied for database "l_shut"', str(caught.exception))

    def test_role_settings_apply_at_login(self):
        self.server.psql("CREATE ROLE s_a LOGIN; ALTER ROLE s_a SET work_mem = '7MB';"
                         "ALTER DATABASE cellar SET lock_timeout = '3s';"
                         "ALTER ROLE s_a IN DATABASE cellar SET lock_timeout = '4s'")
        with self.connect("s_a").cursor() as cursor:
            cursor.execute("SELECT current_setting('work_mem'), current_setting('lock_timeout')")
            self.assertEqual(cursor.fetchone(), ("7MB", "4s"))
        self.server.psql("ALTER DATABASE cellar RESET ALL; ALTER ROLE s_a IN DATABASE cellar RESET ALL")

    def test_revoke_reaches_prepared_statements_of_other_sessions(self):
        self.server.psql("CREATE ROLE r_a LOGIN; CREATE TABLE r_t (a int primary key);"
                         "INSERT INTO r_t VALUES (1); GRANT SELECT ON r_t TO r_a")
        connection = self.connect("r_a")
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("PREPARE p AS SELECT a FROM r_t WHERE a = $1")
        cursor.execute("EXECUTE p (1)")
        self.assertEqual(cursor.fetchall(), [(1,)])
        self.server.psql("REVOKE SELECT ON r_t FROM r_a")
        self.assertEqual(self.denied(cursor, "EXECUTE p (1)"), "permission denied for table r_t")
        self.server.psql("CREATE ROLE r_g; GRANT SELECT ON r_t TO r_g; GRANT r_g TO r_a")
        cursor.execute("EXECUTE p (1)")
        self.server.psql("REVOKE r_g FROM r_a")
        self.denied(cursor, "EXECUTE p (1)")
        self.server.psql("ALTER ROLE r_a SUPERUSER")
        cursor.execute("EXECUTE p (1)")
        self.server.psql("ALTER ROLE r_a NOSUPERUSER")
        self.denied(cursor, "EXECUTE p (1)")
        # A cursor that is open goes on; a new one is refused.
        self.server.psql("GRANT SELECT ON r_t TO r_a")
        cursor.execute("BEGIN; DECLARE c CURSOR FOR SELECT a FROM r_t")
        self.server.psql("REVOKE SELECT ON r_t FROM r_a")
        self.denied(cursor, "DECLARE d CURSOR FOR SELECT a FROM r_t")
        cursor.execute("ROLLBACK")

    def test_foreign_keys_need_no_right_on_the_other_table(self):
        self.server.psql("CREATE ROLE f_a LOGIN; CREATE TABLE f_p (a int primary key);"
                         "CREATE TABLE f_c (a int primary key, p int references f_p);"
                         "INSERT INTO f_p VALUES (1); GRANT INSERT ON f_c TO f_a")
        connection = self.connect("f_a")
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("INSERT INTO f_c VALUES (1, 1)")
        with self.assertRaises(psycopg2.errors.ForeignKeyViolation):
            cursor.execute("INSERT INTO f_c VALUES (2, 2)")
        self.denied(cursor, "SELECT * FROM f_p")

    def test_settings_and_roles_survive_a_restart(self):
        self.server.psql("CREATE ROLE k_a LOGIN CREATEDB PASSWORD 'pw'; CREATE ROLE k_g;"
                         "GRANT k_g TO k_a WITH ADMIN OPTION; ALTER ROLE k_a RENAME TO k_b;"
                         "CREATE TABLE k_t (a int); GRANT SELECT (a) ON k_t TO k_g")
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        cursor = self.connect("k_b", password="pw").cursor()
        cursor.execute("SELECT a FROM k_t")
        cursor.execute("SELECT rolcreatedb, pg_has_role('k_g', 'member with admin option') "
                       "FROM pg_roles WHERE rolname = current_user")
        self.assertEqual(cursor.fetchone(), (True, True))
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolsuper")
        self.assertEqual(cursor.fetchall(), [("cellar",)])

    def test_psql_commands(self):
        self.server.psql("CREATE ROLE d_a LOGIN; CREATE ROLE d_g CREATEDB; GRANT d_g TO d_a;"
                         "CREATE TABLE d_t (a int, b int); GRANT SELECT, UPDATE (b) ON d_t TO d_a;"
                         "CREATE SCHEMA d_s; GRANT USAGE ON SCHEMA d_s TO d_a;"
                         "ALTER DEFAULT PRIVILEGES IN SCHEMA d_s GRANT SELECT ON TABLES TO d_a;"
                         "GRANT TEMP ON DATABASE cellar TO d_g")
        listing = self.server.psql("\\du d_*")
        self.assertIn("d_a|", listing)
        self.assertIn("{d_g}", listing)
        self.assertIn("Create DB, Cannot login", listing)
        self.assertIn("d_a=r/cellar", self.server.psql("\\dp d_t"))
        self.assertIn("b:", self.server.psql("\\z d_t"))
        self.assertIn("d_a=U/cellar", self.server.psql("\\dn+ d_s"))
        self.assertIn("d_g=T/cellar", self.server.psql("\\l cellar"))
        self.assertIn("d_a=r/cellar", self.server.psql("\\ddp"))


class Rules(ServerTest):
    """--hba, read again on SIGHUP."""

    TRUST = False

    @classmethod
    def setUpClass(cls):
        cls.file = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"cellar-rules-{os.getpid()}")
        cls.write("host all all all trust\n")
        cls.OPTIONS = ("--hba", cls.file)
        super().setUpClass()
        cls.server.psql("CREATE ROLE h_a LOGIN PASSWORD 'pw'; CREATE ROLE h_b LOGIN PASSWORD 'pw';"
                        "CREATE ROLE h_g; GRANT h_g TO h_a")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        os.unlink(cls.OPTIONS[1])

    @classmethod
    def write(cls, text):
        with open(cls.file, "w", encoding="utf-8") as file:
            file.write(text)

    def login(self, user, password=None):
        environment = {"PGUSER": user, "PGSSLMODE": "disable"}
        if password:
            environment["PGPASSWORD"] = password
        return self.server.run("psql", "-X", "-A", "-t", "-w", "-c", "SELECT current_user",
                               check=False, environment=environment).stdout

    def test_rules(self):
        self.assertEqual(self.login("h_b"), "h_b\n")
        with open(self.OPTIONS[1], "w", encoding="utf-8") as file:
            file.write("host all h_b 127.0.0.1/32 reject\n"
                       "host cellar +h_g 127.0.0.1/32 scram-sha-256\n"
                       "host all cellar 127.0.0.1/32 trust\n")
        self.server.process.send_signal(signal.SIGHUP)
        for _ in range(100):
            if "rejects" in self.login("h_b"):
                break
            time.sleep(0.05)
        self.assertIn('pg_hba.conf rejects connection for host "127.0.0.1", user "h_b", '
                      'database "cellar", no encryption', self.login("h_b"))
        self.assertEqual(self.login("h_a", "pw"), "h_a\n")
        self.assertIn("password authentication failed", self.login("h_a", "no"))
        self.assertIn('no pg_hba.conf entry for host "127.0.0.1", user "h_x"', self.login("h_x"))
        # A file with a mistake changes nothing.
        with open(self.OPTIONS[1], "w", encoding="utf-8") as file:
            file.write("host all all all nonsense\n")
        self.server.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertEqual(self.login("h_a", "pw"), "h_a\n")


class Log(ServerTest):
    def test_secrets_stay_out_of_the_log(self):
        log = os.path.join(self.server.folder, "log")
        store = os.path.join(self.server.folder, "other")
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [sys.argv[1] if len(sys.argv) > 1 else "cellar", "serve", "--store", store,
                 "--listen", "127.0.0.1:0", "--trust-local"], stdout=subprocess.PIPE, stderr=file, text=True)
        try:
            url = process.stdout.readline().split()[1]
            script = ("CREATE ROLE z_a LOGIN PASSWORD 'pass-hunter';\n"
                      "CREATE ROLE z_a PASSWORD 'pass-hunter';\n"  # it exists: an error
                      "CREATE ROLE z_b PASSWORD 'pass-hunter' NONSENSE;\n"
                      "CREATE TABLE z_t (a text primary key);\n"
                      "INSERT INTO z_t VALUES ('row-hunter');\nINSERT INTO z_t VALUES ('row-hunter');\n"
                      "SELECT query FROM pg_stat_activity;\n"
                      "SELECT rolpassword FROM pg_authid WHERE rolname = 'z_a';\n")
            done = subprocess.run(["psql", "-X", "-A", "-t", url], input=script, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.assertIn("SCRAM-SHA-256$4096:", done.stdout)
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()
        with open(log, "rb") as file:
            self.assertNotIn(b"hunter", file.read())
        for folder, _, names in os.walk(store):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(b"pass-hunter", file.read(), name)


if __name__ == "__main__":
    main()
