// A disk that is full, fails, or loses its power, for a program that is started with this library in LD_PRELOAD.
//
// It looks at calls that change files below the directory FAULTY_DISK_ROOT, and reads what to do from the file
// FAULTY_DISK_CONTROL, a `struct control` that the test writes while the program runs. With `recording` it keeps a
// journal of what was written, synced, made, renamed and removed in FAULTY_DISK_JOURNAL, with the bytes that were
// overwritten; removed files are kept, by another link, in FAULTY_DISK_GRAVES. From those the test makes what a disk
// may hold after a power cut. faulty_disk.py is the other side.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum mode { HEALTHY, FULL, FAILING, NO_FILES, CUT };

struct control {
  volatile uint64_t mode;         // enum mode
  volatile uint64_t at;           // the first call that it concerns, of those counted
  volatile uint64_t calls;        // counted so far
  volatile uint64_t hit;          // calls that failed
  volatile uint64_t recording;    // 1: keep the journal
  volatile uint64_t entries;      // of the journal
  volatile uint64_t total_bytes;  // what statvfs tells; 0: the truth
  volatile uint64_t free_bytes;
  volatile uint64_t short_write;  // 1: the first write that fails has written a part
  volatile uint64_t honest;       // 1: statvfs knows of the full disk
};

// NOTE: to RocksDB's LOG, of which there are so many that they are not counted.
enum call { WRITE, NOTE, SYNC, ALLOCATE, MAKE, OPEN, RENAME, REMOVE, SHRINK };

enum { MOST_FILES = 65536, MOST_KEPT = 1 << 20 };

