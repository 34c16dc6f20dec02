#include "libxce/base/log.h"

#include <memory>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace xce::log {

bool init(const std::string& name, const std::string& level) {
  const std::string word = level == "warning" ? "warn" : level == "error" ? "err" : level;
  const auto parsed = spdlog::level::from_str(word);
  if (parsed == spdlog::level::off && word != "off")
    return false;  // from_str gives off for what it does not know
  auto logger =
      std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n: %v", spdlog::pattern_time_type::utc);
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return true;
}

}  // namespace xce::log
