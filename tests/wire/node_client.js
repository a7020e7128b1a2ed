// node-postgres: parameters, prepared statements, errors, arrays, notifications, a pool.
const assert = require('assert');
const { Client, Pool } = require('pg');
async function run() {
  const client = new Client();
  await client.connect();
  const first = await client.query('SELECT 1 AS a, $1::text AS b', ['x']);
  assert.deepStrictEqual(first.rows, [{ a: 1, b: 'x' }]);
  await client.query(
    'CREATE TABLE n (id int PRIMARY KEY, t text, j numeric, d timestamptz, b bool)');
  const when = new Date('2020-01-02T03:04:05.678Z');
  const inserted = await client.query(
    'INSERT INTO n VALUES ($1, $2, $3, $4, $5) RETURNING *', [1, 'naïve', '1.50', when, true]);
  assert.strictEqual(inserted.rowCount, 1);
  assert.strictEqual(inserted.rows[0].d.getTime(), when.getTime());
  assert.strictEqual(inserted.rows[0].j, '1.50');
  for (let i = 0; i < 5; ++i) {
    const prepared = { name: 'by-id', text: 'SELECT t, b FROM n WHERE id = $1', values: [1] };
    assert.deepStrictEqual((await client.query(prepared)).rows[0], { t: 'naïve', b: true });
  }
  await assert.rejects(client.query('INSERT INTO n (id) VALUES ($1)', [1]),
    (error) => error.code === '23505' && error.constraint === 'n_pkey' && error.table === 'n');
  await assert.rejects(client.query('SELECT $1::int', ['x']), (error) => error.code === '22P02');
  await assert.rejects(client.query('SELECT nope FROM n'),
    (error) => error.code === '42703' && error.position === '8');
  await client.query('BEGIN');
  await client.query('DELETE FROM n');
  await client.query('ROLLBACK');
  assert.strictEqual((await client.query('SELECT count(*) FROM n')).rows[0].count, '1');
  const array = await client.query('SELECT $1::int[] AS a', [[1, 2, 3]]);
  assert.deepStrictEqual(array.rows[0].a, [1, 2, 3]);
  const many = { text: 'SELECT n FROM generate_series(1, 5000) n', rowMode: 'array' };
  assert.strictEqual((await client.query(many)).rows.length, 5000);
  const listener = new Promise((resolve) => client.on('notification', resolve));
  await client.query('LISTEN news');
  const pool = new Pool({ max: 10 });
  await pool.query("NOTIFY news, 'hello'");
  assert.strictEqual((await listener).payload, 'hello');
  const numbers = [...Array(50).keys()];
  const sums = await Promise.all(
    numbers.map((i) => pool.query('SELECT $1::int + 1 AS s', [i])));
  assert.deepStrictEqual(sums.map((result) => result.rows[0].s), numbers.map((i) => i + 1));
  await pool.end();
  await client.end();
}
run().then(() => console.log('all passed'), (error) => {
  console.error(error);
  process.exit(1);
});
