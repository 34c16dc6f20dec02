// raft.h does not compile as C++; a C file stands between.
#ifndef XCE_TOOLS_BUILD_TESTDATA_CC_RAFT_VERSION_H_
#define XCE_TOOLS_BUILD_TESTDATA_CC_RAFT_VERSION_H_

#ifdef __cplusplus
extern "C" {
#endif

// The minor version of the linked libraft, e.g. 22 for 0.22.1.
int raft_version(void);

#ifdef __cplusplus
}
#endif

#endif  // XCE_TOOLS_BUILD_TESTDATA_CC_RAFT_VERSION_H_
