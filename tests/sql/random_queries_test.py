#!/usr/bin/python3
"""Random queries beside PostgreSQL 15: joins of all kinds, LATERAL, subqueries in every clause,
aggregates, grouping sets, window frames, set-returning functions in lists, comparisons of rows,
volatile conditions, set operations, WITH, whole rows, char(n). Both servers hold the same small
tables and have to give the same rows, or both refuse the query; an internal error is always wrong.

    random_queries_test.py PATH/TO/cellar [--seed N] [--queries N] [--keep-going]

CELLAR_RANDOM_QUERIES is how many (default 1,000, about 20 seconds), CELLAR_RANDOM_SEED where they
begin (default 1). Query i of seed s is the same wherever it runs. Exit code 77: no PostgreSQL.
"""

import argparse
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import slt_module  # noqa: E402
from slt_module import slt  # noqa: E402

SETUP = [
    "create table a (id int primary key, x int, y int, s text, c char(3))",
    "create table b (id int primary key, x int, z int, s text, c char(5))",
    "create table d (x int, y int, w varchar(4))",
    "create index b_x on b (x)",
    "insert into a values (1,1,null,'p','a'),(2,1,2,'q','ab'),(3,null,3,null,null),(4,3,3,'p','b'),"
    "(5,4,null,'r','abc')",
    "insert into b values (1,1,5,'p','a'),(2,2,null,'q','ab'),(3,3,3,null,'b'),(4,null,1,'p',null)",
    "insert into d values (1,2,'p'),(1,2,'p'),(3,null,'zz'),(null,null,null),(2,3,'q')",
    "create view v as select a.x, count(*) as n, max(a.c) as c from a group by a.x",
    "create view r as select b.id, a.s, b.c from b left join a on a.x = b.x",
]
TABLES = {
    "a": [("id", "i"), ("x", "i"), ("y", "i"), ("s", "t"), ("c", "c")],
    "b": [("id", "i"), ("x", "i"), ("z", "i"), ("s", "t"), ("c", "c")],
    "d": [("x", "i"), ("y", "i"), ("w", "t")],
    "v": [("x", "i"), ("n", "i"), ("c", "c")],
    "r": [("id", "i"), ("s", "t"), ("c", "c")],
}