static struct control* control;
static const char *root, *graves;
static size_t root_length;
static int journal = -1;
static unsigned char ours[MOST_FILES];  // descriptors of files, 1, directories, 2, and notes, 3, below the root
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void begin(void) __attribute__((constructor));
static void begin(void) {
  const char* path = getenv("FAULTY_DISK_CONTROL");
  root = getenv("FAULTY_DISK_ROOT");
  graves = getenv("FAULTY_DISK_GRAVES");
  const char* journal_path = getenv("FAULTY_DISK_JOURNAL");
  if (path == NULL || root == NULL || graves == NULL || journal_path == NULL) return;
  REAL(open);
  const int fd = real(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* at = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  journal = real(journal_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (at == MAP_FAILED || journal < 0) {
    fprintf(stderr, "faulty_disk: cannot begin\n");
    _exit(99);
  }
  root_length = strlen(root);
  control = at;
}

static int below(const char* path) {
  return control != NULL && path != NULL && strncmp(path, root, root_length) == 0 &&
         (path[root_length] == '/' || path[root_length] == '\0');
}
static int tracked(int fd) { return control != NULL && fd >= 0 && fd < MOST_FILES && ours[fd] != 0; }

// Journal: a line of kind, number, inode, offset, length, size before, bytes that follow, and a path or
// two, which end with a zero; then the bytes. The mutex is held.
static void note(char kind, uint64_t number, uint64_t inode, uint64_t offset, uint64_t length, uint64_t size,
                 const char* path, const char* other, const void* bytes, size_t count) {
  if (!control->recording) return;
  REAL(write);
  char line[2 * PATH_MAX + 200];
  const int used = snprintf(line, sizeof(line), "%c %llu %llu %llu %llu %llu %zu %s|%s\n", kind,
                            (unsigned long long)number, (unsigned long long)inode, (unsigned long long)offset,
                            (unsigned long long)length, (unsigned long long)size, count, path == NULL ? "" : path,
                            other == NULL ? "" : other);
  if (real(journal, line, (size_t)used) != used || (count > 0 && real(journal, bytes, count) != (ssize_t)count)) {
    static const char text[] = "faulty_disk: the journal cannot be written\n";
    if (real(2, text, sizeof(text) - 1) < 0) _exit(98);
    _exit(99);
  }
}

// Counts a call, and says with which error it fails; 0: with none. The mutex is held.
static int fault(enum call what) {
  const uint64_t mode = control->mode;
  if (mode == NO_FILES && what != MAKE && what != OPEN) return 0;
  if (mode != NO_FILES && what == OPEN) return 0;
  const uint64_t number = what == NOTE ? control->calls : ++control->calls;
  if (mode == HEALTHY || number < control->at) return 0;
  int error = 0;
  switch (mode) {
    case FULL: error = what == REMOVE || what == SHRINK ? 0 : ENOSPC; break;
    case FAILING: error = EIO; break;
    case NO_FILES: error = EMFILE; break;
    case CUT:
      if (what == NOTE) break;
      control->hit++;
      kill(getpid(), SIGKILL);
      while (1) pause();
    default: break;
  }
  if (error != 0 && what != NOTE && control->hit++ < 20) {
    static const char* const names[] = {"write", "note", "sync", "allocate", "make", "open", "rename", "remove", "shrink"};
    REAL(write);
    char line[80];
    const int used = snprintf(line, sizeof(line), "faulty_disk: call %llu, %s, fails\n", (unsigned long long)number,
                              names[what]);
    if (real(2, line, (size_t)used) < 0) error = EIO;
  }
  return error;
}

static uint64_t size_of(int fd, uint64_t* inode) {
  struct stat status;
  if (fstat(fd, &status) != 0) return 0;
  *inode = status.st_ino;
  return (uint64_t)status.st_size;
}

// What a file, perhaps open for writing only, holds there; how much of it was read.
static size_t before(int fd, uint64_t offset, size_t count, void* bytes) {
  REAL(open);
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  const int again = real(path, O_RDONLY | O_CLOEXEC);
  if (again < 0) return 0;
  const ssize_t got = pread(again, bytes, count, (off_t)offset);
  close(again);
  return got < 0 ? 0 : (size_t)got;
}

// The mutex is held. `append`: at the descriptor's own place.
static ssize_t put(int fd, const void* bytes, size_t count, off_t offset, int append) {
  REAL(write);
  static __typeof__(&pwrite) real_at;
  if (real_at == NULL) real_at = (__typeof__(&pwrite))dlsym(RTLD_NEXT, "pwrite64");
  const int error = fault(ours[fd] == 3 ? NOTE : WRITE);
  if (error != 0) {
    if (!control->short_write || count < 2) {
      errno = error;
      return -1;
    }
    control->short_write = 0;
    count /= 2;
  }
  uint64_t inode = 0, size = 0;
  size_t kept = 0;
  void* old = NULL;
  if (control->recording) {
    size = size_of(fd, &inode);
    if (append) offset = (fcntl(fd, F_GETFL) & O_APPEND) != 0 ? (off_t)size : lseek(fd, 0, SEEK_CUR);
    if ((uint64_t)offset < size) {
      kept = size - (uint64_t)offset < count ? size - (uint64_t)offset : count;
      if (kept > MOST_KEPT) kept = MOST_KEPT;
      old = malloc(kept);
      kept = before(fd, (uint64_t)offset, kept, old);
    }
  }
  const ssize_t written = append ? real(fd, bytes, count) : real_at(fd, bytes, count, offset);
  const int failure = errno;
  if (written > 0) {
    note('W', ++control->entries, inode, (uint64_t)offset, (uint64_t)written, size, NULL, NULL, old, kept);
  }
  free(old);
  errno = failure;
  return written;
}

ssize_t write(int fd, const void* bytes, size_t count) {
  REAL(write);
  if (!tracked(fd)) return real(fd, bytes, count);
  pthread_mutex_lock(&mutex);
  const ssize_t written = put(fd, bytes, count, 0, 1);
  pthread_mutex_unlock(&mutex);
  return written;
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off_t offset) {
  REAL(pwrite64);
  if (!tracked(fd)) return real(fd, bytes, count, offset);
  pthread_mutex_lock(&mutex);
  const ssize_t written = put(fd, bytes, count, offset, 0);
  pthread_mutex_unlock(&mutex);
  return written;
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }

static ssize_t put_parts(int fd, const struct iovec* parts, int count, off_t offset, int append) {
  ssize_t sum = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len == 0) continue;
    pthread_mutex_lock(&mutex);
    const ssize_t written = put(fd, parts[i].iov_base, parts[i].iov_len, offset + sum, append);
    pthread_mutex_unlock(&mutex);
    if (written < 0) return sum > 0 ? sum : -1;
    sum += written;
    if ((size_t)written < parts[i].iov_len) break;
  }
  return sum;
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  REAL(writev);
  return tracked(fd) ? put_parts(fd, parts, count, 0, 1) : real(fd, parts, count);
}
ssize_t pwritev64(int fd, const struct iovec* parts, int count, off_t offset) {
  REAL(pwritev64);
  return tracked(fd) ? put_parts(fd, parts, count, offset, 0) : real(fd, parts, count, offset);
}
ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  return pwritev64(fd, parts, count, offset);
}

// What was written before the sync began is durable when it has succeeded; others may write beside it.
static int synced(int fd, int (*real)(int)) {
  pthread_mutex_lock(&mutex);
  const int error = fault(SYNC);
  const uint64_t number = control->entries;
  pthread_mutex_unlock(&mutex);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int result = real(fd);
  if (result != 0) return result;
  pthread_mutex_lock(&mutex);
  uint64_t inode = 0;
  const uint64_t size = size_of(fd, &inode);
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  path[length < 0 ? 0 : length] = '\0';
  note(ours[fd] == 2 ? 'D' : 'S', number, inode, 0, 0, size, path, NULL, NULL, 0);
  pthread_mutex_unlock(&mutex);
  return 0;
}
int fsync(int fd) {
  REAL(fsync);
  return tracked(fd) ? synced(fd, real) : real(fd);
}
int fdatasync(int fd) {
  REAL(fdatasync);
  return tracked(fd) ? synced(fd, real) : real(fd);
}

