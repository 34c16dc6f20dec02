#include "controller/consensus/core.h"

#include <raft.h>
#include <stdlib.h>
#include <string.h>

/* The library counts capacity in KiB in 16 bits; the disk has its own way to say that it is full
 * (log_writer.h). */
#define CAPACITY 65535

struct xce_core {
  struct raft raft;
  struct raft_update update;
  struct raft_entry* fed; /* entries handed to the library by the event under way */
  unsigned fed_cap;
  void* batch; /* what the library calls the entries' batch: ours to free once an update has carried
                  them */
  xce_core_entry* entries;
  unsigned entries_cap;
  xce_core_message* messages;
  unsigned messages_cap;
  bool installing; /* a snapshot: this one */
  struct raft_snapshot_metadata installed;
};

xce_core* xce_core_new(uint64_t self, const char* address, unsigned election_timeout_ms,
                       unsigned heartbeat_ms, unsigned max_inflight_entries, unsigned seed) {
  xce_core* core = calloc(1, sizeof *core);
  if (core == NULL) return NULL;
  if (raft_init(&core->raft, NULL, NULL, self, address) != 0) {
    free(core);
    return NULL;
  }
  /* Even when nobody listens, log lines would be formatted into a static buffer. */
  core->raft.tracer = NULL;
  raft_seed(&core->raft, seed);
  raft_set_pre_vote(&core->raft, true);
  raft_set_election_timeout(&core->raft, election_timeout_ms);
  raft_set_heartbeat_timeout(&core->raft, heartbeat_ms);
  raft_set_max_inflight_entries(&core->raft, max_inflight_entries);
  /* When it is over, the caller is told again to send a snapshot; the caller knows whether one is
   * on its way. */
  raft_set_install_snapshot_timeout(&core->raft, 4 * election_timeout_ms);
  return core;
}

static void release_update(xce_core* core) {
  raft_free(core->batch);
  core->batch = NULL;
}

void xce_core_free(xce_core* core) {
  if (core == NULL) return;
  release_update(core);
  if (core->installing) raft_configuration_close(&core->installed.configuration);
  raft_close(&core->raft, NULL);
  free(core->fed);
  free(core->entries);
  free(core->messages);
  free(core);
}

static bool grow(void** array, unsigned* cap, unsigned n, size_t size) {
  void* more;
  unsigned to = *cap == 0 ? 64 : *cap;
  if (n <= *cap) return true;
  while (to < n) to *= 2;
  more = realloc(*array, to * size);
  if (more == NULL) return false;
  *array = more;
  *cap = to;
  return true;
}

/* Copies entries into core->fed. The library frees the first entry's batch when it does not return
 * the entries in an update, so that batch must be memory of its own kind. */
static int feed_entries(xce_core* core, const xce_core_entry* entries, unsigned n, void** batch) {
  unsigned i;
  *batch = NULL;
  if (n == 0) return 0;
  if (!grow((void**)&core->fed, &core->fed_cap, n, sizeof *core->fed)) return RAFT_NOMEM;
  *batch = raft_malloc(8);
  if (*batch == NULL) return RAFT_NOMEM;
  for (i = 0; i < n; i++) {
    core->fed[i].term = entries[i].term;
    core->fed[i].type = (enum raft_entry_type)entries[i].type;
    core->fed[i].buf.base = (void*)entries[i].data;
    core->fed[i].buf.len = entries[i].len;
    core->fed[i].batch = *batch;
  }
  return 0;
}

