#!/usr/bin/python3
"""Prepared statements beside changes of their tables: the types of a result are kept once somebody
has been told them, and not before."""

from harness import RawConnection, ServerTest, main


class Plans(ServerTest):
    def setUp(self):
        self.raw = RawConnection(self.server)
        self.other = RawConnection(self.server)
        for sql in ("drop table if exists t", "create table t (id int primary key, a int)",
                    "insert into t values (1, 5)"):
            self.other.query(sql)

    def tearDown(self):
        self.raw.close()
        self.other.close()

    def send(self, *frames):
        self.raw.socket.sendall(b"".join(frames) + self.raw.frame("S"))
        return self.raw.until_ready()

    def parse(self):
        return self.raw.frame("P", b"\0select a from t\0\0\0")

    def run_it(self):
        """Bind, Describe of the portal, Execute."""
        return (self.raw.frame("B", b"\0\0" + b"\0\0" + b"\0\0" + b"\0\0"),
                self.raw.frame("D", b"P\0"), self.raw.frame("E", b"\0\0\0\0\0"))

    def kinds(self, messages):
        return "".join(kind for kind, _ in messages)

    def state(self, messages):
        for kind, body in messages:
            if kind == "E":
                return next(f[1:].decode() for f in body.split(b"\0") if f[:1] == b"C")
        return None

    def test_nobody_knows_the_types_yet(self):
        self.assertEqual(self.kinds(self.send(self.parse())), "1Z")
        self.other.query("alter table t alter a type text")
        messages = self.send(*self.run_it())
        self.assertIsNone(self.state(messages))
        self.assertIn("D", self.kinds(messages))

    def test_types_that_were_told_stay(self):
        self.send(self.parse(), self.raw.frame("D", b"S\0"))
        self.other.query("alter table t alter a type text")
        self.assertEqual(self.state(self.send(*self.run_it())), "0A000")

    def test_rows_tell_the_types(self):
        self.send(self.parse())
        self.assertIsNone(self.state(self.send(*self.run_it())))
        self.other.query("alter table t alter a type bigint")
        self.assertEqual(self.state(self.send(*self.run_it())), "0A000")


if __name__ == "__main__":
    main()