// Nothing is durable by it. Without flags it does nothing, and asks whether the file system has it.
int sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags) {
  REAL(sync_file_range);
  int error = 0;
  if (tracked(fd) && flags != 0) {
    pthread_mutex_lock(&mutex);
    error = fault(SYNC);
    pthread_mutex_unlock(&mutex);
  }
  if (error == 0) return real(fd, offset, length, flags);
  errno = error;
  return -1;
}

// Lengthens with zeroes, or shortens.
static void note_size(int fd, uint64_t size, uint64_t now) {
  uint64_t inode = 0;
  const uint64_t got = size_of(fd, &inode);
  if (got == size) return;
  note('T', ++control->entries, inode, now, 0, size, NULL, NULL, NULL, 0);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  REAL(fallocate64);
  if (!tracked(fd)) return real(fd, mode, offset, length);
  pthread_mutex_lock(&mutex);
  int result = -1;
  const int error = fault(ALLOCATE);
  if (error == 0) {
    uint64_t inode = 0;
    const uint64_t size = size_of(fd, &inode);
    result = real(fd, mode, offset, length);
    if (result == 0) note_size(fd, size, (uint64_t)(offset + length));
  } else {
    errno = error;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
int fallocate(int fd, int mode, off_t offset, off_t length) { return fallocate64(fd, mode, offset, length); }
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return fallocate64(fd, 0, offset, length) == 0 ? 0 : errno;
}
int posix_fallocate(int fd, off_t offset, off_t length) { return posix_fallocate64(fd, offset, length); }

int ftruncate64(int fd, off64_t length) {
  REAL(ftruncate64);
  if (!tracked(fd)) return real(fd, length);
  pthread_mutex_lock(&mutex);
  int result = -1;
  const int error = fault(SHRINK);
  if (error == 0) {
    uint64_t inode = 0;
    const uint64_t size = size_of(fd, &inode);
    size_t kept = 0;
    void* old = NULL;
    if (control->recording && (uint64_t)length < size) {
      kept = size - (uint64_t)length < MOST_KEPT ? size - (uint64_t)length : MOST_KEPT;
      old = malloc(kept);
      kept = before(fd, (uint64_t)length, kept, old);
    }
    result = real(fd, length);
    if (result == 0 && (uint64_t)length != size) {
      note('T', ++control->entries, inode, (uint64_t)length, 0, size, NULL, NULL, old, kept);
    }
    free(old);
  } else {
    errno = error;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

// Of a path relative to a directory that is open.
static const char* whole(int directory, const char* path, char* buffer) {
  if (directory == AT_FDCWD || path == NULL || path[0] == '/') return path;
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
  const ssize_t length = readlink(link, buffer, PATH_MAX - 1);
  if (length < 0) return path;
  snprintf(buffer + length, (size_t)(PATH_MAX - length), "/%s", path);
  return buffer;
}

// Another link to what a path names, so that its bytes stay.
static int bury(const char* path, char* grave) {
  REAL(link);
  grave[0] = '\0';
  struct stat status;
  if (!control->recording || lstat(path, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  static unsigned count;
  snprintf(grave, PATH_MAX, "%s/%d-%u", graves, getpid(), ++count);
  return real(path, grave);
}

static int opened(int directory, const char* path, int flags, mode_t mode) {
  REAL(openat64);
  char buffer[PATH_MAX];
  const char* full = whole(directory, path, buffer);
  if (!below(full)) {
    const int fd = real(directory, path, flags, mode);
    if (fd >= 0 && fd < MOST_FILES) ours[fd] = 0;
    return fd;
  }
  pthread_mutex_lock(&mutex);
  struct stat status;
  const int there = stat(full, &status) == 0;
  const int makes = (flags & O_CREAT) != 0 && !there;
  const int error = fault(makes ? MAKE : OPEN);
  int fd = -1;
  if (error == 0) {
    size_t kept = 0;
    void* old = NULL;
    if (there && (flags & O_TRUNC) != 0 && status.st_size > 0 && control->recording) {
      const int reader = real(directory, path, O_RDONLY | O_CLOEXEC, 0);
      kept = status.st_size < MOST_KEPT ? (size_t)status.st_size : MOST_KEPT;
      old = malloc(kept);
      const ssize_t got = pread(reader, old, kept, 0);
      kept = got < 0 ? 0 : (size_t)got;
      close(reader);
    }
    fd = real(directory, path, flags, mode);
    if (fd >= 0 && fd < MOST_FILES) {
      struct stat now;
      fstat(fd, &now);
      const char* name = strrchr(full, '/');
      const int notes = name != NULL && strcmp(name, "/LOG") == 0;
      ours[fd] = S_ISDIR(now.st_mode) ? 2 : S_ISREG(now.st_mode) ? (notes ? 3 : 1) : 0;
      if (makes) {
        note('C', ++control->entries, now.st_ino, 0, 0, 0, full, NULL, NULL, 0);
      } else if (kept > 0) {
        note('T', ++control->entries, now.st_ino, 0, 0, (uint64_t)status.st_size, NULL, NULL, old, kept);
      }
    }
    free(old);
  } else {
    errno = error;
  }
  pthread_mutex_unlock(&mutex);
  return fd;
}

#define OPEN_MODE(flags, mode) \
  mode_t mode = 0; \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list more; \
    va_start(more, flags); \
    mode = va_arg(more, mode_t); \
    va_end(more); \
  }
int open(const char* path, int flags, ...) {
  OPEN_MODE(flags, mode)
  return opened(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  OPEN_MODE(flags, mode)
  return opened(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char* path, int flags, ...) {
  OPEN_MODE(flags, mode)
  return opened(directory, path, flags, mode);
}
int openat64(int directory, const char* path, int flags, ...) {
  OPEN_MODE(flags, mode)
  return opened(directory, path, flags, mode);
}
int creat(const char* path, mode_t mode) { return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int __open_2(const char* path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char* path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __openat_2(int directory, const char* path, int flags) { return opened(directory, path, flags, 0); }
int __openat64_2(int directory, const char* path, int flags) { return opened(directory, path, flags, 0); }

int close(int fd) {
  REAL(close);
  if (fd >= 0 && fd < MOST_FILES) ours[fd] = 0;
  return real(fd);
}

// A change of names: `kind` in the journal, by `change`.
#define NAMES(what, kind, path, other, buried, change) \
  pthread_mutex_lock(&mutex); \
  int result = -1; \
  const int error = fault(what); \
  if (error == 0) { \
    char grave[PATH_MAX] = ""; \
    const char* const bury_it = buried; \
    if (bury_it != NULL && bury(bury_it, grave) != 0) { \
      fprintf(stderr, "faulty_disk: cannot keep %s\n", bury_it); \
      _exit(99); \
    } \
    result = change; \
    if (result == 0) note(kind, ++control->entries, 0, 0, 0, 0, path, other, grave, strlen(grave)); \
  } else { \
    errno = error; \
  } \
  pthread_mutex_unlock(&mutex); \
  return result

int rename(const char* from, const char* to) {
  REAL(rename);
  if (!below(to)) return real(from, to);
  NAMES(RENAME, 'R', from, to, to, real(from, to));
}
int link(const char* from, const char* to) {
  REAL(link);
  if (!below(to)) return real(from, to);
  NAMES(MAKE, 'K', from, to, NULL, real(from, to));
}
int unlink(const char* path) {
  REAL(unlink);
  if (!below(path)) return real(path);
  NAMES(REMOVE, 'U', path, NULL, path, real(path));
}
int unlinkat(int directory, const char* path, int flags) {
  REAL(unlinkat);
  char buffer[PATH_MAX];
  const char* full = whole(directory, path, buffer);
  if (!below(full)) return real(directory, path, flags);
  NAMES(REMOVE, ((flags & AT_REMOVEDIR) != 0 ? 'Y' : 'U'), full, NULL, full, real(directory, path, flags));
}
int remove(const char* path) {
  struct stat status;
  if (lstat(path, &status) != 0) return -1;
  return S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}
int rmdir(const char* path) {
  REAL(rmdir);
  if (!below(path)) return real(path);
  NAMES(REMOVE, 'Y', path, NULL, NULL, real(path));
}
int mkdir(const char* path, mode_t mode) {
  REAL(mkdir);
  if (!below(path)) return real(path, mode);
  NAMES(MAKE, 'M', path, NULL, NULL, real(path, mode));
}

int statvfs(const char* path, struct statvfs* answer) {
  REAL(statvfs);
  const int result = real(path, answer);
  if (result == 0 && below(path) && control->total_bytes != 0) {
    answer->f_blocks = control->total_bytes / answer->f_frsize;
    const int full = control->mode == FULL && control->honest && control->calls >= control->at;
    answer->f_bfree = answer->f_bavail = full ? 0 : control->free_bytes / answer->f_frsize;
  }
  return result;
}