static void translate_message(const struct raft_message* in, xce_core_message* out) {
  memset(out, 0, sizeof *out);
  out->type = (int)in->type;
  out->peer = in->server_id;
  switch (in->type) {
    case RAFT_APPEND_ENTRIES:
      out->version = in->append_entries.version;
      out->term = in->append_entries.term;
      out->prev_log_index = in->append_entries.prev_log_index;
      out->prev_log_term = in->append_entries.prev_log_term;
      out->leader_commit = in->append_entries.leader_commit;
      out->n_entries = in->append_entries.n_entries;
      break;
    case RAFT_APPEND_ENTRIES_RESULT:
      out->version = in->append_entries_result.version;
      out->term = in->append_entries_result.term;
      out->rejected = in->append_entries_result.rejected;
      /* Not set by the library when it rejects for an old term. */
      out->last_log_index = in->append_entries_result.last_log_index;
      out->features = in->append_entries_result.features;
      out->capacity = in->append_entries_result.capacity;
      break;
    case RAFT_REQUEST_VOTE:
      out->version = in->request_vote.version;
      out->term = in->request_vote.term;
      out->last_log_index = in->request_vote.last_log_index;
      out->last_log_term = in->request_vote.last_log_term;
      out->disrupt_leader = in->request_vote.disrupt_leader;
      out->pre_vote = in->request_vote.pre_vote;
      break;
    case RAFT_REQUEST_VOTE_RESULT:
      out->version = in->request_vote_result.version;
      out->term = in->request_vote_result.term;
      out->vote_granted = in->request_vote_result.vote_granted;
      out->pre_vote = in->request_vote_result.pre_vote;
      out->features = in->request_vote_result.features;
      out->capacity = in->request_vote_result.capacity;
      break;
    case RAFT_INSTALL_SNAPSHOT:
      out->version = in->install_snapshot.version;
      out->term = in->install_snapshot.term;
      out->last_log_index = in->install_snapshot.last_index;
      out->last_log_term = in->install_snapshot.last_term;
      break;
    case RAFT_TIMEOUT_NOW:
      out->version = in->timeout_now.version;
      out->term = in->timeout_now.term;
      out->last_log_index = in->timeout_now.last_log_index;
      out->last_log_term = in->timeout_now.last_log_term;
      break;
    default: break;
  }
}

/* Runs one event and translates its update. `batch` is the batch of the entries in the event, or
 * NULL. */
static int step(xce_core* core, uint64_t now_ms, struct raft_event* event, void* batch,
                xce_core_update* out) {
  struct raft_update* update = &core->update;
  unsigned i;
  int rv;
  memset(out, 0, sizeof *out);
  memset(update, 0, sizeof *update);
  event->time = now_ms;
  event->capacity = CAPACITY;
  rv = raft_step(&core->raft, event, update);
  if (rv != 0) {
    /* A refused submission leaves the entries with us; every other event has freed them. */
    if (event->type == RAFT_SUBMIT) raft_free(batch);
    return rv;
  }
  if (update->flags & (RAFT_UPDATE_CURRENT_TERM)) out->flags |= XCE_UPDATE_TERM;
  if (update->flags & (RAFT_UPDATE_VOTED_FOR)) out->flags |= XCE_UPDATE_VOTE;
  if (update->flags & (RAFT_UPDATE_STATE)) out->flags |= XCE_UPDATE_STATE;
  if (update->flags & (RAFT_UPDATE_COMMIT_INDEX)) out->flags |= XCE_UPDATE_COMMIT;
  if (update->flags & (RAFT_UPDATE_SNAPSHOT)) {
    core->installing = true;
    core->installed = update->snapshot.metadata;
    out->flags |= XCE_UPDATE_SNAPSHOT;
  }
  if (update->flags & (RAFT_UPDATE_ENTRIES)) {
    if (!grow((void**)&core->entries, &core->entries_cap, update->entries.n, sizeof *core->entries))
      return RAFT_NOMEM;
    for (i = 0; i < update->entries.n; i++) {
      const struct raft_entry* entry = &update->entries.batch[i];
      core->entries[i].term = entry->term;
      core->entries[i].type = (unsigned)entry->type;
      core->entries[i].data = entry->buf.base;
      core->entries[i].len = entry->buf.len;
    }
    core->batch = update->entries.batch[0].batch;
    out->flags |= XCE_UPDATE_ENTRIES;
    out->entries_index = update->entries.index;
    out->entries = core->entries;
    out->n_entries = update->entries.n;
  }
  if (update->flags & (RAFT_UPDATE_MESSAGES)) {
    if (!grow((void**)&core->messages, &core->messages_cap, update->messages.n,
              sizeof *core->messages))
      return RAFT_NOMEM;
    for (i = 0; i < update->messages.n; i++)
      translate_message(&update->messages.batch[i], &core->messages[i]);
    out->messages = core->messages;
    out->n_messages = update->messages.n;
  }
  return 0;
}

