#include "controller/sim/disk.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace xce::sim {
namespace {

constexpr size_t kSector = 512;

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void Disk::process_ended() {
  open_.clear();
  locked_.clear();
  left_ = 0;
  bytes_left_ = -1;
  died_ = frozen_ = tears_ = false;
  syncs_ = true;
}

void Disk::lose_power(Random* random) {
  process_ended();
  // Of each directory the oldest changes are kept.
  std::map<std::string, uint64_t> kept, seen;
  for (const NameChange& change : changes_) ++seen[parent_of(change.path)];
  for (const auto& [directory, n] : seen)
    kept[directory] = random->one_in(2) ? (random->one_in(2) ? 0 : n) : random->below(n + 1);
  for (const NameChange& change : changes_) {
    uint64_t& left = kept[parent_of(change.path)];
    if (left == 0) continue;
    --left;
    apply(change, &durable_names_);
  }
  changes_.clear();
  // What lay in a directory that is gone, is gone.
  for (auto it = durable_names_.begin(); it != durable_names_.end();) {
    const std::string parent = parent_of(it->first);
    const bool there = parent == "/" || durable_names_.count(parent) > 0;
    it = there ? std::next(it) : durable_names_.erase(it);
  }
  for (auto& [path, file] : durable_names_) {
    if (file->unsynced.empty() && file->data.size() == file->durable.size()) continue;
    const uint64_t mode = random->below(4);  // 0: nothing of it was written, 1: all, else some
    if (mode == 1 || (mode > 1 && random->one_in(2)))
      file->durable.resize(file->data.size());  // the size was
    for (const uint64_t sector : std::set<uint64_t>(file->unsynced))
      if (mode == 1 || (mode > 1 && random->one_in(2))) sync_sector(file.get(), sector);
    file->unsynced.clear();
    file->data = file->durable;
  }
  names_ = durable_names_;
}

bool Disk::takes_effect() {
  if (frozen_ || died_) return false;
  if (left_ == 0 || --left_ > 0) return true;
  died_ = true;
  syncs_ = !tears_;
  return true;
}

int Disk::open(const std::string& path, int flags, int) {
  auto found = names_.find(path);
  if (found == names_.end()) {
    if ((flags & O_CREAT) == 0) return -ENOENT;
    if (names_.count(parent_of(path)) == 0) return -ENOENT;
    if (write_error_ != 0) return -write_error_;
    if (takes_effect()) {
      change_name({NameChange::kMake, path, "", std::make_shared<File>()});
      found = names_.find(path);
    }
  } else if ((flags & O_TRUNC) != 0 && takes_effect()) {
    File& file = *found->second;
    for (uint64_t s = 0; s * kSector < file.data.size(); ++s) file.unsynced.insert(s);
    file.data.clear();
  }
  const int fd = next_fd_++;
  const auto file = found == names_.end() ? std::make_shared<File>() : found->second;
  open_[fd] = {file, path, (flags & O_DSYNC) != 0};
  return fd;
}

int64_t Disk::pwrite(int fd, const void* bytes, size_t n, uint64_t offset) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return -EBADF;
  if (write_error_ != 0) return -write_error_;
  if (!takes_effect()) return static_cast<int64_t>(n);
  size_t written = n;
  if (bytes_left_ >= 0) {
    written = std::min(n, static_cast<size_t>(bytes_left_));
    bytes_left_ -= static_cast<int64_t>(written);
  }
  if (written == 0) return static_cast<int64_t>(n);
  File& file = *found->second.file;
  if (file.data.size() < offset + written) file.data.resize(offset + written);
  std::memcpy(file.data.data() + offset, bytes, written);
  for (uint64_t s = offset / kSector; s * kSector < offset + written; ++s) {
    if (found->second.dsync && syncs_)
      sync_sector(&file, s);
    else
      file.unsynced.insert(s);
  }
  return static_cast<int64_t>(n);
}

