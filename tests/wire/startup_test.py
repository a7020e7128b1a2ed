#!/usr/bin/python3
"""How a server starts: the superuser's secret, who comes in, what the log says first, which directories and keys it
refuses, and which files COPY may use."""

import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest
from urllib.parse import urlsplit

from harness import CELLAR, Server, main, need

need("psql", "openssl")
QUERY = "SELECT current_user"
FOREIGN = 1  # user and group `daemon`


class StartTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-start-")
        self.store = os.path.join(self.folder, "store")
        self.url_file = os.path.join(self.store, "superuser.url")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def server(self, *options, **how):
        """Each with a log of its own: self.log()."""
        descriptor, self.log_file = tempfile.mkstemp(dir=self.folder, prefix="log-")
        os.close(descriptor)
        return Server(*options, **{"store": self.store, "trust": False, "log": self.log_file, **how})

    def log(self):
        with open(self.log_file, encoding="utf-8") as file:
            return file.read()

    def secret_url(self):
        with open(self.url_file, encoding="utf-8") as file:
            return file.read().strip()

    def sql(self, text, check=True):
        """In the shell, without a server."""
        done = subprocess.run([CELLAR, "sql", "--store", self.store, "-q", "-t", "--csv", "-c", text],
                              capture_output=True, text=True, timeout=60, check=False)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @staticmethod
    def ask(url, sql=QUERY, **environment):
        """What psql says to a query, without asking for a password."""
        done = subprocess.run(
            ["psql", "-X", "-A", "-t", "-w", "-v", "VERBOSITY=verbose", "-c", sql, url],
            env={**os.environ, "PGCONNECT_TIMEOUT": "20", "PGPASSFILE": "/nonexistent/pgpass", **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        return done.stdout.strip()

    def refused(self, *options):
        """What a server says that does not start."""
        done = subprocess.run([CELLAR, "serve", "--store", self.store, "--listen", "127.0.0.1:0", *options],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def assert_only_the_secret_opens(self, server):
        self.assertIn("no password supplied", self.ask(server.url))
        self.assertIn("password authentication failed", self.ask(server.url, PGPASSWORD="wrong"))
        self.assertIn("password authentication failed",
                      self.ask(server.url.replace("cellar@", "nobody@"), PGPASSWORD="wrong"))
        self.assertEqual(self.ask(self.secret_url()), "cellar")


class Secret(StartTest):
    def test_the_first_start_makes_one_and_later_ones_keep_it(self):
        with self.server() as server:
            url = urlsplit(self.secret_url())
            self.assertEqual((url.username, url.hostname, url.port, url.path),
                             ("cellar", "127.0.0.1", server.port, "/cellar"))
            self.assertRegex(url.password, r"^[A-Za-z0-9_-]{32}$")
            self.assertEqual(stat.S_IMODE(os.stat(self.url_file).st_mode), 0o600)
            self.assertEqual(stat.S_IMODE(os.stat(self.store).st_mode), 0o700)
            self.assert_only_the_secret_opens(server)
            # Who was made since needs a password of his own.
            self.ask(self.secret_url(), "CREATE ROLE mute LOGIN; CREATE ROLE ann LOGIN PASSWORD 'pw'")
            self.assertIn("password authentication failed",
                          self.ask(server.url.replace("cellar@", "mute@"), PGPASSWORD="x"))
            self.assertEqual(self.ask(server.url.replace("cellar@", "ann@"), PGPASSWORD="pw"), "ann")
            self.assertIn(f"a password was made for the superuser; the URL with it is in a file "
                          f"(superuser=cellar, file={self.url_file})", self.log())
            self.assertNotIn(url.password, self.log())
        os.chmod(self.url_file, 0o644)
        with self.server() as server:
            again = urlsplit(self.secret_url())
            self.assertEqual((again.password, again.port), (url.password, server.port))
            self.assertEqual(stat.S_IMODE(os.stat(self.url_file).st_mode), 0o600)
            self.assert_only_the_secret_opens(server)
            self.assertIn("the superuser's URL is in a file", self.log())
            self.assertNotIn(url.password, self.log())
        for folder, _, names in os.walk(self.store):
            for name in names:
                if name != "superuser.url":
                    with open(os.path.join(folder, name), "rb") as file:
                        self.assertNotIn(url.password.encode(), file.read(), name)

    def test_a_store_of_before_is_given_one(self):
        self.sql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
        self.assertFalse(os.path.exists(self.url_file))
        with self.server() as server:
            self.assert_only_the_secret_opens(server)
            self.assertEqual(self.ask(self.secret_url(), "SELECT a FROM t"), "1")

    def test_a_chosen_password_stays(self):
        self.sql("ALTER ROLE cellar PASSWORD 'chosen'")
        with self.server() as server:
            self.assertFalse(os.path.exists(self.url_file))
            self.assertEqual(self.ask(server.url, PGPASSWORD="chosen"), "cellar")

    def test_a_stale_file_goes(self):
        with self.server() as server:
            self.assertEqual(self.ask(self.secret_url(), "ALTER ROLE cellar PASSWORD 'chosen'"), "ALTER ROLE")
            old = self.secret_url()
            self.assertIn("password authentication failed", self.ask(old))
        with self.server() as server:
            self.assertFalse(os.path.exists(self.url_file))
            self.assertEqual(self.ask(server.url, PGPASSWORD="chosen"), "cellar")
            self.assertIn("a file was removed whose password is not the superuser's", self.log())

    def test_the_owner_of_the_directory_gets_a_new_one(self):
        with self.server():
            old = urlsplit(self.secret_url()).password
        os.unlink(self.url_file)
        with self.server() as server:
            self.assertFalse(os.path.exists(self.url_file))
            self.assertEqual(self.ask(server.url, PGPASSWORD=old), "cellar")
        self.sql("ALTER ROLE cellar PASSWORD NULL")
        with self.server() as server:
            self.assertNotEqual(urlsplit(self.secret_url()).password, old)
            self.assert_only_the_secret_opens(server)

    def test_a_start_that_was_interrupted_is_made_good(self):
        """The file is there before the store knows the secret."""
        self.sql("SELECT 1")
        for text in ("", "postgresql://cellar:abcdefghijklmnopqrstuvwxyz012345@127.0.0.1:1/cellar\n"):
            with open(self.url_file, "w", encoding="utf-8") as file:
                file.write(text)
            with open(self.url_file + ".new", "w", encoding="utf-8") as file:
                file.write("half")
            with self.server() as server:
                self.assert_only_the_secret_opens(server)
                self.assertFalse(os.path.exists(self.url_file + ".new"))
            self.sql("ALTER ROLE cellar PASSWORD NULL")

    def test_a_kill_at_the_first_start_locks_nobody_out(self):
        for name in ("superuser.url.new", "superuser.url", "superuser.url"):
            shutil.rmtree(self.store, ignore_errors=True)
            process = subprocess.Popen([CELLAR, "serve", "--store", self.store, "--listen", "127.0.0.1:0"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            awaited = os.path.join(self.store, name)
            while process.poll() is None and not os.path.exists(awaited) and not os.path.exists(self.url_file):
                pass
            process.kill()
            process.wait()
            with self.server() as server:
                self.assert_only_the_secret_opens(server)

    def test_the_shell_needs_none(self):
        with self.server():
            pass
        self.assertEqual(self.sql("SELECT current_user"), "cellar\n")

    def test_rules_decide_and_the_secret_is_there(self):
        rules = os.path.join(self.folder, "rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("# ours\nhost cellar cellar 127.0.0.1/32 trust\nhost all all all scram-sha-256\n")
        with self.server("--hba", rules) as server:
            self.assertEqual(self.ask(server.url), "cellar")
            self.assertEqual(self.ask(self.secret_url()), "cellar")
            self.assertEqual(self.ask(self.secret_url().removesuffix("cellar") + "postgres"), "cellar")
            self.assertIn("connection rules loaded (file=" + rules + ", rules=2)", self.log())
            self.assertIn("warning: some connection rules ask for no password (lines=2)", self.log())


class Trust(StartTest):
    def test_it_is_as_it_was(self):
        with self.server(trust=True) as server:
            self.assertEqual(self.ask(server.url), "cellar")
            self.assertFalse(os.path.exists(self.url_file))
            self.ask(server.url, "CREATE ROLE mute LOGIN; CREATE ROLE ann LOGIN PASSWORD 'pw'")
            self.assertEqual(self.ask(server.url.replace("cellar@", "mute@")), "mute")
            self.assertIn("no password supplied", self.ask(server.url.replace("cellar@", "ann@")))
            self.assertIn("warning: local connections need no password for roles that have none (--trust-local)",
                          self.log())
        with self.server() as server:
            self.assert_only_the_secret_opens(server)

    def test_a_secret_that_nobody_chose_is_not_asked_for(self):
        with self.server():
            secret = urlsplit(self.secret_url()).password
        with self.server(trust=True) as server:
            self.assertEqual(self.ask(server.url), "cellar")
            self.assertEqual(self.ask(self.secret_url()), "cellar")
            self.assertEqual(urlsplit(self.secret_url()).port, server.port)
            self.assertEqual(self.ask(server.url, "ALTER ROLE cellar PASSWORD 'chosen'"), "ALTER ROLE")
            self.assertIn("no password supplied", self.ask(server.url))
            self.assertIn("password authentication failed", self.ask(server.url, PGPASSWORD=secret))

    def test_it_does_not_go_with_rules_or_passwords(self):
        self.sql("SELECT 1")
        rules = os.path.join(self.store, "hba.conf")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("host all all all scram-sha-256\n")
        self.assertIn("--trust-local has no effect beside the connection rules", self.refused("--trust-local"))
        for other in (["--hba", rules], ["--require-password"]):
            done = subprocess.run([CELLAR, "serve", "--store", self.store, "--trust-local", *other],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("excludes", done.stderr)


class Log(StartTest):
    def test_the_first_lines_say_what_is_on(self):
        with self.server("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0") as server:
            grpc = server.process.stdout.readline().split(":")[-1].strip()
            http = server.process.stdout.readline().split(":")[-1].split("/")[0]
            lines = [line for line in self.log().splitlines() if "warning: the server runs as root" not in line]
            version = subprocess.run([CELLAR, "version"], capture_output=True, text=True,
                                     check=True).stdout.split()[1]
            self.assertEqual(lines, [
                f"cellar: starting (version={version}, store={self.store}, process={server.process.pid})",
                "cellar: the store is open (format=2)",
                "cellar: COPY and BACKUP use no files of this machine",
                "cellar: every connection needs a password",
                "cellar: a password was made for the superuser; the URL with it is in a file "
                f"(superuser=cellar, file={self.url_file})",
                f"cellar: PostgreSQL's protocol is served (address=127.0.0.1:{server.port}, tls=off)",
                f"cellar: gRPC is served (address=127.0.0.1:{grpc}, tls=off, "
                "login=as for PostgreSQL's protocol)",
                f"cellar: HTTP is served (address=127.0.0.1:{http}, tls=off, login=none)"])
            self.assertEqual("warning: the server runs as root" in self.log(), os.geteuid() == 0)

    def test_as_objects_and_of_what_is_open_to_others(self):
        for name in ("a", "b"):
            os.mkdir(os.path.join(self.folder, name))
        with self.server("--allow-plaintext", "--tls-self-signed", "--log-format", "json", "--copy-directory",
                         self.folder + "/a", "--copy-directory", self.folder + "/b", trust=True,
                         listen="0.0.0.0:0") as server:
            lines = [json.loads(line) for line in self.log().splitlines()]
            warnings = [line["message"] for line in lines if line["level"] == "warning"]
            self.assertIn("other machines may connect without TLS (--allow-plaintext)", warnings)
            self.assertIn("local connections need no password for roles that have none (--trust-local)", warnings)
            by_message = {line["message"]: line for line in lines}
            self.assertEqual(by_message["PostgreSQL's protocol is served"]["address"], f"0.0.0.0:{server.port}")
            self.assertEqual(by_message["PostgreSQL's protocol is served"]["tls"], "on")
            self.assertEqual(by_message["COPY and BACKUP may use files of this machine"]["directories"],
                             f"{self.folder}/a {self.folder}/b")
            self.assertEqual(self.ask(server.url), "cellar")

    def test_a_relative_directory_is_named_in_full(self):
        done = subprocess.Popen([CELLAR, "serve", "--store", "store/", "--listen", "127.0.0.1:0"], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        url = done.stdout.readline().split()[1]
        self.assertEqual(urlsplit(self.secret_url()).port, urlsplit(url).port)
        done.terminate()
        self.assertIn(f"store={self.store},", done.communicate(timeout=60)[1])


    def test_a_start_that_fails_says_why(self):
        os.mkdir(self.store)
        with open(self.store + "/stranger", "w", encoding="utf-8"):
            pass
        lines = self.refused().splitlines()
        self.assertIn("cellar: starting (version=", lines[0])
        self.assertIn("is not a Cellar store", lines[-2])


class Directories(StartTest):
    def test_a_store_that_is_open_to_others_is_refused(self):
        self.sql("SELECT 1")
        for mode in (0o755, 0o770, 0o777, 0o704, 0o1777):
            os.chmod(self.store, mode)
            said = self.refused()
            self.assertIn(f'directory "{self.store}" is open to other users (Its mode is {mode:04o}', said)
            self.assertIn("chmod 700", said)
            self.assertFalse(os.path.exists(self.url_file))
        for mode in (0o750, 0o700):
            os.chmod(self.store, mode)
            with self.server() as server:
                self.assert_only_the_secret_opens(server)

    def test_an_empty_directory_becomes_private(self):
        os.mkdir(self.store)
        os.chmod(self.store, 0o777)
        with self.server():
            self.assertEqual(stat.S_IMODE(os.stat(self.store).st_mode), 0o700)

    def test_a_place_that_others_may_change_is_warned_of(self):
        os.chmod(self.folder, 0o777)
        with self.server():
            self.assertIn("warning: anybody may put another directory in the store's place", self.log())
        os.chmod(self.folder, 0o1777)
        with self.server():
            self.assertNotIn("in the store's place", self.log())

    @unittest.skipIf(os.geteuid() != 0, "needs root to give files away")
    def test_a_store_of_somebody_else(self):
        self.sql("SELECT 1")
        for folder, _, names in os.walk(self.store):
            for name in [".", *names]:
                os.chown(os.path.join(folder, name), FOREIGN, FOREIGN)
        with self.server():  # root may
            self.assertIn(f"warning: the store belongs to another user, {FOREIGN}", self.log())
        # Others may not, even where they could: the program may lie where only root finds it.
        os.chmod(self.folder, 0o755)
        os.chown(self.store, 0, 0)
        program = os.path.join(self.folder, "cellar")
        shutil.copy(CELLAR, program)
        done = subprocess.run([program, "serve", "--store", self.store, "--listen", "127.0.0.1:0"], user=FOREIGN,
                              group=FOREIGN, extra_groups=[], cwd="/", capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("belongs to another user", done.stderr)

    def test_keys_that_others_read_are_refused(self):
        key, certificate = os.path.join(self.folder, "key"), os.path.join(self.folder, "certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate], check=True,
                       capture_output=True)
        tls = ("--tls-cert", certificate, "--tls-key", key)
        for mode in (0o644, 0o660, 0o604):
            os.chmod(key, mode)
            self.assertIn(f'private key "{key}" is open to other users', self.refused(*tls))
        os.chmod(key, 0o600)
        with self.server(*tls) as server:
            self.assertEqual(self.ask(self.secret_url(), PGSSLMODE="require"), "cellar")
            self.assertIn(f"(address=127.0.0.1:{server.port}, tls=on)", self.log())

    def test_rules_that_anybody_writes_are_refused(self):
        rules = os.path.join(self.folder, "rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("host all all all scram-sha-256\n")
        os.chmod(rules, 0o666)
        self.assertIn("can be written by anybody", self.refused("--hba", rules))


class Copy(StartTest):
    def setUp(self):
        super().setUp()
        self.inside, self.outside = (os.path.join(self.folder, name) for name in ("inside", "outside"))
        for folder in (self.inside, self.outside, self.inside + "/deep"):
            os.mkdir(folder)
        for folder in (self.inside, self.outside):
            with open(folder + "/rows", "w", encoding="utf-8") as file:
                file.write("1\n2\n")

    def state(self, url, sql):
        """What COPY ends with: its tag, or the SQLSTATE."""
        said = self.ask(url, sql)
        found = re.search(r"ERROR:\s+([0-9A-Z]{5}):", said)
        return found.group(1) if found else said

    def test_a_server_without_a_directory_uses_no_files(self):
        with self.server(trust=True) as server:
            self.ask(server.url, "CREATE TABLE t (a int)")
            for sql in (f"COPY t FROM '{self.inside}/rows'", f"COPY t TO '{self.inside}/new'",
                        "COPY (SELECT 1) TO '/tmp/cellar-none'", "COPY t FROM '/etc/passwd'"):
                self.assertEqual(self.state(server.url, sql), "42501", sql)
            said = self.ask(server.url, "COPY t FROM '/etc/passwd'")
            self.assertIn("HINT:  Start the server with --copy-directory DIR", said)
            self.assertFalse(os.path.exists(self.inside + "/new"))
            self.assertEqual(self.state(server.url, "COPY t FROM PROGRAM 'true'"), "0A000")
            # What the client sends is not the server's.
            self.assertEqual(self.ask(server.url, f"\\copy t from '{self.inside}/rows'"), "COPY 2")

    def test_files_of_the_directory(self):
        os.symlink(self.outside, self.inside + "/away")
        os.symlink(self.inside + "/deep", self.inside + "/there")
        os.symlink(self.outside + "/rows", self.inside + "/link")
        os.symlink(self.outside + "/made", self.inside + "/dangling")
        os.mkdir(self.inside + "-not")
        with open(self.inside + "-not/rows", "w", encoding="utf-8") as file:
            file.write("1\n")
        os.mkfifo(self.inside + "/pipe")
        with self.server("--copy-directory", self.inside, trust=True) as server:
            url = server.url
            self.ask(url, "CREATE TABLE t (a int); CREATE ROLE plain LOGIN; CREATE ROLE reader LOGIN;"
                          "GRANT ALL ON t TO plain, reader; GRANT pg_read_server_files TO reader")
            self.assertEqual(self.state(url, f"COPY t FROM '{self.inside}/rows'"), "COPY 2")
            for name in ("new", "deep/new", "there/new2", "rows", "deep/../new"):
                self.assertEqual(self.state(url, f"COPY t TO '{self.inside}/{name}'"), "COPY 2", name)
            self.assertEqual(sorted(os.listdir(self.inside + "/deep")), ["new", "new2"])
            self.assertEqual(self.state(url, f"COPY t FROM '{self.inside}/nothing'"), "58P01")
            self.assertEqual(self.state(url, f"COPY t FROM '{self.outside}/nothing'"), "42501")
            self.assertEqual(self.state(url, "COPY t FROM 'inside/rows'"), "42602")
            for name in ("../outside/rows", "deep/../../outside/rows", "away/rows", "link", "dangling",
                         "there/../../outside/rows", "../inside-not/rows", "../store/superuser.url", "..", "."):
                path = f"{self.inside}/{name}"
                self.assertEqual(self.state(url, f"COPY t FROM '{path}'"), "42501", name)
                self.assertEqual(self.state(url, f"COPY t TO '{path}'"), "42501", name)
            self.assertEqual(self.state(url, f"COPY t FROM '{self.inside}/pipe'"), "42809")
            self.assertEqual(self.state(url, f"COPY t FROM '{self.inside}/deep'"), "42809")
            self.assertFalse(os.path.exists(self.outside + "/made"))
            with open(self.outside + "/rows", encoding="utf-8") as file:
                self.assertEqual(file.read(), "1\n2\n")
            # A directory alone is no right.
            plain, reader = (url.replace("cellar@", f"{name}@") for name in ("plain", "reader"))
            self.assertEqual(self.state(plain, f"COPY t FROM '{self.inside}/rows'"), "42501")
            self.assertEqual(self.state(reader, f"COPY t TO '{self.inside}/rows'"), "42501")
            self.assertEqual(self.state(reader, f"COPY t FROM '{self.inside}/rows'"), "COPY 2")
            self.assertEqual(self.state(reader, f"COPY t FROM '{self.outside}/rows'"), "42501")

    def test_backups_obey_as_files_do(self):
        os.symlink(self.outside, self.inside + "/away")
        os.symlink(self.inside + "/deep", self.inside + "/there")
        with self.server("--copy-directory", self.inside, trust=True) as server:
            def backup(path):
                return self.state(server.url, f"BACKUP STORE TO '{path}'")
            for name in ("shop", "shop/", "deep/shop", "there/shop2", "../inside/./other"):
                self.assertRegex(backup(f"{self.inside}/{name}"), r"^\d+\|", name)
            self.assertEqual(sorted(os.listdir(self.inside)), ["away", "deep", "other", "rows", "shop", "there"])
            for path in (self.outside, self.outside + "/new", self.inside + "/away", self.inside + "/away/new",
                         self.inside + "/../outside/new", self.inside + "-not", "/nothing/new", "/", self.folder):
                self.assertEqual(backup(path), "42501", path)
            self.assertEqual(backup(self.inside + "/nothing/new"), "58P01")
            self.assertEqual(backup(self.inside + "/rows"), "55000")
            self.assertEqual(backup("inside/new"), "42602")
            said = self.ask(server.url, f"BACKUP STORE TO '{self.outside}/new'")
            self.assertIn("HINT:  Start the server with --copy-directory DIR", said)
            self.assertEqual(os.listdir(self.outside), ["rows"])
        with self.server(trust=True) as server:
            self.assertEqual(self.state(server.url, f"BACKUP STORE TO '{self.inside}/shop'"), "42501")

    def test_the_store_is_no_place_for_it(self):
        self.sql("SELECT 1")
        for directory, why in ((self.store, "holds the store"), (self.folder, "holds the store"),
                               (self.folder + "/alias", "holds the store")):
            if directory.endswith("alias"):
                os.symlink(self.store, directory)
            self.assertIn(why, self.refused("--copy-directory", directory))
        os.mkdir(self.store + "/below")
        self.assertIn("lies in the store", self.refused("--copy-directory", self.store + "/below"))
        done = subprocess.run([CELLAR, "serve", "--store", self.store, "--copy-directory", self.folder + "/none"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)

    def test_the_shell_uses_any(self):
        self.sql(f"CREATE TABLE t (a int); COPY t FROM '{self.inside}/rows'; COPY t TO '{self.outside}/new'")
        with open(self.outside + "/new", encoding="utf-8") as file:
            self.assertEqual(file.read(), "1\n2\n")


if __name__ == "__main__":
    main()
