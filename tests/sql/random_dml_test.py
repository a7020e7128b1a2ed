#!/usr/bin/python3
"""Random INSERT, UPDATE, DELETE and data-modifying WITH whose subqueries read the tables that they
change, beside PostgreSQL: the same counts, the same RETURNING rows, the same tables afterwards.

    random_dml_test.py PATH/TO/cellar [--seconds N] [--seed N] [--layout NAME] [--batch N]

The tables have more rows than any batch. Every statement is deterministic: what a join or subquery
picks does not depend on the order of rows. Without --layout every layout has its turn, each with
scans and writes of 1,024, 64 or 1 rows at once: one round of statements, always the same; with
--seconds, or CELLAR_DML_SECONDS, as many rounds as fit. Exit code 77: PostgreSQL 15 is not
installed.
"""

import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import slt_module  # noqa: E402
from slt_module import slt  # noqa: E402

ROWS = 3300
LAYOUTS = [("row", "auto"), ("pages", "always"), ("pages", "auto"), ("cell", "auto"),
           ("datum", "auto")]


# Unique constraints of t are DEFERRABLE: PostgreSQL then looks at them at the end of the statement,
# as Cellar always does. u is for ON CONFLICT, which needs a constraint that is not.
SETUP = [
    "create table t (id int primary key deferrable, g int, b int, c int, s text, "
    "unique (c) deferrable)",
    "create index t_g on t (g)",
    "create index t_b on t (b desc) where b > 0",
    "create table u (id int primary key, g int, b int, s text)",
    "create index u_g on u (g, b)",
    "create table x (id int primary key, g int, b int)",
]


