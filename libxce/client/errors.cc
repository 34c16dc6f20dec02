// Words for status values. No state.
#include <cerrno>
#include <cstring>

#include "xce/client.h"

namespace {

struct Entry {
  int status;
  const char* name;
  const char* words;
  bool retriable;  // asking again later may help
};

constexpr Entry kEntries[] = {
    {E_XCE_REDIRECT, "E_XCE_REDIRECT", "another controller is the primary", true},
    {E_XCE_NOMASTER, "E_XCE_NOMASTER", "no primary controller is known", true},
    {E_XCE_STANDBY, "E_XCE_STANDBY", "this controller is a standby", true},
    {E_XCE_NOT_READY, "E_XCE_NOT_READY",
     "the cluster is not ready: no controller serves as primary now", true},
    {E_XCE_OUTCOME_UNKNOWN, "E_XCE_OUTCOME_UNKNOWN",
     "the request may or may not have been applied: ask before doing it again", false},
    {E_XCE_DUP_JOB, "E_XCE_DUP_JOB", "a job with this submit key exists already", false},
    {E_XCE_AUTH, "E_XCE_AUTH", "who you are could not be established", false},
    {E_XCE_PERM, "E_XCE_PERM", "you may not do this", false},
    {E_XCE_INVALID, "E_XCE_INVALID", "the request is not valid", false},
    {E_XCE_NOENT, "E_XCE_NOENT", "no such job, host or queue", false},
    {E_XCE_STALE, "E_XCE_STALE", "overtaken by a newer attempt, epoch or revision", false},
    {E_XCE_BUSY, "E_XCE_BUSY", "a limit was reached: try again later", true},
    {E_XCE_FORKED, "E_XCE_FORKED",
     "this context belongs to the parent process: make one after fork", false},
};

const Entry* find(int status) {
  for (const Entry& e : kEntries)
    if (e.status == status) return &e;
  return nullptr;
}

int magnitude(int status) { return status < 0 ? -status : status; }

}  // namespace

extern "C" const char* xce_strerror(int status) {
  status = magnitude(status);
  if (status == 0) return "success";
  if (const Entry* e = find(status)) return e->words;
  const char* words = strerrordesc_np(status);
  return words == nullptr ? "unknown error" : words;
}

extern "C" const char* xce_errname(int status) {
  status = magnitude(status);
  if (status == 0) return "OK";
  if (const Entry* e = find(status)) return e->name;
  const char* name = strerrorname_np(status);
  return name == nullptr ? "E_UNKNOWN" : name;
}

extern "C" bool xce_is_retriable(int status) {
  status = magnitude(status);
  if (const Entry* e = find(status)) return e->retriable;
  switch (status) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ETIMEDOUT:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EAGAIN: return true;
    default: return false;
  }
}
