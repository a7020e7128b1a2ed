#!/usr/bin/python3
"""The same random writes to a table without indexes and to one with every kind of index; after each
batch both answer the same to every query, whatever path the planner takes, and CHECK is clean.

    index_twins_test.py PATH/TO/cellar [--layout NAME] [--seal WHEN] [--rounds N] [--seed N]
"""

import argparse
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import slt_module  # noqa: E402
from slt_module import slt  # noqa: E402

COLUMNS = "id int primary key, a int, b text, c numeric, d date, f bool, g varchar(12)"
# %s is the table. Unique ones hold among the values that the writer draws often enough.
INDEXES = [
    "create index {t}_a on {t} (a desc nulls last, b nulls first) where f",
    "create index {t}_b on {t} (lower(b), id desc)",
    "create index {t}_sum on {t} ((a + id % 7)) include (b)",
    "create index {t}_live on {t} (g) include (a, c) where d is not null and a > 3",
    "create unique index {t}_u1 on {t} (g) where a = 5",
    "create unique index {t}_u2 on {t} (upper(b), a) nulls not distinct where c > 90",
    "create index {t}_c on {t} (c nulls first, d desc, a)",
    "create index {t}_like on {t} (b text_pattern_ops) where b is not null",
    "create index {t}_null on {t} ((d - date '2024-01-01') desc nulls first)",
]
QUERIES = [
    "select id, a, b from {t} where f and a = {n}",
    "select id, a, b from {t} where f order by a desc nulls last, b nulls first, id limit 9",
    "select id, a, b from {t} where f order by a nulls first, b desc nulls last, id desc limit 9",
    "select id, a from {t} where f is true and a between {n} and {m}",
    "select id, b from {t} where lower(b) = '{w}'",
    "select id, b from {t} where lower(b) >= '{w}' order by lower(b), id desc limit 5",
    "select id, b from {t} where lower(b) like '{p}%' order by lower(b) desc, id",
    "select id, lower(b) from {t} order by lower(b), id desc limit 7",
    "select id, b from {t} where a + id % 7 = {n}",
    "select b, count(*) from {t} where a + id % 7 in ({n}, {m}) group by b",
    "select max(a + id % 7), count(*) from {t} where a + id % 7 > {n}",
    "select g, a, c from {t} where d is not null and a > 3 and g >= '{w}'",
    "select g, c from {t} where d = '2024-01-0{k}' and a = 6 order by g, c",
    "select id from {t} where g = '{w}' and a = 5",
    "select id from {t} where a = 5 and g is null",
    "select id from {t} where upper(b) = upper('{w}') and a = {n} and c > 90",
    "select id from {t} where upper(b) is null and a is null and c >= 91",
    "select id, c, d, a from {t} order by c nulls first, d desc, a, id limit 11",
    "select id, c, d, a from {t} order by c desc nulls last, d nulls last, a desc nulls first, "
    "id desc limit 11",
    "select id, c from {t} where c > {n} order by c nulls first, d desc, a limit 3",
    "select id, c from {t} where c is null and d > '2024-01-0{k}'",
    "select id, c from {t} where c is null or c = {n}.50",
    "select id, b from {t} where b like '{p}%'",
    "select id, b from {t} where b like '{p}_%' and b is not null",
    "select id, d from {t} where d - date '2024-01-01' = {k}",
    "select id, d from {t} order by d - date '2024-01-01' desc nulls first, id limit 6",
    "select x.id, y.id from {t} x join {t} y on lower(y.b) = lower(x.b) where x.id = {n}",
    "select x.id, y.id from {t} x left join {t} y on y.g = x.g and y.a = 5 where x.id < {n}",
    "select x.id from {t} x where not exists (select 1 from {t} y where y.f and y.a = x.a)",
    "select id from {t} where id > {n} and f for update",
]


