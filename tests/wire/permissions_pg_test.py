#!/usr/bin/python3
"""What each of several roles may do, statement by statement, beside PostgreSQL 15."""

import io
import os
import sys
import unittest

from harness import Server, main

try:
    import psycopg2
except ImportError:
    print("skipped: no psycopg2", file=sys.stderr)
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from slt_module import slt  # noqa: E402

if not slt.Postgres.installed():
    print("skipped: no PostgreSQL 15", file=sys.stderr)
    sys.exit(77)

SETUP = """
CREATE ROLE m_none; CREATE ROLE m_owner; CREATE ROLE m_group; CREATE ROLE m_member IN ROLE m_group;
CREATE ROLE m_apart NOINHERIT IN ROLE m_group; CREATE ROLE m_columns; CREATE ROLE m_reader;
CREATE ROLE m_options; CREATE ROLE m_super SUPERUSER; CREATE ROLE m_roles CREATEROLE;
CREATE ROLE m_db CREATEDB; CREATE ROLE m_writer;
GRANT pg_read_all_data TO m_reader; GRANT pg_write_all_data TO m_writer;
CREATE SCHEMA m_s AUTHORIZATION m_owner; CREATE SCHEMA m_shut;
CREATE TABLE m_s.t (id int PRIMARY KEY, a int, b text, g int GENERATED ALWAYS AS (a + 1) STORED);
CREATE TABLE m_s.c (id int PRIMARY KEY, t int REFERENCES m_s.t ON DELETE CASCADE);
CREATE TABLE m_s.auto (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int);
CREATE TABLE m_s.ser (id serial PRIMARY KEY, a int);
CREATE TABLE m_shut.t (id int PRIMARY KEY);
CREATE SEQUENCE m_s.q;
CREATE VIEW m_s.v AS SELECT id, a FROM m_s.t;
CREATE VIEW m_s.vv AS SELECT * FROM m_s.v;
CREATE VIEW m_s.broken AS SELECT id FROM m_shut.t;
INSERT INTO m_s.t VALUES (1, 10, 'x'), (2, 20, 'y'); INSERT INTO m_s.c VALUES (1, 1);
ALTER TABLE m_s.t OWNER TO m_owner; ALTER TABLE m_s.v OWNER TO m_owner;
ALTER TABLE m_s.vv OWNER TO m_group; ALTER TABLE m_s.broken OWNER TO m_owner;
GRANT USAGE ON SCHEMA m_s TO m_group, m_columns, m_options, m_roles;
GRANT SELECT, INSERT, DELETE ON m_s.t TO m_group; GRANT SELECT ON m_s.v TO m_columns, m_group;
GRANT SELECT ON m_s.vv, m_s.broken TO m_columns;
GRANT SELECT (id), INSERT (id, a), UPDATE (a), REFERENCES (id) ON m_s.t TO m_columns;
GRANT SELECT, UPDATE ON m_s.t TO m_options WITH GRANT OPTION;
GRANT UPDATE ON m_s.t TO m_group; REVOKE UPDATE ON m_s.t FROM m_group;
GRANT TRUNCATE, TRIGGER ON m_s.c TO m_group; GRANT USAGE ON m_s.q TO m_group;
GRANT SELECT ON m_s.q TO m_columns; GRANT UPDATE ON m_s.q TO m_options;
GRANT INSERT ON m_s.auto, m_s.ser TO m_group; GRANT USAGE ON m_s.ser_id_seq TO m_columns;
GRANT INSERT ON m_s.ser TO m_columns;
GRANT CREATE ON SCHEMA m_s TO m_options
"""

ROLES = ["m_none", "m_owner", "m_group", "m_member", "m_apart", "m_columns", "m_reader", "m_writer",
         "m_options", "m_super", "m_roles", "m_db"]

