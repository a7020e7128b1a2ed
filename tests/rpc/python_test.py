#!/usr/bin/python3
"""cellar.v1 from Python: stubs generated from the .proto files of this tree, as anybody would.

Run as: python_test.py PATH/TO/cellar BUILD_DIR PROTO_DIR [unittest arguments]
"""

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from urllib.parse import urlsplit

PROTO_DIR = os.path.abspath(sys.argv.pop(3)) if len(sys.argv) > 3 else "proto"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
import harness  # noqa: E402

try:
    import grpc
except ImportError:
    harness.skip("python3-grpcio is not installed")
PLUGIN = shutil.which("grpc_python_plugin")
if PLUGIN is None or shutil.which("protoc") is None:
    harness.skip("protoc and grpc_python_plugin are not installed")

STUBS = tempfile.mkdtemp(prefix="cellar-stubs-")
subprocess.run(["protoc", f"--proto_path={PROTO_DIR}", f"--python_out={STUBS}",
                f"--grpc_out={STUBS}", f"--plugin=protoc-gen-grpc={PLUGIN}",
                *(f"cellar/v1/{name}.proto" for name in ("data", "admin", "auth"))], check=True)
sys.path.insert(0, STUBS)
from cellar.v1 import auth_pb2, auth_pb2_grpc, data_pb2, data_pb2_grpc  # noqa: E402


def key(*values):
    message = data_pb2.Key()
    for value in values:
        if isinstance(value, int):
            message.values.add().int_value = value
        else:
            message.values.add().text_value = value
    return message


def texts(*values):
    block = data_pb2.ColumnBlock()
    for value in values:
        raw = value.encode()
        block.lengths.append(len(raw))
        block.data += raw
    return block


def column(block, index):
    """The values of a column of a RowBlock."""
    sent = block.columns[index]
    if sent.ints or sent.doubles:
        values = list(sent.ints or sent.doubles)
    else:
        values, at = [], 0
        for length in sent.lengths:
            values.append(sent.data[at:at + length].decode())
            at += length
    for row in range(block.rows):
        if sent.nulls and sent.nulls[row // 8] >> (row % 8) & 1:
            values[row] = None
    return values


def detail(error):
    for name, value in error.trailing_metadata():
        if name == "cellar-error-detail-bin":
            return data_pb2.ErrorDetail.FromString(value)
    raise AssertionError(f"no detail: {error}")


def scram(stub, user, password):
    """A token, by SCRAM-SHA-256 (RFC 5802)."""
    nonce = base64.b64encode(os.urandom(18)).decode()
    bare = f"n=,r={nonce}"
    started = stub.StartScram(auth_pb2.StartScramRequest(
        user=user, database="cellar", client_first=f"n,,{bare}".encode()))
    server = started.server_first.decode()
    fields = dict(part.split("=", 1) for part in server.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]),
                                 int(fields["i"]))

    def mac(secret, text):
        return hmac.new(secret, text.encode(), hashlib.sha256).digest()

    without_proof = f"c=biws,r={fields['r']}"
    client = mac(salted, "Client Key")
    signature = mac(hashlib.sha256(client).digest(), f"{bare},{server},{without_proof}")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client, signature))).decode()
    finished = stub.FinishScram(auth_pb2.FinishScramRequest(
        exchange=started.exchange, client_final=f"{without_proof},p={proof}".encode()))
    expected = mac(mac(salted, "Server Key"), f"{bare},{server},{without_proof}")
    assert finished.server_final.decode() == "v=" + base64.b64encode(expected).decode()
    return finished.token


