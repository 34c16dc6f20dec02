@0xb312981b2552a250;

using Cxx = import "/capnp/c++.capnp";
using import "word.capnp".Word;
$Cxx.namespace("xce::testdata");

struct Sentence {
  words @0 :List(Word);
}
