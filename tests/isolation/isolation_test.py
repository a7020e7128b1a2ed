#!/usr/bin/python3
"""What sessions see of each other, and who waits for whom: specs/*.spec beside expected/*.out.

The specifications are run by PostgreSQL's isolationtester, and the answers are PostgreSQL 15's.

    isolation_test.py PATH/TO/cellar BUILD_DIR [--layout pages] [--only REGEX] [--repeat N]
    isolation_test.py --conninfo 'host=127.0.0.1 user=postgres'    any other server
    isolation_test.py --record 'host=127.0.0.1 user=postgres'      writes the answers

Each run of a specification has a database of its own, so that one that had to be killed disturbs
no other. The default isolation is READ COMMITTED, as PostgreSQL's, where a specification names none.
"""

import argparse
import concurrent.futures
import difflib
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "wire"))
import harness  # noqa: E402

TESTER = os.environ.get("CELLAR_ISOLATIONTESTER",
                        "/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester")
SPECS = os.path.join(HERE, "specs")
EXPECTED = os.path.join(HERE, "expected")
DIFFERENCES = os.path.join(HERE, "differences.md")
# isolationtester cancels a step that takes so long, and gives up after twice that.
STEP_SECONDS = 20
KILL_SECONDS = 60
# Which conflict was found first is for the server to say; that there was one is what matters.
CONFLICT = re.compile(r"(could not serialize access) (due to|because) .*")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def known_differences():
    """Names of the specifications whose answers differ and are meant to: name -> reason."""
    return dict(re.findall(r"^- `(\w+)`: (.+)$", read(DIFFERENCES), re.M))


def expected_path(name):
    return os.path.join(EXPECTED, f"{name}.out")


