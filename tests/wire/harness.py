"""A server of its own for each test class, and ways to talk to it.

Scripts are run as: NAME_test.py PATH/TO/cellar BUILD_DIR [unittest arguments]
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from urllib.parse import urlsplit

CELLAR = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "cellar"
BUILD_DIR = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else tempfile.gettempdir()
START_SECONDS = 60
STOP_SECONDS = 30


class Server:
    """`cellar serve` on a store; `with Server() as server: server.url`.

    trust: --trust-local, so that clients need no password. log: a file for what it logs.
    """

    def __init__(self, *options, store=None, trust=True, log=os.devnull, listen="127.0.0.1:0"):
        self.log, self.listen = log, listen
        self.folder = None if store else tempfile.mkdtemp(prefix="cellar-wire-")
        self.store = store or os.path.join(self.folder, "store")
        self.options = [*(["--trust-local"] if trust else []), *options]
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [CELLAR, "serve", "--store", self.store, "--listen", self.listen, *self.options],
                stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline().strip()
        if not line.startswith("ready postgresql://"):
            raise RuntimeError(f"the server said {line!r}")
        self.url = line.split(" ", 1)[1]
        parts = urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port
        self.user, self.database = parts.username, parts.path.lstrip("/")
        return self

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "still running"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self.remove()

    def environment(self, **more):
        return {**os.environ, "PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.user,
                "PGDATABASE": self.database, "PGCONNECT_TIMEOUT": "20", "PSQLRC": "/dev/null",
                "LC_ALL": "C.UTF-8", **more}

    def run(self, *command, check=True, **options):
        """Runs a client with the PG* variables set; its result, output and errors together."""
        environment = self.environment(**options.pop("environment", {}))
        result = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=240, **options)
        if check and result.returncode != 0:
            raise AssertionError(f"{' '.join(command[:3])} ended with {result.returncode}:\n"
                                 f"{result.stdout}")
        return result

    def psql(self, sql, *options, check=True, environment=None):
        """Unaligned rows of `sql`, without headers."""
        return self.run("psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", *options, "-f", "-",
                        input=sql, check=check, environment=environment or {}).stdout

    def status_kilobytes(self, name):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        return 0

    def rss_kilobytes(self):
        return self.status_kilobytes("VmRSS")

    def forget_peak(self):
        """From here on peak_kilobytes tells the most memory the process has held."""
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="utf-8") as file:
            file.write("5")

    def peak_kilobytes(self):
        return self.status_kilobytes("VmHWM")


class ServerTest(unittest.TestCase):
    """One server per class."""

    OPTIONS = ()
    TRUST = True

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS, trust=cls.TRUST).start()

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.server.process.stdout.close()
        cls.server.remove()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")


class RawConnection:
    """Protocol 3.0 by hand."""

    def __init__(self, server, timeout=20, user=None):
        self.socket = socket.create_connection((server.host, server.port), timeout)
        body = f"user\0{user or server.user}\0database\0{server.database}\0\0".encode()
        self.socket.sendall(struct.pack("!II", len(body) + 8, 196608) + body)
        self.buffer = b""
        self.key = None
        self.until_ready()

    def take(self, count):
        while len(self.buffer) < count:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("closed")
            self.buffer += more
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def message(self):
        kind, length = struct.unpack("!cI", self.take(5))
        return kind.decode(), self.take(length - 4)

    def until_ready(self):
        """All messages up to ReadyForQuery."""
        messages = []
        while True:
            kind, body = self.message()
            messages.append((kind, body))
            if kind == "K":
                self.key = body
            if kind == "E" and self.key is None:
                raise ConnectionError(body.decode())
            if kind == "Z":
                return messages

    @staticmethod
    def frame(kind, body=b""):
        return kind.encode() + struct.pack("!I", len(body) + 4) + body

    def query(self, sql):
        self.socket.sendall(self.frame("Q", sql.encode() + b"\0"))
        return self.until_ready()

    def close(self):
        self.socket.close()


def need(*programs):
    """Ends the script with 77, aloud, when a program is missing."""
    for program in programs:
        if shutil.which(program) is None and not os.path.exists(program):
            skip(f"{program} is not installed")


def skip(reason):
    print(f"SKIPPED: {reason}", file=sys.stderr)
    sys.exit(77)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
