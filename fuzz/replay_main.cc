// Runs a fuzz target over the files of a corpus, and over some thousand changes to them that are
// the same every time: what `bazel test` does of fuzzing. Every crash is found by the input that it
// leaves in the test's undeclared outputs.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

// NOLINTNEXTLINE: the sanitizers' own name
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

constexpr auto kMutationTime = std::chrono::milliseconds(1500);
constexpr int kMutations = 20000;

std::string current_name;
std::string current_input;
std::string kept_path;

void keep_input() {
  std::FILE* file = std::fopen(kept_path.c_str(), "wb");
  if (file != nullptr) {
    std::fwrite(current_input.data(), 1, current_input.size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "the input, made from %s, is in %s\n", current_name.c_str(),
               kept_path.c_str());
}

void on_signal(int signal) {
  keep_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const std::string& name, const std::string& input) {
  current_name = name;
  current_input = input;
  // Of exactly this size, so that the address sanitizer sees a byte too many.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string changed(std::string input, const std::vector<std::string>& others,
                    std::mt19937* random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : (*random)() % n; };
  for (size_t n = 1 + below(4); n > 0; --n) {
    const size_t at = below(input.size());
    switch (below(6)) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>((*random)());
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ 1 << below(8));
        break;
      case 2: input.resize(at); break;
      case 3: input.insert(at, input.substr(below(input.size() + 1), below(64))); break;
      case 4: input.erase(at, below(16)); break;
      case 5: {  // a tail of another one
        const std::string& other = others[below(others.size())];
        input = input.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names, inputs;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    std::fprintf(stderr, "usage: %s DIRECTORY...: they hold no file\n", argv[0]);
    return 2;
  }
  const char* const outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  kept_path =
      std::string(outputs == nullptr ? "." : outputs) + "/crash-" + std::to_string(getpid());
  if (__sanitizer_set_death_callback != nullptr)
    __sanitizer_set_death_callback(keep_input);
  else
    for (const int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, on_signal);
  std::signal(SIGABRT, on_signal);

  for (const std::string& name : names) {
    std::ifstream file(name, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    run(name, inputs.back());
  }
  run("(nothing)", "");
  std::mt19937 random(1);
  const auto end = std::chrono::steady_clock::now() + kMutationTime;
  int mutations = 0;
  while (mutations < kMutations && std::chrono::steady_clock::now() < end) {
    const size_t from = mutations++ % inputs.size();
    run(names[from] + ", changed", changed(inputs[from], inputs, &random));
  }
  std::printf("%zu inputs and %d changes of them\n", inputs.size(), mutations);
  return 0;
}