class Target:
    """A server, and a database of its own for each run."""

    def __init__(self, conninfo, maintenance):
        self.conninfo, self.maintenance = conninfo, maintenance
        self.environment = {**os.environ, "PGISOLATIONTIMEOUT": str(STEP_SECONDS),
                            "PGCONNECT_TIMEOUT": "20", "PSQLRC": "/dev/null", "LC_ALL": "C.UTF-8",
                            "PGOPTIONS": "-c default_transaction_isolation=read\\ committed"}

    def to(self, database):
        """Of two names of a database the last counts."""
        return f"{self.conninfo} dbname={database}"

    def statements(self, *sql):
        """(whether the last one went well, what psql printed)."""
        commands = [word for statement in sql for word in ("-c", statement)]
        try:
            done = subprocess.run(["psql", "-X", "-q", "-d", self.to(self.maintenance), *commands],
                                  env=self.environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=KILL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False, f"psql was killed after {KILL_SECONDS} seconds\n"
        return done.returncode == 0, done.stdout

    def answer(self, path, database):
        """What isolationtester prints for the specification."""
        drop = f"DROP DATABASE IF EXISTS {database}"
        made, output = self.statements(drop, f"CREATE DATABASE {database}")
        if not made:
            return f"there is no database: {output}"
        try:
            with open(path, encoding="utf-8") as spec:
                done = subprocess.run([TESTER, self.to(database)], env=self.environment, text=True,
                                      stdin=spec, stdout=subprocess.PIPE, errors="replace",
                                      stderr=subprocess.STDOUT, timeout=KILL_SECONDS, check=False)
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b""
            if isinstance(output, bytes):
                output = output.decode("utf-8", "replace")
            return f"{output}\nkilled after {KILL_SECONDS} seconds\n"
        # Of a run that failed sessions may be left, which keep the database.
        self.statements(drop)
        return done.stdout if done.returncode == 0 else \
            f"{done.stdout}\nisolationtester ended with {done.returncode}\n"


class Run:
    """All of the chosen specifications against one target."""

    def __init__(self, target, repeat, jobs):
        self.target, self.repeat, self.jobs = target, repeat, jobs

    def answers(self, path):
        """(answers of the runs, seconds of the longest)."""
        name = os.path.basename(path).removesuffix(".spec")
        result, longest = [], 0
        for number in range(self.repeat):
            started = time.monotonic()
            result.append(self.target.answer(path, f"iso_{name}_{number}"))
            longest = max(longest, time.monotonic() - started)
        return result, longest

    def each(self, paths):
        """Yields (name, answers, seconds) in the order of `paths`."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for path, (answers, seconds) in zip(paths, pool.map(self.answers, paths)):
                yield os.path.basename(path).removesuffix(".spec"), answers, seconds

    def record(self, paths):
        """Writes the answers; True if each specification always had the same one."""
        os.makedirs(EXPECTED, exist_ok=True)
        varied = 0
        for name, answers, seconds in self.each(paths):
            for other in answers[1:]:
                if other != answers[0]:
                    varied += 1
                    print(f"VARIES {name}")
                    print(difference(answers[0], other, "one run", "another run"))
                    break
            else:
                print(f"recorded {name} ({seconds:.2f} s)")
            with open(expected_path(name), "w", encoding="utf-8") as file:
                file.write(answers[0])
        print(f"{len(paths)} recorded, {varied} of which vary")
        return varied == 0

    def test(self, paths):
        """Compares with the answers; True if all are as they shall be."""
        known = known_differences()
        counts = {"passed": 0, "failed": 0, "differ as listed": 0}
        failed = []
        started = time.monotonic()
        for name, answers, seconds in self.each(paths):
            wanted = read(expected_path(name)) if os.path.exists(expected_path(name)) else ""
            wrong = [answer for answer in answers if plain(answer) != plain(wanted)]
            if not wrong and name in known:
                outcome = "failed"
                print(f"FAILED {name}: it passes, and is listed in differences.md")
            elif not wrong:
                outcome = "passed"
                print(f"passed {name} ({seconds:.2f} s)")
            elif name in known:
                outcome = "differ as listed"
                print(f"differs {name}: {known[name]}")
            else:
                outcome = "failed"
                print(f"FAILED {name} ({len(wrong)} of {len(answers)} runs, {seconds:.2f} s)")
                print(difference(plain(wanted), plain(wrong[0]), f"expected/{name}.out", "answer"))
            counts[outcome] += 1
            if outcome == "failed":
                failed.append(name)
        print(f"{len(paths)} specifications: "
              f"{', '.join(f'{count} {what}' for what, count in counts.items())}; "
              f"{time.monotonic() - started:.0f} s")
        if failed:
            print(f"failed: {' '.join(failed)}")
        return not failed


def plain(text):
    return CONFLICT.sub(r"\1", text)


def difference(before, after, name_before, name_after):
    return "\n".join(difflib.unified_diff(before.split("\n"), after.split("\n"), name_before,
                                          name_after, lineterm=""))


def check_files(names):
    """Answers and differences without a specification are left over from one that was renamed."""
    stray = [os.path.basename(path) for path in glob.glob(os.path.join(EXPECTED, "*.out"))
             if os.path.basename(path).removesuffix(".out") not in names]
    stray += [f"{name} in differences.md" for name in known_differences() if name not in names]
    if stray:
        sys.exit(f"there is no specification for {', '.join(sorted(stray))}")


def on_cellar(options, test):
    """`test` of a new server; its log is shown where something failed."""
    harness.CELLAR = os.path.abspath(options.cellar)
    if options.layout:
        os.environ["CELLAR_DEFAULT_TABLE_LAYOUT"] = options.layout
    if options.seal:
        os.environ["CELLAR_SEAL"] = options.seal
    with tempfile.NamedTemporaryFile("r", dir=options.workdir, prefix="isolation-",
                                     suffix=".log", encoding="utf-8", errors="replace") as log:
        server = harness.Server("--no-sync", log=log.name)
        with server:
            good = test(Target(f"host={server.host} port={server.port} user={server.user}",
                               server.database))
            code = server.process.poll()
            if code is None:
                code = server.stop()
        if code != 0:
            print(f"the server ended with {code}")
        if not good or code != 0:
            print(f"the end of the server's log:\n{log.read()[-4000:]}")
        return good and code == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("cellar", nargs="?", help="the program to test")
    parser.add_argument("workdir", nargs="?", default=tempfile.gettempdir())
    parser.add_argument("--only", metavar="REGEX", default="", help="names that match")
    parser.add_argument("--layout", choices=["row", "pages", "cell"], help="of Cellar's tables")
    parser.add_argument("--seal", choices=["auto", "always"], help="when rows go into pages")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="runs at once")
    parser.add_argument("--conninfo", help="test this server, as keyword=value")
    parser.add_argument("--record", metavar="CONNINFO", help="write the answers of this server")
    options = parser.parse_args()
    if not (options.cellar or options.conninfo or options.record):
        parser.error("name the program, or --conninfo or --record")
    harness.need(TESTER, "psql")

    # A line each as it comes, also into a pipe.
    sys.stdout.reconfigure(line_buffering=True)
    paths = sorted(glob.glob(os.path.join(SPECS, "*.spec")))
    if not options.record:
        check_files({os.path.basename(path).removesuffix(".spec") for path in paths})
    paths = [path for path in paths
             if re.search(options.only, os.path.basename(path).removesuffix(".spec"))]
    if not paths:
        sys.exit("no specification of that name")

    def test(target):
        run = Run(target, options.repeat, options.jobs)
        return run.record(paths) if options.record else run.test(paths)

    if options.record or options.conninfo:
        good = test(Target(options.record or options.conninfo, "postgres"))
    else:
        good = on_cellar(options, test)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
