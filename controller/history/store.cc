#include "controller/history/store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "controller/history/record.h"

namespace xce::history {
namespace {

constexpr char kJobPrefix = 'j';
constexpr char kWrittenKey[] = "m/written";  // behind all rows: export_to() needs keys in order
constexpr size_t kMaxVisits = 100000;        // rows a page: some hundred milliseconds. Not less
                                             // than an array has tasks

// By id, the bytes in the order of the numbers.
std::string key_of(JobId id) {
  std::string key(1, kJobPrefix);
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(id >> shift));
  return key;
}

bool is_row(const rocksdb::Slice& key) { return key.size() == 9 && key[0] == kJobPrefix; }

JobId id_of(const rocksdb::Slice& key) {
  JobId id = 0;
  for (size_t i = 1; i < key.size(); ++i) id = id << 8 | static_cast<unsigned char>(key[i]);
  return id;
}

std::string_view view_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

rocksdb::Slice number(const Index& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

rocksdb::Options options_of() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // A torn end of its log is what a crash leaves; the rows in it come again from ours.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.write_buffer_size = size_t{8} << 20;
  options.max_write_buffer_number = 3;
  options.max_total_wal_size = uint64_t{32} << 20;
  options.max_background_jobs = 2;
  options.max_open_files = 256;
  options.compression = rocksdb::kLZ4Compression;
  options.bottommost_compression = rocksdb::kZSTD;
  options.allow_fallocate = false;  // an empty history should not take megabytes
  options.bytes_per_sync = uint64_t{1} << 20;
  options.wal_bytes_per_sync = uint64_t{1} << 20;
  // The log's writes, for which clients wait, come first on the disk.
  options.rate_limiter.reset(rocksdb::NewGenericRateLimiter(int64_t{48} << 20));
  options.keep_log_file_num = 2;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = size_t{16} << 10;
  table.block_cache = rocksdb::NewLRUCache(size_t{16} << 20);
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::ReadOptions scanning() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  return options;
}

}  // namespace

Store::Store(std::string directory, uint64_t max_jobs)
    : directory_(std::move(directory)), max_jobs_(max_jobs) {}

Store::~Store() {
  if (db_ != nullptr) (void)db_->Close();
}

absl::Status Store::failed(const char* what, const std::string& why) const {
  return absl::DataLossError(
      absl::StrCat("cannot ", what, " the history of ended jobs in ", directory_, ": ", why,
                   ". Free or repair the disk and start the controller anew. "
                   "If the files are damaged, move the data directory "
                   "aside and bring this node back with `xce cluster "
                   "replace`: the other controllers have the history."));
}

absl::StatusOr<std::unique_ptr<Store>> Store::open(const std::string& directory,
                                                   uint64_t max_jobs) {
  std::unique_ptr<Store> store(new Store(directory, max_jobs));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options_of(), directory, &db);
  if (!status.ok()) return store->failed("open", status.ToString());
  store->db_.reset(db);
  const absl::Status loaded = store->load();
  if (!loaded.ok()) return loaded;
  return store;
}

absl::Status Store::load() {
  std::string value;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), kWrittenKey, &value);
  if (!status.ok() && !status.IsNotFound()) return failed("read", status.ToString());
  if (status.ok()) {
    const Index written = departed_of(value);
    if (written == 0) return failed("read", "its own position makes no sense");
    written_ = written;
  }
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
  it->SeekForPrev(key_of(std::numeric_limits<JobId>::max()));
  if (it->Valid() && is_row(it->key())) highest_ = id_of(it->key());
  return it->status().ok() ? absl::OkStatus() : failed("read", it->status().ToString());
}

absl::Status Store::write(const std::vector<Row>& rows, Index upto) {
  rocksdb::WriteBatch batch;
  JobId highest = 0;
  for (const Row& row : rows) {
    batch.Put(key_of(row.job->id), encode_record(row.departed, *row.job));
    highest = std::max(highest, row.job->id);
  }
  const std::lock_guard<std::mutex> lock(write_mutex_);
  upto = std::max(upto, written_.load());
  batch.Put(kWrittenKey, number(upto));
  const rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), &batch);
  if (!status.ok()) return failed("write", status.ToString());
  written_ = upto;
  return drop_oldest(highest);
}

absl::Status Store::drop_oldest(JobId highest) {
  highest_ = std::max(highest_, highest);
  if (max_jobs_ == 0 || highest_ <= max_jobs_) return absl::OkStatus();
  const JobId upto = highest_ - max_jobs_;
  // Not for each row: a range of deletions costs every later read a little.
  if (upto < dropped_ + std::max<uint64_t>(1, max_jobs_ / 64)) return absl::OkStatus();
  const rocksdb::Status status = db_->DeleteRange(
      rocksdb::WriteOptions(), db_->DefaultColumnFamily(), key_of(0), key_of(upto + 1));
  if (!status.ok()) return failed("write", status.ToString());
  dropped_ = upto;
  return absl::OkStatus();
}

absl::Status Store::sync() {
  const rocksdb::Status status = db_->SyncWAL();
  return status.ok() ? absl::OkStatus() : failed("sync", status.ToString());
}

