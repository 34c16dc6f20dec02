#include "cli/table.h"

#include <gtest/gtest.h>

namespace xce::cli {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoSpaceAtLineEnds) {
  Table table({{"ID"}, {"CPUS", Align::kRight}, {"WHERE"}});
  table.add_row({"1", "16", "n1"});
  table.add_row({"17[3]", "2", ""});
  EXPECT_EQ(table.render(0, false),
            "ID     CPUS  WHERE\n"
            "1        16  n1\n"
            "17[3]     2\n");
}

TEST(Table, LastColumnIsCutToTheTerminal) {
  Table table({{"ID"}, {"WHY"}});
  table.add_row({"1", "waiting for a very long reason"});
  EXPECT_EQ(table.render(16, false),
            "ID  WHY\n"
            "1   waiting for\u2026\n");
}

TEST(Table, NarrowColumnsAreCut) {
  Table table({{"NAME", Align::kLeft, 4}, {"X"}});
  table.add_row({"abcdef", "y"});
  EXPECT_EQ(table.render(0, false), "NAME  X\nabc\u2026  y\n");
}

TEST(Table, ColoursDoNotMoveColumns) {
  Table table({{"A"}, {"B"}});
  table.add_row({Cell("ok", Colour::kGreen), "x"});
  const std::string text = table.render(0, true);
  EXPECT_NE(text.find("\x1b[32mok\x1b[0m  x"), std::string::npos) << text;
}

TEST(Table, NamesCannotSteerTheTerminal) {
  Table table({{"A"}});
  table.add_row({"\x1b[31mred\n"});
  EXPECT_EQ(table.render(0, false), "A\n?[31mred?\n");
}

TEST(Table, Utf8CountsByCharacter) {
  EXPECT_EQ(text_width("h\u00e9llo"), 5u);
  EXPECT_EQ(clip("h\u00e9llo", 4), "h\u00e9l\u2026");
  EXPECT_EQ(clip("abc", 3), "abc");
  EXPECT_EQ(clip("abc", 0), "");
}

}  // namespace
}  // namespace xce::cli