int xce_core_start(xce_core* core, uint64_t now_ms, uint64_t term, uint64_t vote,
                   const xce_core_entry* entries, unsigned n_entries, xce_core_update* update) {
  return xce_core_start_from(core, now_ms, term, vote, NULL, 1, entries, n_entries, update);
}

static int decode_snapshot(const xce_core_snapshot* from, struct raft_snapshot_metadata* to) {
  struct raft_buffer buf;
  if (from->index == 0 || from->index > UINT64_MAX / 4 || from->term == 0 ||
      from->conf_index == 0 || from->conf_index > from->index ||
      !xce_core_valid_configuration(from->conf, from->conf_len))
    return XCE_CORE_BAD_MESSAGE;
  to->index = from->index;
  to->term = from->term;
  to->configuration_index = from->conf_index;
  buf.base = (void*)from->conf;
  buf.len = from->conf_len;
  return raft_configuration_decode(&buf, &to->configuration);
}

int xce_core_start_from(xce_core* core, uint64_t now_ms, uint64_t term, uint64_t vote,
                        const xce_core_snapshot* snapshot, uint64_t start_index,
                        const xce_core_entry* entries, unsigned n_entries,
                        xce_core_update* update) {
  struct raft_event event;
  struct raft_entry* loaded = NULL;
  struct raft_snapshot_metadata metadata;
  unsigned i;
  int rv;
  if (term == 0) return XCE_CORE_BAD_MESSAGE;
  if (snapshot == NULL) {
    if (start_index != 1 || (n_entries > 0 && entries[0].type != XCE_ENTRY_CHANGE))
      return XCE_CORE_BAD_MESSAGE;
  } else {
    if (snapshot->term > term || start_index == 0 || start_index > snapshot->index + 1)
      return XCE_CORE_BAD_MESSAGE;
    if (start_index + n_entries < snapshot->index + 1) return XCE_CORE_BAD_MESSAGE;
    if (start_index <= snapshot->index &&
        entries[snapshot->index - start_index].term != snapshot->term)
      return XCE_CORE_BAD_MESSAGE;
    rv = decode_snapshot(snapshot, &metadata);
    if (rv != 0) return rv;
  }
  /* On failure the library frees both the array and its batches, each batch once. */
  if (n_entries > 0) {
    loaded = raft_malloc(n_entries * sizeof *loaded);
    if (loaded == NULL) return RAFT_NOMEM;
    loaded[0].batch = raft_malloc(8);
  }
  for (i = 0; i < n_entries; i++) {
    if (entries[i].type == XCE_ENTRY_CHANGE &&
        !xce_core_valid_configuration(entries[i].data, entries[i].len)) {
      if (snapshot != NULL) raft_configuration_close(&metadata.configuration);
      raft_free(loaded[0].batch);
      raft_free(loaded);
      return XCE_CORE_BAD_MESSAGE;
    }
    loaded[i].term = entries[i].term;
    loaded[i].type = (enum raft_entry_type)entries[i].type;
    loaded[i].buf.base = (void*)entries[i].data;
    loaded[i].buf.len = entries[i].len;
    loaded[i].batch = loaded[0].batch;
  }
  memset(&event, 0, sizeof event);
  event.type = RAFT_START;
  event.start.term = term;
  event.start.voted_for = vote;
  event.start.metadata = snapshot == NULL ? NULL : &metadata;
  event.start.start_index = start_index;
  event.start.entries = loaded;
  event.start.n_entries = n_entries;
  release_update(core);
  rv = step(core, now_ms, &event, NULL, update);
  if (rv == 0 && loaded != NULL) {
    raft_free(loaded[0].batch);
    raft_free(loaded);
  }
  return rv;
}

