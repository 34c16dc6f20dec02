/* The Raft core (cowsql/raft's sans-I/O raft_step) behind a plain C interface: raft.h does not
 * compile as C++. PURE apart from memory: events and the time go in, an update comes out; no disk,
 * no network, no clock.
 *
 * The library that Debian ships is built without assertions, so everything that it takes for
 * granted is checked here first: an event whose precondition does not hold changes nothing and
 * returns XCE_CORE_IGNORED or XCE_CORE_BAD_MESSAGE. One core belongs to one thread. */
#ifndef XCE_CONTROLLER_CONSENSUS_CORE_H_
#define XCE_CONTROLLER_CONSENSUS_CORE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return values: 0 is success, > 0 an error code of the library (see xce_core_strerror). */
enum {
  XCE_CORE_OK = 0,
  XCE_CORE_IGNORED = -1, /* the event does not fit the present state; nothing changed, no update */
  XCE_CORE_BAD_MESSAGE = -2 /* a peer's message breaks the protocol; nothing changed, no update */
};

/* Entry types; the values are on disk and on the wire. */
enum { XCE_ENTRY_COMMAND = 1, XCE_ENTRY_BARRIER = 2, XCE_ENTRY_CHANGE = 3 };

enum {
  XCE_MSG_APPEND_ENTRIES = 1,
  XCE_MSG_APPEND_ENTRIES_RESULT = 2,
  XCE_MSG_REQUEST_VOTE = 3,
  XCE_MSG_REQUEST_VOTE_RESULT = 4,
  XCE_MSG_INSTALL_SNAPSHOT = 5,
  XCE_MSG_TIMEOUT_NOW = 6
};

enum {
  XCE_STATE_UNAVAILABLE = 0,
  XCE_STATE_FOLLOWER = 1,
  XCE_STATE_CANDIDATE = 2,
  XCE_STATE_LEADER = 3
};

/* Flags of an update. */
enum {
  XCE_UPDATE_TERM = 1 << 0,
  XCE_UPDATE_VOTE = 1 << 1,
  XCE_UPDATE_ENTRIES = 1 << 2,
  XCE_UPDATE_STATE = 1 << 3,
  XCE_UPDATE_COMMIT = 1 << 4,
  /* A received INSTALL_SNAPSHOT is taken: replace log and state by it, then call
     xce_core_snapshot_installed(). */
  XCE_UPDATE_SNAPSHOT = 1 << 5
};

/* A log entry. len must be a multiple of 8. */
typedef struct {
  uint64_t term;
  unsigned type;
  const void* data;
  size_t len;
} xce_core_entry;

/* What a snapshot stands for: the log up to index, and the configuration as of then. */
typedef struct {
  uint64_t index;
  uint64_t term; /* of the entry at index */
  uint64_t conf_index;
  const void* conf;
  size_t conf_len;
} xce_core_snapshot;

/* One message to or from a peer; which fields count depends on type. */
typedef struct {
  int type;
  uint64_t peer; /* sender of a received message, receiver of an outgoing one */
  uint64_t term;
  uint64_t last_log_index; /* REQUEST_VOTE, TIMEOUT_NOW, APPEND_ENTRIES_RESULT; outgoing
                              INSTALL_SNAPSHOT */
  uint64_t last_log_term;  /* REQUEST_VOTE, TIMEOUT_NOW; outgoing INSTALL_SNAPSHOT */
  uint64_t prev_log_index; /* APPEND_ENTRIES */
  uint64_t prev_log_term;
  uint64_t leader_commit;
  uint64_t rejected; /* APPEND_ENTRIES_RESULT: the index that was rejected, or 0 */
  unsigned n_entries;
  const xce_core_entry*
      entries; /* received APPEND_ENTRIES only; outgoing: prev_log_index + 1 .. + n_entries */
  const xce_core_snapshot*
      snapshot; /* received INSTALL_SNAPSHOT only: its data are with the caller, on disk */
  uint16_t features;
  uint16_t capacity;
  uint8_t version;
  bool disrupt_leader;
  bool pre_vote;
  bool vote_granted;
} xce_core_message;

/* What the caller must do after an event. Pointers stay valid until the next call that takes an
 * update. */
typedef struct {
  unsigned flags;
  uint64_t entries_index; /* index of the first entry to persist; entries from here on replace what
                             was there */
  const xce_core_entry* entries;
  unsigned n_entries;
  const xce_core_message* messages;
  unsigned n_messages;
} xce_core_update;