STATEMENTS = """
SELECT * FROM m_s.t
SELECT id FROM m_s.t
SELECT a FROM m_s.t
SELECT 1 FROM m_s.t
SELECT count(*) FROM m_s.t
SELECT t FROM m_s.t
SELECT t.* FROM m_s.t
SELECT id FROM m_s.t WHERE b = 'x'
SELECT id FROM m_s.t ORDER BY a
SELECT id FROM m_s.t GROUP BY id HAVING max(a) > 0
SELECT id FROM m_s.t FOR UPDATE
SELECT id FROM m_s.t FOR SHARE
SELECT (SELECT max(a) FROM m_s.t)
SELECT 1 WHERE EXISTS (SELECT 1 FROM m_s.t)
WITH w AS (SELECT a FROM m_s.t) SELECT 1 FROM w
SELECT x.id FROM m_s.t x JOIN m_s.c y ON x.id = y.t
SELECT x.id FROM m_s.t x JOIN m_s.t y USING (id)
SELECT x.id FROM m_s.t x NATURAL JOIN m_s.t y
SELECT id FROM m_s.v
SELECT * FROM m_s.v
SELECT * FROM m_s.vv
SELECT id FROM m_s.broken
SELECT * FROM m_shut.t
INSERT INTO m_s.t (id) VALUES (9)
INSERT INTO m_s.t (id, a) VALUES (9, 9)
INSERT INTO m_s.t VALUES (9, 9, 'n')
INSERT INTO m_s.t (id, a) SELECT 9, id FROM m_s.t LIMIT 1
INSERT INTO m_s.t (id, a) VALUES (9, 9) RETURNING id
INSERT INTO m_s.t (id, a) VALUES (9, 9) RETURNING a
INSERT INTO m_s.t (id, a) VALUES (1, 9) ON CONFLICT DO NOTHING
INSERT INTO m_s.t (id, a) VALUES (1, 9) ON CONFLICT (id) DO NOTHING
INSERT INTO m_s.t (id, a) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET a = excluded.a
INSERT INTO m_s.t (id, a) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET b = 'z'
INSERT INTO m_s.t (id, a) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET a = t.a + 1
INSERT INTO m_s.auto (a) VALUES (1)
INSERT INTO m_s.ser (a) VALUES (1)
INSERT INTO m_s.c VALUES (5, 1)
UPDATE m_s.t SET a = 1
UPDATE m_s.t SET a = 1 WHERE id = 1
UPDATE m_s.t SET a = a + 1
UPDATE m_s.t SET b = 'n'
UPDATE m_s.t SET a = 1 RETURNING b
UPDATE m_s.t SET (a) = (SELECT 1)
UPDATE m_s.t SET a = c.id FROM m_s.c WHERE c.t = m_s.t.id
DELETE FROM m_s.t
DELETE FROM m_s.t WHERE id = 1
DELETE FROM m_s.t USING m_s.c WHERE c.t = m_s.t.id
DELETE FROM m_s.t RETURNING a
TRUNCATE m_s.c
TRUNCATE m_s.t CASCADE
SELECT nextval('m_s.q')
SELECT setval('m_s.q', 5)
COPY m_s.t (id) TO STDOUT
COPY m_s.t TO STDOUT
COPY (SELECT id FROM m_s.t) TO STDOUT
EXPLAIN SELECT a FROM m_s.t
EXPLAIN DELETE FROM m_s.t
DECLARE k CURSOR FOR SELECT a FROM m_s.t
PREPARE p AS SELECT a FROM m_s.t; DEALLOCATE p
CREATE TABLE m_s.made (a int)
CREATE TABLE m_made (a int)
CREATE TABLE m_shut.made (a int)
CREATE TEMP TABLE made (a int)
CREATE TABLE m_s.made AS SELECT a FROM m_s.t
CREATE TEMP TABLE made AS SELECT id FROM m_s.t
CREATE TEMP TABLE made (LIKE m_s.t)
CREATE VIEW m_s.w AS SELECT a FROM m_s.t
CREATE OR REPLACE VIEW m_s.v AS SELECT id, a FROM m_s.t WHERE a > 0
CREATE SEQUENCE m_s.r
CREATE INDEX ON m_s.t (a)
CREATE SCHEMA m_new
CREATE SCHEMA AUTHORIZATION m_owner
ALTER TABLE m_s.t ADD COLUMN z int
ALTER TABLE m_s.t RENAME TO u
ALTER TABLE m_s.t RENAME COLUMN a TO z
ALTER TABLE m_s.t OWNER TO m_group
ALTER TABLE m_s.t OWNER TO m_owner
ALTER TABLE m_s.t SET SCHEMA m_shut
ALTER SEQUENCE m_s.q RESTART
ALTER SCHEMA m_s RENAME TO m_z
ALTER SCHEMA m_s OWNER TO m_group
ALTER VIEW m_s.v RENAME TO w
DROP TABLE m_s.c
DROP VIEW m_s.vv
DROP SEQUENCE m_s.q
DROP SCHEMA m_shut CASCADE
DROP INDEX m_s.t_pkey
COMMENT ON TABLE m_s.t IS 'x'
COMMENT ON COLUMN m_s.t.a IS 'x'
COMMENT ON SCHEMA m_s IS 'x'
LOCK TABLE m_s.t
LOCK TABLE m_s.t IN ACCESS SHARE MODE
LOCK TABLE m_s.t IN ROW EXCLUSIVE MODE
GRANT SELECT ON m_s.t TO m_none
GRANT ALL ON m_s.t TO m_none
GRANT SELECT (a) ON m_s.t TO m_none
GRANT SELECT, DELETE ON m_s.t TO m_none WITH GRANT OPTION
REVOKE SELECT ON m_s.t FROM m_group
REVOKE ALL ON m_s.t FROM m_owner
GRANT USAGE ON SCHEMA m_s TO m_none
GRANT USAGE ON SCHEMA m_shut TO m_none
GRANT USAGE ON SEQUENCE m_s.q TO m_none
GRANT SELECT ON ALL TABLES IN SCHEMA m_shut TO m_none
GRANT m_group TO m_none
REVOKE m_group FROM m_member
GRANT m_super TO m_none
CREATE ROLE m_x
CREATE ROLE m_x SUPERUSER
CREATE ROLE m_x REPLICATION
ALTER ROLE m_none LOGIN
ALTER ROLE m_super NOLOGIN
ALTER ROLE m_none SUPERUSER
ALTER ROLE m_none BYPASSRLS
ALTER ROLE m_none SET work_mem = '1MB'
ALTER ROLE ALL SET work_mem = '1MB'
ALTER ROLE m_none RENAME TO m_x
DROP ROLE m_none
DROP ROLE m_super
DROP ROLE m_owner
SET ROLE m_group
SET ROLE m_owner
SET SESSION AUTHORIZATION m_owner
REASSIGN OWNED BY m_owner TO m_group
DROP OWNED BY m_group
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO m_none
ALTER DEFAULT PRIVILEGES FOR ROLE m_group GRANT SELECT ON TABLES TO m_none
SELECT 1 FROM pg_authid
SELECT 1 FROM pg_shadow
SELECT count(*) FROM pg_roles WHERE rolname LIKE 'm_%'
SELECT has_table_privilege('m_s.t', 'SELECT'), has_any_column_privilege('m_s.t', 'UPDATE')
SELECT has_column_privilege('m_s.t', 'a', 'SELECT, INSERT'), has_schema_privilege('m_s', 'CREATE')
SELECT has_sequence_privilege('m_s.q', 'USAGE'), has_table_privilege('m_s.t', 'UPDATE WITH GRANT OPTION')
SELECT pg_has_role('m_group', 'USAGE'), pg_has_role('m_group', 'MEMBER')
SELECT table_name FROM information_schema.tables WHERE table_schema LIKE 'm\\_%' ORDER BY 1
SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'm_s' ORDER BY 1, 2
SELECT grantee, table_name, privilege_type, is_grantable FROM information_schema.table_privileges WHERE
  table_schema = 'm_s' ORDER BY 1, 2, 3, 4
SELECT grantee, column_name, privilege_type, is_grantable FROM information_schema.column_privileges WHERE
  table_name = 't' AND table_schema = 'm_s' ORDER BY 1, 2, 3, 4
SELECT grantee, table_name, privilege_type FROM information_schema.role_table_grants WHERE table_schema = 'm_s'
  ORDER BY 1, 2, 3
SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'm\\_%' ORDER BY 1
SELECT grantee, object_name, privilege_type FROM information_schema.usage_privileges WHERE object_schema = 'm_s'
  ORDER BY 1, 2
SELECT grantee, role_name, is_grantable FROM information_schema.applicable_roles WHERE role_name LIKE 'm\\_%' ORDER
  BY 1, 2
""".strip().replace("\n  ", " ").split("\n")

