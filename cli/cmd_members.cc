// xce cluster add, remove, replace, backup: changing the controllers, and saving what they hold.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/terminal.h"
#include "libxce/base/crc32c.h"

namespace xce::cli {
namespace {

constexpr int kBackupTries = 5;  // the primary may change meanwhile
constexpr int kChangeMs = 120000;

struct Controller {
  uint64_t id = 0;
  std::string host;  // empty: not given
  uint16_t port = 0;
};

absl::Status bad_controller(const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not ID=HOST:PORT, as in 4=node4.example:9990"));
}

// "4=host:port", "4=[v6]:port"; "4" where the address may be left out.
absl::StatusOr<Controller> parse_controller(const std::string& text, bool address_needed) {
  Controller out;
  const size_t equals = text.find('=');
  if (!absl::SimpleAtoi(text.substr(0, equals), &out.id) || out.id == 0)
    return bad_controller(text);
  if (equals == std::string::npos)
    return address_needed ? absl::StatusOr<Controller>(bad_controller(text)) : out;
  const std::string address = text.substr(equals + 1);
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port == 0 || port > 65535)
    return bad_controller(text);
  out.host = address.substr(0, colon);
  if (out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);
  out.port = static_cast<uint16_t>(port);
  return out;
}

// Where a controller is by the members that the cluster knows; empty: it is none.
absl::Status look_up(Session& session, Controller* controller) {
  xce_cluster_status_t* raw = nullptr;
  const auto rc = session.call("cannot ask where the controllers are",
                               [&](xcecli_ctx_t ctx) { return xcecli_clusterstatus(ctx, &raw); });
  if (!rc.ok()) return rc.status();
  for (size_t i = 0; i < raw->nnodes; ++i) {
    if (raw->nodes[i].id != controller->id) continue;
    controller->host = raw->nodes[i].host;
    controller->port = raw->nodes[i].port;
  }
  xce_free_cluster_status(raw);
  return absl::OkStatus();
}

absl::StatusOr<int> run_change(const Context& context, xce_member_action_t action,
                               const std::string& text) {
  auto controller = parse_controller(text, action == XCE_MEMBER_ADD);
  if (!controller.ok()) return controller.status();
  if (action == XCE_MEMBER_REMOVE && !controller->host.empty())
    return absl::InvalidArgumentError(
        "give the id of the controller to remove, without an address");
  Connection connection = context.connection;
  if (!connection.deadline_given) connection.deadline_ms = kChangeMs;
  auto session = Session::open(connection);
  if (!session.ok()) return session.status();
  if (action == XCE_MEMBER_REPLACE && controller->host.empty()) {
    const absl::Status found = look_up(**session, &*controller);
    if (!found.ok()) return found;
  }
  const char* const verb = action == XCE_MEMBER_ADD      ? "add"
                           : action == XCE_MEMBER_REMOVE ? "remove"
                                                         : "replace";
  const auto rc = (*session)->call(
      absl::StrCat("cannot ", verb, " controller ", controller->id), [&](xcecli_ctx_t ctx) {
        return xcecli_memberctrl(ctx, action, controller->id,
                                 controller->host.empty() ? nullptr : controller->host.c_str(),
                                 controller->port);
      });
  if (!rc.ok()) return rc.status();
  if (context.json) {
    print_json(Json{{"id", controller->id}, {"action", verb}});
  } else if (action == XCE_MEMBER_REMOVE) {
    print(absl::StrCat("Removed controller ", controller->id,
                       ": stop it, and take it out of "
                       "XCE_MASTERS and --peers when convenient\n"));
  } else {
    print(absl::StrCat(action == XCE_MEMBER_ADD ? "Added" : "Replaced", " controller ",
                       controller->id, ": it has caught up and counts as a voter\n"));
  }
  return kOk;
}

// ---- backup -------------------------------------------------------------------------------------

absl::Status file_error(const std::string& what, const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

// A file that is there whole, on disk, or not at all.
class NewFile {
 public:
  explicit NewFile(std::string path)
      : path_(std::move(path)), temporary_(absl::StrCat(path_, ".", ::getpid(), ".tmp")) {}
  ~NewFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(temporary_.c_str());
  }
  absl::Status begin() {
    if (fd_ < 0) fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0) return file_error("cannot create", temporary_);
    if (::ftruncate(fd_, 0) < 0 || ::lseek(fd_, 0, SEEK_SET) < 0)
      return file_error("cannot write", temporary_);
    return absl::OkStatus();
  }
  absl::Status write(const uint8_t* at, size_t left) {
    while (left > 0) {
      const ssize_t n = ::write(fd_, at, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return file_error("cannot write", temporary_);
      at += n;
      left -= static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }
  absl::Status finish() {
    if (::fsync(fd_) < 0) return file_error("cannot sync", temporary_);
    if (::rename(temporary_.c_str(), path_.c_str()) < 0) return file_error("cannot make", path_);
    ::close(fd_);
    fd_ = -1;
    const size_t slash = path_.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int dir = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
      (void)::fsync(dir);
      ::close(dir);
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::string temporary_;
  int fd_ = -1;
};

struct PartDeleter {
  void operator()(xce_backup_part_t* part) const { xce_free_backup_part(part); }
};
using Part = std::unique_ptr<xce_backup_part_t, PartDeleter>;

struct BackedUp {
  uint64_t index = 0, bytes = 0;
};

absl::StatusOr<Part> next_part(Session& session, uint64_t id, uint64_t offset) {
  xce_backup_part_t* raw = nullptr;
  const auto rc = session.call("cannot take a backup", [&](xcecli_ctx_t ctx) {
    return xcecli_backup(ctx, id, offset, &raw);
  });
  if (!rc.ok()) return rc.status();
  return Part(raw);
}

absl::StatusOr<BackedUp> copy(Session& session, NewFile* file) {
  absl::Status status = file->begin();
  if (!status.ok()) return status;
  const auto first = next_part(session, 0, 0);
  if (!first.ok()) return first.status();
  const BackedUp out = {(*first)->index, (*first)->total};
  uint32_t crc = 0;
  for (uint64_t at = 0; at < out.bytes;) {
    const auto part = next_part(session, (*first)->id, at);
    if (!part.ok()) return part.status();
    const xce_backup_part_t& piece = **part;
    crc = crc32c(crc, {reinterpret_cast<const char*>(piece.data), piece.len});
    if (piece.offset != at || piece.len == 0 || piece.len > out.bytes - at || piece.crc != crc)
      return absl::DataLossError("a piece of the backup came damaged: try again");
    status = file->write(piece.data, piece.len);
    if (!status.ok()) return status;
    at += piece.len;
  }
  return out;
}

absl::StatusOr<int> run_backup(const Context& context, const std::string& path, bool force) {
  struct stat there;
  if (!force && ::stat(path.c_str(), &there) == 0)
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is there already: give another name, or --force"));
  Connection connection = context.connection;
  if (!connection.deadline_given) connection.deadline_ms = kChangeMs;
  auto session = Session::open(connection);
  if (!session.ok()) return session.status();
  NewFile file(path);
  absl::StatusOr<BackedUp> done;
  for (int tries = 0; tries < kBackupTries; ++tries) {
    done = copy(**session, &file);
    // Aborted: the primary that had begun it is no longer asked.
    if (done.ok() || done.status().code() != absl::StatusCode::kAborted) break;
  }
  if (!done.ok()) return done.status();
  const absl::Status status = file.finish();
  if (!status.ok()) return status;
  if (context.json) {
    print_json(Json{{"file", path}, {"index", done->index}, {"bytes", done->bytes}});
  } else {
    print(absl::StrCat("Wrote ", path, ": ", done->bytes, " bytes, everything up to log entry ",
                       done->index, "; 'xce_controller --restore ", path, "' takes it back\n"));
  }
  return kOk;
}

}  // namespace

void register_members(Registry* registry, CLI::App* cluster) {
  const auto change = [&](const char* name, const char* help, const char* examples,
                          const char* operand, const char* about, xce_member_action_t action) {
    auto text = std::make_shared<std::string>();
    Command& command = registry->add(name, help, examples, cluster);
    command.app->add_option(operand, *text, about)->required();
    command.run = [text, action](const Context& c) { return run_change(c, action, *text); };
  };
  change("add", "take in a new controller, which has been started with --join",
         "  xce cluster add 4=node4.example:9990", "ID=HOST:PORT", "its id, and where it is found",
         XCE_MEMBER_ADD);
  change("remove", "take a controller out; the primary hands over first", "  xce cluster remove 4",
         "ID", "its id", XCE_MEMBER_REMOVE);
  change("replace",
         "take back a controller whose disk was lost and that was started with an empty one",
         "  xce cluster replace 2\n  xce cluster replace 2=newhost.example:9990", "ID[=HOST:PORT]",
         "its id, and where it is found (default: where it was)", XCE_MEMBER_REPLACE);
  auto path = std::make_shared<std::string>();
  auto force = std::make_shared<bool>(false);
  Command& backup =
      registry->add("backup", "save everything that the controllers hold to a file, while they run",
                    "  xce cluster backup /backup/xce-monday", cluster);
  backup.app->add_option("FILE", *path, "the file to write")->required();
  backup.app->add_flag("--force", *force, "overwrite FILE");
  backup.run = [path, force](const Context& c) { return run_backup(c, *path, *force); };
}

}  // namespace xce::cli