class Python(harness.ServerTest):
    OPTIONS = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        line = cls.server.process.stdout.readline().strip()
        assert line.startswith("ready grpc://"), line
        cls.target = line.removeprefix("ready grpc://")
        cls.channel = grpc.insecure_channel(cls.target)
        cls.data = data_pb2_grpc.DataStub(cls.channel)
        cls.server.psql("""CREATE TABLE people (id int PRIMARY KEY, name text, age int);
                           CREATE INDEX people_name ON people (name);
                           CREATE ROLE ann LOGIN PASSWORD 'secret';
                           GRANT SELECT ON people TO ann""")

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        super().tearDownClass()
        shutil.rmtree(STUBS, ignore_errors=True)

    def test_put_get_lookup_scan(self):
        rows = data_pb2.RowBlock(rows=3, columns=[
            data_pb2.ColumnBlock(ints=[1, 2, 3]), texts("kimball", "ada", "kimball"),
            data_pb2.ColumnBlock(ints=[0, 36, 51], nulls=b"\x01")])
        put = self.data.Put(data_pb2.PutRequest(table="/cellar/people",
                                                columns=["id", "name", "age"], rows=rows))
        self.assertEqual((put.result.applied, put.result.inserted), (True, 3))
        found = self.data.Get(data_pb2.GetRequest(table="/cellar/people", keys=[key(2), key(9)],
                                                  columns=["age", "name"]))
        self.assertEqual([column(found.rows, 0), column(found.rows, 1)], [[36], ["ada"]])
        self.assertEqual(list(found.key_positions), [0])
        found = self.data.Lookup(data_pb2.LookupRequest(
            table="/cellar/people", index="people_name", keys=[key("kimball")], columns=["age"]))
        self.assertEqual(column(found.rows, 0), [None, 51])
        older = data_pb2.Expression(op=data_pb2.OPERATOR_GREATER, args=[
            data_pb2.Expression(op=data_pb2.OPERATOR_COLUMN, column="age"),
            data_pb2.Expression(op=data_pb2.OPERATOR_LITERAL,
                                literal=data_pb2.Value(int_value=40))])
        ids = []
        for message in self.data.Scan(data_pb2.ScanRequest(table="/cellar/people", filter=older,
                                                           columns=["id"])):
            ids += column(message.rows, 0) if message.rows.rows else []
        self.assertEqual(ids, [3])
        self.assertEqual(message.end_reason, data_pb2.END_REASON_COMPLETE)
        self.assertEqual(self.server.psql("SELECT name FROM people WHERE id = 2"), "ada\n")

    def test_the_example_runs_against_the_server(self):
        program = os.path.join(os.path.dirname(harness.CELLAR), "example_documents")
        if not os.path.exists(program):
            self.skipTest("the examples are not built")
        self.server.psql("CREATE TABLE documents (path text PRIMARY KEY, version bigint, "
                         "body jsonb)")
        result = subprocess.run([program, self.target], check=True, capture_output=True, text=True)
        self.assertEqual(result.stdout.splitlines(), [
            "new: saved", "version 1 seen: saved", "version 1 seen again: refused",
            'notes/a {"title": "second"}', 'notes/b {"title": "other"}'])

    def test_errors_carry_their_detail(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.data.Get(data_pb2.GetRequest(table="/cellar/nothing", keys=[key(1)]))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(detail(caught.exception).sqlstate, "42P01")
        with self.assertRaises(grpc.RpcError) as caught:
            self.data.Get(data_pb2.GetRequest(table="/cellar/people", keys=[key("x")]))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertFalse(detail(caught.exception).retryable)
        with self.assertRaises(grpc.RpcError) as caught:
            self.data.Put(data_pb2.PutRequest(table="/cellar/people", columns=["id"],
                                              rows=data_pb2.RowBlock(rows=5)))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_roles(self):
        get = data_pb2.GetRequest(table="/cellar/people", keys=[key(1)])
        with self.assertRaises(grpc.RpcError) as caught:
            self.data.Get(get, metadata=[("cellar-user", "ann")])
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        auth = auth_pb2_grpc.AuthStub(self.channel)
        with self.assertRaises(grpc.RpcError) as caught:
            scram(auth, "ann", "wrong")
        self.assertEqual(detail(caught.exception).sqlstate, "28P01")
        token = scram(auth, "ann", "secret")
        metadata = [("cellar-user", "ann"), ("authorization", f"Bearer {token}")]
        self.data.Get(get, metadata=metadata)
        with self.assertRaises(grpc.RpcError) as caught:
            self.data.Delete(data_pb2.DeleteRequest(table="/cellar/people", keys=[key(1)]),
                             metadata=metadata)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)

    def test_health_and_reflection(self):
        # Requests written by hand: an empty HealthCheckRequest, and "list services".
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b""), b"\x08\x01")  # SERVING
        for service in (b"cellar.v1.Auth", b"cellar.v1.Data", b"cellar.v1.Admin"):
            self.assertEqual(check(b"\x0a" + bytes([len(service)]) + service), b"\x08\x01")
        with self.assertRaises(grpc.RpcError) as caught:
            check(b"\x0a\x04none")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        listing = self.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        answer = next(listing(iter([b"\x3a\x00"])))
        self.assertIn(b"cellar.v1.Data", answer)