int64_t Disk::pread(int fd, void* bytes, size_t n, uint64_t offset) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return -EBADF;
  const std::string& data = found->second.file->data;
  if (offset >= data.size()) return 0;
  n = std::min(n, data.size() - offset);
  std::memcpy(bytes, data.data() + offset, n);
  return static_cast<int64_t>(n);
}

int64_t Disk::size(int fd) {
  const auto found = open_.find(fd);
  return found == open_.end() ? -EBADF : static_cast<int64_t>(found->second.file->data.size());
}

int Disk::fsync(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return -EBADF;
  if (write_error_ != 0) return -write_error_;
  if (!takes_effect() || !syncs_) return 0;
  if (!found->second.file->directory) {
    sync(found->second.file.get());
    return 0;
  }
  std::vector<NameChange> rest;
  for (NameChange& change : changes_) {
    if (parent_of(change.path) == found->second.path)
      apply(change, &durable_names_);
    else
      rest.push_back(std::move(change));
  }
  changes_ = std::move(rest);
  return 0;
}

int Disk::close(int fd) { return open_.erase(fd) > 0 ? 0 : -EBADF; }

int Disk::rename(const std::string& from, const std::string& to) {
  if (names_.count(from) == 0) return died_ || frozen_ ? 0 : -ENOENT;
  if (write_error_ != 0) return -write_error_;
  if (takes_effect()) change_name({NameChange::kRename, from, to, nullptr});
  return 0;
}

int Disk::unlink(const std::string& path) {
  if (names_.count(path) == 0) return -ENOENT;
  if (takes_effect()) change_name({NameChange::kRemove, path, "", nullptr});
  return 0;
}

int Disk::mkdir(const std::string& path, int) {
  if (names_.count(path) > 0) return 0;
  if (write_error_ != 0) return -write_error_;
  if (!takes_effect()) return 0;
  auto directory = std::make_shared<File>();
  directory->directory = true;
  if (parent_of(path) == "/") durable_names_[path] = directory;  // made when the disk was set up
  change_name({NameChange::kMake, path, "", std::move(directory)});
  return 0;
}

int Disk::lock(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return -EBADF;
  return locked_.insert(found->second.path).second ? 0 : -EWOULDBLOCK;
}

int Disk::list(const std::string& path, std::vector<std::string>* names) {
  if (path != "/" && names_.count(path) == 0) return -ENOENT;
  const std::string prefix = path == "/" ? path : path + "/";
  for (auto it = names_.lower_bound(prefix); it != names_.end(); ++it) {
    if (it->first.compare(0, prefix.size(), prefix) != 0) break;
    const std::string name = it->first.substr(prefix.size());
    if (name.find('/') == std::string::npos) names->push_back(name);
  }
  return 0;
}

void Disk::change_name(NameChange change) {
  apply(change, &names_);
  changes_.push_back(std::move(change));
}

void Disk::apply(const NameChange& change, Names* names) {
  switch (change.kind) {
    case NameChange::kMake: (*names)[change.path] = change.file; break;
    case NameChange::kRemove: names->erase(change.path); break;
    case NameChange::kRename: {
      const auto found = names->find(change.path);
      if (found == names->end()) break;
      (*names)[change.to] = found->second;
      names->erase(change.path);
    }
  }
}

void Disk::sync_sector(File* file, uint64_t sector) {
  const size_t at = sector * kSector;
  if (at >= file->data.size()) return;
  const size_t n = std::min(kSector, file->data.size() - at);
  if (file->durable.size() < at + n) file->durable.resize(at + n);
  std::memcpy(file->durable.data() + at, file->data.data() + at, n);
  file->unsynced.erase(sector);
}

void Disk::sync(File* file) {
  for (const uint64_t sector : std::set<uint64_t>(file->unsynced)) sync_sector(file, sector);
  file->unsynced.clear();
  file->durable.resize(file->data.size());
}

}  // namespace xce::sim
