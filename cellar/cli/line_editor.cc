// libedit's own interface; its readline emulation lacks what the completion needs.
#include "cellar/cli/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <setjmp.h>
#include <signal.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace cellar::cli {
namespace {

constexpr int kHistoryEntries = 2000;

// Signal handlers have nothing but globals. The jump leaves libedit's read, as psql does it: the
// library retries reads that a signal interrupts, so a flag would not be seen.
sigjmp_buf read_jump;                           // NOLINT: see above
volatile sig_atomic_t reading = 0;              // NOLINT
void (*volatile interrupt_action)() = nullptr;  // NOLINT

void OnInterrupt(int) {
  if (reading != 0) {
    reading = 0;
    siglongjmp(read_jump, 1);
  }
  if (interrupt_action != nullptr) interrupt_action();
}

class EditLineEditor : public LineEditor {
 public:
  EditLineEditor(const std::string& history_file, Complete complete)
      : history_file_(history_file), complete_(std::move(complete)) {
    edit_ = ::el_init("cellar", stdin, stdout, stderr);
    history_ = ::history_init();
    ::history(history_, &event_, H_SETSIZE, kHistoryEntries);
    ::history(history_, &event_, H_SETUNIQUE, 1);
    if (!history_file_.empty()) ::history(history_, &event_, H_LOAD, history_file_.c_str());
    ::el_set(edit_, EL_CLIENTDATA, this);
    ::el_set(edit_, EL_EDITOR, "emacs");
    ::el_set(edit_, EL_HIST, &::history, history_);
    ::el_set(edit_, EL_PROMPT, &EditLineEditor::Prompt);
    ::el_set(edit_, EL_SIGNAL, 0);
    ::el_set(edit_, EL_ADDFN, "cellar-complete", "complete a name", &EditLineEditor::OnTab);
    ::el_set(edit_, EL_BIND, "^I", "cellar-complete", nullptr);
    ::el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_source(edit_, nullptr);  // ~/.editrc
  }
  ~EditLineEditor() override {
    ::history_end(history_);
    ::el_end(edit_);
  }

  Outcome Read(const std::string& prompt, std::string* line) override {
    prompt_ = prompt;
    int count = 0;
    if (sigsetjmp(read_jump, 1) != 0) {
      ::el_reset(edit_);
      std::fputs("\n", stdout);
      return Outcome::kInterrupted;
    }
    reading = 1;
    const char* text = ::el_gets(edit_, &count);
    reading = 0;
    if (text == nullptr || count <= 0) return Outcome::kEnd;
    line->assign(text, static_cast<size_t>(count));
    while (!line->empty() && (line->back() == '\n' || line->back() == '\r')) line->pop_back();
    return Outcome::kLine;
  }

  void Remember(const std::string& statement) override {
    std::string one_line = statement, lower;
    for (char& c : one_line) {
      if (c == '\n' || c == '\r') c = ' ';
      lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (one_line.find_first_not_of(' ') == std::string::npos) return;
    if (lower.find("password") != std::string::npos) return;
    ::history(history_, &event_, H_ENTER, one_line.c_str());
    if (history_file_.empty()) return;
    // The mode is right from the first byte on.
    const int fd = ::open(history_file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    ::fchmod(fd, 0600);
    ::close(fd);
    ::history(history_, &event_, H_SAVE, history_file_.c_str());
  }

 private:
  static EditLineEditor* Self(EditLine* edit) {
    void* self = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<EditLineEditor*>(self);
  }
  static char* Prompt(EditLine* edit) { return Self(edit)->prompt_.data(); }
  static unsigned char OnTab(EditLine* edit, int) { return Self(edit)->Tab(); }

  unsigned char Tab() {
    const LineInfo* info = ::el_line(edit_);
    const std::string_view before(info->buffer, static_cast<size_t>(info->cursor - info->buffer));
    const Completion found = complete_(before);
    if (found.words.empty()) return CC_ERROR;
    const size_t typed = before.size() - found.word_start;
    std::string common = found.words.front();
    for (const std::string& word : found.words) {
      size_t same = 0;
      while (same < common.size() && same < word.size() && common[same] == word[same]) ++same;
      common.resize(same);
    }
    if (found.words.size() == 1) common += ' ';
    if (common.size() > typed) {
      ::el_deletestr(edit_, static_cast<int>(typed));
      ::el_insertstr(edit_, common.c_str());
      return CC_REFRESH;
    }
    List(found.words);
    return CC_REDISPLAY;
  }

  static void List(const std::vector<std::string>& words) {
    constexpr size_t kMostShown = 200;
    size_t widest = 0;
    for (const std::string& word : words) widest = std::max(widest, word.size());
    winsize window{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    const size_t columns =
        std::max<size_t>(1, (window.ws_col > 0 ? window.ws_col : 80) / (widest + 2));
    std::fputs("\n", stdout);
    for (size_t i = 0; i < words.size() && i < kMostShown; ++i) {
      const bool last = (i + 1) % columns == 0 || i + 1 == std::min(words.size(), kMostShown);
      std::fprintf(stdout, "%-*s%s", static_cast<int>(last ? 0 : widest + 2), words[i].c_str(),
                   last ? "\n" : "");
    }
    if (words.size() > kMostShown)
      std::fprintf(stdout, "... %zu more\n", words.size() - kMostShown);
  }

  std::string history_file_, prompt_;
  Complete complete_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  HistEvent event_{};
};

}  // namespace

std::unique_ptr<LineEditor> LineEditor::Open(const std::string& history_file, Complete complete) {
  return std::make_unique<EditLineEditor>(history_file, std::move(complete));
}

void SetInterruptAction(void (*action)()) {
  interrupt_action = action;
  struct sigaction handler {};
  handler.sa_handler = &OnInterrupt;
  handler.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &handler, nullptr);
}

}  // namespace cellar::cli
