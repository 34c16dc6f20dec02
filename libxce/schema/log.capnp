@0xb61a7e02c94d83f5;
# What a command entry of the replicated log holds. Written by a primary, applied by every controller.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xce::wire");
using Client = import "client.capnp";

struct Entry {
  version @0 :UInt16;        # 1
  timeMs @1 :Int64;          # the primary's wall clock when it proposed; apply clamps it to never go back
  commands @2 :List(Command);
}

struct Command {
  clientIdHi @0 :UInt64;
  clientIdLo @1 :UInt64;
  opSeq @2 :UInt64;
  lowestUnanswered @3 :UInt64;
  birth @4 :UInt64;
  role @5 :Client.Role;      # identity of the connection, not a claim of the request
  user @6 :Text;
  uid @7 :UInt32;
  name @8 :Text;
  resent @9 :Bool;
  op @10 :Client.Op;
  opHash @11 :UInt64;
  groups @12 :List(Text);    # of the user, where a queue's access depends on them; looked up by the primary
}
