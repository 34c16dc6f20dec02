// xce_capnp_library: schemas of one package that import each other compile, link and are included
// from the root.
#include <capnp/message.h>
#include <gtest/gtest.h>

#include "tools/build/testdata/capnp/sentence.capnp.h"

TEST(CapnpLibrary, SchemaThatImportsAnotherRoundTrips) {
  capnp::MallocMessageBuilder message;
  auto words = message.initRoot<xce::testdata::Sentence>().initWords(1);
  words[0].setText("hello");
  EXPECT_STREQ(message.getRoot<xce::testdata::Sentence>().asReader().getWords()[0].getText().cStr(),
               "hello");
}