typedef struct xce_core xce_core;

/* Makes a core, or returns NULL when memory is out. Times are milliseconds. */
xce_core* xce_core_new(uint64_t self, const char* address, unsigned election_timeout_ms,
                       unsigned heartbeat_ms, unsigned max_inflight_entries, unsigned seed);
void xce_core_free(xce_core* core);

/* Feeds what was loaded from disk. The first entry must be index 1 and a configuration; without any
 * entry the node waits for a leader to send it some. */
int xce_core_start(xce_core* core, uint64_t now_ms, uint64_t term, uint64_t vote,
                   const xce_core_entry* entries, unsigned n_entries, xce_core_update* update);
/* The same with a snapshot (may be NULL) and entries from start_index on, which is at most the
 * snapshot's index + 1. There are none, or they reach the snapshot's index at least and agree with
 * its term. */
int xce_core_start_from(xce_core* core, uint64_t now_ms, uint64_t term, uint64_t vote,
                        const xce_core_snapshot* snapshot, uint64_t start_index,
                        const xce_core_entry* entries, unsigned n_entries, xce_core_update* update);
/* Feeds that a snapshot of what is applied is on disk. Entries up to snapshot->index - trailing are
 * forgotten, unless the log does not have that one. */
int xce_core_snapshot_taken(xce_core* core, uint64_t now_ms, const xce_core_snapshot* snapshot,
                            unsigned trailing, xce_core_update* update);
/* Feeds that the snapshot of the last XCE_UPDATE_SNAPSHOT has taken the place of log and state. */
int xce_core_snapshot_installed(xce_core* core, uint64_t now_ms, xce_core_update* update);
/* Feeds a message. In a received APPEND_ENTRIES a configuration entry may only come first: split
 * before. */
int xce_core_receive(xce_core* core, uint64_t now_ms, const xce_core_message* message,
                     xce_core_update* update);
/* Feeds the passing of time; to be called at xce_core_timeout_at(). */
int xce_core_timeout(xce_core* core, uint64_t now_ms, xce_core_update* update);
/* Feeds that every entry up to index, as it is in the log now, is on disk. */
int xce_core_persisted(xce_core* core, uint64_t now_ms, uint64_t index, xce_core_update* update);
/* Proposes entries of the current term, all as one batch. A change of configuration goes alone, is
 * ignored while another one is not applied, and adds or removes servers or changes their roles, not
 * all at once: those that stay keep their order. */
int xce_core_submit(xce_core* core, uint64_t now_ms, const xce_core_entry* entries,
                    unsigned n_entries, xce_core_update* update);
/* Feeds that the configuration entry at index has been applied. */
int xce_core_configuration(xce_core* core, uint64_t now_ms, uint64_t index, const void* data,
                           size_t len, xce_core_update* update);
/* Starts to hand leadership to a voter. */
int xce_core_transfer(xce_core* core, uint64_t now_ms, uint64_t to, xce_core_update* update);

uint64_t xce_core_term(const xce_core* core);
uint64_t xce_core_vote(const xce_core* core);
int xce_core_state(const xce_core* core);
/* The leader that the core believes in, or 0. It outlives a change of term: compare terms before
 * trusting it. */
uint64_t xce_core_leader(const xce_core* core);
uint64_t xce_core_commit(const xce_core* core);
uint64_t xce_core_stored(const xce_core* core);
uint64_t xce_core_timeout_at(const xce_core* core);
uint64_t xce_core_transferee(const xce_core* core);
/* Match index of a peer while leader, else 0. */
uint64_t xce_core_match(const xce_core* core, uint64_t peer);
/* Whether id is a voter in the current configuration. */
bool xce_core_is_voter(const xce_core* core, uint64_t id);
unsigned xce_core_voters(const xce_core* core);

/* Encodes a configuration of n voters. Returns malloc'ed memory (free() it) and its length, or
 * NULL. */
void* xce_core_encode_configuration(const uint64_t* ids, const char* const* addresses, unsigned n,
                                    size_t* len);
/* Whether data is a well formed configuration: the library's own decoder does not check bounds. */
bool xce_core_valid_configuration(const void* data, size_t len);

const char* xce_core_strerror(int code);

#ifdef __cplusplus
}
#endif

#endif /* XCE_CONTROLLER_CONSENSUS_CORE_H_ */
