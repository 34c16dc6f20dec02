@0xe6b1c4d2f7a83915;
# What a snapshot of the replicated state holds: a row of StateRecords, totals first, end last. Written by
# controller/service/state_codec.cc. Fields are only ever added, never renumbered; a newer Totals.version is refused.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xce::wire");
using Client = import "client.capnp";

struct StateRecord {
  union {
    totals @0 :SavedTotals;
    queues @1 :List(Client.Queue);
    users @2 :List(Client.User);
    hosts @3 :List(SavedHost);
    outboxes @4 :List(SavedOutbox);
    bodies @5 :List(SavedBody);      # those that several jobs share, before the first job that names them
    jobs @6 :List(SavedJob);         # by rising id
    sessions @7 :List(SavedSession);
    keys @8 :List(SavedKey);
    orphans @9 :List(SavedOrphan);
    end @10 :UInt64;                 # number of jobs
    envs @11 :List(SavedEnv);        # those that several jobs share, before the first body or job that names them
    reservations @12 :List(Client.Reservation);
  }
}

struct SavedTotals {
  version @0 :UInt16;                # 2; 1: jobs that departed were gone, from 2 on they are in the history; 3: keys as hashes
  applied @1 :UInt64;
  nowMs @2 :Int64;
  nextJob @3 :UInt64;
  finished @4 :UInt64;
  sessionFloor @5 :UInt64;
  schedulerEpoch @6 :UInt64;
  schedulerClientHi @7 :UInt64;
  schedulerClientLo @8 :UInt64;
  schedulerName @9 :Text;
}

struct SavedHost { host @0 :Client.Host; shrunk @1 :Bool; holder @2 :UInt64; }
struct SavedOutbox { host @0 :Text; seq @1 :UInt64; }
struct SavedBody { id @0 :UInt64; script @1 :Data; args @2 :List(Text); env @3 :List(Text); envId @4 :UInt64; }
struct SavedEnv { id @0 :UInt64; env @1 :List(Text); }

struct SavedJob {
  job @0 :Client.Job;                # with its body if bodyId is 0
  bodyId @1 :UInt64;
  requeueWanted @2 :Bool;
  envId @3 :UInt64;                  # of an environment that others have as well; 0: it is with the body
}

struct SavedSession {
  clientHi @0 :UInt64;
  clientLo @1 :UInt64;
  birth @2 :UInt64;
  usedMs @3 :Int64;
  lowest @4 :UInt64;
  results @5 :List(SavedResult);
}

struct SavedResult {
  opSeq @0 :UInt64;
  status @1 :Int32;
  message @2 :Text;
  job @3 :UInt64;
  count @4 :UInt32;
  existing @5 :Bool;
  revision @6 :UInt64;
  epoch @7 :UInt64;
  active @8 :Bool;
  outboxApplied @9 :UInt64;
  itemStatus @10 :List(Int32);
  opHash @11 :UInt64;
}

struct SavedKey { name @0 :Data; job @1 :UInt64; count @2 :UInt32; kept @3 :UInt32; bodyHash @4 :UInt64; }
struct SavedOrphan { removedMs @0 :Int64; name @1 :Data; }
