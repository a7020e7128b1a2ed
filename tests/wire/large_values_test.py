"""Every function, operator, aggregate and cast that the server lists, with the largest values there
are, against a server that may take little (ulimit -v): each hears a timeout and a cancel from another
session soon, the process stays, and other sessions are answered meanwhile.

CELLAR_LARGE_SECONDS: how long calls are made up. Unless it is given it is 20, values are a tenth as
    large, and only what never ends is an error: how late is too late depends on the machine.
CELLAR_LARGE_SEED: which ones.
CELLAR_LARGE_ONLY: a regular expression of the calls to make.
"""

import os
import random
import re
import socket
import struct
import sys
import threading
import time
import unittest

import harness
import memory_test

LONG = "CELLAR_LARGE_SECONDS" in os.environ
SECONDS = float(os.environ.get("CELLAR_LARGE_SECONDS", "20"))
SEED = int(os.environ.get("CELLAR_LARGE_SEED", "1"))
ONLY = re.compile(os.environ.get("CELLAR_LARGE_ONLY", ""))
VERBOSE = os.environ.get("CELLAR_LARGE_VERBOSE")

TIMEOUT = 0.4   # seconds that a statement is given
# Processor seconds of the server, behind its end, by which it has answered: the machine may be busy.
# Pages of memory count too, which cost more on a busy one.
LATE = 3.0 if LONG else 30.0
# One call of a library that cannot be interrupted: a match of a regular expression, the collation's
# comparison, a normalisation.
UNINTERRUPTIBLE = re.compile(r"regexp|~|similar|substring|normal|COLLATE")
UNINTERRUPTIBLE_LATE = 30.0

# Ends of statements that are none of the server's fault: 57014 and what the arguments deserve.
BAD_CLASSES = {"XX", "08"}

TEXTS = [
    "repeat('x', 200000000)", "repeat('ab, c;', 30000000)", "repeat('\"\\', 60000000)",
    "repeat('ä€', 40000000)", "repeat(' ', 200000000)", "repeat('9', 100000000)",
    "repeat('a', 100000000) || 'b'", "repeat('%_', 50000000)", "repeat('YYYY-MM-DD ', 9000000)",
    "repeat('(', 1000000)", "'[' || repeat('1,', 50000000) || '1]'",
    "'{' || repeat('1,', 50000000) || '1}'", "repeat('[', 900) || repeat('1, ', 9000000)",
    "'\\x' || repeat('00', 100000000)", "repeat('\\\\', 50000000)", "repeat('{\"a\":', 30000000)",
    "repeat('a.', 50000000)", "repeat('A', 50000000)", "'\"' || repeat('\\u00e4', 30000000) || '\"'",
    "repeat('00:', 30000000)", "repeat('1 2 ', 40000000)",
]
SHORT_TEXTS = ["''", "'a'", "'x'", "','", "'%a%a%a%b'", "'a*b'", "'(a|b)*c'", "repeat('a', 100000)",
               "repeat('_', 1000) || '%b'", "repeat('x', 1000000)", "'hex'", "'base64'", "'escape'",
               "'utf8'", "'latin1'", "'NFD'", "'YYYY-MM-DD'", "'9999.99'", "'g'", "'é'"]
