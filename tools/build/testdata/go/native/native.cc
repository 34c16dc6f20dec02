#include "tools/build/testdata/go/native/native.h"

#include <string.h>

#include "absl/strings/str_cat.h"
#include "tools/build/testdata/pure/on_pure.h"

char* native_word(int n) { return strdup(absl::StrCat("native ", n + OnPure()).c_str()); }