int xce_core_snapshot_taken(xce_core* core, uint64_t now_ms, const xce_core_snapshot* snapshot,
                            unsigned trailing, xce_core_update* update) {
  const struct raft* r = &core->raft;
  struct raft_event event;
  int rv;
  memset(update, 0, sizeof *update);
  if (core->installing || snapshot->index <= r->trail.snapshot.index ||
      snapshot->index <= r->trail.offset || snapshot->index > r->commit_index ||
      snapshot->index > raft_last_index(&core->raft))
    return XCE_CORE_IGNORED;
  memset(&event, 0, sizeof event);
  event.type = RAFT_SNAPSHOT;
  event.snapshot.trailing = trailing;
  rv = decode_snapshot(snapshot, &event.snapshot.metadata);
  if (rv != 0) return rv;
  release_update(core);
  return step(core, now_ms, &event, NULL, update);
}

int xce_core_snapshot_installed(xce_core* core, uint64_t now_ms, xce_core_update* update) {
  struct raft_event event;
  memset(update, 0, sizeof *update);
  if (!core->installing || core->raft.state != RAFT_FOLLOWER) return XCE_CORE_IGNORED;
  core->installing = false;
  memset(&event, 0, sizeof event);
  event.type = RAFT_PERSISTED_SNAPSHOT;
  event.persisted_snapshot.metadata =
      core->installed; /* the library takes the configuration back */
  event.persisted_snapshot.last = true;
  release_update(core);
  return step(core, now_ms, &event, NULL, update);
}

static int check_append(const xce_core* core, const xce_core_message* m) {
  uint64_t term = m->prev_log_term;
  unsigned i;
  /* Two leaders in one term cannot be: somebody uses our peer's name, or ours. */
  if (core->raft.state == RAFT_LEADER && m->term == core->raft.current_term)
    return XCE_CORE_IGNORED;
  if ((m->prev_log_index == 0) != (m->prev_log_term == 0)) return XCE_CORE_BAD_MESSAGE;
  if (m->prev_log_term > m->term) return XCE_CORE_BAD_MESSAGE;
  if (m->prev_log_index > UINT64_MAX / 4 || m->leader_commit > UINT64_MAX / 4)
    return XCE_CORE_BAD_MESSAGE;
  if (m->n_entries > 0 && m->entries == NULL) return XCE_CORE_BAD_MESSAGE;
  for (i = 0; i < m->n_entries; i++) {
    const xce_core_entry* e = &m->entries[i];
    if (e->term == 0 || e->term < term || e->term > m->term) return XCE_CORE_BAD_MESSAGE;
    if (e->len == 0 || e->len % 8 != 0) return XCE_CORE_BAD_MESSAGE;
    if (e->type < XCE_ENTRY_COMMAND || e->type > XCE_ENTRY_CHANGE) return XCE_CORE_BAD_MESSAGE;
    /* The library takes a change for the first new entry of its batch. */
    if (e->type == XCE_ENTRY_CHANGE && (i != 0 || !xce_core_valid_configuration(e->data, e->len)))
      return XCE_CORE_BAD_MESSAGE;
    term = e->term;
  }
  return XCE_CORE_OK;
}

