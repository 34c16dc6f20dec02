#include "tools/build/testdata/pure/on_pure.h"

#include "tools/build/testdata/pure/leaf.h"

int OnPure() { return Leaf() + 1; }