class Untrusted(harness.ServerTest):
    """A server that trusts nobody, as without --trust-local."""

    OPTIONS = ("--grpc", "127.0.0.1:0")
    TRUST = False

    def test_the_superuser_needs_its_secret(self):
        target = self.server.process.stdout.readline().strip().removeprefix("ready grpc://")
        with open(os.path.join(self.server.store, "superuser.url"), encoding="utf-8") as file:
            secret = urlsplit(file.read().strip()).password
        get = data_pb2.GetRequest(table="/cellar/nothing", keys=[key(1)])
        with grpc.insecure_channel(target) as channel:
            data, auth = data_pb2_grpc.DataStub(channel), auth_pb2_grpc.AuthStub(channel)
            for metadata in ([], [("cellar-user", "cellar")], [("cellar-user", "nobody")]):
                with self.assertRaises(grpc.RpcError) as caught:
                    data.Get(get, metadata=metadata)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
                self.assertEqual(detail(caught.exception).sqlstate, "28P01")
            for user, password in (("cellar", "wrong"), ("nobody", secret)):
                with self.assertRaises(grpc.RpcError) as caught:
                    scram(auth, user, password)
                self.assertEqual(detail(caught.exception).sqlstate, "28P01")
            token = scram(auth, "cellar", secret)
            with self.assertRaises(grpc.RpcError) as caught:
                data.Get(get, metadata=[("authorization", f"Bearer {token}")])
            self.assertEqual(detail(caught.exception).sqlstate, "42P01")


class MutualTls(unittest.TestCase):
    """Certificates on both sides; the client's names its role."""

    @classmethod
    def setUpClass(cls):
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("openssl is not installed")
        cls.folder = tempfile.mkdtemp(prefix="cellar-tls-")
        cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem")
        for name in ("localhost", "ann", "eve"):
            cls.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            with open(f"{cls.folder}/{name}.ext", "w", encoding="ascii") as file:
                file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
            cls.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                        "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext",
                        "-out", f"{name}.pem")
        cls.server = harness.Server(
            "--grpc", "0.0.0.0:0", "--tls-cert", f"{cls.folder}/localhost.pem",
            "--tls-key", f"{cls.folder}/localhost.key", "--grpc-client-ca", f"{cls.folder}/ca.pem")
        cls.server.start()
        line = cls.server.process.stdout.readline().strip()
        cls.port = line.rsplit(":", 1)[1]
        cls.server.psql("CREATE TABLE t (id int PRIMARY KEY); CREATE ROLE ann LOGIN PASSWORD 'x';"
                        "GRANT SELECT ON t TO ann")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.server.process.stdout.close()
        cls.server.remove()
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def openssl(cls, *arguments):
        subprocess.run(["openssl", *arguments], cwd=cls.folder, check=True, capture_output=True)

    def read(self, name):
        with open(f"{self.folder}/{name}", "rb") as file:
            return file.read()

    def get(self, certificate, metadata=()):
        files = [self.read(f"{certificate}.{end}") for end in ("key", "pem")] if certificate else []
        credentials = grpc.ssl_channel_credentials(self.read("ca.pem"), *files)
        with grpc.secure_channel(f"localhost:{self.port}", credentials) as channel:
            return data_pb2_grpc.DataStub(channel).Get(
                data_pb2.GetRequest(table="/cellar/t", keys=[key(1)]), metadata=metadata,
                timeout=20)

    def code(self, *arguments):
        with self.assertRaises(grpc.RpcError) as caught:
            self.get(*arguments)
        return caught.exception.code()

    def test_the_certificate_is_the_role(self):
        self.assertEqual(self.get("ann").rows.rows, 0)
        self.assertEqual(self.get("ann", [("cellar-user", "ann")]).rows.rows, 0)
        self.assertEqual(self.code("ann", [("cellar-user", "cellar")]),
                         grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(self.code("eve"), grpc.StatusCode.UNAUTHENTICATED)

    def test_nobody_comes_in_without_one(self):
        self.assertEqual(self.code(None), grpc.StatusCode.UNAVAILABLE)

    def test_other_machines_need_certificates(self):
        server = harness.Server("--grpc", "0.0.0.0:0")
        with self.assertRaises(RuntimeError):
            server.start()
        server.process.wait(30)
        server.process.stdout.close()
        server.remove()


if __name__ == "__main__":
    harness.main()
