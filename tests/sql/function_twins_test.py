#!/usr/bin/python3
"""Calls of every function and operator that the server lists, with awkward arguments, run on Cellar
and on PostgreSQL 15: the same value, or an error of the same class. Cellar alone must stay alive and
never answer an internal error.

    function_twins_test.py PATH/TO/cellar [--calls N] [--seed N] [--show N]

CELLAR_FUNCTION_CALLS and CELLAR_FUNCTION_SEED do the same. Differences that are known stand in KNOWN,
each with its reason. Without PostgreSQL, Cellar runs alone.
"""

import argparse
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import slt_module  # noqa: E402
from slt_module import slt  # noqa: E402

# Values by type: plain ones, and what lies at the ends.
VALUES = {
    "bool": ["true", "false"],
    "int2": ["0", "1", "-1", "7", "32767", "-32768"],
    "int4": ["0", "1", "-1", "2", "3", "7", "100", "2147483647", "-2147483648"],
    "int8": ["0", "1", "-1", "5", "1000000", "9223372036854775807", "-9223372036854775808"],
    "float4": ["0", "-0", "1.5", "-2.25", "NaN", "Infinity", "-Infinity", "3.4e38", "1e-45"],
    "float8": ["0", "-0", "1.5", "-2.25", "0.5", "NaN", "Infinity", "-Infinity", "1.7e308", "5e-324"],
    "numeric": ["0", "1.50", "-1.5", "7", "NaN", "Infinity", "-Infinity", "1e40", "1e-40",
                "-123456789012345678901234567890.123"],
    "text": ["", "a", "abc", "Hello, Wörld", "%s %I %L %%", "%1$s", "{1,2,3}", "a,b,,c", " x ",
             "[1, {\"a\": [2, null]}]", "2024-01-31", "YYYY-MM-DD HH24:MI", "(b)(c)?", "utf8", "hex",
             "day", "null", "\\\\x41", "1"],
    "varchar": ["", "ab", "Zoë"],
    "bpchar": ["", "ab", "cd "],
    "name": ["", "pg_class", "a b"],
    "char": ["a", ""],
    "bytea": ["", "\\x00ff10", "abc"],
    "date": ["2024-02-29", "infinity", "-infinity", "4713-01-01 BC", "5874897-12-31"],
    "time": ["00:00", "24:00:00", "12:34:56.789"],
    "timetz": ["00:00+00", "12:34:56.789-07", "24:00:00+15:59"],
    "timestamp": ["2024-02-29 12:34:56.789", "infinity", "-infinity", "4713-01-01 00:00 BC",
                  "294276-12-31 23:59:59"],
    "timestamptz": ["2024-02-29 12:34:56.789+00", "infinity", "-infinity", "1970-01-01 00:00+00"],
    "interval": ["0", "1 day", "-1 month 3 days 04:05:06.7", "178000000 years",
                 "2562047788:00:54.775807", "-2562047788:00:54.775808"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "json": ["null", "[]", "{}", "[1, [2, {\"a\": null}]]", "{\"a\": {\"b\": [1, 2]}, \"c\": \"x\"}",
             "\"s\"", "1.50"],
    "jsonb": ["null", "[]", "{}", "[1, [2, {\"a\": null}]]", "{\"a\": {\"b\": [1, 2]}, \"c\": \"x\"}",
              "\"s\"", "1.50"],
    "oid": ["0", "1", "4294967295"],
    "xid": ["0", "3"],
    "int2vector": ["", "1 2 3", "-32768"],
    "oidvector": ["", "1 2", "4294967295"],
    "regclass": ["pg_class", "0"],
    "regtype": ["int4", "0"],
}
# Expressions that no literal gives.
EXPRESSIONS = {
    "text": ["repeat('xyz', 2000)"],
    "bytea": ["decode(repeat('ab', 3000), 'hex')"],
    "record": ["row(1, 'a'::text)", "row(null::int, 1.5)", "row(array[1, 2], row(2))", "row()",
               "row('1 2'::int2vector, null::text[])"],
}
QUOTED = {"char": '"char"'}
ARRAY_ELEMENTS = ["bool", "int2", "int4", "int8", "float8", "numeric", "text", "bytea", "date",
                  "timestamp", "interval", "uuid", "jsonb", "int2vector", "oidvector"]
POLYMORPHIC = {"anyelement", "anyarray", "anycompatible", "anycompatiblearray", "anynonarray", "any",
               "anycompatiblenonarray"}

# Take any number of their last argument; pg_proc of Cellar does not say so.
VARIADIC = {"concat", "concat_ws", "format", "json_build_array", "json_build_object", "num_nulls",
            "jsonb_build_array", "jsonb_build_object", "json_extract_path", "jsonb_extract_path",
            "json_extract_path_text", "jsonb_extract_path_text", "num_nonnulls"}

# Never called: they wait, end sessions, read files, change the session or the store, depend on the
# clock or on which server it is.
SKIPPED = re.compile(
    r"pg_sleep|pg_terminate|pg_cancel|pg_reload|pg_rotate|pg_switch|pg_read|pg_ls|pg_stat|pg_logical|"
    r"pg_replication|pg_create|pg_drop|pg_promote|pg_backup|pg_start|pg_stop|pg_wal|pg_export|"
    r"pg_advisory|pg_try_advisory|pg_notify|pg_import|pg_current|pg_last|pg_control|pg_is|pg_conf|"
    r"pg_postmaster|pg_blocking|pg_safe|pg_lock|pg_backend|pg_my_temp|pg_jit|pg_hba|pg_show|pg_file|"
    r"pg_timezone|pg_column|pg_client|pg_event|pg_get_|pg_describe|pg_identify|pg_options|pg_char_to|"
    r"pg_encoding|pg_collation|pg_typeof|pg_input|pg_table|pg_relation|pg_total|pg_index|pg_size_bytes|"
    r"pg_database|pg_tablespace|pg_partition|pg_describe|pg_operator|pg_opclass|pg_opfamily|pg_ts|"
    r"pg_type_is|pg_function|pg_listening|pg_filenode|pg_sequence|pg_has|pg_xact|pg_visible|pg_snapshot|"
    r"lo_|loread|lowrite|nextval|setval|currval|lastval|set_config|current_|session_user|inet_|txid|"
    r"version|has_|to_reg|col_description|obj_desc|shobj|format_type|row_security|random|setseed|"
    r"clock_|now|statement_timestamp|timeofday|transaction_timestamp|gen_random|acl|makeacl|getpg|"
    r"cellar|query_to|table_to|database_to|schema_to|cursor_to|amvalid|brin|gin|unnest_tsv|"
    r"generate_series|getdatabaseencoding|_pg_|pg_get_keywords|similar_to_escape|like_escape|age$|"
    r"to_ascii|normalize|is_normalized|record_|date_part_|localtime|user$|pg_conversion|"
    r"system_user|icu_unicode|unicode_")

# Differences that are meant or left: a pattern of the call, one of the answers ("cellar | postgresql"),
# and why.
KNOWN = [
    (r"make_interval", r"22008", "intervals that overflow are refused; PostgreSQL 15 wraps around"),
    (r"timestamp.* - ", r"22008", "differences beyond 64 bits are refused; PostgreSQL 15 wraps around"),
    (r"width_bucket.*e308", r"", "PostgreSQL 15 overflows on the way to some buckets"),
    (r"array_agg.*vector", r"42804", "arrays of vectors are refused for no rows too"),
    (r"array\[array\[.*, null\]", r"2202E", "a strict call of NULL does not look at its other argument"),
    (r"interval.*::time|::time.*interval", r"", "hours of extreme intervals wrap around there"),
    (r"::xid", r"22P02", "PostgreSQL 15 reads any text as an xid"),
]


class Twins:
    def __init__(self, url, other_url, seed):
        self.cellar = slt.Connection(url)
        self.other = slt.Connection(other_url) if other_url else None
        self.random = random.Random(seed)
        for connection in filter(None, [self.cellar, self.other]):
            connection.simple("set statement_timeout = '3s'")
        self.nested = False  # the statement at hand has calls within calls
        self.calls = self.signatures()

    def signatures(self):
        """(name, argument types, variadic, returns a set) of what both servers have."""
        functions = (
            "select p.proname, coalesce((select string_agg(t.typname, ' ' order by a.ordinality) "
            "from unnest(string_to_array(p.proargtypes::text, ' ')) with ordinality a(oid, ordinality) "
            "join pg_type t on t.oid = a.oid::oid), ''), p.proretset, p.prokind "
            "from pg_proc p where p.prokind in ('f', 'a') and p.pronamespace = 'pg_catalog'::regnamespace "
            "and p.provolatile <> 'v' order by 1, 2")
        operators = (
            "select o.oprname, coalesce(l.typname || ' ', '') || r.typname from pg_operator o "
            "left join pg_type l on l.oid = o.oprleft join pg_type r on r.oid = o.oprright order by 1, 2")
        out = []
        for name, arguments, is_set, kind in self.must(functions):
            if not SKIPPED.match(name) and self.known(arguments):
                variadic = name in VARIADIC and arguments != ""
                out.append((name, arguments.split(), variadic, is_set == "t", kind))
        for name, arguments in self.must(operators):
            if self.known(arguments):
                out.append((name, arguments.split(), False, False, "o"))
        if len(out) < 500:
            raise SystemExit(f"only {len(out)} functions and operators are listed")
        return out

    @staticmethod
    def known(arguments):
        for one in arguments.split():
            base = one[1:] if one.startswith("_") else one
            if base not in VALUES and base not in POLYMORPHIC and base != "record":
                return False
        return True

    def must(self, sql):
        answer = self.cellar.simple(sql)
        if answer.error:
            raise SystemExit(f"{sql}\n    {answer.error}")
        return answer.rows

    # ---- arguments ----

    def value(self, base):
        """An expression of a type that is not an array."""
        pick = self.random
        if base == "record":
            return pick.choice(EXPRESSIONS["record"])
        if base in EXPRESSIONS and pick.random() < 0.08:
            return pick.choice(EXPRESSIONS[base])
        text = pick.choice(VALUES[base]).replace("'", "''")
        return f"'{text}'::{QUOTED.get(base, base)}"

    def array(self, base):
        pick = self.random
        name = QUOTED.get(base, base)
        shape = pick.random()
        if base == "record":
            return f"array[{self.value(base)}, {self.value(base)}]"
        if shape < 0.1:
            return f"'{{}}'::{name}[]"
        if shape < 0.2:
            return f"array[{self.value(base)}, null, {self.value(base)}]"
        if shape < 0.35:
            return (f"array[[{self.value(base)}, {self.value(base)}], "
                    f"[{self.value(base)}, {self.value(base)}]]")
        if shape < 0.42:
            return f"array[array[{self.value(base)}], null]::{name}[]" if pick.random() < 0.3 else \
                f"array[array[{self.value(base)}]] || array[array[{self.value(base)}]]"
        if shape < 0.5 and base in ("int4", "int8", "numeric"):
            return f"'[0:2]={{1,NULL,3}}'::{name}[]"
        if shape < 0.56:
            return f"array(select {self.value(base)} from generate_series(1, 3))"
        return "array[" + ", ".join(self.value(base) for _ in range(pick.randrange(1, 5))) + "]"

    def any_base(self):
        return self.random.choice(list(VALUES) + ["record", "record"])

    def argument(self, declared, stands_for, depth):
        pick = self.random
        if pick.random() < 0.05:
            return "null"
        if depth < 2 and pick.random() < 0.1:
            nested = self.call_giving(declared, depth + 1)
            if nested:
                self.nested = True
                return nested
        if pick.random() < 0.03:
            base = self.any_base()
            return self.array(base) if pick.random() < 0.3 else self.value(base)
        if declared in ("anyarray", "anycompatiblearray"):
            return self.array(stands_for)
        if declared in POLYMORPHIC:
            if declared == "any":
                base = self.any_base()
                return self.array(pick.choice(ARRAY_ELEMENTS)) if pick.random() < 0.3 else \
                    self.value(base)
            if pick.random() < 0.15:
                return self.array(stands_for)
            return self.value(stands_for)
        if declared.startswith("_"):
            return self.array(declared[1:])
        if pick.random() < 0.04:
            return f"null::{QUOTED.get(declared, declared)}" if declared != "record" else "null"
        return self.value(declared)

    def call_giving(self, declared, depth):
        """Some call, whatever it gives, cast where that is likely to work."""
        call = self.random.choice(self.calls)
        if call[3] or call[4] == "a":
            return None
        text = self.expression(call, depth)
        if declared in POLYMORPHIC or declared == "record" or declared.startswith("_"):
            return text
        return f"({text})::{QUOTED.get(declared, declared)}"

    def expression(self, call, depth=0):
        name, arguments, variadic, _, kind = call
        stands_for = self.random.choice(ARRAY_ELEMENTS + ["int4", "text", "record"])
        given = list(arguments)
        if variadic:
            given += [given[-1]] * self.random.randrange(0, 4)
        texts = [self.argument(one, stands_for, depth) for one in given]
        if kind == "o":
            return f"({texts[0]}) {name} ({texts[1]})" if len(texts) == 2 else f"{name} ({texts[0]})"
        quoted = '"' + name + '"'
        if kind == "a":
            first = ", ".join(texts) if texts else "*"
            return f"{quoted}({first})"
        return f"{quoted}({', '.join(texts)})"

    def statement(self):
        pick = self.random
        call = pick.choice(self.calls)
        self.nested = False
        text = self.expression(call)
        if call[3]:
            return f"select * from {text} limit 20" if pick.random() < 0.6 else f"select {text} limit 20"
        if call[4] == "a":
            return f"select {text} from generate_series(1, {pick.randrange(1, 4)})"
        shape = pick.random()
        if shape < 0.08:
            return f"select array[{text}, {text}]"
        if shape < 0.14:
            return f"select row({text}, 1)"
        if shape < 0.2:
            return f"select array(select {text} from generate_series(1, 2))"
        if shape < 0.26:
            return f"select to_jsonb({text})"
        if shape < 0.3:
            return f"select ({text})::text"
        if shape < 0.36:
            # Over rows, so that nothing is folded.
            return f"select x from (select {text} as x, g from generate_series(1, 2) g) s where g > 0"
        return f"select {text}"

    # ---- answers ----

    @staticmethod
    def shown(answer):
        if answer.error:
            return answer.error
        return repr(answer.rows)[:300]

    def same(self, left, right):
        if left.error or right.error:
            # Which of several errors comes first, and whether a strict call of NULL looks at its other
            # arguments, nobody says.
            if self.nested:
                return True
            return bool(left.error and right.error and left.error[:2] == right.error[:2])
        return left.rows == right.rows

    @staticmethod
    def is_known(sql, answers):
        for pattern, answer, _ in KNOWN:
            if re.search(pattern, sql) and re.search(answer, answers):
                return True
        return False

    def drive(self, count, show):
        compared, failures = 0, []
        for _ in range(count):
            sql = self.statement()
            try:
                left = self.cellar.simple(sql)
            except (ConnectionError, OSError) as error:
                raise SystemExit(f"the server went away: {error}\n    {sql}") from error
            bad = None
            if left.error and left.error[:2] == "XX":
                bad = f"cellar     {self.shown(left)}"
            if self.other and not bad:
                right = self.other.simple(sql)
                late = any(a.error and a.error[:5] in ("57014", "53200") for a in (left, right))
                compared += not late
                if not late and not self.same(left, right):
                    answers = f"{self.shown(left)} | {self.shown(right)}"
                    if not self.is_known(sql, answers):
                        bad = (f"cellar     {self.shown(left)}\n"
                               f"    postgresql {self.shown(right)}")
            if bad:
                failures.append(f"{sql}\n    {bad}")
        print(f"{count} calls of {len(self.calls)} functions and operators, {compared} compared, "
              f"{len(failures)} fail")
        for failure in failures[:show]:
            print(failure)
        return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--calls", type=int, default=int(os.environ.get("CELLAR_FUNCTION_CALLS", 2500)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_FUNCTION_SEED", 1)))
    parser.add_argument("--show", type=int, default=30)
    parser.add_argument("--url", help="of a running Cellar, instead of one of its own")
    parser.add_argument("--postgres", help="the url of a running PostgreSQL")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with slt_module.postgres(arguments.postgres) as theirs, \
            slt_module.cellar(arguments.program, url=arguments.url) as ours:
        good = Twins(ours, theirs, arguments.seed).drive(arguments.calls, arguments.show)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