# What is not as in PostgreSQL.
DIFFERENT = {
    "DROP OWNED BY m_group",  # stumbles over a generated column there
    "SELECT 1 FROM pg_authid", "SELECT 1 FROM pg_shadow",  # not for pg_read_all_data here
}


def differs(role, statement):
    # Names in schemas that may not be used: an error there.
    if statement.startswith("SELECT has_") or "usage_privileges" in statement:
        return True
    # Who can read or write everything but grant nothing is only warned there.
    if role in ("m_reader", "m_writer") and statement.split()[0] in ("GRANT", "REVOKE"):
        return True
    return statement in DIFFERENT


def answers(url):
    connection = psycopg2.connect(url)
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute(SETUP)
    cursor.execute("SET client_min_messages = error")
    out = {}
    for role in ROLES:
        for statement in STATEMENTS:
            cursor.execute("BEGIN")
            try:
                cursor.execute(f"SET LOCAL SESSION AUTHORIZATION {role}")
                if statement.startswith("COPY"):
                    cursor.copy_expert(statement, io.StringIO())
                    answer = "ok"
                else:
                    cursor.execute(statement)
                    answer = "ok"
                    if statement.startswith("SELECT") and "nextval" not in statement:
                        answer = str(sorted(cursor.fetchall())) if " information_schema" in statement \
                            or "has_" in statement else "ok"
            except psycopg2.Error as error:
                answer = error.pgcode
            cursor.execute("ROLLBACK")
            out[role, statement] = answer
    connection.close()
    return out


class Beside(unittest.TestCase):
    maxDiff = None

    def test_every_role_and_statement(self):
        postgres = slt.Postgres()
        try:
            expected = answers(postgres.url)
        finally:
            postgres.stop()
        with Server() as server:
            found = answers(server.url)
        wrong = [f"{role}: {statement}\n    expected {expected[role, statement]}\n"
                 f"    found    {found[role, statement]}"
                 for role, statement in expected
                 if found[role, statement] != expected[role, statement]
                 and not differs(role, statement)]
        self.assertEqual(len(wrong), 0, f"{len(wrong)} of {len(expected)}:\n" + "\n".join(wrong[:60]))


if __name__ == "__main__":
    main()