static int check_vote_result(const xce_core* core, const xce_core_message* m) {
  const struct raft* r = &core->raft;
  /* A candidate reads its union's fields before it looks at the state, and a late answer to a
   * pre-vote carries a term that nobody has: it would depose a live leader. */
  if (r->state != RAFT_CANDIDATE)
    return !m->pre_vote && !m->vote_granted && m->term > r->current_term ? XCE_CORE_OK
                                                                         : XCE_CORE_IGNORED;
  if (m->pre_vote != r->candidate_state.in_pre_vote) {
    /* A plain refusal with a higher term must still be heard, but only outside pre-vote does the
     * core heed it. */
    if (m->pre_vote || m->vote_granted || m->term <= r->current_term) return XCE_CORE_IGNORED;
  }
  if (m->vote_granted && m->term > r->current_term + (m->pre_vote ? 1 : 0))
    return XCE_CORE_BAD_MESSAGE;
  return XCE_CORE_OK;
}

int xce_core_receive(xce_core* core, uint64_t now_ms, const xce_core_message* m,
                     xce_core_update* update) {
  struct raft_event event;
  struct raft_message message;
  void* batch = NULL;
  int rv = XCE_CORE_OK;
  char address[32];

  memset(update, 0, sizeof *update);
  if (m->peer == 0 || m->peer == core->raft.id || m->term == 0 || m->term > UINT64_MAX / 4)
    return XCE_CORE_BAD_MESSAGE;
  memset(&message, 0, sizeof message);
  message.type = (enum raft_message_type)m->type;
  message.server_id = m->peer;
  /* The library only copies and compares it. */
  memset(address, 0, sizeof address);
  {
    uint64_t id = m->peer;
    int at = (int)sizeof address - 2;
    do {
      address[at--] = (char)('0' + id % 10);
      id /= 10;
    } while (id != 0);
    message.server_address = &address[at + 1];
  }
  release_update(core);
  switch (m->type) {
    case XCE_MSG_APPEND_ENTRIES:
      rv = check_append(core, m);
      if (rv != XCE_CORE_OK) return rv;
      rv = feed_entries(core, m->entries, m->n_entries, &batch);
      if (rv != 0) return rv;
      message.append_entries.version = m->version;
      message.append_entries.term = m->term;
      message.append_entries.prev_log_index = m->prev_log_index;
      message.append_entries.prev_log_term = m->prev_log_term;
      message.append_entries.leader_commit = m->leader_commit;
      message.append_entries.entries = m->n_entries == 0 ? NULL : core->fed;
      message.append_entries.n_entries = m->n_entries;
      break;
    case XCE_MSG_APPEND_ENTRIES_RESULT:
      message.append_entries_result.version = m->version;
      message.append_entries_result.term = m->term;
      if (m->term == core->raft.current_term) {
        /* Of another term only the term counts: the library leaves the rest unset when it refuses
         * an old leader. */
        if (m->rejected > UINT64_MAX / 4 || m->last_log_index > UINT64_MAX / 4)
          return XCE_CORE_BAD_MESSAGE;
        message.append_entries_result.rejected = m->rejected;
        message.append_entries_result.last_log_index = m->last_log_index;
      }
      message.append_entries_result.features = m->features;
      message.append_entries_result.capacity = m->capacity;
      break;
    case XCE_MSG_REQUEST_VOTE:
      message.request_vote.version = m->version;
      message.request_vote.term = m->term;
      message.request_vote.candidate_id = m->peer;
      message.request_vote.last_log_index = m->last_log_index;
      message.request_vote.last_log_term = m->last_log_term;
      message.request_vote.disrupt_leader = m->disrupt_leader;
      message.request_vote.pre_vote = m->pre_vote;
      break;
    case XCE_MSG_REQUEST_VOTE_RESULT:
      rv = check_vote_result(core, m);
      if (rv != XCE_CORE_OK) return rv;
      message.request_vote_result.version = 2; /* has the pre_vote field */
      message.request_vote_result.term = m->term;
      message.request_vote_result.vote_granted = m->vote_granted;
      message.request_vote_result.pre_vote = m->pre_vote;
      message.request_vote_result.features = m->features;
      message.request_vote_result.capacity = m->capacity;
      break;
    case XCE_MSG_INSTALL_SNAPSHOT: {
      struct raft_snapshot_metadata metadata;
      /* The library would leak a second one. */
      if (core->installing || core->raft.snapshot.installing) return XCE_CORE_IGNORED;
      if (core->raft.state == RAFT_LEADER && m->term == core->raft.current_term)
        return XCE_CORE_IGNORED;
      if (m->snapshot == NULL || m->snapshot->term > m->term) return XCE_CORE_BAD_MESSAGE;
      rv = decode_snapshot(m->snapshot, &metadata);
      if (rv != 0) return rv;
      message.install_snapshot.version = m->version;
      message.install_snapshot.term = m->term;
      message.install_snapshot.last_index = metadata.index;
      message.install_snapshot.last_term = metadata.term;
      message.install_snapshot.conf = metadata.configuration;
      message.install_snapshot.conf_index = metadata.configuration_index;
      break;
    }
    case XCE_MSG_TIMEOUT_NOW:
      message.timeout_now.version = m->version;
      message.timeout_now.term = m->term;
      message.timeout_now.last_log_index = m->last_log_index;
      message.timeout_now.last_log_term = m->last_log_term;
      break;
    default: return XCE_CORE_BAD_MESSAGE;
  }
  memset(&event, 0, sizeof event);
  event.type = RAFT_RECEIVE;
  event.receive.message = &message;
  return step(core, now_ms, &event, batch, update);
}

