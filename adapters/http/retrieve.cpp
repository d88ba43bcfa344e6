#include "http/retrieve.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <memory>

namespace motley::http {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kStallSeconds = 30;  // less than kStallBytes a second for so long: given up
constexpr long kStallBytes = 1024;
constexpr long kRedirectsMax = 5;

struct Transfer {
  CURL* curl;
  const data::TakeBytes& take;
};

std::size_t on_data(char* data, std::size_t, std::size_t count, void* user) {
  const auto& transfer = *static_cast<const Transfer*>(user);
  curl_off_t total = 0;  // -1: the server does not say
  curl_easy_getinfo(transfer.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &total);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, count));
  return transfer.take(bytes, static_cast<std::uint64_t>(std::max<curl_off_t>(total, 0))) ? count : 0;
}

Error failed(const char* why) { return {ErrorCode::network, why, ""}; }

Status retrieve(const std::string& url, const data::TakeBytes& take) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(curl_easy_init(), curl_easy_cleanup);
  if (started != CURLE_OK || !handle) return failed("libcurl cannot be started");
  CURL* curl = handle.get();
  Transfer transfer{.curl = curl, .take = take};
  std::array<char, CURL_ERROR_SIZE> details{};
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kRedirectsMax);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, redirects_allowed(url));
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // threads are about
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStallBytes);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details.data());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK) return {};
  return failed(details[0] != '\0' ? details.data() : curl_easy_strerror(code));
}

}  // namespace

data::Retrieve retriever() { return retrieve; }

const char* redirects_allowed(const std::string& url) { return url.starts_with("https:") ? "https" : "http,https"; }

}  // namespace motley::http
