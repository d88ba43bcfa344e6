#pragma once
// Figures: for people a table on standard output, the first column to the left, the others to the right; for programs
// at least three digits.

#include <string>
#include <vector>

namespace motley::cli {

/// REQUIRES rows as long as the first, which is the header.
void print_table(const std::vector<std::vector<std::string>>& rows);

/// "3.14", "31.4", "314": three digits.
std::string short_number(double value);

/// To three decimals, or to three significant digits where these are more: nothing becomes zero.
double rounded(double value);

}  // namespace motley::cli
