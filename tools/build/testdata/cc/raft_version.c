#include "tools/build/testdata/cc/raft_version.h"

#include <raft.h>

int raft_version(void) { return raft_version_number() / 100 % 100; }
