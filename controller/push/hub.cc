#include "controller/push/hub.h"

#include <algorithm>

namespace xce::push {
namespace {

int64_t bytes_of(const Event& event, bool full) {
  const Job* job = std::get_if<Job>(&event);
  if (job == nullptr) return 256;
  int64_t n = 512 + 96 * static_cast<int64_t>(job->allocs.size()) + job->reason.size() +
              job->spec.comment.size() + 4 * static_cast<int64_t>(job->spec.array.size());
  if (full && job->spec.body) {
    n += job->spec.body->script.size();
    for (const std::string& arg : job->spec.body->args) n += arg.size() + 16;
    for (const std::string& env : job->spec.body->env) n += env.size() + 16;
  }
  return n;
}

// What an event takes in the ring. A job's body is the state's, too, as long as that has the job.
int64_t memory_of(const Event& event) {
  int64_t n = static_cast<int64_t>(sizeof(Event)) + 96;
  const Job* job = std::get_if<Job>(&event);
  if (job == nullptr) return n;
  for (const std::string* text :
       {&job->spec.name, &job->spec.user, &job->spec.queue, &job->spec.work_dir,
        &job->spec.stdin_path.get(), &job->spec.stdout_path.get(), &job->spec.stderr_path.get(),
        &job->spec.submit_key, &job->spec.comment.get(), &job->reason, &job->stdout_file.get(),
        &job->stderr_file.get()})
    if (text->capacity() > 15) n += static_cast<int64_t>(text->capacity()) + 16;
  return n + static_cast<int64_t>(job->allocs.size() * sizeof(Alloc));
}

}  // namespace

void Hub::restored(Index applied) {
  first_position_ += ring_.size();
  ring_.clear();
  ring_memory_ = 0;
  applied_ = gone_ = applied;
  holders_.clear();
}

void Hub::holding(const Job& job) {
  std::vector<std::string>& hosts = holders_[job.id];
  for (const Alloc& alloc : job.allocs) hosts.push_back(alloc.host);
}

std::vector<std::string> Hub::audience(const Event& event) {
  if (const auto* job = std::get_if<Job>(&event)) {
    std::vector<std::string> hosts;
    for (const Alloc& alloc : job->allocs) hosts.push_back(alloc.host);
    std::vector<std::string> all = hosts;
    const auto held = holders_.find(job->id);
    if (held != holders_.end())
      for (const std::string& host : held->second)
        if (std::find(all.begin(), all.end(), host) == all.end()) all.push_back(host);
    if (has_hosts(job->state))
      holders_[job->id] = std::move(hosts);
    else if (held != holders_.end())
      holders_.erase(held);
    return all;
  }
  if (const auto* host = std::get_if<Host>(&event)) return {host->attrs.name};
  if (const auto* removed = std::get_if<HostRemoved>(&event)) return {removed->name};
  if (const auto* outbox = std::get_if<OutboxApplied>(&event)) return {outbox->host};
  if (const auto* removed = std::get_if<JobRemoved>(&event)) holders_.erase(removed->id);
  return {};
}

void Hub::to_workers(Index index, const EventPtr& event, const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    const ConnId conn = worker_of(host);
    if (conn == 0) continue;
    Consumer& consumer = consumers_.at(conn);
    consumer.own.push_back({index, event, bytes_of(*event, true)});
  }
}

void Hub::to_watchers(Index index, const EventPtr& event) {
  if (watchers_.empty()) return;
  const auto* job = std::get_if<Job>(event.get());
  const auto* removed = std::get_if<JobRemoved>(event.get());
  const auto it = watchers_.find(job != nullptr ? job->id : removed != nullptr ? removed->id : 0);
  if (it == watchers_.end()) return;
  for (ConnId conn : it->second)
    consumers_.at(conn).own.push_back({index, event, bytes_of(*event, false)});
}

void Hub::add(Index index, std::vector<Event> events) {
  applied_ = index;
  for (Event& event : events) {
    const auto shared = std::make_shared<const Event>(std::move(event));
    to_workers(index, shared, audience(*shared));
    to_watchers(index, shared);
    if (std::holds_alternative<OutboxApplied>(*shared)) continue;  // concerns its worker alone
    ring_.push_back({index, shared, bytes_of(*shared, false), memory_of(*shared)});
    ring_memory_ += ring_.back().memory;
  }
  if (consumers_.empty())
    trim_ring(options_.ring_events, options_.ring_bytes, end_position());
  else
    trim_ring(options_.lag_events, options_.lag_bytes, end_position());
}