int xce_core_timeout(xce_core* core, uint64_t now_ms, xce_core_update* update) {
  struct raft_event event;
  struct raft* r = &core->raft;
  memset(update, 0, sizeof *update);
  /* A candidate that was told to disrupt would go on disrupting, term after term, without asking
   * first. One try is what it was told; every later round asks politely, as does a round after a
   * lost plain vote. */
  if (r->state == RAFT_CANDIDATE && now_ms >= raft_timeout(r)) {
    r->candidate_state.disrupt_leader = false;
    r->candidate_state.in_pre_vote = true;
  }
  release_update(core);
  memset(&event, 0, sizeof event);
  event.type = RAFT_TIMEOUT;
  return step(core, now_ms, &event, NULL, update);
}

int xce_core_persisted(xce_core* core, uint64_t now_ms, uint64_t index, xce_core_update* update) {
  struct raft_event event;
  memset(update, 0, sizeof *update);
  if (index <= core->raft.last_stored || index > raft_last_index(&core->raft))
    return XCE_CORE_IGNORED;
  if (core->raft.state != RAFT_LEADER && core->raft.state != RAFT_FOLLOWER) return XCE_CORE_IGNORED;
  release_update(core);
  memset(&event, 0, sizeof event);
  event.type = RAFT_PERSISTED_ENTRIES;
  event.persisted_entries.index = index;
  return step(core, now_ms, &event, NULL, update);
}

/* Whether a configuration of as many servers as now has the same ones in the same order. */
static bool keeps_places(const xce_core* core, const void* data, size_t len) {
  struct raft_configuration conf;
  struct raft_buffer buf;
  unsigned i;
  bool kept = true;
  buf.base = (void*)data;
  buf.len = len;
  if (raft_configuration_decode(&buf, &conf) != 0) return false;
  if (conf.n == core->raft.configuration.n)
    for (i = 0; i < conf.n; i++)
      if (conf.servers[i].id != core->raft.configuration.servers[i].id) kept = false;
  raft_configuration_close(&conf);
  return kept;
}

