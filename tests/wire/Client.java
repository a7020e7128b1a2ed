// JDBC: metadata, prepared statements (also server-side, in binary), batches, fetch size, COPY.
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import org.postgresql.PGConnection;

public class Client {
  static void check(boolean ok, String what) {
    if (!ok) throw new AssertionError(what);
  }

  public static void main(String[] args) throws Exception {
    try (Connection connection = DriverManager.getConnection(args[0])) {
      try (Statement statement = connection.createStatement()) {
        statement.execute(
            "CREATE TABLE j (id int PRIMARY KEY, t text NOT NULL, n numeric(10,2), d date,"
                + " ts timestamp, b boolean, f float8, l bigint, y bytea)");
        statement.execute("CREATE UNIQUE INDEX j_t ON j (t)");
      }
      types(connection);
      prepared(connection);
      batches(connection);
      fetchSize(connection);
      errors(connection);
      metadata(connection);
      copy(connection);
    }
    System.out.println("all passed");
  }

  static void types(Connection connection) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("INSERT INTO j VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
      insert.setInt(1, 1);
      insert.setString(2, "naïve 日本");
      insert.setBigDecimal(3, new BigDecimal("12.50"));
      insert.setDate(4, Date.valueOf("2020-02-29"));
      insert.setTimestamp(5, Timestamp.valueOf("2020-01-02 03:04:05.678"));
      insert.setBoolean(6, true);
      insert.setDouble(7, 0.1);
      insert.setLong(8, 1L << 40);
      insert.setBytes(9, new byte[] {0, (byte) 255});
      check(insert.executeUpdate() == 1, "one row inserted");
    }
  }

  // The same statement often: from the fifth time on it is a named one with binary results.
  static void prepared(Connection connection) throws SQLException {
    try (PreparedStatement select = connection.prepareStatement("SELECT * FROM j WHERE id = ?")) {
      for (int i = 0; i < 10; ++i) {
        select.setInt(1, 1);
        try (ResultSet rows = select.executeQuery()) {
          check(rows.next(), "a row");
          check(rows.getString(2).equals("naïve 日本"), "text");
          check(rows.getBigDecimal(3).equals(new BigDecimal("12.50")), "numeric");
          check(rows.getDate(4).equals(Date.valueOf("2020-02-29")), "date");
          Timestamp when = Timestamp.valueOf("2020-01-02 03:04:05.678");
          check(rows.getTimestamp(5).equals(when), "timestamp");
          check(rows.getBoolean(6) && rows.getDouble(7) == 0.1, "boolean, double");
          check(rows.getLong(8) == 1L << 40 && rows.getBytes(9)[1] == -1, "bigint, bytea");
        }
      }
    }
  }

  static void batches(Connection connection) throws SQLException {
    connection.setAutoCommit(false);
    try (PreparedStatement insert =
        connection.prepareStatement("INSERT INTO j (id, t) VALUES (?, ?)")) {
      for (int i = 2; i <= 1000; ++i) {
        insert.setInt(1, i);
        insert.setString(2, "row " + i);
        insert.addBatch();
      }
      check(insert.executeBatch().length == 999, "a batch");
    }
    connection.commit();
    connection.setAutoCommit(true);
  }

  static void fetchSize(Connection connection) throws SQLException {
    connection.setAutoCommit(false);
    try (PreparedStatement select = connection.prepareStatement("SELECT id FROM j ORDER BY id")) {
      select.setFetchSize(64);
      int count = 0;
      try (ResultSet rows = select.executeQuery()) {
        while (rows.next()) check(rows.getInt(1) == ++count, "in order");
      }
      check(count == 1000, "all rows");
    }
    connection.commit();
    connection.setAutoCommit(true);
  }

  static void errors(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("INSERT INTO j (id, t) VALUES (1, 'again')");
      check(false, "a duplicate was taken");
    } catch (SQLException error) {
      check(error.getSQLState().equals("23505"), "SQLSTATE " + error.getSQLState());
    }
    try (Statement statement = connection.createStatement()) {
      check(statement.executeQuery("SELECT 1").next(), "usable after an error");
    }
  }

  static void metadata(Connection connection) throws SQLException {
    DatabaseMetaData data = connection.getMetaData();
    check(data.getDatabaseProductName().equals("PostgreSQL"), "product");
    try (ResultSet tables = data.getTables(null, "public", "j", new String[] {"TABLE"})) {
      check(tables.next() && tables.getString("TABLE_NAME").equals("j"), "getTables");
    }
    int columns = 0;
    try (ResultSet rows = data.getColumns(null, "public", "j", null)) {
      while (rows.next()) ++columns;
    }
    check(columns == 9, "getColumns: " + columns);
    try (ResultSet keys = data.getPrimaryKeys(null, "public", "j")) {
      check(keys.next() && keys.getString("COLUMN_NAME").equals("id"), "getPrimaryKeys");
    }
    try (ResultSet indexes = data.getIndexInfo(null, "public", "j", true, false)) {
      check(indexes.next(), "getIndexInfo");
    }
    try (PreparedStatement select =
        connection.prepareStatement("SELECT t, n FROM j WHERE id = ?")) {
      ResultSetMetaData columnsData = select.getMetaData();
      check(columnsData.getColumnTypeName(2).equals("numeric"), "type name");
      check(columnsData.getPrecision(2) == 10 && columnsData.getScale(2) == 2, "precision");
      check(select.getParameterMetaData().getParameterType(1) == Types.INTEGER, "parameter type");
    }
  }

  static void copy(Connection connection) throws Exception {
    var manager = connection.unwrap(PGConnection.class).getCopyAPI();
    StringReader in = new StringReader("2001\ta\n2002\tb\n");
    check(manager.copyIn("COPY j (id, t) FROM STDIN", in) == 2, "copyIn");
    StringWriter out = new StringWriter();
    manager.copyOut("COPY (SELECT id, t FROM j WHERE id > 2000 ORDER BY id) TO STDOUT", out);
    check(out.toString().equals("2001\ta\n2002\tb\n"), "copyOut");
  }
}
