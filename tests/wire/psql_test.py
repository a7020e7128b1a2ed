#!/usr/bin/python3
"""psql: statements, errors, COPY, backslash commands, cancel."""

import signal
import subprocess
import time

from harness import Server, ServerTest, main, need

need("psql")


class Psql(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.psql("""
            CREATE SCHEMA hr;
            CREATE TABLE hr.departments (id int PRIMARY KEY, name text NOT NULL UNIQUE);
            CREATE TABLE employees (
                id int PRIMARY KEY, name varchar(40) NOT NULL, salary numeric(10,2) DEFAULT 0,
                department int REFERENCES hr.departments (id), hired date,
                CHECK (salary >= 0));
            CREATE INDEX employees_name ON employees (name DESC, hired);
            INSERT INTO hr.departments VALUES (1, 'Büro'), (2, '開発');
            INSERT INTO employees VALUES
                (1, 'Ann', 1000.5, 1, '2020-01-31'), (2, 'Bob', NULL, 2, NULL);
            CREATE VIEW rich AS SELECT name FROM employees WHERE salary > 100;
            """)

    def test_statements(self):
        self.assertEqual(self.server.psql("SELECT 1, 'x', NULL, true; SELECT 2"), "1|x||t\n2\n")
        self.assertEqual(
            self.server.psql("SELECT e.name, d.name, salary FROM employees e JOIN hr.departments d "
                             "ON d.id = department ORDER BY e.id"),
            "Ann|Büro|1000.50\nBob|開発|\n")

    def test_errors_leave_the_session_usable(self):
        output = self.server.run("psql", "-X", "-A", "-t", "-v", "VERBOSITY=verbose", "-f", "-",
                                 input="""
            SELECT * FROM nope;
            INSERT INTO employees VALUES (1, 'Twice');
            SELECT 1 / 0;
            SELECT 'still here';
            """).stdout
        self.assertIn('42P01: relation "nope" does not exist', output)
        self.assertIn("23505", output)
        self.assertIn("Key (id)=(1) already exists.", output)
        self.assertIn("employees_pkey", output)
        self.assertIn("22012: division by zero", output)
        self.assertIn("still here", output)

    def test_transactions(self):
        output = self.server.psql("""
            BEGIN; INSERT INTO hr.departments VALUES (9, 'gone'); ROLLBACK;
            SELECT count(*) FROM hr.departments;
            """, "-q")
        self.assertEqual(output, "2\n")

    def test_copy(self):
        output = self.server.psql(
            "CREATE TABLE copied (a int, b text);\n"
            "COPY copied FROM STDIN;\n1\tone\n2\t\\N\n\\.\n"
            "COPY copied FROM STDIN WITH (FORMAT csv);\n3,\"th,ree\"\n\\.\n"
            "COPY copied TO STDOUT;\n"
            "COPY (SELECT b FROM copied ORDER BY a) TO STDOUT WITH (FORMAT csv, HEADER);\n", "-q")
        self.assertEqual(output, "1\tone\n2\t\\N\n3\tth,ree\nb\none\n\n\"th,ree\"\n")

    def test_copy_prints_and_reads_names_of_objects(self):
        output = self.server.psql(
            "CREATE TABLE named (c regclass, t regtype, n regnamespace, l regclass[]);\n"
            "COPY named FROM STDIN;\n"
            "hr.departments\tinteger\thr\t{hr.departments,NULL,1259}\n1259\t23\t11\t{}\n\\.\n"
            "COPY named TO STDOUT;\n"
            "COPY named TO STDOUT WITH (FORMAT csv);\n", "-q")
        self.assertEqual(output,
                         "hr.departments\tinteger\thr\t{hr.departments,NULL,pg_class}\n"
                         "pg_class\tinteger\tpg_catalog\t{}\n"
                         "hr.departments,integer,hr,\"{hr.departments,NULL,pg_class}\"\n"
                         "pg_class,integer,pg_catalog,{}\n")
        output = self.server.psql("COPY named (c) FROM STDIN;\nabsent\n\\.\n", check=False)
        self.assertIn('relation "absent" does not exist', output)

    def test_copy_error_names_the_line(self):
        output = self.server.psql("CREATE TABLE bad (a int);\nCOPY bad FROM STDIN;\n1\nx\n\\.\n",
                                  check=False)
        self.assertIn('invalid input syntax for type integer: "x"', output)
        self.assertIn("COPY bad, line 2", output)

    def meta(self, command):
        return self.server.run("psql", "-X", "-v", "ON_ERROR_STOP=1", "-c", command).stdout

    def test_lists(self):
        self.assertRegex(self.meta("\\dt"), r"public \| employees +\| table \| cellar")
        self.assertRegex(self.meta("\\dt hr.*"), r"hr +\| departments +\| table")
        self.assertRegex(self.meta("\\di"), r"employees_name +\| index +\| cellar \| employees")
        self.assertRegex(self.meta("\\dv"), r"public \| rich +\| view")
        self.assertRegex(self.meta("\\dn"), r"hr +\| cellar")
        self.assertRegex(self.meta("\\l"), r"cellar +\| cellar \| UTF8")
        self.assertRegex(self.meta("\\d"), r"public \| employees +\| table")
        self.assertRegex(self.meta("\\du"), r"cellar +\| Superuser")

    def test_describe(self):
        text = self.meta("\\d employees")
        for pattern in (r'Table "public.employees"', r"id +\| integer +\| +\| not null \|",
                        r"name +\| character varying\(40\) +\| +\| not null \|",
                        r"salary +\| numeric\(10,2\) +\| +\| +\| 0", r"hired +\| date",
                        r'"employees_pkey" PRIMARY KEY, btree \(id\)',
                        r'"employees_name" btree \(name DESC, hired\)', r"Check constraints:",
                        r"Foreign-key constraints:", r"REFERENCES hr.departments\(id\)"):
            self.assertRegex(text, pattern)
        self.assertIn("Referenced by:", self.meta("\\d hr.departments"))
        self.assertRegex(self.meta("\\d rich"), r'View "public.rich"')
        self.assertRegex(self.meta("\\d employees_name"), r'Index "public.employees_name"')
        self.assertIn("Did not find any relation", self.server.run(
            "psql", "-X", "-c", "\\d nothing", check=False).stdout)

    def test_cancel(self):
        client = subprocess.Popen(
            ["psql", "-X", "-c", "SELECT count(*) FROM generate_series(1, 100000) a, "
             "generate_series(1, 100000) b"],
            env=self.server.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        time.sleep(1)
        start = time.monotonic()
        client.send_signal(signal.SIGINT)
        output = client.communicate(timeout=20)[0]
        self.assertIn("canceling statement due to user request", output)
        self.assertLess(time.monotonic() - start, 2)

    def test_statement_timeout(self):
        output = self.server.psql("SET statement_timeout = 200; SELECT count(*) FROM "
                                  "generate_series(1, 100000) a, generate_series(1, 100000) b",
                                  check=False)
        self.assertIn("canceling statement due to statement timeout", output)

    def test_fetch_count_uses_cursors(self):
        output = self.server.psql("\\set FETCH_COUNT 100\nSELECT n FROM generate_series(1, 1000) n")
        self.assertEqual(len(output.split()), 1000)


class Lifecycle(ServerTest):
    def test_a_store_survives_a_restart(self):
        with Server() as first:
            first.psql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
            folder, first.folder = first.folder, None
            self.assertEqual(first.stop(), 0)
        with Server(store=first.store) as second:
            second.folder = folder
            self.assertEqual(second.psql("SELECT count(*) FROM t"), "2\n")

    def test_shutdown_tells_clients_why(self):
        with Server() as server:
            client = subprocess.Popen(["psql", "-X", "-c", "SELECT pg_sleep(60)"],
                                      env=server.environment(), stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
            time.sleep(1)
            start = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - start, 5)
            self.assertIn("terminating connection due to administrator command",
                          client.communicate(timeout=10)[0])


if __name__ == "__main__":
    main()
