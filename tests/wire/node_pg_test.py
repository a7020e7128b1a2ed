#!/usr/bin/python3
"""node's pg: parameters, prepared statements, errors, cursors of rows, pools."""

import os
import shutil
import subprocess

from harness import BUILD_DIR, ServerTest, main, need, skip

need("node", "npm")
FOLDER = os.path.join(BUILD_DIR, "node")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node_client.js")


def install():
    if os.path.isdir(os.path.join(FOLDER, "node_modules", "pg")):
        return
    os.makedirs(FOLDER, exist_ok=True)
    result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "pg@8"],
                            cwd=FOLDER, capture_output=True, text=True, timeout=200)
    if result.returncode != 0:
        skip(f"npm cannot install pg: {result.stderr.strip()[:200]}")


class NodePg(ServerTest):
    def test_client(self):
        shutil.copy(SOURCE, FOLDER)
        output = self.server.run("node", "node_client.js", cwd=FOLDER).stdout
        self.assertIn("all passed", output)


if __name__ == "__main__":
    install()
    main()
