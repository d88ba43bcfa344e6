#include "ranks.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "runtime/worker/join.h"
#include "transport/addresses.h"

namespace motley::cli {
namespace {

constexpr unsigned kRanksMax = 256;  // the most workers of a run

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<unsigned> number(const char* name, unsigned most) {
  const std::string text = variable(name);
  unsigned value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value > most) {
    return Error{ErrorCode::usage,
                 std::string(name) + ": expected a number up to " + std::to_string(most) + ", found '" + text + "'",
                 "a run has 256 workers at most; or take the launcher's variables out of the environment"};
  }
  return value;
}

struct Names {
  const char *number, *count, *here, *count_here;
};

Result<std::optional<Rank>> read(const Names& names, std::string job) {
  if (variable(names.number).empty()) return std::optional<Rank>{};
  Rank rank{.job = std::move(job)};
  const auto take = [](const char* name, unsigned most, unsigned& into) -> Status {
    if (name == nullptr || variable(name).empty()) return {};
    const Result<unsigned> value = number(name, most);
    if (!value) return value.error();
    into = *value;
    return {};
  };
  if (Status status = take(names.count, kRanksMax, rank.count); !status) return status.error();
  if (Status status = take(names.number, kRanksMax - 1, rank.number); !status) return status.error();
  if (Status status = take(names.here, kRanksMax - 1, rank.here); !status) return status.error();
  if (Status status = take(names.count_here, kRanksMax, rank.count_here); !status) return status.error();
  if (rank.count <= 1) return std::optional<Rank>{};
  return std::optional<Rank>{std::move(rank)};
}

// Slurm lists the tasks of all nodes: "4(x2),3" is 4, 4, 3. This is the entry of one node; 1 where it says nothing.
unsigned tasks_of_node(const std::string& list, unsigned node) {
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    unsigned tasks = 0, times = 1;
    at = std::from_chars(at, end, tasks).ptr;
    if (std::string_view(at, static_cast<std::size_t>(end - at)).starts_with("(x")) {
      at = std::from_chars(at + 2, end, times).ptr + 1;
    }
    if (node < times) return std::clamp(tasks, 1U, kRanksMax);
    node -= times;
    ++at;  // the comma
  }
  return 1;
}

// Open MPI numbers its jobs by the process, so numbers come again; with the address of its server they do not.
std::string job_of_mpirun() {
  const std::string said = variable("PMIX_NAMESPACE") + variable("OMPI_MCA_orte_hnp_uri");
  if (said.empty()) return "";
  return "mpirun-" + std::to_string(crc32c(std::as_bytes(std::span(said))));
}

std::string job_of_slurm() {
  const std::string again = variable("SLURM_RESTART_COUNT");
  return "slurm-" + variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID") + (again.empty() ? "" : "r" + again);
}

// One rank, one accelerator, where a machine has several ranks and nobody said which takes what. CUDA's own variable,
// so that it holds for a script's torch as well; a rank for which no card is left works on the processor.
void share_machine(const Rank& rank, runtime::TrainOptions& options) {
  if (rank.count_here <= 1) return;
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  if (options.threads == 0) options.threads = std::max(1U, processors / rank.count_here);
  if (!options.devices.empty()) return;
  const std::string visible = variable("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> cards;
  for (std::size_t at = 0; at < visible.size();) {
    const std::size_t comma = std::min(visible.find(',', at), visible.size());
    cards.push_back(visible.substr(at, comma - at));
    at = comma + 1;
  }
  const std::string mine = cards.empty() ? std::to_string(rank.here) : cards[rank.here % cards.size()];
#ifdef _WIN32
  _putenv_s("CUDA_VISIBLE_DEVICES", mine.c_str());
#else
  setenv("CUDA_VISIBLE_DEVICES", mine.c_str(), 1);
#endif
}

}  // namespace

Result<std::optional<Rank>> find_rank() {
  const Names mpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                  "OMPI_COMM_WORLD_LOCAL_SIZE"};
  // Open MPI starts its own servers with srun, so its variables come first.
  if (Result<std::optional<Rank>> rank = read(mpi, job_of_mpirun()); !rank || *rank) return rank;
  if (!variable("SLURM_STEP_ID").empty()) {
    Result<std::optional<Rank>> rank =
        read({"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr}, job_of_slurm());
    if (!rank || !*rank) return rank;
    unsigned node = 0;
    if (!variable("SLURM_NODEID").empty()) {
      const Result<unsigned> given = number("SLURM_NODEID", kRanksMax - 1);
      if (!given) return given.error();
      node = *given;
    }
    (*rank)->count_here = tasks_of_node(variable("SLURM_STEP_TASKS_PER_NODE"), node);
    return rank;
  }
  return read({"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, "");
}

Status take_rank(Launch& launch, runtime::StopSource& stop, report::Sink& sink) {
  Result<std::optional<Rank>> found = find_rank();
  if (!found) return found.error();
  if (!*found) return {};
  const Rank& rank = **found;
  runtime::TrainOptions& train = launch.head.train;
  if (train.resume && train.run_dir.empty()) return {};  // which is an error, in every rank
  if (rank.job.empty() && train.token_file.empty()) {
    return Error{
        ErrorCode::usage, "this launcher does not tell its jobs apart, so the ranks cannot find each other's token",
        "--token-file FILE, one that is not there yet, on a disk of all machines; or Open MPI's mpirun, or srun"};
  }
  const bool plans = launch.role == Role::plan;
  if (!plans && train.run_dir.empty() && !rank.job.empty()) train.run_dir = "runs/" + rank.job;
  if (train.token_file.empty()) train.token_file = (plans ? "" : train.run_dir + "/") + rank.job + ".token";
  share_machine(rank, train);
  if (rank.number == 0) {
    const bool idle = train.devices.size() == 1 && train.devices[0] == "none";
    const std::size_t each = idle ? 1 : std::max<std::size_t>(1, train.devices.size());
    const std::size_t workers = (rank.count - (idle ? 1 : 0)) * each;
    train.overrides.insert(train.overrides.begin(), "train.min_workers=" + std::to_string(workers));
    return {};
  }
  const auto note = [&sink](const std::string& text) { sink.take(report::Note{text}); };
  Result<fleet::JoinToken> token = runtime::wait_for_token_file(train.token_file, stop, note);
  if (!token) return token.error();
  launch.role = Role::join;
  std::erase(train.devices, "none");  // is the head's
  launch.join = as_join(train);
  launch.join.token = std::move(*token);
  launch.join.token_file = train.token_file;
  launch.join.name = (train.name.empty() ? transport::machine_name() : train.name) + "-" + std::to_string(rank.number);
  return {};
}

}  // namespace motley::cli
