#include "libxce/base/settings_file.h"

#include <toml++/toml.h>

#include <CLI/Config.hpp>
#include <algorithm>
#include <cstdlib>
#include <istream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace xce {
namespace {

constexpr char kFile[] = "/etc/xce/xce.toml";

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto truth = node.value_exact<bool>()) return std::string(*truth ? "true" : "false");
  if (const auto whole = node.value_exact<int64_t>()) return std::to_string(*whole);
  if (node.is_floating_point()) {
    std::ostringstream text;
    text << *node.value<double>();
    return text.str();
  }
  return std::nullopt;
}

class Table final : public CLI::Config {
 public:
  Table(const CLI::App* app, std::string name, Masters masters)
      : app_(app), name_(std::move(name)), masters_(masters) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    const std::string text(std::istreambuf_iterator<char>(in), {});
    std::vector<CLI::ConfigItem> items;
    try {
      const toml::table all = toml::parse(text);
      if (const toml::node* const node = all.get("masters");
          node != nullptr && masters_ == Masters::kArePeers)
        take("peers", *node, &items);
      const toml::node* const own = all.get(name_);
      if (own != nullptr && !own->is_table())
        throw wrong(name_ + " must be a table: write [" + name_ + "] on a line of its own");
      if (own == nullptr) return items;
      for (const auto& [key, node] : *own->as_table())
        take(std::string(std::string_view(key)), node, &items);
    } catch (const toml::parse_error& error) {
      throw wrong("line " + std::to_string(error.source().begin.line) + ": " +
                  std::string(error.description()));
    }
    return items;
  }

 private:
  CLI::ConfigError wrong(const std::string& what) const {
    return CLI::ConfigError(app_->get_config_ptr()->as<std::string>() + ": " + what +
                            "; correct the file");
  }

  // A later value of a key takes the place of an earlier one; the environment goes before both.
  void take(std::string key, const toml::node& node, std::vector<CLI::ConfigItem>* items) const {
    std::replace(key.begin(), key.end(), '_', '-');
    const CLI::Option* const option = app_->get_option_no_throw("--" + key);
    if (option == nullptr || key == "config" || key == "help" || key == "version")
      throw wrong("[" + name_ + "] has no setting '" + key + "' (" + app_->get_name() +
                  " --help lists its flags)");
    const char* const variable = std::getenv(option->get_envname().c_str());
    if (variable != nullptr && variable[0] != '\0') return;
    CLI::ConfigItem item;
    item.name = key;
    const auto add = [&](const toml::node& value) {
      std::optional<std::string> text = text_of(value);
      if (!text)
        throw wrong("[" + name_ + "] " + key + " must be a text, a number or true or false");
      item.inputs.push_back(*std::move(text));
    };
    if (const toml::array* const list = node.as_array())
      for (const toml::node& value : *list) add(value);
    else
      add(node);
    items->erase(std::remove_if(items->begin(), items->end(),
                                [&](const CLI::ConfigItem& old) { return old.name == key; }),
                 items->end());
    items->push_back(std::move(item));
  }

  const CLI::App* const app_;
  const std::string name_;
  const Masters masters_;
};

}  // namespace

void use_settings_file(CLI::App* app, const std::string& table, Masters masters) {
  app->config_formatter(std::make_shared<Table>(app, table, masters));
  app->set_config("--config", kFile,
                  "file whose [" + table + "] gives what neither flags nor the environment do");
}

}  // namespace xce
