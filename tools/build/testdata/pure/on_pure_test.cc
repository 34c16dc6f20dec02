#include "tools/build/testdata/pure/on_pure.h"

#include <gtest/gtest.h>

TEST(PureLibrary, MayDependOnAnother) { EXPECT_EQ(OnPure(), 2); }
