#!/usr/bin/python3
"""What the built program is protected with, as its ELF file says.

Run as: hardening_test.py PATH/TO/cellar [--fortified]
"""

import re
import shutil
import subprocess
import sys


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True,
                          text=True).stdout


def main():
    if shutil.which("readelf") is None:
        print("SKIPPED: readelf is not installed", file=sys.stderr)
        return 77
    program = sys.argv[1]
    segments = readelf("--segments", program)
    dynamic = readelf("--dynamic", program)
    symbols = readelf("--dyn-syms", program)
    stack = re.search(r"^\s*GNU_STACK\s.*?\s([RWE ]{3})\s+0x", segments, re.M)
    checked = set(re.findall(r"\b__(\w+)_chk\b", symbols))
    is_dyn = re.search(r"^\s*Type:\s+DYN\b", readelf("--file-header", program), re.M)
    expected = {
        "a position independent program": is_dyn and re.search(r"\(FLAGS_1\).*\bPIE\b", dynamic),
        "all symbols bound at the start": re.search(r"\bBIND_NOW\b|\(FLAGS_1\).*\bNOW\b", dynamic),
        "relocations that are read-only then": re.search(r"^\s*GNU_RELRO\s", segments, re.M),
        "a stack without code": stack is not None and "E" not in stack.group(1),
        "nothing writable and executable": not re.search(r"^\s*LOAD\s.*\sRWE\s", segments, re.M),
        "guarded stacks": "__stack_chk_fail" in symbols,
    }
    if "--fortified" in sys.argv[2:]:
        expected["checked copies"] = checked
    missing = [name for name, found in expected.items() if not found]
    for name in missing:
        print(f"{program} lacks: {name}")
    print(f"checked calls: {', '.join(sorted(checked))}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
