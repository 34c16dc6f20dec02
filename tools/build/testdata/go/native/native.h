#ifndef XCE_TOOLS_BUILD_TESTDATA_GO_NATIVE_NATIVE_H_
#define XCE_TOOLS_BUILD_TESTDATA_GO_NATIVE_NATIVE_H_

#ifdef __cplusplus
extern "C" {
#endif

// Returns "native <n+2>"; the caller frees it.
char* native_word(int n);

#ifdef __cplusplus
}
#endif

#endif  // XCE_TOOLS_BUILD_TESTDATA_GO_NATIVE_NATIVE_H_
