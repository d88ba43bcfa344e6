#include "data/files.h"

#include <gtest/gtest.h>

namespace motley::data {
namespace {

TEST(WithoutAddresses, EachAddressBecomesAPath) {
  std::vector<std::string> asked;
  const Bring bring = [&](const std::string& address) -> Result<std::string> {
    asked.push_back(address);
    return "/here/" + std::to_string(asked.size());
  };
  const auto made = [&](const std::string& uri) { return *without_addresses(uri, bring); };
  for (const std::string uri :
       {"", "fashion-mnist", "synthetic:9:2:2", "text:book", "a/b.txt", "x.npy+y.npy", "://b", "a b://c"}) {
    EXPECT_EQ(made(uri), uri);
  }
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(made("http://a/x.npy+https://b/y.npy"), "/here/1+/here/2");
  EXPECT_EQ(made("http://a/c+d.motley"), "/here/3");
  EXPECT_EQ(made("text:s3://a/book"), "text:/here/4");
  EXPECT_EQ(made("http://a/book.txt"), "text:/here/5");
  EXPECT_EQ(asked, (std::vector<std::string>{"http://a/x.npy", "https://b/y.npy", "http://a/c+d.motley", "s3://a/book",
                                             "http://a/book.txt"}));
  const Bring refuses = [](const std::string& address) { return Error{ErrorCode::network, address, ""}; };
  for (const std::string uri : {"http://a", "http://a+http://b", "text:http://a"})
    EXPECT_FALSE(without_addresses(uri, refuses)) << uri;
}

TEST(FilesOf, IsWhatOpeningReads) {
  EXPECT_TRUE(files_of("mnist", "train")->paths.empty());
  EXPECT_TRUE(files_of("synthetic:9:2:2", "train")->paths.empty());
  EXPECT_EQ(files_of("text:book", "train")->paths, std::vector<std::string>{"book"});
  EXPECT_EQ(files_of("set.motley", "train")->paths, std::vector<std::string>{"set.motley"});
  const auto pair = files_of("x.npy+y.npy", "train");
  EXPECT_TRUE(pair->pair);
  EXPECT_EQ(pair->paths, (std::vector<std::string>{"x.npy", "y.npy"}));
}

}  // namespace
}  // namespace motley::data
