#include "runtime/persist/machine_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../../store/owner.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

MetMachine met(const std::string& name, std::uint8_t card, std::uint8_t key = 1) {
  MetMachine out{.key = {}, .name = name, .hardware_address = {2, 0, 0, 0, 0, card}, .address = "10.77.0.11"};
  out.key.fill(key);
  return out;
}

class MachineStoreTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(directory_); }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path directory_ = fs::path(testing::TempDir()) /
                        (std::string("machine_store_") + testing::UnitTest::GetInstance()->current_test_info()->name() +
                         "_" + std::to_string(::getpid()));
  fs::path file_ = directory_ / "cache" / "machines.json";
};

TEST_F(MachineStoreTest, GivesBackWhomItMet) {
  const MachineStore store(file_);
  EXPECT_TRUE(store.all().empty());
  ASSERT_TRUE(store.keep({met("laptop", 1, 1), met("desktop", 2, 2)}).ok());
  EXPECT_EQ(store.all(), (std::vector{met("laptop", 1, 1), met("desktop", 2, 2)}));
  store::test::expect_for_its_owner(file_);
}

TEST_F(MachineStoreTest, ANewNameReplacesTheOldOneOfTheSameMachineAlone) {
  const MachineStore store(file_);
  ASSERT_TRUE(store.keep({met("laptop", 1, 1), met("desktop", 2, 2)}).ok());
  ASSERT_TRUE(store.keep({met("notebook", 1, 1)}).ok());
  EXPECT_EQ(store.all(), (std::vector{met("desktop", 2, 2), met("notebook", 1, 1)}));
  // Who claims another's card, or another's name, has an entry of its own: the other's stays.
  ASSERT_TRUE(store.keep({met("desktop", 2, 3), met("desktop", 9, 3)}).ok());
  EXPECT_EQ(store.all().size(), 4U);
  EXPECT_EQ(store.all().front(), met("desktop", 2, 2));
}

TEST_F(MachineStoreTest, WritesNothingWhereNothingIsNew) {
  const MachineStore store(file_);
  ASSERT_TRUE(store.keep({met("laptop", 1)}).ok());
  const auto past = fs::last_write_time(file_) - std::chrono::hours(1);
  fs::last_write_time(file_, past);
  ASSERT_TRUE(store.keep({met("laptop", 1)}).ok());
  EXPECT_EQ(fs::last_write_time(file_), past);
}

TEST_F(MachineStoreTest, StaysSmall) {
  const MachineStore store(file_);
  std::vector<MetMachine> many;
  for (std::size_t i = 0; i < MachineStore::kMachinesMax + 40; ++i)
    many.push_back(met("m" + std::to_string(i), 1, static_cast<std::uint8_t>(i)));
  ASSERT_TRUE(store.keep(many).ok());
  ASSERT_EQ(store.all().size(), MachineStore::kMachinesMax);
  EXPECT_EQ(store.all().back(), many.back());
}

TEST_F(MachineStoreTest, ADamagedFileIsAnEmptyOne) {
  const std::string card = R"("hardware_address":"02:00:00:00:00:01")",
                    key = R"("key":")" + std::string(64, 'a') + "\"";
  for (const std::string& text : {std::string(""), std::string("{"), std::string("{}"), std::string("[1]"),
                                  "[{" + card + "," + key + "}]", "[{\"name\":\"x\"," + card + "}]",
                                  "[{\"name\":\"x\"," + key + "}]", "[{\"name\":7," + card + "," + key + "}]"}) {
    fs::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
    fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_TRUE(MachineStore(file_).all().empty()) << text;
  }
  std::ofstream(file_) << "[{\"name\":\"a\\u001b[2Jb\"," << card << "," << key << "}]";
  ASSERT_EQ(MachineStore(file_).all().size(), 1U);
  EXPECT_EQ(MachineStore(file_).all().front().name, "a?[2Jb");
}

TEST_F(MachineStoreTest, WithoutAPathNothingIsKept) {
  EXPECT_TRUE(MachineStore({}).keep({met("laptop", 1)}).ok());
  EXPECT_TRUE(MachineStore({}).all().empty());
}

}  // namespace
}  // namespace motley::runtime
