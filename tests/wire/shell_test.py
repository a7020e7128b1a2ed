#!/usr/bin/python3
"""The program without a server: sql, import, keys, check, version."""

import json
import os
import pty
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import CELLAR, main


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-shell-")
        self.store = os.path.join(self.folder, "store")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def cellar(self, *arguments, input="", code=0):
        """stdout and stderr of a run that is to end with `code`."""
        result = subprocess.run([CELLAR, *arguments], input=input, capture_output=True, text=True,
                                timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout, result.stderr

    def sql(self, text, *options, code=0):
        return self.cellar("sql", "--store", self.store, "-c", text, *options, code=code)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_version(self):
        self.assertRegex(self.cellar("version")[0], r"^cellar \d+\.\d+\.\d+\nRocksDB \d")

    def test_formats(self):
        self.sql("CREATE TABLE t (n int, s text); INSERT INTO t VALUES (1, '日本'), (20, NULL)")
        self.assertEqual(self.sql("SELECT * FROM t")[0],
                         " n  |  s   \n----+------\n  1 | 日本\n 20 | NULL\n(2 rows)\n\n")
        self.assertEqual(self.sql("SELECT * FROM t", "--csv")[0], "n,s\n1,日本\n20,\n")
        self.assertEqual(json.loads(self.sql("SELECT * FROM t", "--json")[0]),
                         [{"n": 1, "s": "日本"}, {"n": 20, "s": None}])

    def test_errors(self):
        _, errors = self.sql("SELECT * FROM nope", code=1)
        self.assertEqual(errors, 'ERROR:  relation "nope" does not exist\n'
                                 "LINE 1: SELECT * FROM nope\n                      ^\n")
        script = self.write("s.sql", "SELECT 1/0;\nSELECT 'after' AS x;\n")
        out, errors = self.cellar("sql", "--store", self.store, "-f", script)
        self.assertIn("after", out)
        self.assertIn("s.sql:1: ERROR:  division by zero", errors)
        out, _ = self.cellar("sql", "--store", self.store, "-v", "ON_ERROR_STOP=1", "-f", script,
                             code=3)
        self.assertNotIn("after", out)

    def test_standard_input_has_no_prompt(self):
        out, _ = self.cellar("sql", "--store", self.store, "--csv",
                             input="SELECT 1 AS a;\nSELECT 2\nAS b;\n")
        self.assertEqual(out, "a\n1\nb\n2\n")

    def test_commands(self):
        self.sql("CREATE SCHEMA hr; CREATE TABLE hr.people (id int PRIMARY KEY, "
                 "name text NOT NULL, boss int REFERENCES hr.people, CHECK (id > 0)); "
                 "CREATE INDEX by_name ON hr.people (name DESC)")
        script = ("\\dt hr.*\n\\d hr.people\n\\di hr.*\n\\dn\n\\l\n\\x\nSELECT 1 AS one;\n\\x\n"
                  "\\pset null -\nSELECT NULL AS nothing\\g\n\\echo hello 'big  world'\n"
                  "\\timing\nSELECT 2 AS two;\n")
        out, errors = self.cellar("sql", "--store", self.store, input=script)
        self.assertEqual(errors, "")
        for expected in ("people", '"people_pkey" PRIMARY KEY, btree (id)',
                         '"by_name" btree (name DESC)', "Check constraints:",
                         "Foreign-key constraints:", "Referenced by:", "hr", "UTF8",
                         "-[ RECORD 1 ]", "hello big  world", "Time: "):
            self.assertIn(expected, out)
        self.assertRegex(out, r"nothing \n-+\n -\n")

    def test_copy_and_files(self):
        data = self.write("in.csv", "1,one\n2,\"t,wo\"\n")
        target = os.path.join(self.folder, "out.csv")
        script = (f"CREATE TABLE t (a int, b text);\n\\copy t FROM '{data}' WITH (FORMAT csv)\n"
                  "COPY t FROM STDIN;\n3\tthree\n\\.\n"
                  f"\\copy (SELECT * FROM t ORDER BY a) TO '{target}' csv header\n"
                  f"\\o {self.folder}/o.txt\nSELECT count(*) FROM t;\n\\o\nSELECT 'shown' AS s;\n")
        out, errors = self.cellar("sql", "--store", self.store, input=script)
        self.assertEqual(errors, "")
        self.assertIn("COPY 2", out)
        self.assertIn("shown", out)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), 'a,b\n1,one\n2,"t,wo"\n3,three\n')
        with open(f"{self.folder}/o.txt", encoding="utf-8") as file:
            self.assertIn("3", file.read())

    def test_import(self):
        rows = "".join(f"{i},name {i},{i}.5,2020-01-{i % 28 + 1:02}\n" for i in range(5000))
        path = self.write("people.csv", "Id,Full Name,Score,Born\n" + rows)
        out, _ = self.cellar("import", path, "--store", self.store, "--table", "people", "--create")
        self.assertRegex(out, r"^5,000 rows into people in [\d.]+ s, [\d,]+ rows/s\n$")
        self.assertEqual(
            self.sql("SELECT count(*), sum(score), min(born), max(full_name) FROM people",
                     "--csv", "-t")[0], "5000,12500000.0,2020-01-01,name 999\n")
        self.sql("CREATE TABLE other (name text, n int)")
        swapped = self.write("other.csv", "n,name\n1,x\n,\"\"\n")
        self.cellar("import", swapped, "--store", self.store, "--table", "other")
        self.assertEqual(self.sql("SELECT name, n FROM other ORDER BY n", "--csv", "-t")[0],
                         'x,1\n"",\n')
        bad = self.write("bad.csv", "n,name\n1,x\ntwo,y\n")
        _, errors = self.cellar("import", bad, "--store", self.store, "--table", "other",
                                code=1)
        self.assertIn('invalid input syntax for type integer: "two"', errors)
        self.assertIn("line 3", errors)
        self.assertEqual(self.sql("SELECT count(*) FROM other", "--csv", "-t")[0], "2\n")

    def test_keys_and_check(self):
        self.sql("CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE) WITH (layout = row); "
                 "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        out, totals = self.cellar("keys", "--store", self.store, "--table", "t")
        self.assertEqual(len(out.splitlines()), 4)
        self.assertIn("4 keys", totals)
        three = self.cellar("keys", "--store", self.store, "--limit", "3")[0]
        self.assertEqual(len(three.splitlines()), 3)
        self.assertIn("all agree", self.cellar("check", "--store", self.store)[0])

    def test_stores_that_are_none(self):
        _, errors = self.cellar("check", "--store", os.path.join(self.folder, "absent"), code=1)
        self.assertIn("cellar: ", errors)
        os.mkdir(self.store)
        self.write("store/letter.txt", "dear diary")
        _, errors = self.cellar("sql", "--store", self.store, "-c", "SELECT 1", code=1)
        self.assertIn("cellar: ", errors)

    def test_interactive(self):
        """On a terminal: prompts, continuation, completion, history, Ctrl-C, Ctrl-D."""
        home = os.path.join(self.folder, "home")
        os.mkdir(home)
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(HOME=home, TERM="xterm", LC_ALL="C.UTF-8")
            os.execv(CELLAR, [CELLAR, "sql", "--store", self.store])
        seen = b""

        def expect(text, seconds=20):
            nonlocal seen
            deadline = time.monotonic() + seconds
            while text.encode() not in seen:
                ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
                self.assertTrue(ready, f"waited for {text!r}, saw {seen!r}")
                seen += os.read(terminal, 65536)
            seen = seen.split(text.encode(), 1)[1]

        def send(text):
            os.write(terminal, text.encode())

        expect("cellar=> ")
        send("CREATE TABLE\n")
        expect("cellar-> ")
        send("inventory (item text);\n")
        expect("CREATE TABLE\r\n")
        send("SELECT count(*) FROM inv\t;\n")
        expect("(1 row)")
        send("SELECT count(*) FROM generate_series(1,100000) a, generate_series(1,100000) b;\n")
        time.sleep(1)
        send("\x03")
        expect("canceling statement due to user request")
        expect("cellar=> ")
        # A moment after the prompt, when it is the editor that gets the keys and not the terminal.
        time.sleep(0.5)
        send("SELECT 'half\x03")
        expect("cellar=> ")
        time.sleep(0.5)
        send("\x04")
        expect("\\q")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(terminal)
        history = os.path.join(home, ".cellar_history")
        self.assertEqual(os.stat(history).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    main()
