#include "cli/table.h"

#include <algorithm>

#include "cli/words.h"

namespace xce::cli {
namespace {

const char* escape_of(Colour colour) {
  switch (colour) {
    case Colour::kNone: return "";
    case Colour::kGreen: return "\x1b[32m";
    case Colour::kYellow: return "\x1b[33m";
    case Colour::kRed: return "\x1b[31m";
    case Colour::kMagenta: return "\x1b[35m";
    case Colour::kCyan: return "\x1b[36m";
    case Colour::kDim: return "\x1b[2m";
    case Colour::kBold: return "\x1b[1m";
  }
  return "";
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string paint(std::string_view text, Colour colour, bool on) {
  if (!on || colour == Colour::kNone || text.empty()) return std::string(text);
  return escape_of(colour) + std::string(text) + "\x1b[0m";
}

size_t text_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string clip(std::string_view text, size_t width) {
  if (text_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t end = 0, columns = 0;
  while (end < text.size()) {
    size_t next = end + 1;
    while (next < text.size() && continues(text[next])) ++next;
    if (columns + 1 > width - 1) break;
    ++columns;
    end = next;
  }
  return std::string(text.substr(0, end)) + "\u2026";
}

void Table::add_row(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i].text = printable(cells[i].text);
    if (columns_[i].max_width > 0) cells[i].text = clip(cells[i].text, columns_[i].max_width);
  }
  rows_.push_back(std::move(cells));
}

std::string Table::render(size_t terminal_width, bool colour) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = text_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, text_width(row[i].text));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const auto& cell_at) {
    size_t used = 0;
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) {
        line += "  ";
        used += 2;
      }
      const Cell& cell = cell_at(i);
      const bool last = i + 1 == columns_.size();
      std::string text = cell.text;
      if (last && terminal_width > 0)
        text = clip(text, terminal_width > used + 8 ? terminal_width - used : 8);
      const size_t width = text_width(text);
      const std::string space(widths[i] > width ? widths[i] - width : 0, ' ');
      if (columns_[i].align == Align::kRight) line += space;
      line += paint(text, cell.colour, colour);
      if (columns_[i].align == Align::kLeft && !last) line += space;
      used += widths[i];
    }
    const size_t end = line.find_last_not_of(' ');
    out.append(line, 0, end == std::string::npos ? 0 : end + 1);
    out += '\n';
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Colour::kBold);
  add_line([&](size_t i) -> const Cell& { return titles[i]; });
  for (const auto& row : rows_) add_line([&](size_t i) -> const Cell& { return row[i]; });
  return out;
}

}  // namespace xce::cli