void Hub::trim_ring(size_t events, int64_t bytes, uint64_t until) {
  while ((ring_.size() > events || ring_memory_ > bytes) && first_position_ < until) {
    gone_ = ring_.front().index;
    ring_memory_ -= ring_.front().memory;
    ring_.pop_front();
    ++first_position_;
  }
}

Hub::Consumer& Hub::put(ConnId conn, Role role, std::string_view host, std::shared_ptr<Flow> flow) {
  remove(conn);
  Consumer& consumer = consumers_[conn];
  consumer.role = role;
  consumer.host = std::string(host);
  consumer.flow = std::move(flow);
  consumer.next = end_position();
  if (consumer.worker()) workers_[consumer.host] = conn;
  return consumer;
}

void Hub::join(ConnId conn, Role role, std::string_view host, std::shared_ptr<Flow> flow) {
  put(conn, role, host, std::move(flow));
}

void Hub::subscribe(ConnId conn, Role role, std::string_view host, std::shared_ptr<Flow> flow,
                    Index from) {
  Consumer& consumer = put(conn, role, host, std::move(flow));
  if (from == 0 || from == applied_) return;
  // A worker's events of the past are not kept for it alone: it takes the state anew.
  if (from < gone_ || from > applied_ || consumer.worker()) {
    consumer.own.push_back({applied_, Gap{applied_}, 16});
    return;
  }
  const auto after =
      std::upper_bound(ring_.begin(), ring_.end(), from,
                       [](Index index, const Entry& entry) { return index < entry.index; });
  consumer.next = first_position_ + static_cast<uint64_t>(after - ring_.begin());
}

void Hub::watch(ConnId conn, Role role, std::shared_ptr<Flow> flow, std::vector<JobId> jobs) {
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  Consumer& consumer = put(conn, role, "", std::move(flow));
  for (JobId id : jobs) watchers_[id].push_back(conn);
  consumer.jobs = std::move(jobs);
}

void Hub::remove(ConnId conn) {
  const auto it = consumers_.find(conn);
  if (it == consumers_.end()) return;
  for (JobId id : it->second.jobs) {
    const auto watched = watchers_.find(id);
    std::vector<ConnId>& conns = watched->second;
    conns.erase(std::find(conns.begin(), conns.end(), conn));
    if (conns.empty()) watchers_.erase(watched);
  }
  const auto worker = workers_.find(it->second.host);
  if (worker != workers_.end() && worker->second == conn) workers_.erase(worker);
  consumers_.erase(it);
}

void Hub::send(ConnId conn, Item item) {
  const auto it = consumers_.find(conn);
  if (it != consumers_.end()) it->second.own.push_back({applied_, std::move(item), 128});
}

void Hub::to_schedulers(const Item& item) {
  for (auto& [conn, consumer] : consumers_)
    if (consumer.role == Role::kScheduler) consumer.own.push_back({applied_, item, 128});
}

ConnId Hub::worker_of(std::string_view host) const {
  const auto it = workers_.find(host);
  return it == workers_.end() ? 0 : it->second;
}

void Hub::end(ConnId conn) {
  if (!subscribed(conn)) return;
  remove(conn);
  finished_.push_back(conn);
}

void Hub::end_all() {
  for (const auto& [conn, consumer] : consumers_) finished_.push_back(conn);
  consumers_.clear();
  workers_.clear();
  watchers_.clear();
}

bool Hub::may_send(Consumer* consumer) {
  Flow& flow = *consumer->flow;
  if (flow.bytes.load() < options_.high_water_bytes) return true;
  flow.blocked.store(true);
  if (flow.bytes.load() >= options_.high_water_bytes) return false;
  flow.blocked.store(false);  // it drained in between
  return true;
}