class Relation:
    """What FROM holds: an alias and its columns, (name, type) each; types are i, t and c."""

    def __init__(self, alias, columns):
        self.alias, self.columns = alias, columns


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.aliases = 0
        self.ctes = []

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def pick(self, things):
        return self.random.choice(things)

    def alias(self, prefix="t"):
        self.aliases += 1
        return f"{prefix}{self.aliases}"

    # ---- Expressions; `scope` is a list of lists of relations, the innermost last ----

    def column(self, scope, kind):
        """A column of this type; now and then one of an outer query. None: there is none."""
        levels = [level for level in scope if level]
        if not levels:
            return None
        level = levels[-1] if len(levels) == 1 or self.chance(75) else self.pick(levels[:-1])
        found = [f"{r.alias}.{name}" for r in level for name, has in r.columns if has == kind]
        return self.pick(found) if found else None

    def int(self, scope, depth):
        roll = self.random.randrange(100)
        name = self.column(scope, "i")
        if name is not None and (roll < 55 or depth <= 0):
            return name
        if roll < 65 or depth <= 0:
            return str(self.random.randrange(-1, 6))
        if roll < 72:
            return f"({self.int(scope, depth - 1)} {self.pick('+-')} {self.int(scope, depth - 1)})"
        if roll < 77:
            return f"coalesce({self.int(scope, depth - 1)}, {self.int(scope, depth - 1)})"
        if roll < 81:
            return (f"case when {self.bool(scope, depth - 1)} then {self.int(scope, depth - 1)} "
                    f"else {self.int(scope, depth - 1)} end")
        if roll < 84:
            return f"nullif({self.int(scope, depth - 1)}, {self.int(scope, depth - 1)})"
        if roll < 87:
            return f"{self.pick(['greatest', 'least'])}({self.int(scope, 0)}, {self.int(scope, 0)})"
        if roll < 90:
            return f"length({self.text(scope, depth - 1)})"
        if roll < 92:
            return f"(random() * 0)::int + {self.int(scope, depth - 1)}"
        return self.scalar(scope, depth - 1, "i")

    def text(self, scope, depth):
        roll = self.random.randrange(100)
        name = self.column(scope, "t")
        if name is not None and (roll < 50 or depth <= 0):
            return name
        if roll < 60 or depth <= 0:
            return self.pick(["'p'::text", "'q'::text", "''::text"])
        if roll < 70:
            return f"({self.text(scope, depth - 1)} || {self.text(scope, depth - 1)})"
        if roll < 78:
            return f"coalesce({self.text(scope, depth - 1)}, {self.text(scope, depth - 1)})"
        if roll < 86:
            return f"({self.char(scope, depth - 1)})::text"
        if roll < 91 and scope[-1]:
            return f"{self.pick(scope[-1]).alias}::text"
        if roll < 95:
            query, _ = self.select(scope, depth - 1, kinds=[self.pick("itc")], plain=True)
            return f"array({query} order by 1)::text"
        return self.scalar(scope, depth - 1, "t")

    def char(self, scope, depth):
        roll = self.random.randrange(100)
        name = self.column(scope, "c")
        if name is not None and (roll < 50 or depth <= 0):
            return name
        if roll < 65 or depth <= 0:
            return self.pick(["'a'::char(2)", "'ab'::char(4)", "'b '::bpchar"])
        if roll < 78:
            return f"coalesce({self.char(scope, depth - 1)}, {self.char(scope, depth - 1)})"
        if roll < 88:
            return (f"case when {self.bool(scope, depth - 1)} then {self.char(scope, depth - 1)} "
                    f"else {self.char(scope, depth - 1)} end")
        if roll < 94:
            return f"greatest({self.char(scope, 0)}, {self.char(scope, 0)})"
        return self.scalar(scope, depth - 1, "c")

    def value(self, scope, depth, kind):
        return {"i": self.int, "t": self.text, "c": self.char}[kind](scope, depth)

    def bool(self, scope, depth):
        roll = self.random.randrange(100)
        if roll < 38 or depth <= 0:
            kind = self.pick("iiiitc")
            op = self.pick(["=", "=", "=", "<>", "<", "<=", ">", ">="])
            return f"{self.value(scope, depth - 1, kind)} {op} {self.value(scope, depth - 1, kind)}"
        if roll < 46:
            negated = self.pick(["", "not "])
            return f"{self.value(scope, depth - 1, self.pick('itc'))} is {negated}null"
        if roll < 58:
            word = self.pick(["and", "or"])
            return f"({self.bool(scope, depth - 1)} {word} {self.bool(scope, depth - 1)})"
        if roll < 63:
            return f"(not {self.bool(scope, depth - 1)})"
        if roll < 68:
            items = ", ".join(self.int(scope, 0) for _ in range(self.random.randrange(1, 4)))
            return f"{self.int(scope, depth - 1)} {self.pick(['in', 'not in'])} ({items})"
        if roll < 72:
            return (f"{self.int(scope, 0)} is {self.pick(['', 'not '])}distinct from "
                    f"{self.int(scope, depth - 1)}")
        if roll < 76:
            return self.rows(scope, depth)
        if roll < 79 and scope[-1]:
            return f"{self.pick(scope[-1]).alias} is {self.pick(['', 'not '])}null"
        if roll < 81:
            return self.pick(["random() < 2", "random() < -1", f"random() + {self.int(scope, 0)} > 0"])
        if roll < 88:
            return f"{self.pick(['', 'not '])}exists ({self.select(scope, depth - 1)[0]})"
        if roll < 95:
            query, _ = self.select(scope, depth - 1, kinds=["i"])
            return f"{self.int(scope, 0)} {self.pick(['in', 'not in'])} ({query})"
        query, _ = self.select(scope, depth - 1, kinds=["i"])
        op = self.pick(["=", "<", ">=", "<>"])
        if self.chance(30):
            query = f"array({query})"
        return f"{self.int(scope, 0)} {op} {self.pick(['any', 'all'])} ({query})"

    def rows(self, scope, depth):
        """A comparison of rows."""
        pair = f"({self.int(scope, 0)}, {self.value(scope, 0, 't')})"
        roll = self.random.randrange(100)
        if roll < 40:
            op = self.pick(["=", "<", ">=", "<>", "is distinct from", "is not distinct from"])
            return f"{pair} {op} ({self.int(scope, 0)}, {self.text(scope, 0)})"
        if roll < 60:
            other = f"({self.int(scope, 0)}, {self.text(scope, 0)})"
            return f"{pair} {self.pick(['in', 'not in'])} ({other}, (1, 'p'))"
        query, _ = self.select(scope, depth - 1, kinds=["i", "t"], plain=roll > 80)
        if roll < 80:
            return f"{pair} {self.pick(['in', 'not in', '= any', '< all', '<> all'])} ({query})"
        return f"{pair} {self.pick(['=', '<', '>='])} ({query} order by 1, 2 limit 1)"

    def window(self, inner):
        """A call over a window, of type int. What it gives does not depend on the order of peers."""
        call = self.pick(["count(*)", f"sum({self.int(inner, 0)})", f"max({self.int(inner, 0)})",
                          f"min({self.int(inner, 0)})", "rank()", "dense_rank()",
                          f"count({self.int(inner, 0)}) filter (where {self.bool(inner, 0)})"])
        partition = f"partition by {self.value(inner, 1, self.pick('iit'))} " if self.chance(60) else ""
        frame = ""
        if "rank" not in call and self.chance(60):
            bounds = ["unbounded preceding", "1 preceding", "current row", "1 following",
                      "unbounded following"]
            first, last = sorted(self.random.randrange(5) for _ in range(2))
            frame = f" {self.pick(['range', 'groups'])} between {bounds[min(first, 3)]} and " \
                    f"{bounds[max(last, 1)]}"
            frame += self.pick(["", "", " exclude group", " exclude current row"
                                if call.startswith("count(*)") else ""])
        return f"{call} over ({partition}order by {self.int(inner, 1)}{frame})::int"

    def scalar(self, scope, depth, kind):
        """A subquery of one row."""
        if self.chance(60):
            relations, text = self.from_clause(scope, depth)
            inner = scope + [relations]
            argument = self.value(inner, depth - 1, kind)
            where = f" where {self.bool(inner, depth - 1)}" if self.chance(50) else ""
            call = self.pick(["min", "max"])
            if kind == "i" and self.chance(40):
                call = "count"
            cast = "::int" if kind == "i" else ""
            return f"(select {call}({argument}){cast} from {text}{where})"
        query, _ = self.select(scope, depth, kinds=[kind], plain=True)
        return f"({query} order by 1 limit 1)"

    # ---- FROM ----

    def relation(self, scope, depth, siblings):
        """One item: the Relation and its text."""
        roll = self.random.randrange(100)
        alias = self.alias()
        if roll < 55 or depth <= 0:
            if self.ctes and self.chance(30):
                name, columns = self.pick(self.ctes)
                return Relation(alias, columns), f"{name} {alias}"
            name = self.pick(list(TABLES))
            return Relation(alias, TABLES[name]), f"{name} {alias}"
        if roll < 62:
            rows = ", ".join(f"({self.int([[]], 0)}, {self.text([[]], 0)})" for _ in range(2))
            rows += ", (null, null)" if self.chance(40) else ""
            return Relation(alias, [("k", "i"), ("l", "t")]), f"(values {rows}) {alias}(k, l)"
        if roll < 67:
            bound = self.int(scope + [siblings], 0) if siblings and self.chance(50) else "3"
            return Relation(alias, [("g", "i")]), f"generate_series(1, {bound}) {alias}(g)"
        lateral = bool(siblings) and self.chance(45)
        query, columns = self.select(scope + [siblings] if lateral else scope, depth - 1)
        return Relation(alias, columns), f"{'lateral ' if lateral else ''}({query}) {alias}"

    def from_clause(self, scope, depth):
        relations, texts = [], []
        for _ in range(1 if self.chance(45) or depth <= 0 else 2):
            one, text = self.relation(scope, depth - 1, relations)
            own = [one]
            while self.chance(40) and len(own) < 3 and depth > 0:
                join = self.pick(["join", "join", "left join", "left join", "right join",
                                  "full join", "cross join"])
                visible = relations + own if join in ("join", "left join", "cross join") else []
                other, item = self.relation(scope, depth - 1, visible)
                own.append(other)
                if join != "cross join" and self.chance(15):
                    # Where both sides have the column; else both servers refuse it.
                    text = self.pick([f"{text} {join} {item} using (x)",
                                      f"{text} natural {join} {item}"])
                    continue
                text = f"{text} {join} {item}"
                if join == "cross join":
                    continue
                inner = scope + [own]
                keys = [self.column([side], "i") for side in (own[:-1], [other])]
                if join == "full join" and None not in keys:
                    text += f" on {keys[0]} = {keys[1]}"  # all that a FULL JOIN may ask
                elif join == "full join":
                    text += " on true"
                else:
                    text += f" on {self.bool(inner, min(depth - 1, 1))}"
            relations += own
            texts.append(text)
        return relations, ", ".join(texts)

    # ---- SELECT: its text and its columns ----

    def aggregate(self, scope, depth):
        roll = self.random.randrange(100)
        tail = f" filter (where {self.bool(scope, 0)})" if self.chance(15) else ""
        if roll < 25:
            return f"count(*){tail}", "i"
        if roll < 40:
            return f"count({self.pick(['', 'distinct '])}{self.int(scope, depth)}){tail}", "i"
        if roll < 55 and scope[-1]:
            return f"count({self.pick(scope[-1]).alias}.*){tail}", "i"
        if roll < 70:
            return f"sum({self.int(scope, depth)})::int{tail and ''}", "i"
        if roll < 80:
            return f"max({self.char(scope, 0)}){tail}", "c"
        if roll < 86:
            text = self.text(scope, 0)
            return f"string_agg(distinct {text}, ',' order by {text}){tail}", "t"
        if roll < 90:
            return f"min({self.text(scope, depth)}){tail}", "t"
        return f"max({self.int(scope, depth)}){tail}", "i"

    def select(self, scope, depth, kinds=None, plain=False):
        if depth > 0 and not plain and self.chance(14):
            return self.set_operation(scope, depth, kinds)
        relations, text = self.from_clause(scope, depth)
        inner = scope + [relations]
        where = f" where {self.bool(inner, depth)}" if self.chance(55) else ""
        if self.chance(28):
            return self.grouped(inner, depth, kinds, text + where)
        wanted = kinds or [self.pick("iiitc") for _ in range(self.random.randrange(1, 4))]
        columns, targets = [], []
        for i, kind in enumerate(wanted):
            value = self.value(inner, depth, kind)
            if kind == "i" and self.chance(10):
                value = self.window(inner)
            elif kind == "i" and not plain and self.chance(5):
                value = self.pick([f"generate_series(1, {self.int(inner, 0)} % 3)",
                                   f"unnest(array[{self.int(inner, 0)}, {self.int(inner, 0)}])",
                                   f"generate_series(1, 2) + {self.int(inner, 0)}"])
            columns.append((f"c{i + 1}", kind))
            targets.append(f"{value} as c{i + 1}")
        distinct = "distinct " if self.chance(12) else ""
        if not plain and self.chance(6) and wanted[0] != "c" and "." in targets[0]:
            distinct = f"distinct on ({targets[0].rsplit(' as ', 1)[0]}) "
            order = ", ".join(str(i + 1) for i in range(len(columns)))
            return (f"select {distinct}{', '.join(targets)} from {text}{where} order by {order}",
                    columns)
        query = f"select {distinct}{', '.join(targets)} from {text}{where}"
        if not plain and self.chance(12):
            order = ", ".join(str(i + 1) for i in range(len(columns)))
            limit = self.random.randrange(4)
            if self.chance(20):
                limit = f"(select count(*) from d where x < {limit})"
            query = f"{query} order by {order} limit {limit}"
        return query, columns

    def grouped(self, inner, depth, kinds, text):
        keys = [(self.value(inner, 1, kind), kind)
                for kind in [self.pick("iiitc") for _ in range(self.random.randrange(3))]]
        keys = [key for key in keys if "." in key[0]]  # constants are positions, or not keys at all
        wanted = kinds or [self.pick("iiitc") for _ in range(self.random.randrange(1, 4))]
        targets, columns = [], []
        for i, kind in enumerate(wanted):
            fitting = [key for key, has in keys if has == kind]
            if fitting and self.chance(60):
                value = self.pick(fitting)
            else:
                for _ in range(20):
                    value, has = self.aggregate(inner, min(depth, 1))
                    if has == kind:
                        break
                else:
                    value = f"max({self.value(inner, 0, kind)})"
            targets.append(f"{value} as c{i + 1}")
            columns.append((f"c{i + 1}", kind))
        query = f"select {', '.join(targets)} from {text}"
        if keys:
            names = [f"({key})" for key, _ in keys]
            roll = self.random.randrange(100)
            if roll < 70:
                query += f" group by {', '.join(names)}"
            elif roll < 80:
                query += f" group by rollup({', '.join(names)})"
            elif roll < 90:
                query += f" group by cube({', '.join(names)})"
            else:
                query += f" group by grouping sets ({names[0]}, (), ({', '.join(names)}))"
        if self.chance(20):
            query += f" having {self.aggregate(inner, 0)[0]} is not null"
        elif self.chance(10):
            query += f" having (select count(*) from {self.pick(list(TABLES))}) > count(*)"
        return query, columns

    def set_operation(self, scope, depth, kinds):
        wanted = kinds or [self.pick("iiitc") for _ in range(self.random.randrange(1, 3))]
        word = self.pick(["union", "union all", "intersect", "except", "intersect all", "except all"])
        left, columns = self.select(scope, depth - 1, kinds=wanted)
        right, _ = self.select(scope, depth - 1, kinds=wanted)
        return f"({left}) {word} ({right})", columns

    def query(self):
        text = ""
        if self.chance(25):
            parts = []
            if self.chance(25):
                name, union = self.alias("w"), self.pick(["union", "union all"])
                body, _ = self.select([], 1, kinds=["i", "t"])
                more = self.pick(["", " join d on d.x = k", " where k % 2 = 0"])
                more += " and k < 4" if "where" in more else " where k < 4"
                parts.append(f"{name}(k, l) as (({body}) {union} select k + 1, l from {name}{more})")
                self.ctes.append((name, [("k", "i"), ("l", "t")]))
            for _ in range(self.random.randrange(1, 3)):
                body, columns = self.select([], 2)
                name = self.alias("w")
                how = self.pick(["", "", "materialized ", "not materialized "])
                parts.append(f"{name} as {how}({body})")
                self.ctes.append((name, columns))
            text = f"with recursive {', '.join(parts)} "
        body, _ = self.select([], 3)
        return text + body


