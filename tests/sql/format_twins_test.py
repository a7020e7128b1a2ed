#!/usr/bin/python3
"""Made-up texts and patterns for what formats and reads values, on Cellar and on PostgreSQL 15: to_char,
to_timestamp, to_date, to_number, intervals in all their forms, time zones, SIMILAR TO. The same value,
or an error of the same SQLSTATE.

    format_twins_test.py PATH/TO/cellar [--calls N] [--seed N] [--show N] [--kind NAME]

CELLAR_FORMAT_CALLS and CELLAR_FORMAT_SEED do the same. Without PostgreSQL the test is skipped (77).
"""

import argparse
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import slt_module  # noqa: E402
from slt_module import slt  # noqa: E402

# Differences that are meant or left: a pattern of the statement, one of the answers
# ("cellar | postgresql"), and why.
KNOWN = [
    (r"178000000 years", r"", "days of so many years are counted in 32 bits there, and wrap around"),
    (r"interval|to_char", r"22008|22015", "intervals that overflow are refused; PostgreSQL 15 wraps around"),
]

DATE_FIELDS = {
    # What to_timestamp reads there, for a time that the others fit.
    "HH": ["07", "7", "12", "13", "0"], "HH12": ["07", "7", "12", "13"], "HH24": ["15", "5", "00", "24"],
    "MI": ["04", "4", "59", "60"], "SS": ["05", "5", "59"], "MS": ["123", "1", "12", "1234"],
    "US": ["123456", "5", "000007"], "FF1": ["7", "12"], "FF2": ["12"], "FF3": ["123"], "FF4": ["1234"],
    "FF5": ["12345"], "FF6": ["123456", "1"], "SSSS": ["45296", "86399", "86400"], "SSSSS": ["1"],
    "AM": ["AM", "pm", "PM"], "am": ["am"], "A.M.": ["A.M.", "p.m."], "p.m.": ["p.m."], "PM": ["pm"],
    "Y,YYY": ["2,024", "1,999"], "YYYY": ["2024", "24", "0044", "12024", "-44", "0"], "YYY": ["024", "987"],
    "YY": ["24", "99", "1"], "Y": ["4", "9"], "IYYY": ["2020", "1981"], "IYY": ["020"], "IY": ["20"],
    "I": ["5"], "BC": ["BC", "AD"], "bc": ["bc"], "B.C.": ["B.C."], "AD": ["ad", "BC"], "a.d.": ["a.d."],
    "MONTH": ["MARCH", "march", "May"], "Month": ["September"], "month": ["may", "mayo"], "MON": ["MAR"],
    "Mon": ["Dec"], "mon": ["jan"], "MM": ["03", "3", "12", "13"], "DAY": ["MONDAY", "Friday"],
    "Day": ["Sunday"], "day": ["tuesday"], "DY": ["MON"], "Dy": ["Fri"], "dy": ["sat"],
    "DDD": ["060", "366", "0"], "IDDD": ["001", "364"], "DD": ["29", "2", "31", "0"], "D": ["1", "7"],
    "ID": ["1", "7"], "W": ["1", "5"], "WW": ["09", "53"], "IW": ["01", "53", "54"], "CC": ["20", "21", "-1"],
    "J": ["2451187", "0", "2460000"], "Q": ["1", "4"], "RM": ["III", "xii"], "rm": ["iv"], "TZH": ["+03", "-11"],
    "TZM": ["30", "59"], "OF": ["+03", "+05:30"], "TZ": ["UTC", "EST"], "tz": ["utc"],
}
SEPARATORS = ["", "", " ", "-", "/", ":", ".", ",", "  ", "\"T\"", "\"ab\"", "x", "\\\"", "$", "_", "\\x"]
TIMESTAMPS = ["2024-02-29 12:34:56.789012", "0044-03-15 00:00:00 BC", "0001-01-01 00:00:00",
              "1999-12-31 23:59:59.999999",
              "2000-01-01 00:00:00", "294276-12-31 23:59:59", "4713-01-01 00:00 BC", "2021-01-03 01:02:03.000004",
              "2020-12-31 12:00:00", "1900-01-01 11:59:59.5", "10000-06-15 06:07:08", "0099-10-01 00:00:01"]
NUMBER_TOKENS = ["9", "9", "9", "0", "0", ".", ",", "D", "G", "S", "MI", "PL", "SG", "PR", "RN", "rn", "TH", "th",
                 "V", "L", "EEEE", "FM", "\"ab\"", " ", "x", "-", "\\\"", "99999", "000", "FM999", "9.99", "9,999"]
NUMBERS = ["0", "1", "-1", "12", "485", "-485", "3999", "4000", "1234567", "-1234567.891", "0.1", "-0.01", "148.5",
           "99999.999", "1e10", "1e-10", "123456789012345678", "0.5", "-0.5", "1.5", "2.5", "12345.678"]