class Twins:
    def __init__(self, url, seed):
        self.connection = slt.Connection(url)
        self.random = random.Random(seed)
        self.next_id = 1

    def run(self, sql):
        return self.connection.simple(sql)

    def must(self, sql):
        answer = self.run(sql)
        if answer.error:
            raise SystemExit(f"{sql}\n    {answer.error}")
        return answer

    def text(self):
        if self.random.random() < 0.15:
            return "null"
        word = self.random.choice(["ann", "bob", "abc", "abd", "zoe", "", "a"])
        return "'" + self.random.choice([word, word.upper(), word.title()]) + "'"

    def values(self):
        pick = self.random
        return ", ".join([
            pick.choice(["null"] + [str(n) for n in range(10)]),
            self.text(),
            pick.choice(["null", "1", "2.5", "2.50", "7.5", "91", "99", "-3"]),
            pick.choice(["null"] + [f"'2024-01-0{n}'" for n in range(1, 6)]),
            pick.choice(["null", "true", "true", "false"]),
            self.text(),
        ])

    def where(self):
        pick = self.random
        return pick.choice([
            f"id % 13 = {pick.randrange(13)}", f"a = {pick.randrange(10)} and id % 3 = 0",
            "f and id % 5 = 1", "d is null and id % 4 = 2", f"c > 90 and id % 2 = {pick.randrange(2)}",
            f"lower(b) = 'bob' and id % 6 = {pick.randrange(6)}", f"id > {self.next_id - 5}"])

    def write(self):
        """One statement, of the table {t}."""
        pick = self.random
        kind = pick.random()
        if kind < 0.45:
            rows = []
            for _ in range(pick.randrange(1, 8)):
                rows.append(f"({self.next_id}, {self.values()})")
                self.next_id += 1
            end = pick.choice(["", "", " on conflict do nothing"])
            return "insert into {t} values " + ", ".join(rows) + end
        if kind < 0.55:
            row = f"({pick.randrange(1, self.next_id + 1)}, {self.values()})"
            return "insert into {t} values " + row + \
                " on conflict (id) do update set a = excluded.a, b = excluded.b, f = not {t}.f"
        if kind < 0.85:
            sets = pick.choice([
                "a = a + 1", f"b = {self.text()}", "f = not f", "f = true", "d = d + 1",
                f"c = c + {pick.randrange(3)}, g = {self.text()}", "b = upper(b)",
                f"a = {pick.randrange(10)}, d = null", "id = -id"])
            if sets == "id = -id":
                return "update {t} set " + sets + f" where id = {pick.randrange(1, self.next_id)}"
            return "update {t} set " + sets + " where " + self.where()
        return "delete from {t} where " + self.where()

    def compare(self, path):
        pick = self.random
        for query in QUERIES:
            words = {"n": pick.randrange(10), "m": pick.randrange(10), "k": pick.randrange(1, 6),
                     "w": pick.choice(["ann", "bob", "abc", "nobody"]),
                     "p": pick.choice(["a", "ab", "A", "b", "Z"])}
            answers = []
            for table in ("plain", "indexed"):
                answer = self.must(query.format(t=table, **words))
                rows = [tuple("\0" if value is None else value for value in row)
                        for row in answer.rows]
                answers.append(rows if " limit " in query and " id" in query.split("order by")[-1]
                               else sorted(rows) if " limit " not in query else len(rows))
            if answers[0] != answers[1]:
                plan = self.run("explain " + query.format(t="indexed", **words)).rows
                raise SystemExit(f"{path}: {query.format(t='indexed', **words)}\n"
                                 f"    without indexes {answers[0]}\n    with them {answers[1]}\n" +
                                 "\n".join(row[0] for row in plan))

    def check(self):
        for form in ("", " full"):
            rows = self.must("check table indexed" + form).rows
            if rows:
                raise SystemExit(f"check table indexed{form}: {rows[:5]}")

    def unique_twin(self, sql):
        """Runs a write on both tables; what the unique indexes refuse happens to neither."""
        self.must("begin")
        indexed = self.run(sql.format(t="indexed"))
        if indexed.error:
            self.must("rollback")
            if indexed.error[:5] not in ("23505", "21000", "22001"):
                raise SystemExit(f"{sql}\n    {indexed.error}")
            return
        if "on conflict do nothing" in sql:
            # Which rows went in, the indexes say.
            self.must("delete from plain")
            self.must("insert into plain select * from indexed")
        else:
            self.must(sql.format(t="plain"))
        self.must("commit")

    def drive(self, rounds):
        self.must("create table plain (" + COLUMNS + ")")
        self.must("create table indexed (" + COLUMNS + ")")
        for round_number in range(rounds):
            if round_number < len(INDEXES):
                index = INDEXES[round_number].format(t="indexed")
                answer = self.run(index)
                if answer.error and answer.error[:5] == "23505":
                    self.must("delete from indexed")
                    self.must("delete from plain")
                    self.must(index)
                elif answer.error:
                    raise SystemExit(f"{index}\n    {answer.error}")
            for _ in range(12):
                self.unique_twin(self.write())
            if round_number % 5 == 3:
                self.must("alter table indexed seal")
                self.must("alter table plain seal")
            if round_number % 7 == 5:
                self.must("reindex table indexed")
            for setting in ("on", "off"):
                self.must(f"set enable_lookupjoin = {setting}")
                self.must(f"set enable_sortelision = {setting}")
                self.compare(f"round {round_number}, {setting}")
            self.must("reset all")
            self.check()
        rows = self.must("select count(*) from indexed").rows[0][0]
        print(f"{rounds} rounds, {rows} rows at the end")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--layout", default="pages")
    parser.add_argument("--seal", default="auto")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with slt_module.cellar(arguments.program, arguments.layout, arguments.seal) as url:
        Twins(url, arguments.seed).drive(arguments.rounds)


if __name__ == "__main__":
    main()
