#include "e2e/cluster/http.h"

#include "absl/strings/str_cat.h"
#include "e2e/cluster/run.h"

namespace xce::e2e {

std::vector<std::string> Http::curl_args() const {
  std::vector<std::string> args = {"-sS"};
  if (!token_.empty()) args.insert(args.end(), {"-H", "Authorization: Bearer " + token_});
  return args;
}

HttpAnswer Http::call(const std::string& method, const std::string& path, const std::string& body,
                      const std::string& key, int limit_s) const {
  std::vector<std::string> args = curl_args();
  args.insert(args.end(), {"-i", "-m", absl::StrCat(limit_s), "-X", method, "-w",
                           "\n%{http_code} %{time_total}"});
  if (!body.empty())
    args.insert(args.end(), {"-H", "Content-Type: application/json", "--data-binary", body});
  if (!key.empty()) args.insert(args.end(), {"-H", "Idempotency-Key: " + key});
  args.push_back(url(path));
  const Finished finished = run("/usr/bin/curl", args);
  HttpAnswer answer;
  answer.curl = finished.code;
  const size_t last = finished.out.rfind('\n');
  if (last == std::string::npos) return answer;
  sscanf(finished.out.c_str() + last, "%d %lf", &answer.status, &answer.seconds);
  const size_t split = finished.out.find("\r\n\r\n");
  if (split == std::string::npos) return answer;
  answer.headers = finished.out.substr(0, split);
  answer.text = finished.out.substr(split + 4, last - split - 4);
  answer.body = nlohmann::json::parse(answer.text, nullptr, false);
  return answer;
}

}  // namespace xce::e2e
