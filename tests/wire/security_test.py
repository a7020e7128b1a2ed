#!/usr/bin/python3
"""TLS, SCRAM-SHA-256 with and without channel binding, refused logins."""

import subprocess

from harness import ServerTest, main, need

need("psql", "openssl")


class Security(ServerTest):
    OPTIONS = ("--tls-self-signed",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.psql("CREATE ROLE ann LOGIN PASSWORD 'sécret'; CREATE ROLE mute LOGIN;")

    def login(self, user, password=None, check=True, **options):
        environment = {"PGUSER": user, "PGSSLMODE": "disable", **options}
        if password is not None:
            environment["PGPASSWORD"] = password
        return self.server.run("psql", "-X", "-A", "-t", "-w", "-c", "SELECT current_user",
                               check=check, environment=environment).stdout

    def test_trust_without_a_password(self):
        self.assertEqual(self.login("mute"), "mute\n")

    def test_password(self):
        self.assertEqual(self.login("ann", "sécret"), "ann\n")
        self.assertIn('password authentication failed for user "ann"',
                      self.login("ann", "wrong", check=False))
        self.assertIn("no password supplied", self.login("ann", check=False))

    def test_password_over_tls_with_channel_binding(self):
        for binding in ("require", "disable"):
            self.assertEqual(self.login("ann", "sécret", PGSSLMODE="require",
                                        PGCHANNELBINDING=binding), "ann\n")
        self.assertIn("channel binding",
                      self.login("ann", "sécret", check=False, PGCHANNELBINDING="require"))

    def test_tls_versions(self):
        for version, taken in (("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
            result = subprocess.run(
                ["openssl", "s_client", "-starttls", "postgres", version, "-connect",
                 f"{self.server.host}:{self.server.port}"], input="", capture_output=True,
                text=True, timeout=20)
            self.assertEqual("BEGIN CERTIFICATE" in result.stdout, taken, version)

    def test_unknown_role(self):
        self.assertIn('role "mallory" does not exist', self.login("mallory", check=False))

    def test_changed_password(self):
        self.server.psql("CREATE ROLE bob LOGIN PASSWORD 'one'; ALTER ROLE bob PASSWORD 'two'")
        self.assertIn("failed", self.login("bob", "one", check=False))
        self.assertEqual(self.login("bob", "two"), "bob\n")


class AlwaysAsk(ServerTest):
    OPTIONS = ("--require-password",)
    TRUST = False

    def test_unknown_users_look_like_known_ones(self):
        environment = {"PGPASSWORD": "x"}
        answers = []
        for user in ("cellar", "mallory"):
            output = self.server.run("psql", "-X", "-w", "-c", "SELECT 1", check=False,
                                     environment={**environment, "PGUSER": user}).stdout
            answers.append(output.replace(user, "USER"))
        self.assertEqual(answers[0].split("FATAL")[1], answers[1].split("FATAL")[1])
        self.assertIn("password authentication failed", answers[0])


if __name__ == "__main__":
    main()
