#include "cellar/session/server_files.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

namespace fs = std::filesystem;

//   in/        the directory that was given          out/       one beside it
//   in/file    "inside"                              out/file   "outside"
//   in/deep/   in/there -> in/deep   in/away -> out   in/link -> in/file   in/escape -> out/file
class ServerFilesTest : public testing::Test {
 protected:
  ServerFilesTest() {
    std::string folder = testing::TempDir() + "/server_files_XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    root_ = fs::canonical(folder).string();
    for (const char* name : {"in", "out", "in/deep", "inside"}) fs::create_directory(Path(name));
    std::ofstream(Path("in/file")) << "inside";
    std::ofstream(Path("out/file")) << "outside";
    std::ofstream(Path("inside/file")) << "outside";
    fs::create_directory_symlink(Path("in/deep"), Path("in/there"));
    fs::create_directory_symlink(Path("out"), Path("in/away"));
    fs::create_symlink(Path("in/file"), Path("in/link"));
    fs::create_symlink(Path("out/file"), Path("in/escape"));
    fs::create_symlink(Path("out/made"), Path("in/dangling"));
    files_ = *ServerFiles::Below({Path("in")});
  }
  ~ServerFilesTest() override { fs::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  std::string StateOf(const std::string& path, bool reading) const {
    return std::string(files_.Open(path, reading).status().sqlstate());
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string root_;
  ServerFiles files_;
};

TEST_F(ServerFilesTest, FilesBelowTheDirectoryAreReadAndWritten) {
  for (const char* name : {"in/file", "in/deep/../file", "in/./file", "in//file", "out/../in/file",
                           "in/away/../in/file"}) {
    Result<FilePtr> file = files_.Open(Path(name), true);
    ASSERT_TRUE(file.ok()) << name << ": " << file.status().ToString();
    std::array<char, 16> text{};
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file->get()), 6U) << name;
    EXPECT_STREQ(text.data(), "inside") << name;
  }
  for (const char* name : {"in/new", "in/file", "in/deep/new", "in/there/other"}) {
    Result<FilePtr> file = files_.Open(Path(name), false);
    ASSERT_TRUE(file.ok()) << name << ": " << file.status().ToString();
    EXPECT_GE(std::fputs("x", file->get()), 0);
    file->reset();
    EXPECT_EQ(Read(Path(name)), "x") << name;
    struct stat found {};
    ASSERT_EQ(::stat(Path(name).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 022U, 0U) << name;
  }
}

TEST_F(ServerFilesTest, NoNameLeadsOut) {
  for (const char* name :
       {"out/file", "in/../out/file", "in/away/file", "in/deep/../../out/file", "inside/file",
        "in/there/../../out/file", "in/nothing/../../out/file", "in", "in/.", "in/..", "in/deep/..",
        "in/deep/", "nothing/file", "in/../nothing/file", "in/link", "in/escape", "in/dangling"}) {
    EXPECT_EQ(StateOf(Path(name), true), "42501") << name;
    EXPECT_EQ(StateOf(Path(name), false), "42501") << name;
  }
  for (const char* name : {"/etc/passwd", "/", "/file", "//"}) {
    EXPECT_EQ(StateOf(name, true), "42501") << name;
    EXPECT_EQ(StateOf(name, false), "42501") << name;
  }
  EXPECT_EQ(Read(Path("out/file")), "outside");
  EXPECT_EQ(Read(Path("in/file")), "inside");
  EXPECT_FALSE(fs::exists(Path("out/made")));
}

TEST_F(ServerFilesTest, WhatIsNotThereIsNamedBelowTheDirectoryAlone) {
  EXPECT_EQ(StateOf(Path("in/nothing"), true), "58P01");
  EXPECT_EQ(StateOf(Path("in/nothing/file"), true), "58P01");
  EXPECT_EQ(StateOf(Path("out/nothing"), true), "42501");
  EXPECT_EQ(StateOf(Path("in/file/below"), true), "42809");
  EXPECT_EQ(StateOf("", true), "42602");
  EXPECT_EQ(StateOf("in/file", true), "42602");
}

TEST_F(ServerFilesTest, PipesAndDirectoriesAreNoFiles) {
  ASSERT_EQ(::mkfifo(Path("in/pipe").c_str(), 0600), 0);
  EXPECT_EQ(StateOf(Path("in/pipe"), true), "42809");
  EXPECT_EQ(StateOf(Path("in/pipe"), false), "42501");
  EXPECT_EQ(StateOf(Path("in/deep"), true), "42809");
  EXPECT_EQ(StateOf(Path("in/deep"), false), "42809");
}

TEST_F(ServerFilesTest, ADirectoryMayBeGivenByALink) {
  fs::create_directory_symlink(Path("in"), Path("alias"));
  const ServerFiles files = *ServerFiles::Below({Path("alias/")});
  EXPECT_TRUE(files.Open(Path("alias/file"), true).ok());
  EXPECT_TRUE(files.Open(Path("in/file"), true).ok());
  EXPECT_EQ(files.Open(Path("alias/nothing/file"), true).status().sqlstate(), "58P01");
}

TEST_F(ServerFilesTest, RefusesDirectoriesThatAreNone) {
  EXPECT_FALSE(ServerFiles::Below({Path("in"), Path("nothing")}).ok());
  EXPECT_FALSE(ServerFiles::Below({Path("in/file")}).ok());
}

TEST_F(ServerFilesTest, DirectoriesOfBackupsLieBelowToo) {
  const auto state = [&](const std::string& path) {
    return std::string(files_.Directory(path).status().sqlstate());
  };
  const std::pair<const char*, const char*> allowed[] = {
      {"in", "in"},
      {"in/", "in"},
      {"in/new", "in/new"},
      {"in/new//", "in/new"},
      {"in/there/new", "in/deep/new"},
      {"out/../in/new", "in/new"},
      {"in/deep", "in/deep"},
      {"in/away/../in/new", "in/new"},
      {"in/there", "in/deep"},
  };
  for (const auto& [name, real] : allowed) {
    const Result<std::string> path = files_.Directory(Path(name));
    ASSERT_TRUE(path.ok()) << name << ": " << path.status().ToString();
    EXPECT_EQ(*path, Path(real)) << name;
  }
  for (const char* name : {"out", "out/new", "in/..", "in/../new", "in/away", "in/away/new",
                           "inside", "inside/new", "in/deep/../../out/new", "out/nothing/new"}) {
    EXPECT_EQ(state(Path(name)), "42501") << name;
  }
  EXPECT_EQ(state("/"), "42501");
  EXPECT_EQ(state("/new"), "42501");
  EXPECT_EQ(state(Path("in/nothing/new")), "58P01");
  EXPECT_EQ(state("in/new"), "42602");
  EXPECT_EQ(state(""), "42602");
  EXPECT_EQ(*ServerFiles().Directory("/anywhere/"), "/anywhere/");
  EXPECT_EQ(ServerFiles().Directory("anywhere").status().sqlstate(), "42602");
  EXPECT_EQ(ServerFiles::Below({})->Directory(Path("in/new")).status().sqlstate(), "42501");
}

TEST_F(ServerFilesTest, CopyObeysThem) {
  TestSession session;
  session.Run("CREATE TABLE t (a text); INSERT INTO t VALUES ('row')");
  session.Run("COPY t TO '" + Path("out/anywhere") + "'");  // nobody has limited it
  EXPECT_EQ(Read(Path("out/anywhere")), "row\n");
  LimitServerFiles(session.database(), files_);
  session.Run("COPY t TO '" + Path("in/copy") + "'; COPY t FROM '" + Path("in/copy") + "'");
  EXPECT_EQ(session.Run("SELECT count(*) FROM t"), std::vector<std::string>{"2"});
  EXPECT_EQ(session.Try("COPY t TO '" + Path("out/copy") + "'").sqlstate(), "42501");
  EXPECT_EQ(session.Try("COPY t FROM '" + Path("out/file") + "'").sqlstate(), "42501");
  EXPECT_FALSE(fs::exists(Path("out/copy")));
  LimitServerFiles(session.database(), *ServerFiles::Below({}));
  const Status refused = session.Try("COPY t TO '" + Path("in/other") + "'");
  EXPECT_EQ(refused.sqlstate(), "42501");
  EXPECT_NE(refused.hint().find("--copy-directory"), std::string::npos);
}

}  // namespace
}  // namespace cellar::session
