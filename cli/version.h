// The version that the tools tell.
#ifndef XCE_CLI_VERSION_H_
#define XCE_CLI_VERSION_H_

namespace xce::cli {
inline constexpr char kVersion[] = "0.1.0";
}  // namespace xce::cli

#endif  // XCE_CLI_VERSION_H_
