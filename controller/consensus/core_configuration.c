/* Configurations as bytes: the library encodes and decodes them, but its decoder trusts what it is
 * given. */
#include <raft.h>
#include <stdlib.h>
#include <string.h>

#include "controller/consensus/core.h"

#define MAX_SERVERS 16
#define MAX_ADDRESS 512

void* xce_core_encode_configuration(const uint64_t* ids, const char* const* addresses, unsigned n,
                                    size_t* len) {
  struct raft_configuration conf;
  struct raft_buffer buf = {NULL, 0};
  void* copy = NULL;
  unsigned i;
  raft_configuration_init(&conf);
  for (i = 0; i < n; i++) {
    if (raft_configuration_add(&conf, ids[i], addresses[i], RAFT_VOTER) != 0) goto out;
  }
  if (raft_configuration_encode(&conf, &buf) != 0) goto out;
  copy = malloc(buf.len);
  if (copy != NULL) memcpy(copy, buf.base, buf.len);
  *len = buf.len;
  raft_free(buf.base);
out:
  raft_configuration_close(&conf);
  return copy;
}

bool xce_core_valid_configuration(const void* data, size_t len) {
  const uint8_t* at = data;
  const uint8_t* end = at + len;
  uint64_t n;
  uint64_t i;
  uint64_t ids[MAX_SERVERS];
  if (data == NULL || len < 9 || len % 8 != 0 || *at++ != 1) return false;
  memcpy(&n, at, 8); /* little endian, as is the host */
  at += 8;
  if (n > MAX_SERVERS) return false;
  for (i = 0; i < n; i++) {
    const uint8_t* nul;
    uint64_t j;
    if (end - at < 8) return false;
    memcpy(&ids[i], at, 8);
    at += 8;
    if (ids[i] == 0) return false;
    for (j = 0; j < i; j++)
      if (ids[j] == ids[i]) return false;
    nul = memchr(at, 0, (size_t)(end - at));
    if (nul == NULL || nul == at || nul - at > MAX_ADDRESS) return false;
    at = nul + 1;
    if (at == end || *at > RAFT_SPARE) return false;
    at++;
  }
  return true;
}
