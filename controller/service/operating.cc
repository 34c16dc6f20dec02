// Service: what operators ask: handing over, changing the controllers, backups (read piece by piece
// on the connection that asked for one).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/service/service.h"
#include "libxce/base/crc32c.h"
#include "spdlog/spdlog.h"
#include "xce/errnox.h"

namespace xce::service {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;  // read from a file in one turn of the loop
constexpr size_t kMaxBackups = 4;           // being read at once

}  // namespace

bool Service::may_operate(const Request& request) {
  if (request.who->uid == 0 || request.who->uid == options_.operator_uid) return true;
  answer_status(request, E_XCE_PERM,
                request.ask == Ask::kMemberCtrl
                    ? "only root and the user that runs the controller may change the controllers "
                      "or hand over the primary role"
                    : "only root and the user that runs the controller may take a backup: it "
                      "holds everybody's scripts");
  return false;
}

// The log is what remembers a change of the members, and no session: asked for again, it is found
// done, or under way.
void Service::change_members(const Request& request) {
  const auto& wish = std::get<MemberControl>(request.what);
  auto waiting = std::make_shared<std::optional<Request>>(request);
  changes_.push_back(waiting);
  replica_->change_members(wish, request.resent, request.birth,
                           [this, waiting](const MembersChanged& changed) {
                             if (!waiting->has_value()) return;
                             const Request request = *std::move(*waiting);
                             waiting->reset();
                             Answer lost = answer_to(request);
                             switch (changed.kind) {
                               case MembersChanged::kDone: answer(answer_to(request)); break;
                               case MembersChanged::kRefused:
                                 answer_status(request, changed.status, changed.message);
                                 break;
                               case MembersChanged::kMoved:
                                 fill_refusal(&lost);
                                 answer(std::move(lost));
                                 break;
                               case MembersChanged::kLost:
                                 // "May have been done" is what a cut connection says, and the
                                 // client comes again.
                                 outgoing_.emplace_back(CloseConn{request.conn, true, ""});
                             }
                           });
}

// Nobody waits beyond the time that they gave: what has begun goes on without them.
void Service::answer_late_changes(uint64_t now_ms) {
  constexpr uint64_t kAheadMs = 600;
  for (const auto& waiting : changes_) {
    if (!waiting->has_value() || (*waiting)->deadline_ms == 0 ||
        now_ms + kAheadMs < (*waiting)->deadline_ms)
      continue;
    const Request request = *std::move(*waiting);
    waiting->reset();
    Answer late = answer_to(request);
    late.status = E_XCE_BUSY;
    late.outcome = kUnknown;
    late.message = absl::StrCat(
        "controller ", std::get<MemberControl>(request.what).node_id,
        ": the change is under way and goes on by itself; 'xce cluster status' shows when it is "
        "done");
    answer(std::move(late));
  }
  changes_.erase(std::remove_if(changes_.begin(), changes_.end(),
                                [](const auto& waiting) { return !waiting->has_value(); }),
                 changes_.end());
}

void Service::transfer(const Request& request) {
  const auto& member = std::get<MemberControl>(request.what);
  std::string host;
  uint16_t port = 0;
  if (member.node_id != 0 && !replica_->address_of(member.node_id, &host, &port)) {
    answer_status(request, E_XCE_NOENT, absl::StrCat("no node ", member.node_id));
    return;
  }
  if (member.node_id == options_.node_id) {  // perhaps asked again after the connection was lost
    answer(answer_to(request));
    return;
  }
  spdlog::info("handing the primary role over, as asked by {}", request.who->user);
  replica_->transfer(member.node_id, [this, request](const std::string& failure) {
    if (failure.empty())
      answer(answer_to(request));
    else
      answer_status(request, E_XCE_BUSY, failure + "; see 'xce cluster status'");
  });
}

// ---- backups ------------------------------------------------------------------------------------

// After a barrier, so that everything acknowledged before the question is in it.
void Service::begin_backup(const Request& request) {
  backups_.erase(request.conn);
  if (backups_.size() >= kMaxBackups) {
    answer_status(request, E_XCE_BUSY,
                  absl::StrCat(kMaxBackups, " backups are being read already: try again later"));
    return;
  }
  spdlog::info("taking a backup, as asked by {}", request.who->user);
  const auto ready = [this, request](absl::StatusOr<std::unique_ptr<BackupSource>> source) {
    if (conns_.count(request.conn) == 0) return;  // it is gone meanwhile
    if (!source.ok()) {
      answer_status(request, E_XCE_BUSY,
                    absl::StrCat("no backup could be taken: ",
                                 std::string(source.status().message()), ". Try again"));
      return;
    }
    Backup& backup = backups_[request.conn];
    backup.id = next_backup_++;
    backup.source = *std::move(source);
    BackupBody body;
    body.id = backup.id;
    body.index = backup.source->index();
    body.total = backup.source->total();
    Answer reply = answer_to(request);
    reply.body = std::move(body);
    answer(std::move(reply));
  };
  replica_->barrier([this, request, ready](bool leader) {
    if (leader && serving()) {
      replica_->backup(ready);
      return;
    }
    Answer lost = answer_to(request);
    fill_refusal(&lost);
    answer(std::move(lost));
  });
}

void Service::read_backup(const Request& request) {
  const auto& position = std::get<BackupPosition>(request.what);
  const auto found = backups_.find(request.conn);
  if (found == backups_.end() || found->second.id != position.id ||
      found->second.offset != position.offset) {
    answer_status(request, E_XCE_STALE,
                  "this backup is no longer at hand here (the primary changed?): begin anew");
    return;
  }
  Backup& backup = found->second;
  auto data = backup.source->read(backup.offset, kPieceBytes);
  if (!data.ok()) {
    answer_status(request, E_XCE_BUSY, std::string(data.status().message()));
    backups_.erase(found);
    return;
  }
  backup.crc = crc32c(backup.crc, *data);
  BackupBody body;
  body.id = backup.id;
  body.index = backup.source->index();
  body.total = backup.source->total();
  body.offset = backup.offset;
  body.crc = backup.crc;
  backup.offset += data->size();
  body.data = *std::move(data);
  if (backup.offset >= body.total) backups_.erase(found);
  Answer reply = answer_to(request);
  reply.body = std::move(body);
  answer(std::move(reply));
}

}  // namespace xce::service