std::pair<std::shared_ptr<const Batch>, uint64_t> Hub::batch_at(uint64_t position) {
  const auto known = batches_.find(position);
  if (known != batches_.end()) return known->second;
  auto batch = std::make_shared<Batch>();
  size_t i = position - first_position_;
  while (i < ring_.size() && batch->items.size() < options_.batch_events) {
    const Entry& entry = ring_[i];
    if (!batch->items.empty() && batch->estimated_bytes + entry.bytes > options_.batch_bytes) break;
    batch->items.emplace_back(entry.event);
    batch->estimated_bytes += entry.bytes;
    ++i;
  }
  // A batch that ends inside an entry's events must not promise the whole entry.
  batch->revision = i == ring_.size()                      ? applied_
                    : ring_[i].index == ring_[i - 1].index ? ring_[i].index - 1
                                                           : ring_[i - 1].index;
  const auto made =
      std::make_pair(std::shared_ptr<const Batch>(std::move(batch)), first_position_ + i);
  batches_[position] = made;
  return made;
}

bool Hub::flush_ring(ConnId conn, Consumer* consumer, Out* out) {
  if (consumer->next < first_position_) return false;
  // Others' deliveries are shared, but only later ones than what this consumer got before: its
  // events stay in order.
  size_t earliest = consumer->sent_own ? out->deliveries.size() : 0;
  consumer->sent_own = false;
  while (consumer->next < end_position() && may_send(consumer)) {
    const auto [batch, next] = batch_at(consumer->next);
    const auto known = delivery_of_.find(consumer->next);
    size_t place = out->deliveries.size();
    if (known != delivery_of_.end() && known->second >= earliest)
      place = known->second;
    else
      out->deliveries.push_back({batch, {}});
    delivery_of_[consumer->next] = place;
    out->deliveries[place].to.push_back(conn);
    earliest = place + 1;
    consumer->flow->bytes += batch->estimated_bytes;
    consumer->next = next;
  }
  return true;
}

bool Hub::flush_own(ConnId conn, Consumer* consumer, Out* out) {
  if (consumer->own.size() > options_.lag_events) return false;
  while (!consumer->own.empty() && may_send(consumer)) {
    auto batch = std::make_shared<Batch>();
    batch->full = consumer->worker();
    Index last = 0;
    while (!consumer->own.empty() && batch->items.size() < options_.batch_events) {
      Own& own = consumer->own.front();
      if (!batch->items.empty() && batch->estimated_bytes + own.bytes > options_.batch_bytes) break;
      last = own.index;
      batch->items.push_back(std::move(own.item));
      batch->estimated_bytes += own.bytes;
      consumer->own.pop_front();
    }
    if (consumer->narrow())
      batch->revision = consumer->own.empty()                 ? applied_
                        : consumer->own.front().index == last ? last - 1
                                                              : last;
    else  // promises nothing about events that are still to come from the ring
      batch->revision =
          consumer->next > first_position_ && consumer->next - first_position_ <= ring_.size()
              ? ring_[consumer->next - first_position_ - 1].index
              : gone_;
    if (!consumer->narrow() && consumer->next == end_position()) batch->revision = applied_;
    consumer->flow->bytes += batch->estimated_bytes;
    out->deliveries.push_back({std::move(batch), {conn}});
    consumer->sent_own = true;
  }
  return true;
}

Hub::Out Hub::flush() {
  Out out;
  batches_.clear();
  delivery_of_.clear();
  std::vector<ConnId> slow;
  for (auto& [conn, consumer] : consumers_) {
    const bool kept = flush_own(conn, &consumer, &out) &&
                      (consumer.narrow() || flush_ring(conn, &consumer, &out));
    if (!kept) slow.push_back(conn);
  }
  for (ConnId conn : slow) remove(conn);
  if (ring_.size() > options_.ring_events || ring_memory_ > options_.ring_bytes) {
    uint64_t needed = end_position();
    for (const auto& [conn, consumer] : consumers_)
      if (!consumer.narrow()) needed = std::min(needed, consumer.next);
    trim_ring(options_.ring_events, options_.ring_bytes, needed);
  }
  out.too_slow = std::move(slow);
  if (!finished_.empty()) {
    auto batch = std::make_shared<Batch>();
    batch->revision = applied_;
    batch->items.emplace_back(Gap{applied_});
    out.deliveries.push_back({std::move(batch), finished_});
    out.finished = std::move(finished_);
    finished_.clear();
  }
  return out;
}

}  // namespace xce::push