LARGE = {
    "text": TEXTS,
    "bytea": ["convert_to(repeat('x', 200000000), 'utf8')", "decode(repeat('00', 100000000), 'hex')",
              "convert_to(repeat('\\', 50000000), 'utf8')", "convert_to(repeat('ab', 1000000), 'utf8')"],
    "numeric": ["repeat('9', 131072)::numeric", "(repeat('7', 100000) || '.' || repeat('3', 16000))::numeric",
                "('0.' || repeat('0', 16382) || '1')::numeric", "('1' || repeat('0', 100000))::numeric",
                "('1.' || repeat('1', 16383))::numeric", "65432.123::numeric", "'NaN'::numeric"],
    "int2": ["32767::int2", "0::int2"],
    "int4": ["2147483647", "(-2147483648)", "200000000", "1", "0", "32177", "100000"],
    "int8": ["9223372036854775807", "(-9223372036854775808)::int8", "200000000::int8", "32177::int8", "1::int8"],
    "float4": ["3.4e38::float4", "'NaN'::float4"],
    "float8": ["1.7e308::float8", "5e-324::float8", "'NaN'::float8"],
    "json": ["('[' || repeat('1,', 40000000) || '1]')::json",
             "('{' || repeat('\"ab\":[1],', 8000000) || '\"z\":1}')::json",
             "(repeat('[', 900) || '\"' || repeat('x', 9000000) || '\"' || repeat(']', 900))::json",
             "to_json(repeat('\"', 50000000))"],
    "jsonb": ["('[' || repeat('1,', 20000000) || '1]')::jsonb",
              "('{' || repeat('\"ab\":[1],', 3000000) || '\"z\":1}')::jsonb",
              "(select jsonb_object_agg(g::text, g) from generate_series(1, 1000000) g)",
              "(repeat('[', 900) || '\"' || repeat('x', 9000000) || '\"' || repeat(']', 900))::jsonb",
              "(repeat('{\"a\":', 900) || '\"' || repeat('x', 3000000) || '\"' || repeat('}', 900))::jsonb",
              "to_jsonb(repeat('\"', 50000000))"],
    "interval": ["'178000000 years'::interval", "'2562047788:00:54.775807'::interval"],
    "timestamp": ["'294276-12-31 23:59:59'::timestamp", "'4713-01-01 BC'::timestamp"],
    "timestamptz": ["'294276-12-31 23:59:59+00'::timestamptz", "'4713-01-02 BC'::timestamptz"],
    "date": ["'5874897-12-31'::date", "'4713-01-01 BC'::date"],
    "time": ["'24:00'::time"],
    "timetz": ["'24:00+15:59'::timetz"],
    "bool": ["true"],
    "uuid": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"],
    "oid": ["4294967295::oid"],
    "record": ["row(" * 60 + "1" + ")" * 60, "row(repeat('x', 100000000), repeat('\"', 20000000))",
               "row(array_fill(1, array[5000000]), row(repeat('\\', 30000000)))"],
    "int2vector": ["repeat('1 2 ', 2000000)::int2vector"],
    "oidvector": ["repeat('1 2 ', 2000000)::oidvector"],
    "name": ["'abc'::name"],
    "char": ["'a'::\"char\""],
    "regclass": ["'pg_class'::regclass"],
    "regtype": ["'int4'::regtype"],
}
for alias in ("varchar", "bpchar"):
    LARGE[alias] = [f"({text})::{alias}" for text in TEXTS[:6]]
ARRAYS = {
    "int4": ["array_fill(1, array[10000000])", "array(select g from generate_series(1, 5000000) g)",
             "array_fill(7, array[100, 100, 300])", "array[1, 2]"],
    "text": ["array_fill('ab, \"c'::text, array[5000000])", "array_fill(repeat('x', 1000000), array[200])",
             "string_to_array(repeat('a,', 4000000), ',')", "array['a']"],
    "jsonb": ["array_fill('[1, 2]'::jsonb, array[3000000])"],
    "numeric": ["array_fill(1.5, array[4000000])", "array_fill(repeat('9', 100000)::numeric, array[1000])"],
    "record": ["array_fill(row(1, 'a'::text), array[1000000])"],
}
POLYMORPHIC = {"anyelement", "anyarray", "anycompatible", "anycompatiblearray", "anynonarray", "any",
               "anycompatiblenonarray"}
VARIADIC = {"concat", "concat_ws", "format", "json_build_array", "json_build_object", "num_nulls",
            "jsonb_build_array", "jsonb_build_object", "json_extract_path", "jsonb_extract_path",
            "json_extract_path_text", "jsonb_extract_path_text", "num_nonnulls"}
# They wait, end sessions, or change what others see.
SKIPPED = re.compile(
    r"pg_sleep|pg_terminate|pg_cancel|pg_reload|pg_rotate|pg_switch|pg_read|pg_ls|pg_create|pg_drop|"
    r"pg_promote|pg_backup|pg_wal|pg_advisory|pg_try_advisory|pg_notify|setval|nextval|set_config|setseed|"
    r"pg_export|pg_import|lo_|query_to|table_to|database_to|schema_to|cursor_to|pg_stat_reset|cellar")


