@0xa93fc509624c72d9;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xce::testdata");

struct Word {
  text @0 :Text;
}