absl::StatusOr<Page> Store::find_ids(const Query& query) const {
  std::vector<JobId> ids = query.filter.ids;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const bool down = query.filter.descending;
  if (down) std::reverse(ids.begin(), ids.end());
  const JobId after = query.filter.after_id;
  Page page;
  size_t bytes = 0;
  std::string value;
  for (const JobId id : ids) {
    if (after != 0 && (down ? id >= after : id <= after)) continue;
    if (!page.jobs.empty() && (page.jobs.size() >= query.max_jobs || bytes >= query.max_bytes)) {
      page.next_after_id = page.jobs.back().id;
      return page;
    }
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key_of(id), &value);
    if (status.IsNotFound()) continue;
    if (!status.ok()) return failed("read", status.ToString());
    auto job = read_if(value, query.filter);
    if (!job.ok()) return failed("read", std::string(job.status().message()));
    if (!job->has_value() || !matches(**job, query.filter)) continue;
    bytes += bytes_of(**job);
    page.jobs.push_back(*std::move(*job));
  }
  return page;
}

absl::StatusOr<Page> Store::find(const Query& query) const {
  if (!query.filter.ids.empty()) return find_ids(query);
  const JobFilter& filter = query.filter;
  const bool down = filter.descending, array = filter.array_id != 0;
  // Ids of an array are consecutive, from its own on: what is of no array ends the walk.
  JobFilter quick = filter;
  if (array) {
    quick = JobFilter();
    quick.array_id = filter.array_id;
  }
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(scanning()));
  if (down) {
    const JobId all = std::numeric_limits<JobId>::max();
    const JobId from = filter.after_id == 0 ? all : filter.after_id - 1;
    it->SeekForPrev(key_of(std::min(from, array ? filter.array_id + kMaxVisits : all)));
  } else {
    it->Seek(key_of(std::max(filter.after_id + 1, filter.array_id)));
  }
  Page page;
  size_t bytes = 0, visits = 0;
  JobId last = filter.after_id;
  for (; it->Valid() && is_row(it->key()); down ? it->Prev() : it->Next()) {
    const JobId id = id_of(it->key());
    if (query.stop_at != 0 && (down ? id < query.stop_at : id > query.stop_at)) break;
    if (down && id < filter.array_id) break;
    if (visits++ == kMaxVisits || page.jobs.size() >= query.max_jobs || bytes >= query.max_bytes) {
      page.next_after_id = last;
      return page;
    }
    last = id;
    auto job = read_if(view_of(it->value()), quick);
    if (!job.ok()) return failed("read", std::string(job.status().message()));
    if (!job->has_value() && array && !down) break;
    if (!job->has_value() || !matches(**job, filter)) continue;
    bytes += bytes_of(**job);
    page.jobs.push_back(*std::move(*job));
  }
  if (!it->status().ok()) return failed("read", it->status().ToString());
  return page;
}

absl::Status Store::export_to(const std::string& path, Index after,
                              const std::atomic<bool>& stop) const {
  const rocksdb::Options options = options_of();
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  const auto checked = [&](const rocksdb::Status& status) {
    return status.ok() ? absl::OkStatus()
                       : absl::UnavailableError(
                             absl::StrCat("cannot write ", path, ": ", status.ToString()));
  };
  absl::Status status = checked(writer.Open(path));
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  rocksdb::ReadOptions reading = scanning();
  reading.snapshot = snapshot;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(reading));
  for (it->Seek(key_of(0)); status.ok() && it->Valid() && is_row(it->key()); it->Next()) {
    if (stop) status = absl::CancelledError("the export was given up");
    if (status.ok() && departed_of(view_of(it->value())) > after)
      status = checked(writer.Put(it->key(), it->value()));
  }
  if (status.ok() && !it->status().ok()) status = failed("read", it->status().ToString());
  std::string written;
  if (status.ok()) {
    const rocksdb::Status got = db_->Get(reading, kWrittenKey, &written);
    const Index nothing = 1;
    if (got.IsNotFound())
      written.assign(reinterpret_cast<const char*>(&nothing), sizeof nothing);
    else if (!got.ok())
      status = failed("read", got.ToString());
  }
  if (status.ok()) status = checked(writer.Put(kWrittenKey, written));
  if (status.ok()) status = checked(writer.Finish());
  it.reset();
  db_->ReleaseSnapshot(snapshot);
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

absl::Status Store::import_from(const std::string& path) {
  // What is here and the file's rows may only count together once both are safe.
  absl::Status status = sync();
  if (!status.ok()) return status;
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.verify_checksums_before_ingest = true;
  const std::lock_guard<std::mutex> lock(write_mutex_);
  const Index before = written_.load();
  const rocksdb::Status ingested = db_->IngestExternalFile({path}, options);
  if (ingested.IsCorruption())
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", ingested.ToString()));
  if (!ingested.ok()) return failed("add to", ingested.ToString());
  status = load();
  if (!status.ok() || written_ >= before) return status;
  // The sender was behind: its position must not count.
  written_ = before;
  rocksdb::WriteOptions durable;
  durable.sync = true;
  const rocksdb::Status put = db_->Put(durable, kWrittenKey, number(before));
  return put.ok() ? absl::OkStatus() : failed("write", put.ToString());
}

}  // namespace xce::history
