-- The guided tour of tools/quickstart: psql -f examples/unicode/queries.sql
\pset pager off
\pset null '(null)'
\timing off

\echo
\echo '== 1. What is there'
\dt
\d characters

\echo
\echo '== 2. One row by its primary key'
SELECT cp, ch, name, category, age FROM characters WHERE cp = 8364;
EXPLAIN ANALYZE SELECT cp, ch, name, category, age FROM characters WHERE cp = 8364;

\echo
\echo '== 3. A range of the primary key, in order'
SELECT cp, ch, name FROM characters WHERE cp BETWEEN 9812 AND 9817 ORDER BY cp;
EXPLAIN SELECT cp, ch, name FROM characters WHERE cp BETWEEN 9812 AND 9817 ORDER BY cp;

\echo
\echo '== 4. A secondary index finds rows by another column'
SELECT cp, ch, name FROM characters WHERE name = 'SNOWMAN';
EXPLAIN ANALYZE SELECT cp, ch, name FROM characters WHERE name = 'SNOWMAN';
SELECT cp, name FROM characters WHERE ch = 'ß';

\echo
\echo '== 5. ORDER BY straight from an index, forward and reverse, without a sort'
SELECT value, ch, name FROM characters WHERE value IS NOT NULL ORDER BY value DESC, cp LIMIT 4;
EXPLAIN SELECT value, ch, name FROM characters WHERE value IS NOT NULL
  ORDER BY value DESC, cp LIMIT 4;
SELECT name, flag FROM countries ORDER BY name DESC LIMIT 3;
EXPLAIN SELECT name, flag FROM countries ORDER BY name DESC LIMIT 3;

\echo
\echo '== 6. An index of two columns: the subdivisions of one country whose names start with B'
SELECT code, name, type FROM subdivisions
  WHERE country = 'CH' AND name >= 'B' AND name < 'C' ORDER BY name;
EXPLAIN SELECT code, name, type FROM subdivisions
  WHERE country = 'CH' AND name >= 'B' AND name < 'C' ORDER BY name;

\echo
\echo '== 7. NULL is not a value: languages with a two-letter code and an inverted name'
SELECT code, alpha_2, name, inverted_name FROM languages
  WHERE alpha_2 IS NOT NULL AND inverted_name IS NOT NULL ORDER BY alpha_2;
SELECT count(*) AS languages, count(alpha_2) AS with_alpha_2,
       count(*) - count(alpha_2) AS without FROM languages;

\echo
\echo '== 8. Codes of one table looked up in others'
SELECT c.ch, c.name, g.name AS category, s.name AS script, b.name AS block
  FROM characters c
  JOIN categories g ON g.code = c.category
  JOIN blocks b ON b.first = c.block
  LEFT JOIN scripts s ON s.code = c.script
  WHERE c.cp IN (65, 1046, 12354, 128512, 8364) ORDER BY c.cp;
EXPLAIN SELECT c.ch, c.name, g.name AS category, s.name AS script, b.name AS block
  FROM characters c
  JOIN categories g ON g.code = c.category
  JOIN blocks b ON b.first = c.block
  LEFT JOIN scripts s ON s.code = c.script
  WHERE c.cp IN (65, 1046, 12354, 128512, 8364) ORDER BY c.cp;

\echo
\echo '== 9. Aggregates: the scripts with the most characters, and countries by subdivisions'
SELECT s.name, count(*) AS characters, min(c.age) AS since
  FROM characters c JOIN scripts s ON s.code = c.script
  GROUP BY s.name HAVING count(*) > 500 ORDER BY count(*) DESC, s.name LIMIT 6;
SELECT c.flag, c.name, count(*) AS subdivisions, count(s.parent) AS nested
  FROM countries c JOIN subdivisions s ON s.country = c.code
  GROUP BY c.flag, c.name ORDER BY count(*) DESC, c.name LIMIT 5;
EXPLAIN ANALYZE SELECT c.flag, c.name, count(*) AS subdivisions, count(s.parent) AS nested
  FROM countries c JOIN subdivisions s ON s.country = c.code
  GROUP BY c.flag, c.name ORDER BY count(*) DESC, c.name LIMIT 5;

\echo
\echo '== 10. A table joined with itself: upper and lower case of one script'
SELECT u.ch AS upper, l.ch AS lower, u.name
  FROM characters u JOIN characters l ON l.cp = u.lower_cp
  WHERE u.script = 'Armn' AND u.cp < 1335 ORDER BY u.cp;

\echo
\echo '== 11. Changes in a transaction, seen inside it and then rolled back'
BEGIN;
INSERT INTO countries VALUES ('ZZ', 'ZZZ', 999, 'Atlantis', NULL, NULL, '🏛');
UPDATE countries SET common_name = 'Lost City' WHERE code = 'ZZ' RETURNING code, name, common_name;
SELECT count(*) FROM countries;
ROLLBACK;
SELECT count(*) FROM countries;

\echo
\echo '== 12. Refused: a second row with the key of another, and a NULL where none may be'
INSERT INTO categories VALUES ('Lu', 'Another', 'L');
INSERT INTO scripts VALUES ('Zzzy', NULL, NULL);