class LargeValues(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = memory_test.LimitedServer().start()
        cls.start = cls.server.rss_kilobytes()

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.server.process.stdout.close()
        cls.server.remove()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")

    # ---- what is called ----

    def rows(self, sql):
        return [line.split("|") for line in self.server.psql(sql).splitlines()]

    def calls(self):
        """(kind, name, argument types, gives a set)"""
        out = []
        for name, arguments, is_set, kind in self.rows(
                "select p.proname, coalesce((select string_agg(t.typname, ' ' order by a.ordinality) "
                "from unnest(string_to_array(p.proargtypes::text, ' ')) with ordinality a(oid, ordinality) "
                "join pg_type t on t.oid = a.oid::oid), ''), p.proretset, p.prokind from pg_proc p "
                "where p.prokind in ('f', 'a') and p.pronamespace = 'pg_catalog'::regnamespace order by 1, 2"):
            if not SKIPPED.match(name) and all(map(self.known, arguments.split())) and arguments:
                given = arguments.split()
                out.append((kind, name, given, is_set == "t"))
                if name in VARIADIC:
                    out.append((kind, name, given + [given[-1]] * 3, is_set == "t"))
        for line in self.server.psql(
                "select o.oprname || ' ' || coalesce(l.typname || ' ', '') || r.typname from pg_operator o "
                "left join pg_type l on l.oid = o.oprleft join pg_type r on r.oid = o.oprright order by 1"
                ).splitlines():
            name, *arguments = line.split(" ")
            if all(map(self.known, arguments)):
                out.append(("o", name, arguments, False))
        for source, target in self.rows(
                "select format_type(castsource, null), format_type(casttarget, null) from pg_cast order by 1, 2"):
            for base in LARGE:
                if source in (base, {"int4": "integer", "int8": "bigint"}.get(base)):
                    out.append(("c", target, [base], False))
        # What goes over text is in no catalog.
        for target in ("json", "jsonb", "bytea", "numeric", "int[]", "text[]", "numeric[]", "jsonb[]", "date",
                       "timestamptz", "interval", "uuid", "float8", "bool", "int2vector", "name", "varchar(7)",
                       "char(200000000)", "time", "timetz", "xid", "regtype", "\"char\""):
            out.append(("c", target, ["text"], False))
        for source in list(LARGE) + ["_" + base for base in ARRAYS]:
            out.append(("c", "text", [source], False))
        for form in ("{} like {}", "{} ilike {}", "{} not similar to {}", "substring({} from {})",
                     "substring({} similar {} escape '#')", "position({} in {})", "{} = any(string_to_array({}, ','))",
                     "overlay({} placing {} from 7)", "trim(both {} from {})", "{} < {} collate \"C\""):
            out.append(("f", form, ["text", "text"], False))
        return out

    @staticmethod
    def known(declared):
        base = declared[1:] if declared.startswith("_") else declared
        return base in LARGE or base in POLYMORPHIC

    def argument(self, pick, declared, stands_for):
        if declared in ("anyarray", "anycompatiblearray"):
            return pick.choice(ARRAYS[stands_for])
        if declared == "any" or declared in POLYMORPHIC:
            if declared == "any":
                stands_for = pick.choice(list(LARGE))
            return self.value(pick, stands_for)
        if declared.startswith("_"):
            base = declared[1:]
            if base in ARRAYS:
                return pick.choice(ARRAYS[base])
            return f"array_fill({self.value(pick, base)}, array[100000])"
        return self.value(pick, declared)

    @staticmethod
    def value(pick, base):
        if base == "text" and pick.random() < 0.4:
            return pick.choice(SHORT_TEXTS)
        return pick.choice(LARGE[base])

    def statement(self, pick, call):
        kind, name, arguments, is_set = call
        stands_for = pick.choice(list(ARRAYS))
        texts = [self.argument(pick, one, stands_for) for one in arguments]
        columns = ""
        if pick.random() < 0.4:  # not folded while it is planned
            columns = ", ".join(f"{text} as v{i}" for i, text in enumerate(texts))
            texts = [f"v{i}" for i in range(len(texts))]
            columns = f" from (select {columns} offset 0) s"
        if kind == "o":
            text = f"({texts[0]}) {name} ({texts[1]})" if len(texts) == 2 else f"{name} ({texts[0]})"
        elif kind == "c":
            text = f"({texts[0]})::{name}"
        elif kind == "f" and "{}" in name:
            text = name.format(*texts)
        else:
            text = f'"{name}"({", ".join(texts)})'
        if kind == "a":
            return f"select ({text}) is null from generate_series(1, {pick.choice([1, 3, 1000])})" if not columns \
                else f"select ({text}) is null{columns}, generate_series(1, {pick.choice([1, 3, 1000])})"
        if is_set:
            return f"select count(*) from (select {text} x{columns}) t"
        shape = pick.random()
        if shape < 0.25:
            return f"select length(({text})::text){columns}"
        if shape < 0.35:
            return f"select length(row({text})::text){columns}"
        return f"select ({text}) is null{columns}"

    # ---- how it ends ----

    def connect(self):
        return harness.RawConnection(self.server, timeout=120)

    def processor_seconds(self):
        with open(f"/proc/{self.server.process.pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def ask_later(self, connection, seconds, cancels):
        """What the server had used by the time that the statement is to end is in the list; with
        `cancels` that time is now, else its timeout."""
        asked = []

        def ask():
            asked.append(self.processor_seconds())
            if not cancels:
                return
            with socket.create_connection((self.server.host, self.server.port), 10) as other:
                other.sendall(struct.pack("!II", 16, 80877102) + connection.key)
                other.recv(1)
        timer = threading.Timer(seconds, ask)
        timer.daemon = True
        timer.start()
        return timer, asked

    def run_one(self, pick, connection, sql):
        """Its SQLSTATE, and by how much it was late."""
        cancels = pick.random() < 0.3
        connection.query(f"set statement_timeout = {0 if cancels else int(TIMEOUT * 1000)}")
        timer, asked = self.ask_later(connection, pick.random() * TIMEOUT if cancels else TIMEOUT, cancels)
        state, value = memory_test.outcome(connection.query(sql))
        used = self.processor_seconds()
        timer.cancel()
        timer.join()
        if asked and cancels:
            connection.query("select 1")  # a cancel that came late may hit this one
            connection.query("select 1")
        return state, value, used - asked[0] if asked else 0

    def test_every_call(self):
        print(f"CELLAR_LARGE_SEED={SEED}", file=sys.stderr)
        pick = random.Random(SEED)
        calls = self.calls()
        self.assertGreater(len(calls), 500)
        prober = memory_test.Prober(self.server)
        prober.start()
        connection = self.connect()
        until = time.monotonic() + SECONDS
        queue, counts, late, made = [], {}, [], 0
        while time.monotonic() < until and prober.error is None:
            if not queue:
                queue = list(calls)
                pick.shuffle(queue)
            sql = self.statement(pick, queue.pop())
            if not LONG:
                sql = re.sub(r"\b\d{7,9}(?=[)\]])", lambda match: str(int(match[0]) // 10), sql)
            if not ONLY.search(sql):
                continue
            made += 1
            began = time.monotonic()
            try:
                state, value, by = self.run_one(pick, connection, sql)
            except (ConnectionError, TimeoutError) as error:
                self.assertIsNone(self.server.process.poll(), f"the server has ended at {sql[:500]}")
                raise AssertionError(f"{error!r} at {sql[:500]}") from error
            if VERBOSE:
                print(f"{time.monotonic() - began:6.2f}s {by:6.2f} {state} {sql[:150]}", file=sys.stderr)
            self.assertIsNone(self.server.process.poll(), f"the server has ended at {sql[:500]}")
            self.assertFalse(state is not None and state[:2] in BAD_CLASSES, f"{value} at {sql[:500]}")
            counts[state] = counts.get(state, 0) + 1
            if by > (UNINTERRUPTIBLE_LATE if UNINTERRUPTIBLE.search(sql) else LATE):
                late.append(f"late by {by:.1f} s, {state}: {sql[:500]}")
                print(late[-1], file=sys.stderr)
            self.assertEqual(memory_test.outcome(connection.query("select 1 + 1")), (None, "2"))
        prober.end()
        connection.close()
        grown = (self.server.rss_kilobytes() - self.start) / 1024
        print(f"{made} statements of {len(calls)} calls: {counts}; other session: {prober.answers} answers, "
              f"slowest {prober.slowest:.1f} s; {grown:.0f} MB above the start", file=sys.stderr)
        self.assertEqual(late, [])
        self.assertLess(grown, 700)


if __name__ == "__main__":
    harness.main()
