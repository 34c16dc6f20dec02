#include "controller/restore.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/consensus/backup_file.h"
#include "controller/history/store.h"
#include "controller/service/state_codec.h"
#include "controller/state/rebirth.h"

namespace xce {
namespace {

std::string words_of(int64_t time_ms) {
  const std::time_t seconds = time_ms / 1000;
  std::tm utc;
  char text[64] = "?";
  if (gmtime_r(&seconds, &utc) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

absl::StatusOr<std::unique_ptr<state::State>> read_all(consensus::BackupReader* backup,
                                                       const std::string& file) {
  auto state = service::load_state([&](char* to, size_t n) { return backup->read(to, n); });
  const absl::Status damage = backup->finish();
  if (!damage.ok())
    return absl::Status(damage.code(),
                        absl::StrCat(std::string(damage.message()), ". Use another backup"));
  if (!state.ok())
    return absl::Status(state.status().code(),
                        absl::StrCat(file, ": ", std::string(state.status().message())));
  const std::vector<std::string> faults = (*state)->check_invariants();
  if (!faults.empty())
    return absl::DataLossError(absl::StrCat(file, " makes no sense: ", faults.front()));
  return state;
}

// Copies the history's part of a backup into a file of its own.
absl::Status extract_history(const std::string& file, const consensus::BackupHeader& header,
                             const std::string& to) {
  std::ifstream in(file, std::ios::binary);
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  in.seekg(static_cast<std::streamoff>(consensus::kBackupHeaderSize + header.snapshot_bytes));
  std::string buffer(size_t{1} << 20, '\0');
  for (uint64_t left = header.history_bytes; left > 0 && in && out;) {
    const auto n = static_cast<std::streamsize>(std::min<uint64_t>(left, buffer.size()));
    in.read(buffer.data(), n);
    out.write(buffer.data(), in.gcount());
    left -= static_cast<uint64_t>(in.gcount());
  }
  out.close();
  return in && out ? absl::OkStatus()
                   : absl::UnavailableError(absl::StrCat("cannot copy from ", file, " to ", to));
}

// The history of a data directory that begins with the entry at `index`.
absl::Status found_history(const std::string& file, const consensus::BackupHeader& header,
                           const std::string& directory, Index index) {
  auto store = history::Store::open(directory, 0);
  if (!store.ok()) return store.status();
  if (header.history_bytes > 0) {
    const std::string temporary = directory + ".restore.tmp";
    absl::Status status = extract_history(file, header, temporary);
    if (status.ok()) status = (*store)->import_from(temporary);
    (void)std::remove(temporary.c_str());
    if (!status.ok()) return status;
  }
  const absl::Status status = (*store)->write({}, index);
  return status.ok() ? (*store)->sync() : status;
}

}  // namespace

absl::StatusOr<std::string> restore(const Restore& what, const consensus::Options& options) {
  auto backup = consensus::BackupReader::open(nullptr, what.file);
  if (!backup.ok()) return backup.status();
  auto old = read_all(backup->get(), what.file);
  if (!old.ok()) return old.status();
  const std::string when = words_of((*backup)->header().time_ms);
  state::Rebirth how;
  how.index = (*backup)->header().index + state::kRebirthIndexes;
  how.hold_waiting = !what.keep_pending;
  how.when = when;
  auto reborn = state::reborn(**old, how);
  if (!reborn.ok()) return reborn.status();
  consensus::Founding founding;
  founding.data_dir = options.data_dir;
  founding.self = options.self;
  founding.host = options.advertise_host;
  founding.port = options.advertise_port;
  for (const consensus::Peer& peer : options.peers) {
    if (peer.id != options.self) continue;
    founding.host = peer.host;
    founding.port = peer.port;
  }
  founding.index = how.index;
  founding.term = (*backup)->term() + 1;
  founding.segment_bytes = options.segment_bytes;
  absl::Status kept;
  const absl::Status made = consensus::found_with_state(
      nullptr, founding, [&](const std::function<bool(std::string_view)>& write) {
        kept =
            found_history(what.file, (*backup)->header(), options.data_dir + "/history", how.index);
        return kept.ok() && service::save_state(**reborn, write);
      });
  if (!kept.ok())  // and made is not either
    return absl::Status(kept.code(),
                        absl::StrCat(what.file, ": the history of ended jobs cannot be restored: ",
                                     std::string(kept.message()), ". Remove ", options.data_dir,
                                     " and use another backup"));
  if (!made.ok()) return made;
  const auto stats = (*reborn)->stats();
  return absl::StrCat(
      "Restored the backup of ", when, " into ", options.data_dir, ": ", stats.pending,
      " jobs wait", what.keep_pending ? "" : " (all held: release those that have not run since)",
      ", ", stats.running,
      " were on a host. Start this controller without --restore; it is the "
      "only one of a new cluster. Start the others with --join and an empty directory, and add "
      "them with 'xce cluster add'.");
}

}  // namespace xce
