#include "cli/arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/parse.h"

namespace xce::cli {
namespace {

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// Whether the word after this option belongs to it.
bool takes_next(const std::string& word, const std::vector<const CLI::App*>& apps) {
  if (word.rfind("--", 0) == 0) {
    if (word.find('=') != std::string::npos) return false;
    for (const CLI::App* app : apps) {
      if (const CLI::Option* option = app->get_option_no_throw(word))
        return option->get_items_expected_max() > 0;
    }
    return false;
  }
  // "-c 2" or "-c2"; of flags run together the last one counts.
  for (size_t i = 1; i < word.size(); ++i) {
    for (const CLI::App* app : apps) {
      const CLI::Option* option = app->get_option_no_throw(std::string("-") + word[i]);
      if (option == nullptr) continue;
      if (option->get_items_expected_max() > 0) return i + 1 == word.size();
      break;
    }
  }
  return false;
}

// Takes "--output json" and "--output=json" out of own[from..): there it means how we print.
void take_output_json(size_t from, SplitArguments* split) {
  std::vector<std::string>& own = split->own;
  for (size_t i = from; i < own.size();) {
    if (own[i] == "--output=json") {
      own.erase(own.begin() + static_cast<std::ptrdiff_t>(i));
      split->json = true;
    } else if (own[i] == "--output" && i + 1 < own.size() && own[i + 1] == "json") {
      own.erase(own.begin() + static_cast<std::ptrdiff_t>(i),
                own.begin() + static_cast<std::ptrdiff_t>(i + 2));
      split->json = true;
    } else {
      ++i;
    }
  }
}

std::string full_name(const CLI::App* app, const CLI::App* root) {
  return app == root || app == nullptr ? "xce"
                                       : full_name(app->get_parent(), root) + " " + app->get_name();
}

using Apps = std::vector<const CLI::App*>;
Apps commands_within(const CLI::App* app) {
  return app->get_subcommands([](const CLI::App*) { return true; });
}

}  // namespace

const CLI::App* innermost_parsed(const CLI::App* root) {
  const CLI::App* at = root;
  while (true) {
    const Apps within = commands_within(at);
    const auto next = std::find_if(within.begin(), within.end(),
                                   [](const CLI::App* app) { return app->parsed(); });
    if (next == within.end()) return at;
    at = *next;
  }
}

std::string name_of_parsed(const CLI::App* root) { return full_name(innermost_parsed(root), root); }

SplitArguments split_arguments(const std::vector<std::string>& args, Registry* registry) {
  SplitArguments split;
  size_t at = 0;
  const CLI::App* root = registry->root();
  while (at < args.size() && is_option(args[at]) && args[at] != "--") {
    split.own.push_back(args[at]);
    const bool next = takes_next(args[at], {root});
    ++at;
    if (next && at < args.size()) split.own.push_back(args[at++]);
  }
  for (const Command& command : registry->commands()) {
    if (at < args.size() && command.app->get_parent() == root &&
        command.app->get_name() == args[at])
      split.command = &command;
  }
  if (split.command == nullptr || !split.command->takes_tail) {
    split.own.insert(split.own.end(), args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
    return split;
  }
  split.own.push_back(args[at++]);
  const size_t from = split.own.size();
  while (at < args.size()) {
    if (args[at] == "--") {
      split.tail.after_dashes = true;
      ++at;
      break;
    }
    if (!is_option(args[at])) break;
    split.own.push_back(args[at]);
    const bool next = takes_next(args[at], {split.command->app, root});
    ++at;
    if (next && at < args.size()) split.own.push_back(args[at++]);
  }
  split.tail.words.assign(args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
  take_output_json(from, &split);
  return split;
}

std::string unknown_words(const std::vector<std::string>& extras, const Command* command,
                          Registry* registry) {
  if (extras.empty()) return "";
  const CLI::App* root = registry->root();
  const std::string name = full_name(command == nullptr ? root : command->app, root);
  const std::string& word = extras[0];
  std::vector<std::string> known;
  std::string what;
  if (is_option(word)) {
    what = absl::StrCat("'", name, "' has no option ", word);
    for (const CLI::App* app :
         {command == nullptr ? root : static_cast<const CLI::App*>(command->app), root}) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& option_name : option->get_lnames())
          known.push_back("--" + option_name);
      }
    }
  } else if (command == nullptr || !commands_within(command->app).empty()) {
    what = command == nullptr ? absl::StrCat("there is no command '", word, "'")
                              : absl::StrCat("'", name, "' has no command '", word, "'");
    for (const CLI::App* app : commands_within(command == nullptr ? root : command->app))
      known.push_back(app->get_name());
  } else {
    what = absl::StrCat("'", name, "' does not expect '", word, "'");
  }
  const std::string hint = nearest(word.substr(0, word.find('=')), known);
  if (!hint.empty()) absl::StrAppend(&what, "; did you mean ", hint, "?");
  return absl::StrCat(what, "; see '", name, " --help'");
}

}  // namespace xce::cli
