// Tables for terminals: columns as wide as their widest cell, the last one cut to the terminal's
// width. PURE.
#ifndef XCE_CLI_TABLE_H_
#define XCE_CLI_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace xce::cli {

enum class Colour { kNone, kGreen, kYellow, kRed, kMagenta, kCyan, kDim, kBold };
enum class Align { kLeft, kRight };

// `text` within the escape sequences of `colour`, when `on`.
std::string paint(std::string_view text, Colour colour, bool on);
// Columns that UTF-8 text takes, one a code point.
size_t text_width(std::string_view text);
// `text` cut to `width` columns; what was cut ends with an ellipsis.
std::string clip(std::string_view text, size_t width);

struct Cell {
  Cell(std::string text_in, Colour colour_in = Colour::kNone)
      : text(std::move(text_in)), colour(colour_in) {}  // NOLINT
  Cell(const char* text_in) : text(text_in) {}          // NOLINT: a cell is a text
  std::string text;
  Colour colour = Colour::kNone;
};

struct Column {
  std::string title;
  Align align = Align::kLeft;
  size_t max_width = 0;  // 0: any
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell a column; missing ones are empty. Control characters become '?'.
  void add_row(std::vector<Cell> cells);
  size_t rows() const { return rows_.size(); }
  // The table, one line a row under a line of titles. terminal_width 0: as wide as it wants to be.
  std::string render(size_t terminal_width, bool colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace xce::cli

#endif  // XCE_CLI_TABLE_H_