int xce_core_submit(xce_core* core, uint64_t now_ms, const xce_core_entry* entries,
                    unsigned n_entries, xce_core_update* update) {
  struct raft_event event;
  void* batch;
  unsigned i;
  int rv;
  memset(update, 0, sizeof *update);
  if (core->raft.state != RAFT_LEADER || raft_transferee(&core->raft) != 0 || n_entries == 0)
    return XCE_CORE_IGNORED;
  for (i = 0; i < n_entries; i++) {
    if (entries[i].len == 0 || entries[i].len % 8 != 0 ||
        entries[i].term != core->raft.current_term)
      return XCE_CORE_BAD_MESSAGE;
    if (entries[i].type != XCE_ENTRY_CHANGE) continue;
    /* One change at a time; and the library puts what it knows of the members' progress by their
     * place, so who stays must keep it. */
    if (n_entries != 1 || core->raft.configuration_uncommitted_index != 0) return XCE_CORE_IGNORED;
    if (!xce_core_valid_configuration(entries[i].data, entries[i].len) ||
        !keeps_places(core, entries[i].data, entries[i].len))
      return XCE_CORE_BAD_MESSAGE;
  }
  release_update(core);
  rv = feed_entries(core, entries, n_entries, &batch);
  if (rv != 0) return rv;
  memset(&event, 0, sizeof event);
  event.type = RAFT_SUBMIT;
  event.submit.entries = core->fed;
  event.submit.n = n_entries;
  return step(core, now_ms, &event, batch, update);
}

int xce_core_configuration(xce_core* core, uint64_t now_ms, uint64_t index, const void* data,
                           size_t len, xce_core_update* update) {
  struct raft_event event;
  struct raft_buffer buf;
  int rv;
  memset(update, 0, sizeof *update);
  if (index == 0 || !xce_core_valid_configuration(data, len)) return XCE_CORE_BAD_MESSAGE;
  memset(&event, 0, sizeof event);
  event.type = RAFT_CONFIGURATION;
  event.configuration.index = index;
  buf.base = (void*)data;
  buf.len = len;
  rv = raft_configuration_decode(&buf, &event.configuration.conf);
  if (rv != 0) return rv;
  release_update(core);
  return step(core, now_ms, &event, NULL, update);
}

int xce_core_transfer(xce_core* core, uint64_t now_ms, uint64_t to, xce_core_update* update) {
  struct raft_event event;
  memset(update, 0, sizeof *update);
  release_update(core);
  memset(&event, 0, sizeof event);
  event.type = RAFT_TRANSFER;
  event.transfer.server_id = to;
  return step(core, now_ms, &event, NULL, update);
}

uint64_t xce_core_term(const xce_core* core) { return raft_current_term(&core->raft); }
uint64_t xce_core_vote(const xce_core* core) { return raft_voted_for(&core->raft); }
int xce_core_state(const xce_core* core) { return core->raft.state; }
uint64_t xce_core_commit(const xce_core* core) { return raft_commit_index(&core->raft); }
uint64_t xce_core_stored(const xce_core* core) { return core->raft.last_stored; }
uint64_t xce_core_timeout_at(const xce_core* core) { return raft_timeout(&core->raft); }
uint64_t xce_core_transferee(const xce_core* core) { return raft_transferee(&core->raft); }

uint64_t xce_core_leader(const xce_core* core) {
  switch (core->raft.state) {
    case RAFT_LEADER: return core->raft.id;
    case RAFT_FOLLOWER: return core->raft.follower_state.current_leader.id;
    default: return 0;
  }
}

uint64_t xce_core_match(const xce_core* core, uint64_t peer) {
  raft_index index = 0;
  if (raft_match_index(&core->raft, peer, &index) != 0) return 0;
  return index;
}

bool xce_core_is_voter(const xce_core* core, uint64_t id) {
  unsigned i;
  for (i = 0; i < core->raft.configuration.n; i++)
    if (core->raft.configuration.servers[i].id == id)
      return core->raft.configuration.servers[i].role == RAFT_VOTER;
  return false;
}

unsigned xce_core_voters(const xce_core* core) {
  unsigned i;
  unsigned n = 0;
  for (i = 0; i < core->raft.configuration.n; i++)
    if (core->raft.configuration.servers[i].role == RAFT_VOTER) n++;
  return n;
}

const char* xce_core_strerror(int code) {
  if (code == XCE_CORE_IGNORED) return "event does not fit the present state";
  if (code == XCE_CORE_BAD_MESSAGE) return "message breaks the protocol";
  return raft_strerror(code);
}