# Of values that are equal but for their blanks these keep one, and it is open which.
CHOOSERS = ("distinct", "union", "intersect", "except", "group by", "max(", "min(", "greatest(",
            "least(", "limit")


def rows_of(answer, sql):
    rows = answer.rows
    if any(word in sql for word in CHOOSERS):
        rows = [[value.rstrip(" ") if value else value for value in row] for row in rows]
    return sorted(map(repr, rows))


def shorten(sql):
    return sql if len(sql) < 4000 else sql[:4000] + " ..."


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_RANDOM_SEED", "1")))
    parser.add_argument("--queries", type=int,
                        default=int(os.environ.get("CELLAR_RANDOM_QUERIES", "1000")))
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--url", help="a running server in the place of the program")
    parser.add_argument("--postgres-url")
    options = parser.parse_args()
    if not options.postgres_url and not slt.Postgres.installed():
        print("PostgreSQL 15 is not installed: skipped")
        return 77
    with slt_module.cellar(options.program, url=options.url) as ours, \
            slt_module.postgres(options.postgres_url) as theirs:
        return run(options, [ours, theirs])


def run(options, urls):
    databases = [slt.fresh_database(url, 0) for url in urls]
    connections = [slt.Connection(url) for url, _ in databases]
    for connection in connections:
        for statement in SETUP + ["set statement_timeout = '20s'"]:
            answer = connection.simple(statement)
            if answer.error:
                print(f"{statement}: {answer.error}")
                return 1
    # PostgreSQL takes small tables that it has no statistics of for large ones, and compiles.
    connections[1].simple("set jit = off")
    print(f"seed {options.seed}, {options.queries} queries")
    wrong = refused = 0
    for number in range(options.queries):
        sql = Generator(f"{options.seed}.{number}").query()
        got, expected = (connection.simple(sql) for connection in connections)
        states = [answer.error[:5] if answer.error else "" for answer in (got, expected)]
        # Too long for one of them; an error of PostgreSQL's planner; a row that one does not reach.
        if "57014" in states or states[1] == "XX000" or (
                "21000" in states and "XX000" not in states):
            continue
        refused += bool(states[1])
        rows = [rows_of(answer, sql) for answer in (got, expected)]
        if all(state[:2] in ("42", "0A") for state in states):
            continue  # of several mistakes each finds one of its own first
        if states[0] == states[1] and (states[0] or rows[0] == rows[1]) and states[0] != "XX000":
            continue
        wrong += 1
        print(f"query {number}: {shorten(sql)}")
        for name, answer in (("cellar", got), ("postgresql", expected)):
            shown = answer.error or sorted(map(repr, answer.rows))[:12]
            print(f"  {name}: {shown}")
        if not options.keep_going:
            break
    print(f"{refused} refused by both, {wrong} wrong")
    for connection in connections:
        connection.close()
    for (_, drop), url in zip(databases, urls):
        slt.drop_database(url, drop)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
