"""The test's side of faulty_disk.c: tells the library what to do, and makes what a power cut may leave."""

import mmap
import os
import shutil
import struct

HEALTHY, FULL, FAILING, NO_FILES, CUT = range(5)
FIELDS = ("mode", "at", "calls", "hit", "recording", "entries", "total_bytes", "free_bytes", "short_write",
          "honest")
SECTOR = 512


class Disk:
    """Below `folder`/root; a server started with `environment` is on it."""

    def __init__(self, library, folder):
        self.root, self.graves = os.path.join(folder, "root"), os.path.join(folder, "graves")
        self.journal = os.path.join(folder, "journal")
        for path in (self.root, self.graves):
            os.makedirs(path)
        control = os.path.join(folder, "control")
        with open(control, "wb") as file:
            file.write(bytes(4096))
        with open(control, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)
        self.environment = {
            "LD_PRELOAD": os.path.abspath(library), "FAULTY_DISK_ROOT": self.root, "FAULTY_DISK_CONTROL": control,
            "FAULTY_DISK_GRAVES": self.graves, "FAULTY_DISK_JOURNAL": self.journal}

    def get(self, name):
        return struct.unpack_from("=Q", self.memory, 8 * FIELDS.index(name))[0]

    def set(self, **values):
        """In the order given: `mode` last."""
        for name, value in values.items():
            struct.pack_into("=Q", self.memory, 8 * FIELDS.index(name), value)

    def forget(self):
        """What is on the disk now is durable."""
        shutil.rmtree(self.graves)
        os.makedirs(self.graves)
        if os.path.exists(self.journal):
            os.truncate(self.journal, 0)

    def record(self, on=True):
        self.forget()
        self.set(recording=int(on))

    def entries_of_journal(self):
        with open(self.journal, "rb") as journal:
            while True:
                line = journal.readline()
                if not line.endswith(b"\n"):
                    return
                kind, *numbers, paths = line[:-1].split(b" ", 7)
                number, inode, offset, length, size, count = map(int, numbers)
                data = journal.read(count)
                if len(data) < count:
                    return
                path, other = paths.decode().split("|")
                yield kind.decode(), number, inode, offset, length, size, path, other, data

    def cut(self, rng):
        """The process is dead. Takes back what was not synced: all, none, or from some moment on; each file for
        itself, and all names together. Says what it did."""
        contents, names, syncs = {}, [], {}
        for entry in self.entries_of_journal():
            kind, number, inode = entry[:3]
            if kind in "WT":
                contents.setdefault(inode, []).append(entry)
            elif kind == "S":
                contents[inode] = [e for e in contents.get(inode, []) if e[1] > number]
            elif kind == "D":
                syncs[entry[6]] = max(number, syncs.get(entry[6], 0))
            else:
                names.append(entry)
        where = {}
        for top in (self.root, self.graves):
            for folder, _, files in os.walk(top):
                for name in files:
                    path = os.path.join(folder, name)
                    where[os.stat(path).st_ino] = path
        done = []
        for inode, entries in contents.items():
            if entries and inode in where:
                kept = rng.choice([0, 0, len(entries), rng.randint(0, len(entries))])
                self.take_back(where[inode], entries, kept, rng)
                done.append(f"{os.path.basename(where[inode])}: {len(entries) - kept} of {len(entries)} writes")
        loose = [e for e in names if any(syncs.get(os.path.dirname(path), 0) < e[1] for path in self.touched(e))]
        kept = rng.choice([0, len(loose), len(loose), rng.randint(0, len(loose))])
        for entry in reversed(loose[kept:]):
            self.take_back_name(entry)
            done.append(entry[0] + " " + " ".join(os.path.basename(path) for path in entry[6:8] if path))
        self.forget()
        return done

    @staticmethod
    def touched(entry):
        # A link, or a file that is made, is a change of the new name's directory.
        kind, path, other = entry[0], entry[6], entry[7]
        return {"R": (path, other), "K": (other,)}.get(kind, (path,))

    @staticmethod
    def take_back(path, entries, kept, rng):
        with open(path, "r+b") as file:
            for at in range(len(entries) - 1, kept - 1, -1):
                kind, _, _, offset, length, size, _, _, data = entries[at]
                torn = at == kept and rng.random() < 0.5
                if data:
                    # Sectors are written whole or not at all.
                    for start in range(0, len(data), SECTOR):
                        if not torn or rng.random() < 0.5:
                            file.seek(offset + start)
                            file.write(data[start:start + SECTOR])
                if kind == "T":
                    file.truncate(size)
                elif offset + length > size:
                    grown = offset + length - size
                    file.truncate(size + (rng.randrange(grown) if torn else 0))

    def take_back_name(self, entry):
        kind, path, other, grave = entry[0], entry[6], entry[7], entry[8].decode()
        if kind == "C":
            os.unlink(path)
        elif kind == "K":
            os.unlink(other)
        elif kind == "U":
            os.rename(grave, path)
        elif kind == "R":
            os.rename(other, path)
            if grave:
                os.rename(grave, other)
        elif kind == "M":
            shutil.rmtree(path)
        elif kind == "Y":
            os.mkdir(path)
