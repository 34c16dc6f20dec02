// The C ABI: contexts, settings, errors. The operations are in ops_read.cc and ops_write.cc.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "libxce/base/trail.h"
#include "libxce/client/client_log.h"
#include "libxce/client/ops.h"

namespace {

bool usable(const xce_client_config_t& c) {
  if (c.nmasters < 1 || c.nmasters > N_MAX_MASTERS) return false;
  for (int i = 0; i < c.nmasters; ++i) {
    if (c.masters[i][0] == '\0' || c.master_ports[i] == 0) return false;
    if (std::memchr(c.masters[i], '\0', sizeof c.masters[i]) == nullptr) return false;
  }
  if (std::memchr(c.name, '\0', sizeof c.name) == nullptr ||
      std::memchr(c.user, '\0', sizeof c.user) == nullptr)
    return false;
  for (const auto* path : {&c.tls_ca, &c.tls_cert, &c.tls_key})
    if (std::memchr(*path, '\0', sizeof *path) == nullptr) return false;
  if (c.role < HostRole_none || c.role > HostRole_controller || c.call_deadline_ms < 0)
    return false;
  const xce_retry_config_t& r = c.retry;
  return r.max_retries >= 0 && r.initial_delay_ms >= 0 && r.max_delay_ms >= 0 && r.multiplier >= 0;
}

int refused(const std::string& why) {
  xce_error_t* const error = xce::client::last_error();
  error->status = -EINVAL;
  error->outcome = XCE_NOT_APPLIED;
  std::snprintf(error->message, sizeof error->message, "%s", why.c_str());
  xce::client::log_line(XCE_LOG_ERROR, why);
  return -EINVAL;
}

int copy_out(const std::string& from, char* out, size_t len) {
  if (out != nullptr && len > 0) std::snprintf(out, len, "%s", from.c_str());
  return from.size() < len ? static_cast<int>(from.size()) : -ENOSPC;
}

}  // namespace

extern "C" {

void xce_client_config_init(xce_client_config_t* config) {
  std::memset(config, 0, sizeof *config);
  config->nmasters = 1;
  std::strcpy(config->masters[0], XCE_DEFAULT_HOST);
  config->master_ports[0] = XCE_DEFAULT_PORT;
  config->role = HostRole_user;
  config->call_deadline_ms = XCE_DEFAULT_CALL_DEADLINE_MS;
  config->retry = XCE_RETRY_DEFAULTS;
}

int xce_candidate_line(const xce_client_config_t* config, int index, char* out, size_t len) {
  if (config == nullptr || index < 0 || index >= config->nmasters) return -EINVAL;
  return copy_out(xce::candidate_line(index, config->nmasters, config->masters[index],
                                      config->master_ports[index]),
                  out, len);
}

int xce_unreached_line(int attempt, const char* trail, bool waiting, char* out, size_t len) {
  return copy_out(xce::unreached_line(attempt, trail == nullptr ? "" : trail, waiting), out, len);
}

int xce_client_config_set_tls(xce_client_config_t* config, const char* ca, const char* cert,
                              const char* key) {
  if (config == nullptr) return -EINVAL;
  const char* const from[] = {ca, cert, key};
  char* const to[] = {config->tls_ca, config->tls_cert, config->tls_key};
  for (int i = 0; i < 3; ++i) {
    const char* path = from[i] == nullptr ? "" : from[i];
    if (std::strlen(path) >= XCE_MAX_PATH_LEN) return -ENAMETOOLONG;
    std::strcpy(to[i], path);
  }
  return 0;
}

void xce_job_spec_init(xce_job_spec_t* spec) { std::memset(spec, 0, sizeof *spec); }

int xcecli_ctx_init(xcecli_ctx_t* out, const xce_client_config_t* config) {
  if (out == nullptr) return -EINVAL;
  *out = nullptr;
  *xce::client::last_error() = {};
  if (config == nullptr || !usable(*config)) return refused("the client's settings are unusable");
  const xce::net::TlsFiles files = {config->tls_ca, config->tls_cert, config->tls_key};
  std::shared_ptr<xce::net::TlsCredentials> tls;
  if (files.any()) {
    auto loaded = xce::net::TlsCredentials::load(files);
    if (!loaded.ok()) return refused(std::string(loaded.status().message()));
    tls = *std::move(loaded);
  }
  *out = new (std::nothrow) xcecli_ctx(*config, std::move(tls));
  return *out == nullptr ? -ENOMEM : 0;
}

int xcecli_start(xcecli_ctx_t ctx) { return ctx == nullptr ? -EINVAL : ctx->start(); }
void xcecli_stop(xcecli_ctx_t ctx) {
  if (ctx != nullptr) ctx->stop();
}
void xcecli_ctx_free(xcecli_ctx_t ctx) { delete ctx; }

int xcecli_set_reconnect_handler(xcecli_ctx_t ctx, xcecli_reconnect_cb cb, void* arg) {
  return ctx == nullptr ? -EINVAL : ctx->set_reconnect_handler(cb, arg);
}
int xcecli_set_disconnect_handler(xcecli_ctx_t ctx, xcecli_disconnect_cb cb, void* arg) {
  return ctx == nullptr ? -EINVAL : ctx->set_disconnect_handler(cb, arg);
}
int xcecli_set_push_handler(xcecli_ctx_t ctx, xcecli_push_cb cb, void* arg) {
  return ctx == nullptr ? -EINVAL : ctx->set_push_handler(cb, arg);
}
uint64_t xcecli_generation(xcecli_ctx_t ctx) { return ctx == nullptr ? 0 : ctx->generation(); }
void xcecli_current_master(xcecli_ctx_t ctx, char* out, size_t len) {
  copy_out(ctx == nullptr ? "" : ctx->current_master(), out, len);
}
void xcecli_set_deadline(xcecli_ctx_t ctx, int ms) {
  if (ctx != nullptr) ctx->set_deadline(ms);
}
int xcecli_act_for(xcecli_ctx_t ctx, const char* user, uint32_t uid, uint32_t gid,
                   bool administrator) {
  if (ctx == nullptr) return -EINVAL;
  return ctx->act_for({user == nullptr ? "" : user, uid, gid, administrator});
}
int xcecli_stats_json(xcecli_ctx_t ctx, char* out, size_t len) {
  return ctx == nullptr ? -EINVAL : copy_out(ctx->stats_json(), out, len);
}
void xcecli_last_error(xce_error_t* out) {
  if (out != nullptr) *out = *xce::client::last_error();
}

void xce_free_job_page(xce_job_page_t* page) { xce::client::free_result(page); }
void xce_free_hosts(xce_host_t* hosts, size_t) { xce::client::free_result(hosts); }
void xce_free_queues(xce_queue_t* queues, size_t) { xce::client::free_result(queues); }
void xce_free_reservations(xce_reservation_t* reservations, size_t) {
  xce::client::free_result(reservations);
}
void xce_free_users(xce_user_t* users, size_t) { xce::client::free_result(users); }
void xce_free_gres(xce_gres_t* gres, size_t) { xce::client::free_result(gres); }
void xce_free_cluster_status(xce_cluster_status_t* status) { xce::client::free_result(status); }
void xce_free_log_chunk(xce_log_chunk_t* chunk) { xce::client::free_result(chunk); }

}  // extern "C"