FLOATS = NUMBERS + ["NaN", "Infinity", "-Infinity", "1.7e308", "5e-324", "3.4028235e+38", "1e-45", "123456.7", "0.3"]
UNITS = ["year", "years", "yr", "y", "mon", "months", "month", "week", "w", "d", "day", "days", "h", "hour", "hours",
         "m", "min", "minute", "s", "sec", "seconds", "ms", "us", "millisecond", "microseconds", "decade", "century",
         "millennium", "c", "mil", "quarter", "qtr", "dec"]
QUALIFIERS = ["", "", "", "", "year", "month", "day", "hour", "minute", "second", "year to month", "day to hour",
              "day to minute", "day to second", "hour to minute", "hour to second", "minute to second", "second(3)",
              "day to second(0)", "(2)"]
INTERVALS = ["0", "1 day", "-1 month 3 days 04:05:06.7", "178000000 years", "2562047788:00:54.775807", "-1.5 hours",
             "1 year -2 months 3 days -04:05:06", "-25:00:00", "100 days 100:00:00", "-0.000001 s", "13 mons",
             "-13 mons -1 day", "999:59:59.999999"]
ZONES = ["FOO+3", "foo3", "<+03>-3", "<-03>+3", "EST5EDT", "est5edt", "EST5EDT,M3.2.0,M11.1.0", "XYZ-3:30", "+3",
         "-3", "3",
         "ABC", "ABC+3:30:15", "CET-1CEST", "CET-1CEST,M3.5.0,M10.5.0/3", "AAA3BBB", "AAA3BBB2", "AAA3BBB,J60,J300",
         "AAA3BBB,59,299/25", "AAA3BBB;M3.2.0,M11.1.0", "A", "A+1", "AB-12", "UTC+3", "UTC-25", "GMT+0", "GMT0",
         "GMT+168",
         "Foo/Bar+3", "<Foo Bar>3", "Europe/Berlin", "europe/berlin", "MSK", "PST", "PST8PDT", "Z", "zulu", "+05:30",
         "-11:59:59", "+167", "+168", "FOO+3BAR", "FOO+3:60", "<>3", "America/New_York", "posixrules",
         "FOO+3BAR,M13.1.0,M11.1.0",
         "Etc/GMT+5", "EST", "EDT", "5.5", "-3.5", "UTC0", "AAA-14BBB-15,M1.1.0,M12.5.6", "J", "now", "ALLBALLS",
         "LMT"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kinds = {name[5:]: getattr(self, name) for name in sorted(dir(self)) if name.startswith("make_")}

    @staticmethod
    def quoted(text):
        return "'" + text.replace("'", "''") + "'"

    def date_pattern(self, count, reading):
        """A pattern, and a text that may fit it."""
        pick = self.random
        pattern = text = ""
        if pick.random() < 0.1:
            pattern += "FX"
        names = [name for name in DATE_FIELDS if not reading or name not in ("TZ", "tz") or pick.random() < 0.1]
        for i in range(count):
            name = pick.choice(names)
            shown = pick.choice(DATE_FIELDS[name])
            if pick.random() < 0.15:
                pattern += "FM"
            if pick.random() < 0.05:
                pattern += "TM"
            pattern += name
            text += shown
            if pick.random() < 0.1:
                suffix = pick.choice(["TH", "th", "SP"])
                pattern += suffix
                if pick.random() < 0.7:
                    text += pick.choice(["th", "st", "nd", "TH"])
            if i + 1 < count or pick.random() < 0.1:
                separator = pick.choice(SEPARATORS)
                pattern += separator
                shown = separator.replace('"', "").replace("\\", "")
                text += shown if pick.random() < 0.7 else pick.choice(["", " ", "-", "/", "  ", "x", ":"])
        if pick.random() < 0.1:
            text = " " + text
        return pattern, text

    def make_to_char_timestamp(self):
        pattern, _ = self.date_pattern(self.random.randrange(1, 5), False)
        kind = self.random.choice(["timestamp", "timestamptz"])
        return f"select to_char('{self.random.choice(TIMESTAMPS)}'::{kind}, {self.quoted(pattern)})"

    def make_to_char_interval(self):
        pattern, _ = self.date_pattern(self.random.randrange(1, 4), False)
        return f"select to_char('{self.random.choice(INTERVALS)}'::interval, {self.quoted(pattern)})"

    def make_to_timestamp(self):
        pattern, text = self.date_pattern(self.random.randrange(1, 5), True)
        name = self.random.choice(["to_timestamp", "to_timestamp", "to_date"])
        return f"select {name}({self.quoted(text)}, {self.quoted(pattern)})"

    def number_pattern(self):
        pick = self.random
        if pick.random() < 0.5:
            body = pick.choice(["9", "99", "999", "9999", "00", "0999", "9990", "9,999", "99G999", "9G9"])
            body += pick.choice(["", "", ".9", ".99", "D99", "D00", ".000", "V9", "V99", "EEEE", ".99EEEE"])
            front = pick.choice(["", "", "", "FM", "S", "MI", "PL", "SG", "L", "FMS", "\"x\""])
            back = pick.choice(["", "", "", "S", "MI", "PL", "SG", "PR", "TH", "th", "L", "\"y\""])
            return front + body + back
        return "".join(pick.choice(NUMBER_TOKENS) for _ in range(pick.randrange(1, 7)))

    def make_to_char_number(self):
        kind = self.random.choice(["numeric", "numeric", "int4", "int8", "float4", "float8"])
        value = self.random.choice(FLOATS if kind.startswith("float") else NUMBERS)
        if kind.startswith("int"):
            value = value.split(".")[0].split("e")[0] or "0"
            if kind == "int4" and len(value) > 9:
                value = "2147483647"
        if kind == "numeric" and self.random.random() < 0.1:
            value = self.random.choice(["NaN", "Infinity", "-Infinity", "1" * 40, "0." + "1" * 30])
        if kind == "float4" and value in ("1.7e308", "5e-324"):
            value = "1e30"
        return f"select to_char('{value}'::{kind}, {self.quoted(self.number_pattern())})"

    def make_to_number(self):
        pick = self.random
        text = pick.choice(["12", "-12", "+12", "12-", "12+", "<12>", "1,234.5", "-1,234.56", " 12 ", "$12", "12.",
                            ".5",
                            "1 2", "0012", "abc", "1a2", "12th", "1.2.3", "--1", "<1", "1e3", "XII", "1,2,3", "- 12"])
        return f"select to_number({self.quoted(text)}, {self.quoted(self.number_pattern())})"

    def interval_text(self):
        pick = self.random
        number = lambda: pick.choice(["1", "2", "-3", "+4", "0", "1.5", "-0.25", ".5", "100", "2147483647", "1e3",
                                      "9223372036854775807", "153722867280", "0.1234567", "-2562047788", "1.", "12"])
        shape = pick.random()
        if shape < 0.3:
            text = " ".join(number() + pick.choice(["", " "]) + pick.choice(UNITS) for _ in range(pick.randrange(1,
                                                                                                                 4)))
        elif shape < 0.5:
            text = "P" + "".join(number() + pick.choice("YMWD") for _ in range(pick.randrange(0, 3)))
            if pick.random() < 0.6:
                text += "T" + "".join(number() + pick.choice("HMS") for _ in range(pick.randrange(1, 3)))
        elif shape < 0.6:
            text = pick.choice(["P0001-02-03T04:05:06", "P00010203T040506", "PT04:05", "P1-2", "P1Y2M", "P0001-02",
                                "PT1:2:3.5",
                                "P1-2-3T4:5", "-P1Y", "P-1Y", "P1W", "P1.5W", "PT", "P", "P1Y1Y",
                                "PT2562047788.0152155019444",
                                "PT0.0000001S", "P0.5M", "PT1.5H30M", "P1YT"])
        elif shape < 0.8:
            text = pick.choice(["", "-", "+", "1-2 ", "-1-2 ", "3 ", "-3 ", "1-2 3 ", "+1-2 -3 ", "1 day "]) + \
                pick.choice(["4:5", "04:05:06", "-04:05:06.789", "+1:2", "4:5:6.7", "25:61", "100:00:00", "::",
                             ":5", "4:", "1-2"])
        else:
            text = "@ " * (pick.random() < 0.5) + " ".join(number() + " " + pick.choice(UNITS)
                                                           for _ in range(pick.randrange(1, 3)))
            if pick.random() < 0.6:
                text += " ago"
        if pick.random() < 0.05:
            text = pick.choice(["infinity", "-infinity", "", "ago", "1", "-1.5", "day", "1 2", "1 fortnight",
                                "5 6:7 8"])
        return text

    def make_interval(self):
        pick = self.random
        style = pick.choice(["postgres", "postgres_verbose", "sql_standard", "iso_8601"])
        text = self.quoted(self.interval_text())
        qualifier = pick.choice(QUALIFIERS)
        literal = f"interval{qualifier} {text}" if qualifier.startswith("(") else f"interval {text} {qualifier}"
        return f"set intervalstyle = {style}", f"select {literal}", f"select ({literal})::text::interval = {literal}"

    def make_zone(self):
        pick = self.random
        zone = self.quoted(pick.choice(ZONES))
        stamp = pick.choice(["2024-07-01 12:00", "2024-01-15 00:30", "1950-06-01 00:00", "2024-03-10 02:30",
                             "2024-11-03 01:30",
                             "2050-07-04 10:00", "1800-01-01 00:00", "1944-07-01 00:00"])
        shape = pick.random()
        if shape < 0.35:
            return f"select '{stamp}'::{pick.choice(['timestamp', 'timestamptz'])} at time zone {zone}"
        if shape < 0.5:
            return f"select '{stamp} {zone[1:-1]}'::timestamptz"
        if shape < 0.6:
            return f"select '12:34'::timetz at time zone {zone}"
        return (f"set time zone {zone}",
                f"select '{stamp}'::timestamptz, to_char('{stamp}+00'::timestamptz, 'TZ OF TZH:TZM')",
                "show time zone", "reset time zone")

    def pattern(self, depth=0):
        pick = self.random
        out = ""
        for _ in range(pick.randrange(1, 4)):
            shape = pick.random()
            if shape < 0.4:
                atom = pick.choice("abc")
            elif shape < 0.55:
                atom = pick.choice("%_")
            elif shape < 0.65:
                atom = pick.choice(["[ab]", "[^a]", "[a-c]", "[[:alpha:]]", "[%]", "[]a]", "[a]b]"])
            elif shape < 0.7:
                atom = pick.choice(["\\%", "\\a", ".", "^", "$", "#%", "\\d", "{", "}"])
            elif depth < 2:
                atom = "(" + self.pattern(depth + 1) + ")"
            else:
                atom = "a"
            out += atom
            if pick.random() < 0.3:
                out += pick.choice(["*", "+", "?", "{2}", "{1,2}", "{1,}", "*?"])
            if pick.random() < 0.1:
                out += "|"
        return out

    def make_similar(self):
        pick = self.random
        text = "".join(pick.choice("aaabbbc%.") for _ in range(pick.randrange(0, 7)))
        pattern = self.pattern()
        if pick.random() < 0.5:
            escape = pick.choice(["", "", " escape '#'", " escape ''", " escape '##'"])
            return f"select {self.quoted(text)} {pick.choice(['', 'not '])}similar to {self.quoted(pattern)}{escape}"
        parts = [self.pattern() for _ in range(3)]
        mark = pick.choice(['#"'] * 4 + [""])
        pattern = parts[0] + mark + parts[1] + mark + parts[2]
        return f"select substring({self.quoted(text)} similar {self.quoted(pattern)} escape '#')"

    def make(self, only):
        name = only or self.random.choice(list(self.kinds))
        made = self.kinds[name]()
        return name, (made,) if isinstance(made, str) else made


def shown(answer):
    return answer.error[:200] if answer.error else repr(answer.rows)[:300]


def same(left, right):
    if left.error or right.error:
        return bool(left.error and right.error and left.error[:5] == right.error[:5])
    return left.rows == right.rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--calls", type=int, default=int(os.environ.get("CELLAR_FORMAT_CALLS", 4000)))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CELLAR_FORMAT_SEED", 1)))
    parser.add_argument("--show", type=int, default=30)
    parser.add_argument("--kind", help="only these")
    parser.add_argument("--url", help="of a running Cellar, instead of one of its own")
    parser.add_argument("--postgres", help="the url of a running PostgreSQL")
    arguments = parser.parse_args()
    if not arguments.postgres and not slt.Postgres.installed():
        print("SKIPPED: PostgreSQL 15 is not installed")
        sys.exit(77)
    print(f"seed {arguments.seed}")
    failures = {}
    with slt_module.postgres(arguments.postgres) as theirs, \
            slt_module.cellar(arguments.program, url=arguments.url) as ours:
        cellar, postgres = slt.Connection(ours), slt.Connection(theirs)
        maker = Maker(arguments.seed)
        for _ in range(arguments.calls):
            kind, statements = maker.make(arguments.kind)
            for at, sql in enumerate(statements):
                left, right = cellar.simple(sql), postgres.simple(sql)
                answers = f"{shown(left)} | {shown(right)}"
                if not same(left, right) and not any(
                        re.search(pattern, sql) and re.search(answer, answers) for pattern, answer, _ in KNOWN):
                    before = "".join(f"{statement}; " for statement in statements[:at])
                    failures.setdefault(kind, {})[f"{before}{sql}\n    cellar     {shown(left)}\n"
                                                  f"    postgresql {shown(right)}"] = True
    count = sum(map(len, failures.values()))
    print(f"{arguments.calls} calls, {count} fail: {({kind: len(some) for kind, some in failures.items()})}")
    for some in failures.values():
        for failure in list(some)[:arguments.show]:
            print(failure)
    sys.exit(0 if count == 0 else 1)


if __name__ == "__main__":
    main()
