#!/usr/bin/python3
"""JDBC: compiles Client.java and runs it."""

import os
import subprocess

from harness import BUILD_DIR, ServerTest, main, need

DRIVER = "/usr/share/java/postgresql.jar"
need("javac", "java", DRIVER)
FOLDER = os.path.join(BUILD_DIR, "jdbc")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Client.java")


class Jdbc(ServerTest):
    def test_client(self):
        os.makedirs(FOLDER, exist_ok=True)
        subprocess.run(["javac", "-encoding", "UTF-8", "-cp", DRIVER, "-d", FOLDER, SOURCE],
                       check=True, timeout=200)
        server = self.server
        url = (f"jdbc:postgresql://{server.host}:{server.port}/{server.database}"
               f"?user={server.user}")
        # The driver asks at the fifth execution for binary results of a named statement.
        libraries = ":".join([FOLDER, DRIVER] + [
            os.path.join("/usr/share/java", name) for name in os.listdir("/usr/share/java")
            if name.startswith(("scram", "ongres", "saslprep", "stringprep"))])
        output = self.server.run("java", "-cp", libraries, "Client", url).stdout
        self.assertIn("all passed", output)


if __name__ == "__main__":
    main()