class Writer:
    """Statements over tables t, u and x."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def setup(self):
        fill = [
            f"insert into t select i, i % 11, i % 301, -i, 'row ' || i from generate_series(1, {ROWS}) i",
            f"insert into u select i, i % 13, i % 7, 's' || (i % 5) from generate_series(1, {ROWS}) i",
            f"insert into x select i, i % 17, i from generate_series(1, {ROWS // 2}) i",
        ]
        self.random.shuffle(fill)
        return SETUP + fill

    def scalar(self, o, own):
        """A value over the row `o` of the table `own`, often from a subquery on it."""
        r = self.random
        return r.choice([
            f"{o}.b + 1", f"coalesce({o}.g, 0) * 2 - coalesce({o}.b, 0)", f"{r.randrange(40)}",
            f"(select max(z.b) from {own} z where z.g = {o}.g)",
            f"(select count(*) from {own} z where z.g = {o}.g and z.id <= {o}.id)",
            f"(select z.b from {own} z where z.id = {o}.id - 1)",
            f"(select coalesce(z.b, 0) + 1 from {own} z where z.id = {o}.id + {r.randrange(1, 2000)})",
            f"(select count(*) from {own})", f"(select min(z.id) from {own} z where z.g = {o}.g)",
            f"(select z.b from x z where z.id = {o}.id)",
            f"(select sum(z.g) from {own} z join x on x.id = z.id where z.id = {o}.id)",
        ])

    def condition(self, o, own):
        r = self.random
        n = r.randrange(2, 9)
        return r.choice([
            f"{o}.id % {n} = {r.randrange(n)}", f"{o}.g = {r.randrange(11)}",
            f"{o}.id between {r.randrange(ROWS)} and {r.randrange(ROWS)}",
            f"{o}.b > (select avg(z.b) from {own} z)",
            f"{o}.b = (select max(z.b) from {own} z where z.g = {o}.g)",
            f"exists (select 1 from {own} z where z.g = {o}.g and z.id > {o}.id + {ROWS - 200})",
            f"{o}.id in (select z.b from {own} z)",
            f"{o}.g not in (select z.g from x z where z.g is not null and z.b < 9)",
            f"(select count(*) from {own} z where z.g = {o}.g) > {r.choice([0, 10, 200, 300])}",
            f"{o}.b is null or {o}.b < {r.randrange(300)}", "true",
        ])

    def where(self, o, own):
        first = self.condition(o, own)
        if self.random.random() < 0.5:
            return first
        return f"(({first}) {self.random.choice(['and', 'or'])} ({self.condition(o, own)}))"

    def keep(self):
        """Most statements leave most rows there."""
        return f"t.id % 5 = {self.random.randrange(5)}"

    def returning(self, o, own):
        r = self.random
        if r.random() < 0.5:
            return ""
        return " returning " + r.choice([
            f"{o}.id, {o}.b", f"{o}.id, (select count(*) from {own})", f"{o}.*",
            f"{o}.id, (select z.b from {own} z where z.id = {o}.id), {o}.b",
        ])

    def update(self):
        r = self.random
        kind = r.randrange(8)
        if kind < 4:
            sets = ", ".join(f"{column} = {self.scalar('t', 't')}"
                             for column in r.sample(["b", "g"], r.randrange(1, 3)))
            return f"update t set {sets} where {self.where('t', 't')}{self.returning('t', 't')}"
        if kind == 4:
            return (f"update t set b = t.b + x.b, s = s || '.' from x where x.id = t.id and "
                    f"{self.where('t', 't')}{self.returning('t', 't')}")
        if kind == 5:  # a row is met many times
            return f"update t set b = coalesce(t.b, 0) + 1 from x where x.g = t.g and x.b < 90"
        if kind == 6:  # keys move past each other
            return r.choice([
                f"update t set id = id + {r.randrange(1, 40)}", "update t set c = c + 1",
                "update t set c = -1 - c - (select count(*) from t)",
                f"update t set id = (select max(id) from t) + (select min(id) from t) - id",
                "update t set c = (select y.c from t y where y.id = (select min(z.id) from t z "
                "where z.id > t.id)) where id < (select max(id) from t) and id > (select min(id) "
                "from t) and (select count(*) from t) = 0",
                f"update t set id = id + 100000 where {self.condition('t', 't')}",
            ])
        return f"update t set c = c + 7 where {self.where('t', 't')}"

    def delete(self):
        r = self.random
        if r.random() < 0.3:
            return (f"delete from t using x where x.g = t.g and x.b < 60 and {self.keep()} and "
                    f"{self.where('t', 't')}")
        return f"delete from t where {self.keep()} and ({self.where('t', 't')}){self.returning('t', 't')}"

    def insert(self):
        r = self.random
        base = r.randrange(1, 60) * 1000000
        kind = r.randrange(4)
        if kind < 2:
            return (f"insert into t select id + {base}, g, {self.scalar('t', 't')}, null, s from t "
                    f"where id < 1000000 and {self.where('t', 't')}{self.returning('t', 't')}")
        if kind == 2:
            return (f"insert into u select id + {r.choice([0, 0, ROWS // 2])}, g, b, s from u where "
                    f"{self.condition('u', 'u')} on conflict (id) do "
                    + r.choice(["nothing", f"update set b = {self.upsert()}",
                                f"update set b = {self.upsert()} where u.g < 6"])
                    + self.returning("u", "u"))
        return (f"insert into u select id, g, b, 'x' from x where {self.condition('x', 'x')} on "
                f"conflict (id) do update set b = {self.upsert()}, s = u.s || excluded.s"
                f"{self.returning('u', 'u')}")

    def upsert(self):
        return self.random.choice([
            "excluded.b + 1", "u.b + excluded.b", "(select count(*) from u)",
            "(select count(*) from u z where z.g = excluded.g)",
            "(select max(z.b) from u z where z.id <= excluded.id)"])

    def with_parts(self):
        r = self.random
        parts = [r.choice([
            "update t set b = coalesce(b, 0) + 1 where {w} returning id, b",
            "delete from t where t.id % 9 = {n} and ({w}) returning id, b",
            "insert into t select id + {base}, g, (select count(*) from t), null, 'w' from x "
            "returning id, b",
        ]).format(w=self.condition("t", "t"), n=r.randrange(9), base=r.randrange(60, 99) * 1000000)]
        parts.append(r.choice([
            "select count(*) as id, sum(b) as b from t", "select id, b from t where g = 3",
            "update u set b = (select count(*) from t) where u.id % 4 = 0 returning id, b",
            "delete from u where id % 10 = 3 and (select count(*) from t) > 0 returning id, b",
        ]))
        main = r.choice([
            "select count(*), sum(p0.id), sum(p0.b), (select count(*) from t), "
            "(select sum(b) from t) from p0",
            "select count(*), sum(t.b) from t join p0 using (id)",
            "select (select count(*) from p0), (select sum(b) from p1), count(*) from t",
            "update x set b = b + (select count(*) from p0) where x.g = 1",
            "insert into x select id + 50000000, 1, 1 from x where (select count(*) from t) = 0",
        ])
        return f"with p0 as ({parts[0]}), p1 as ({parts[1]}) {main}"

    def statement(self):
        pick = self.random.random()
        if pick < 0.42:
            return self.update()
        if pick < 0.6:
            return self.delete()
        if pick < 0.82:
            return self.insert()
        return self.with_parts()


def rows_of(answer):
    return sorted(tuple("\0" if value is None else value for value in row) for row in answer.rows)


class Difference(Exception):
    pass


def compare(sql, ours, theirs):
    if ours.error or theirs.error:
        if (ours.error or "")[:5] != (theirs.error or "")[:5]:
            raise Difference(f"{sql}\n    cellar     {ours.error}\n    postgresql {theirs.error}")
        return
    if ours.tag != theirs.tag:
        raise Difference(f"{sql}\n    cellar     {ours.tag}\n    postgresql {theirs.tag}")
    if rows_of(ours) != rows_of(theirs):
        mine, other = rows_of(ours), rows_of(theirs)
        raise Difference(f"{sql}\n    cellar     {[r for r in mine if r not in other][:5]}\n"
                         f"    postgresql {[r for r in other if r not in mine][:5]}")


def run_round(seed, cellar, postgres, history):
    """One set of tables and some statements on it; how many were run."""
    writer = Writer(seed)
    count = 0
    for statement in ["drop table if exists t, u, x", *writer.setup()]:
        for connection in (cellar, postgres):
            answer = connection.simple(statement)
            if answer.error:
                raise Difference(f"{statement}\n    {answer.error}")
    in_block = 0
    while count < 14:
        sql = writer.statement()
        history.append(sql)
        if in_block == 0 and writer.random.random() < 0.2:
            in_block = writer.random.randrange(1, 5)
            for connection in (cellar, postgres):
                connection.simple("begin")
        if in_block:
            for connection in (cellar, postgres):
                connection.simple("savepoint s")
        ours, theirs = cellar.simple(sql), postgres.simple(sql)
        compare(sql, ours, theirs)
        if in_block:
            end = "rollback to s" if ours.error or writer.random.random() < 0.3 else "release s"
            in_block -= 1
            for connection in (cellar, postgres):
                connection.simple(end)
                if in_block == 0:
                    connection.simple("commit")
        for query in ("select * from t", "select * from u", "select * from x",
                      "select count(*) from t"):
            compare(f"{sql}\n    then {query}", cellar.simple(query), postgres.simple(query))
        count += 1
        rows = int(cellar.simple("select count(*) from t").rows[0][0])
        if rows > 2 * ROWS or rows < ROWS // 3:
            break
    for connection in (cellar, postgres):
        connection.simple("rollback")
    for table in ("t", "u"):
        problems = cellar.simple(f"check table {table} full")
        if problems.error or problems.rows:
            raise Difference(f"check table {table}: {problems.error or problems.rows[:5]}")
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float,
                        default=float(os.environ.get("CELLAR_DML_SECONDS", "0")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_DML_SEED", "1")))
    parser.add_argument("--layout", choices=sorted({layout for layout, _ in LAYOUTS}))
    parser.add_argument("--batch", type=int)
    arguments = parser.parse_args()
    if not slt.Postgres.installed():
        print("skipped: PostgreSQL 15 is not installed")
        sys.exit(77)
    batches = [arguments.batch] if arguments.batch else [1024, 64, 1]
    turns = [(layout, seal, batch) for batch in batches for layout, seal in LAYOUTS
             if arguments.layout in (None, layout)]
    if arguments.seconds == 0:  # each layout once
        turns = [(layout, seal, batches[number % len(batches)])
                 for number, (layout, seal, _) in enumerate(turns[:len(LAYOUTS)])]
    start = time.monotonic()
    postgres = slt.Postgres()
    failed, total, seed = False, 0, arguments.seed
    try:
        print(f"seed {seed}, {arguments.seconds:.0f} s")
        for number, (layout, seal, batch) in enumerate(turns):
            deadline = start + arguments.seconds * (number + 1) / len(turns)
            os.environ["CELLAR_BATCH_ROWS"] = str(batch)
            server = slt.Cellar(arguments.program, layout, seal)
            history = []
            try:
                cellar = slt.Connection(server.url)
                theirs = slt.Connection(postgres.url)
                while True:
                    history.clear()
                    total += run_round(seed, cellar, theirs, history)
                    seed += 1
                    if time.monotonic() >= deadline:
                        break
            except Difference as difference:
                failed = True
                print(f"layout {layout}, seal {seal}, batches of {batch}, seed {seed}, statement "
                      f"{len(history)}: {difference}")
            finally:
                failed |= not server.stop()
            if failed:
                break
    finally:
        postgres.stop()
    print(f"{total} statements")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
