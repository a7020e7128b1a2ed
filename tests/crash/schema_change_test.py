#!/usr/bin/python3
"""Changes the schema of a table at random while clients write to it, with SIGKILLs in between.

    schema_change_test.py PATH/TO/cellar [--rounds N] [--kills N] [--seed N] [--keep]

Each client owns keys of its own and keeps a model of its rows: what was acknowledged is there, what was
refused is not, and what was in flight at a kill is there whole or not at all. After every step CHECK
DATABASE finds nothing, the schema is what the statements say, and each sequence belongs to a column;
between rounds the clients rest and the table is compared with the models, once through each of its indexes.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time

from kill_test import Connection, Gone, check, start

CLIENTS = 3
KEYS = 400          # of each client
FIXED = 2500        # rows of nobody, which make the table large enough for jobs
STEPS_PER_ROUND = 6
# What a client may be told while the schema changes under it; nothing was done then.
REFUSALS = ("40", "42P01", "42703", "3F000", "55", "23514", "0A000", "53400")
# By constraints and columns whose names say that they should not have come about: the table was
# empty. And by added columns that are NOT NULL for a while.
BY_FAILURES = ('constraint "f', 'column "f', '23502 null value in column "x')
PARENTS = 30000     # that every value of column a refers to


class Model:
    """What one client knows of its rows."""

    def __init__(self, client):
        self.client = client
        self.rows = {}        # id -> (a, b)
        self.unknown = None   # (id, row or None) in flight
        self.unknown_fill = None       # rows of a whole statement in flight
        self.acknowledged = 0
        self.refused = 0
        self.lock = threading.Lock()   # held during a statement; a TRUNCATE takes all


class Schema:
    """Names as they are now; clients may see them a little late."""

    def __init__(self):
        self.space, self.table, self.a, self.b = "public", "t", "a", "b"
        self.a_type, self.layout = "bigint", None
        self.extra = []       # columns added
        self.indexes = []
        self.checks = []
        self.uniques, self.references = [], []
        self.dropped = False
        self.truncating = False        # and whether it has happened is not known
        self.other = "other"           # a schema beside public
        self.counter = 0

    def name(self):
        return f"{self.space}.{self.table}"

    def fresh(self, prefix):
        self.counter += 1
        return f"{prefix}{self.counter}"


def write(connection, model, schema, rng):
    key = model.client * 1000000 + rng.randrange(KEYS)
    a, b = rng.randrange(1, PARENTS), rng.choice(["x", "yy", "z" * 40]) + str(rng.randrange(50))
    table, col_a, col_b = schema.name(), schema.a, schema.b
    if key not in model.rows:
        after = (a, b)
        sql = f"INSERT INTO {table} (id, {col_a}, {col_b}) VALUES ({key}, {a}, '{b}')"
    elif rng.random() < 0.25:
        after = None
        sql = f"DELETE FROM {table} WHERE id = {key}"
    elif rng.random() < 0.5:
        after = (a, model.rows[key][1])
        sql = f"UPDATE {table} SET {col_a} = {a} WHERE id = {key}"
    else:
        after = (a, b)
        sql = f"UPDATE {table} SET {col_a} = {a}, {col_b} = '{b}' WHERE id = {key}"
    model.unknown = (key, after)
    _, error = connection.query(sql)
    model.unknown = None
    if error is None:
        model.acknowledged += 1
        if after is None:
            del model.rows[key]
        else:
            model.rows[key] = after
    elif error.startswith(REFUSALS) or any(name in error for name in BY_FAILURES):
        model.refused += 1
        time.sleep(0.002)
    else:
        raise AssertionError(f"{sql}: {error}")


def work(url, model, schema, rng, stop):
    try:
        connection = Connection(url)
        while not stop.is_set():
            with model.lock:
                write(connection, model, schema, rng)
        connection.close()
    except Gone:
        pass


class Changer:
    """One step of schema change after the other, over a connection of its own."""

    def __init__(self, connection, schema, rng, url, models):
        self.connection, self.schema, self.rng = connection, schema, rng
        self.url, self.models = url, models
        self.log = []

    def run(self, sql, then=None, may_fail=()):
        """`then` follows success. Conflicts with writers are tried again."""
        for _ in range(25):
            self.log.append(sql)
            _, error = self.connection.query(sql)
            if error is None:
                if then is not None:
                    then()
                return True
            if not error.startswith(("40001", "40P01", "55P03")):
                break
            time.sleep(0.01)
        if error.startswith(("0A000", "40001", "40P01", "55P03") + tuple(may_fail)):
            return False
        raise AssertionError(f"{sql}: {error}")

    def create_index(self):
        s, rng = self.schema, self.rng
        name = s.fresh("i")
        keys = rng.choice([s.a, f"{s.b}, {s.a}", f"{s.a} DESC", f"lower({s.b})", f"({s.a} + 1), id"])
        tail = rng.choice(["", "", f" INCLUDE ({s.b})", f" WHERE {s.a} > 100"])
        self.run(f"CREATE INDEX {name} ON {s.name()} ({keys}){tail}", lambda: s.indexes.append(name))

    def create_unique_index(self):
        s = self.schema
        name = s.fresh("u")
        self.run(f"CREATE UNIQUE INDEX {name} ON {s.name()} ({s.a}, id)",
                 lambda: s.indexes.append(name))

    def fail_unique_index(self):
        s = self.schema
        name = s.fresh("f")
        # Two rows of one value, or the build is free to succeed.
        if self.run(f"CREATE UNIQUE INDEX {name} ON {s.name()} ({s.b})", may_fail=("23505",)):
            self.run(f"DROP INDEX {s.space}.{name}")

    def drop_index(self):
        s = self.schema
        if s.indexes:
            name = self.rng.choice(s.indexes)
            self.run(f"DROP INDEX {s.space}.{name}", lambda: s.indexes.remove(name))

    GOOD_COLUMNS = (
        "int DEFAULT 7", "text", "numeric(8,2) NOT NULL DEFAULT 1.50", "float8 DEFAULT random()",
        "text GENERATED ALWAYS AS (upper({b})) STORED", "timestamptz DEFAULT now()",
        "int REFERENCES fixed.parents", "bigint DEFAULT 5 REFERENCES fixed.parents CHECK ({x} > 0)",
        "int UNIQUE", "int UNIQUE REFERENCES fixed.parents CHECK ({x} > 0)",
        "int DEFAULT 5 CHECK ({x} + {a} > 5)", "bigserial CHECK ({x} > 0)", "serial UNIQUE",
        "int GENERATED BY DEFAULT AS IDENTITY", "bigint GENERATED ALWAYS AS IDENTITY UNIQUE")
    BAD_COLUMNS = (
        "serial CONSTRAINT {x} CHECK ({x} < 0)", "int DEFAULT 7 CONSTRAINT {x} UNIQUE", "int NOT NULL",
        "int DEFAULT 0 CONSTRAINT {x} REFERENCES fixed.parents", "int DEFAULT 7 CONSTRAINT {x} CHECK ({x} < 0)",
        "int DEFAULT 7 CONSTRAINT {x} CHECK ({x} + {a} < 0)", "int GENERATED ALWAYS AS IDENTITY (MAXVALUE 2)",
        "int GENERATED ALWAYS AS ({a} / ({a} - {a})) STORED")

    def add_column(self):
        s = self.schema
        if len(s.extra) > 8:
            self.drop_column()
            return
        name = s.fresh("x")
        kind = self.rng.choice(self.GOOD_COLUMNS).format(x=name, a=s.a, b=s.b)
        self.run(f"ALTER TABLE {s.name()} ADD COLUMN {name} {kind}", lambda: s.extra.append(name))

    def fail_column(self):
        s = self.schema
        name = s.fresh("f")
        kind = self.rng.choice(self.BAD_COLUMNS).format(x=name, a=s.a, b=s.b)
        # A table that is empty has nothing to fail on.
        if self.run(f"ALTER TABLE {s.name()} ADD COLUMN {name} {kind}", lambda: s.extra.append(name),
                    may_fail=("23", "22012", "2200H")):
            self.run(f"ALTER TABLE {s.name()} DROP COLUMN {name}", lambda: s.extra.remove(name))

    def drop_column(self):
        """It may be a part of the key."""
        s = self.schema
        if s.extra:
            name = self.rng.choice(s.extra)
            self.run(f"ALTER TABLE {s.name()} DROP COLUMN {name}", lambda: s.extra.remove(name))

    def rename_extra(self):
        s = self.schema
        if s.extra:
            old, new = self.rng.choice(s.extra), s.fresh("x")

            def renamed():
                s.extra[s.extra.index(old)] = new
            self.run(f"ALTER TABLE {s.name()} RENAME COLUMN {old} TO {new}", renamed)

    def change_extra(self):
        """What an added column is: one of many kinds, so it may not be possible."""
        s = self.schema
        if s.extra:
            change = self.rng.choice([
                "DROP EXPRESSION IF EXISTS", "DROP IDENTITY IF EXISTS", "SET NOT NULL", "DROP NOT NULL",
                "ADD GENERATED BY DEFAULT AS IDENTITY", "DROP DEFAULT", "TYPE text", "TYPE bigint"])
            column = f"ALTER TABLE {s.name()} ALTER {self.rng.choice(s.extra)}"
            self.run(f"{column} {change}", may_fail=("23502", "42", "55000", "0A000", "22"))
            # Rows come without a value for it.
            self.run(f"{column} DROP NOT NULL", may_fail=("42",))

    def rename_column(self):
        s = self.schema
        name = s.fresh("a")
        self.run(f"ALTER TABLE {s.name()} RENAME COLUMN {s.a} TO {name}",
                 lambda: setattr(s, "a", name))

    def rename_table(self):
        s = self.schema
        name = s.fresh("t")
        self.run(f"ALTER TABLE {s.name()} RENAME TO {name}", lambda: setattr(s, "table", name))

    def move_table(self):
        s = self.schema
        target = s.other if s.space == "public" else "public"
        self.run(f"ALTER TABLE {s.name()} SET SCHEMA {target}", lambda: setattr(s, "space", target))

    def change_type(self):
        s = self.schema
        target = self.rng.choice([t for t in ("int", "bigint", "numeric") if t != s.a_type])
        self.run(f"ALTER TABLE {s.name()} ALTER COLUMN {s.a} TYPE {target}",
                 lambda: setattr(s, "a_type", target), may_fail=("42804",))

    def rename_schema(self):
        s = self.schema
        name = s.fresh("other")

        def renamed():
            if s.space == s.other:
                s.space = name
            s.other = name
        self.run(f"ALTER SCHEMA {s.other} RENAME TO {name}", renamed)

    def change_layout(self):
        layout = self.rng.choice(["row", "pages", "cell", "datum"])
        self.run(f"ALTER TABLE {self.schema.name()} SET (layout = {layout})", may_fail=("22023",))

    def change_groups(self):
        """Columns of the key are in none."""
        s = self.schema
        groups = self.rng.choice([f"g ({s.a})", f"g ({s.b}), h ({s.a})", f"h ({s.a}, {s.b})"])
        column = s.fresh("x")
        for sql in (f"SET (layout = row, groups = '{groups}')", f"ALTER {s.a} DROP GROUP, ADD GROUP i ({s.a})",
                    "RENAME GROUP i TO j", f"ALTER {s.b} SET GROUP j", f"ADD COLUMN {column} int DEFAULT 3 GROUP j",
                    f"DROP GROUP j", "RESET (groups)"):
            if self.rng.random() < 0.5:
                self.run(f"ALTER TABLE {s.name()} {sql}", may_fail=("42",), then=lambda sql=sql: (
                    s.extra.append(column) if sql.startswith("ADD COLUMN") else None))

    def drop_key(self, tail=""):
        names = self.connection.rows("SELECT conname FROM pg_constraint WHERE contype = 'p' AND "
                                     f"conrelid = '{self.schema.name()}'::regclass")
        if names:
            self.run(f"ALTER TABLE {self.schema.name()} DROP CONSTRAINT {names[0][0]}{tail}",
                     may_fail=("42P16",))

    def change_key(self):
        """The rows move to another key."""
        s = self.schema
        keys = self.rng.choice(["id", "id", f"id, {s.a}", f"{s.a}, id", f"{s.b}, id"])
        way = self.rng.randrange(3)
        if way == 0:
            # The old one stays as a UNIQUE constraint.
            shards = self.rng.choice(["", "", " WITH (shards = 4)"])
            self.run(f"ALTER TABLE {s.name()} ALTER PRIMARY KEY USING COLUMNS ({keys}){shards}",
                     may_fail=("42",))
        elif way == 1:
            self.drop_key(f", ADD PRIMARY KEY ({keys})")
        else:
            self.drop_key()
            self.run(f"ALTER TABLE {s.name()} ADD PRIMARY KEY ({keys})", may_fail=("42P16",))

    def serial_key(self):
        s = self.schema
        name = s.fresh("x")
        self.drop_key()
        self.run(f"ALTER TABLE {s.name()} ADD COLUMN {name} serial PRIMARY KEY", may_fail=("42P16",),
                 then=lambda: s.extra.append(name))

    def drop_key_part(self):
        """Foreign keys that need the key go with its part, or with the key."""
        s = self.schema
        part = s.fresh("x")
        if not self.run(f"ALTER TABLE {s.name()} ADD COLUMN {part} int NOT NULL DEFAULT 1",
                        lambda: s.extra.append(part)):
            return
        self.drop_key()
        if self.run(f"ALTER TABLE {s.name()} ADD PRIMARY KEY (id, {part})", may_fail=("42P16",)):
            needed = self.rng.random() < 0.7 and self.run(
                "CREATE TABLE fixed.kids (id int, part int, "
                f"CONSTRAINT needs FOREIGN KEY (id, part) REFERENCES {s.name()} (id, {part}))")
            if self.rng.random() < 0.5:
                self.run(f"ALTER TABLE {s.name()} DROP COLUMN {part}{' CASCADE' if needed else ''}",
                         lambda: s.extra.remove(part))
            else:
                self.drop_key(" CASCADE")
            if needed:
                self.run("DROP TABLE fixed.kids")
        self.run(f"ALTER TABLE {s.name()} ADD PRIMARY KEY (id)", may_fail=("42P16",))

    def fail_rewrite(self):
        s = self.schema
        self.run(f"ALTER TABLE {s.name()} ALTER COLUMN {s.a} TYPE int USING 1 / ({s.a} - {s.a})::int",
                 lambda: setattr(s, "a_type", "int"), may_fail=("22012", "42601", "42804"))
        # An empty table has nothing to fail on.
        self.run(f"ALTER TABLE {s.name()} ALTER COLUMN {s.a} TYPE bigint",
                 lambda: setattr(s, "a_type", "bigint"), may_fail=("42601", "42804"))

    def add_check(self):
        s = self.schema
        name = s.fresh("c")
        self.run(f"ALTER TABLE {s.name()} ADD CONSTRAINT {name} CHECK ({s.a} > 0)",
                 lambda: s.checks.append(name))

    def drop_check(self):
        s = self.schema
        if s.checks:
            name = s.checks[-1]
            self.run(f"ALTER TABLE {s.name()} DROP CONSTRAINT {name}", s.checks.pop)

    def not_null(self):
        s = self.schema
        if self.run(f"ALTER TABLE {s.name()} ALTER COLUMN {s.b} SET NOT NULL"):
            # `change_key` may have put the column into the primary key.
            self.run(f"ALTER TABLE {s.name()} ALTER COLUMN {s.b} DROP NOT NULL", may_fail=("42P16",))

    def drop_and_undrop(self):
        s = self.schema
        if self.run(f"DROP TABLE {s.name()}"):
            if not self.run(f"UNDROP TABLE {s.name()}"):
                raise AssertionError("the table cannot be brought back")

    def drop_and_undrop_schema(self):
        s = self.schema
        if self.run(f"DROP SCHEMA {s.other} CASCADE"):
            if not self.run(f"UNDROP SCHEMA {s.other}"):
                raise AssertionError("the schema cannot be brought back")

    def unique_using_index(self):
        s = self.schema
        name = s.fresh("q")
        if self.run(f"CREATE UNIQUE INDEX {name} ON {s.name()} ({s.a}, id)",
                    lambda: s.indexes.append(name)):
            self.run(f"ALTER TABLE {s.name()} ADD CONSTRAINT {name} UNIQUE USING INDEX {name}")

    def rename_index(self):
        s = self.schema
        if s.indexes:
            old, new = self.rng.choice(s.indexes), s.fresh("i")

            def renamed():
                s.indexes[s.indexes.index(old)] = new
            self.run(f"ALTER INDEX {s.space}.{old} RENAME TO {new}", renamed)

    def rename_constraint(self):
        s = self.schema
        if s.checks:
            old, new = s.checks[-1], s.fresh("c")

            def renamed():
                s.checks[-1] = new
            self.run(f"ALTER TABLE {s.name()} RENAME CONSTRAINT {old} TO {new}", renamed)

    def change_default(self):
        s = self.schema
        self.run(f"ALTER TABLE {s.name()} ALTER COLUMN {s.a} SET DEFAULT {self.rng.randrange(1, 9)}")
        if self.rng.random() < 0.5:
            self.run(f"ALTER TABLE {s.name()} ALTER COLUMN {s.a} DROP DEFAULT")

    def add_unique(self):
        s = self.schema
        name = s.fresh("q")
        self.run(f"ALTER TABLE {s.name()} ADD CONSTRAINT {name} UNIQUE ({s.a}, id)",
                 lambda: s.uniques.append(name))

    def drop_unique(self):
        s = self.schema
        if s.uniques:
            self.run(f"ALTER TABLE {s.name()} DROP CONSTRAINT {s.uniques[-1]}", s.uniques.pop)

    def add_reference(self):
        s = self.schema
        name = s.fresh("k")
        late = self.rng.random() < 0.3
        # A column of another type may refer to it or not.
        done = self.run(f"ALTER TABLE {s.name()} ADD CONSTRAINT {name} FOREIGN KEY ({s.a}) "
                        f"REFERENCES fixed.parents{' NOT VALID' if late else ''}",
                        lambda: s.references.append(name), may_fail=("42804", "0A000"))
        if done and late:
            self.run(f"ALTER TABLE {s.name()} VALIDATE CONSTRAINT {name}")

    def drop_reference(self):
        s = self.schema
        if s.references:
            self.run(f"ALTER TABLE {s.name()} DROP CONSTRAINT {s.references[-1]}", s.references.pop)

    def validate_check(self):
        s = self.schema
        name = s.fresh("c")
        if self.run(f"ALTER TABLE {s.name()} ADD CONSTRAINT {name} CHECK ({s.a} > 0) NOT VALID",
                    lambda: s.checks.append(name)):
            self.run(f"ALTER TABLE {s.name()} VALIDATE CONSTRAINT {name}")

    def fail_check(self):
        s = self.schema
        name = s.fresh("n")
        # An empty table breaks nothing.
        if self.run(f"ALTER TABLE {s.name()} ADD CONSTRAINT {name} CHECK ({s.a} < 0)",
                    may_fail=("23514",)):
            self.run(f"ALTER TABLE {s.name()} DROP CONSTRAINT {name}")

    def reindex(self):
        how = self.rng.choice(["", "CONCURRENTLY "])
        self.run(f"REINDEX TABLE {how}{self.schema.name()}")

    def truncate(self):
        """Writers rest, so that the models know what is gone. What is gone can come back beside it."""
        s = self.schema
        for model in self.models:
            model.lock.acquire()
        try:
            expected = {key: row for model in self.models for key, row in model.rows.items()}

            def emptied():
                for model in self.models:
                    model.rows.clear()
            s.truncating = True
            done = self.run(f"TRUNCATE {s.name()}", emptied)
            s.truncating = False
        finally:
            for model in self.models:
                model.lock.release()
        old = s.fresh("old")
        if done and self.rng.random() < 0.7 and self.run(f"UNDROP TABLE {s.name()} AS {old}"):
            found = {int(key): (int(a), b) for key, a, b in self.connection.rows(
                f"SELECT id, {s.a}, {s.b} FROM {s.space}.{old}")}
            if found != expected:
                raise AssertionError(f"of {len(expected)} rows that were truncated {len(found)} came back")
            if self.run(f"DROP TABLE {s.space}.{old}"):
                self.run(f"PURGE TABLE {s.space}.{old}")
        if self.rng.random() < 0.5:
            self.fill()

    def fill(self):
        """The rows that nobody writes."""
        s, rows = self.schema, self.models[0].rows
        if rows:
            return
        with self.models[0].lock:
            made = {i: (1 + i % (PARENTS - 1), f"fixed{i % 100}") for i in range(1, FIXED + 1)}
            self.models[0].unknown_fill = made
            values = ", ".join(f"({key}, {a}, '{b}')" for key, (a, b) in made.items())
            done = self.run(f"INSERT INTO {s.name()} (id, {s.a}, {s.b}) VALUES {values}",
                            lambda: rows.update(made), may_fail=("23514", "53400"))
            self.models[0].unknown_fill = None
            return done

    def cancel_job(self):
        s = self.schema
        name = s.fresh("i")
        result = []

        def build():
            try:
                other = patient(self.url)
                result.append(other.query(
                    f"CREATE INDEX CONCURRENTLY {name} ON {s.name()} ({s.a}, {s.b})")[1])
                other.close()
            except Gone:
                result.append("gone")

        thread = threading.Thread(target=build)
        thread.start()
        try:
            while thread.is_alive():
                for job, in self.connection.rows(
                        "SELECT job FROM pg_catalog.cellar_jobs WHERE ended IS NULL"):
                    _, error = self.connection.query(f"CANCEL JOB {job}")
                    if error and not error.startswith("55000"):
                        raise AssertionError(f"CANCEL JOB: {error}")
        finally:
            thread.join()
        if result[0] == "gone":
            raise Gone("while a job was cancelled")
        if result[0] is None:
            s.indexes.append(name)
        elif not result[0].startswith(("57014", "4000", "55P03")):
            raise AssertionError(f"a build that was cancelled: {result[0]}")

    def seal(self):
        self.run(f"ALTER TABLE {self.schema.name()} SEAL", may_fail=("42809",))

    def undone(self):
        """A change that is rolled back, with a row in the same transaction."""
        s = self.schema
        name = s.fresh("r")
        self.connection.query(f"BEGIN; ALTER TABLE {s.name()} ADD COLUMN {name} int; "
                              f"INSERT INTO {s.name()} (id, {s.a}, {s.b}) VALUES (-1, 1, 'gone'); "
                              "ROLLBACK")
        self.connection.query("ROLLBACK")

    STEPS = (create_index, create_index, create_unique_index, fail_unique_index, drop_index,
             add_column, add_column, add_column, fail_column, fail_column, drop_column, drop_column, rename_column,
             rename_extra, change_extra, change_extra, rename_table, rename_schema, move_table, change_type,
             change_layout, change_layout, change_groups, change_key, serial_key, drop_key_part,
             fail_rewrite, add_check, drop_check, not_null, drop_and_undrop, drop_and_undrop_schema,
             seal, undone, rename_index, rename_constraint, change_default, add_unique, drop_unique,
             unique_using_index, add_reference, drop_reference, drop_reference, validate_check, fail_check,
             reindex, truncate, cancel_job)

    def step(self):
        self.rng.choice(self.STEPS)(self)
        findings, error = self.connection.query("CHECK DATABASE")
        if error or findings:
            raise AssertionError(f"CHECK finds {error or findings[:5]}")
        s = self.schema
        expected = (s.space, s.other, s.table, s.a, s.b, sorted(s.extra))
        find_schema(self.connection, s)
        found = (s.space, s.other, s.table, s.a, s.b, sorted(s.extra))
        if found != expected:
            raise AssertionError(f"the schema is {found}, not {expected}")


def tidy_up(connection, schema):
    """After a kill: what a step that has not ended has left, by its own names."""
    spaces = [row[0] for row in connection.rows("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'other%'")]
    if not spaces:
        dropped = connection.rows("SELECT path FROM pg_catalog.cellar_dropped WHERE kind = 'schema' "
                                  "AND path LIKE '%other%' ORDER BY dropped_at DESC LIMIT 1")
        _, error = connection.query(f"UNDROP SCHEMA {dropped[0][0].split('.')[-1]}")
        if error:
            raise AssertionError(f"the schema is gone: {error}")
    for space, table in connection.rows(
            "SELECT n.nspname, relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE relkind = 'r' AND relname LIKE 'old%'"):
        connection.rows(f"DROP TABLE {space}.{table}")
    connection.rows("DROP TABLE IF EXISTS fixed.kids")


def find_schema(connection, schema):
    """Which of the changes in flight have happened."""
    schema.other = connection.rows("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'other%'")[0][0]
    found = connection.rows(
        "SELECT n.nspname, c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
        f"WHERE relkind = 'r' AND n.nspname IN ('public', '{schema.other}')")
    if not found:
        _, error = connection.query(f"UNDROP TABLE {schema.name()}")
        if error:
            raise AssertionError(f"the table is gone: {error}")
        return find_schema(connection, schema)
    (schema.space, schema.table, oid), = found
    columns = [row[0] for row in connection.rows(
        f"SELECT attname FROM pg_attribute WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped "
        "ORDER BY attnum")]
    schema.a, schema.b, schema.extra = columns[1], columns[2], columns[3:]
    schema.a_type = connection.rows(
        f"SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = {oid} "
        f"AND attname = '{schema.a}'")[0][0].replace("integer", "int")
    def constraints(kind):
        return [row[0] for row in connection.rows(
            f"SELECT conname FROM pg_constraint WHERE conrelid = {oid} AND contype = '{kind}'")]

    schema.checks, schema.uniques = constraints("c"), constraints("u")
    schema.references = constraints("f")
    schema.indexes = [row[0] for row in connection.rows(
        f"SELECT relname FROM pg_class c JOIN pg_index i ON c.oid = indexrelid WHERE indrelid = {oid} "
        "AND NOT indisprimary AND indisvalid") if row[0] not in schema.uniques]
    owned = [row[0] for row in connection.rows(
        f"SELECT pg_get_serial_sequence('{schema.name()}', attname) FROM pg_attribute "
        f"WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped") if row[0] is not None]
    made = [row[0] for row in connection.rows(
        "SELECT nspname || '.' || relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
        "WHERE relkind = 'S'")]
    if sorted(owned) != sorted(made):
        raise AssertionError(f"the sequences are {made}, those of columns {owned}")


def wait_for_jobs(connection):
    """Changes that a kill has interrupted go on by themselves."""
    for _ in range(600):
        rows, error = connection.query(
            "SELECT count(*) FROM pg_catalog.cellar_jobs WHERE state NOT IN ('done', 'failed', 'cancelled')")
        if error or rows[0][0] == "0":
            return
        # Two kills at one step look like a step that ends the process.
        for row in connection.rows("SELECT job FROM pg_catalog.cellar_jobs WHERE state = 'parked'"):
            connection.query(f"RESUME JOB {row[0]}")
        time.sleep(0.1)
    raise AssertionError("a job does not end: " + str(connection.rows("SHOW JOBS")))


def compare(connection, schema, models):
    """The table against the models, in order of the key and through each index."""
    if schema.truncating:
        schema.truncating = False
        if connection.rows(f"SELECT count(*) FROM {schema.name()}")[0][0] == "0":
            for model in models:
                model.rows.clear()
    if models[0].unknown_fill is not None:
        if connection.rows(f"SELECT count(*) FROM {schema.name()} WHERE id <= {FIXED}")[0][0] != "0":
            models[0].rows.update(models[0].unknown_fill)
        models[0].unknown_fill = None
    for model in models:
        if model.unknown is not None:
            key, after = model.unknown
            rows = connection.rows(
                f"SELECT {schema.a}, {schema.b} FROM {schema.name()} WHERE id = {key}")
            now = (int(rows[0][0]), rows[0][1]) if rows else None
            if now not in (after, model.rows.get(key)):
                raise AssertionError(f"row {key} is {now}, not {after} or {model.rows.get(key)}")
            model.rows.pop(key, None)
            if now is not None:
                model.rows[key] = now
            model.unknown = None
    expected = {key: row for model in models for key, row in model.rows.items()}
    for order in ("id", f"{schema.a}", f"{schema.b}, {schema.a}", f"{schema.a} DESC"):
        found = {int(key): (int(a), b) for key, a, b in connection.rows(
            f"SELECT id, {schema.a}, {schema.b} FROM {schema.name()} WHERE {schema.a} > 0 "
            f"ORDER BY {order}")}
        if found != expected:
            wrong = [k for k in set(found) | set(expected) if found.get(k) != expected.get(k)]
            raise AssertionError(f"by {order}, {len(wrong)} rows differ, such as {wrong[0]}: "
                                 f"{found.get(wrong[0])}, not {expected.get(wrong[0])}")
    count = int(connection.rows(f"SELECT count(*) FROM {schema.name()}")[0][0])
    if count != len(expected):
        raise AssertionError(f"count(*) is {count}, not {len(expected)}")


def patient(url):
    """A connection for changes: a build may wait long for its turn beside the writers."""
    connection = Connection(url)
    connection.socket.settimeout(200)
    return connection


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cellar")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("CELLAR_SCHEMA_ROUNDS", 6)))
    parser.add_argument("--kills", type=int, help="in so many of the rounds; default: half of them")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_CRASH_SEED", 1)))
    parser.add_argument("--keep", action="store_true", help="leave the store behind")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    kills = options.rounds // 2 if options.kills is None else min(options.kills, options.rounds)
    print(f"seed {options.seed}")
    folder = tempfile.mkdtemp(prefix="cellar-schema-")
    store = os.path.join(folder, "store")
    models = [Model(client) for client in range(CLIENTS + 1)]  # the first one's rows rest
    schema = Schema()
    killed_rounds = set(rng.sample(range(options.rounds), kills))
    process, failed, begun, steps, changer = None, True, time.monotonic(), 0, None
    try:
        process, url = start(options.cellar, store)
        connection = patient(url)
        _, error = connection.query(
            "CREATE SCHEMA other; CREATE TABLE t (id int PRIMARY KEY, a bigint, b text); "
            "CREATE SCHEMA fixed; CREATE TABLE fixed.parents (id bigint PRIMARY KEY); "
            f"INSERT INTO fixed.parents SELECT generate_series(1, {PARENTS})")
        if error:
            raise AssertionError(error)
        Changer(connection, schema, rng, url, models).fill()
        for number in range(options.rounds):
            failures, stop = [], threading.Event()

            def guarded(function, *arguments):
                try:
                    function(*arguments)
                except Exception as failure:  # pylint: disable=broad-except
                    failures.append(failure)

            changer = Changer(connection, schema, rng, url, models)
            threads = [threading.Thread(target=guarded, args=(
                work, url, model, schema, random.Random(rng.random()), stop)) for model in models[1:]]

            def change():
                nonlocal steps
                try:
                    for _ in range(10 ** 6 if number in killed_rounds else STEPS_PER_ROUND):
                        changer.step()
                        steps += 1
                except Gone:
                    if number not in killed_rounds:
                        raise

            threads.append(threading.Thread(target=guarded, args=(change,)))
            for thread in threads:
                thread.start()
            if number in killed_rounds:
                time.sleep(rng.uniform(0.1, 2.0))
                process.kill()
                process.wait()
                connection.close()
            else:
                threads[-1].join()
            stop.set()
            for thread in threads:
                thread.join()
            if failures:
                raise failures[0]
            if number in killed_rounds:
                print(check(options.cellar, store), flush=True)
                process, url = start(options.cellar, store)
                connection = patient(url)
                wait_for_jobs(connection)
                tidy_up(connection, schema)
                find_schema(connection, schema)
            compare(connection, schema, models)
        process.terminate()
        if process.wait(60) != 0:
            raise AssertionError("the server did not end well")
        print(check(options.cellar, store))
        print(f"{steps} changes and {len(killed_rounds)} kills in {time.monotonic() - begun:.0f} s: "
              f"{sum(model.acknowledged for model in models)} writes, "
              f"{sum(model.refused for model in models)} refused")
        failed = False
    finally:
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
        if failed and changer is not None:
            print("last statements:\n  " + "\n  ".join(changer.log[-12:]), file=sys.stderr)
        if failed and options.keep:
            print(f"the store is in {store}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
