#include "checkpoint_source.h"

namespace motley::cli {

namespace fs = std::filesystem;

bool is_checkpoint(const fs::path& source) {
  std::error_code missing;
  return fs::is_regular_file(source / "run.json", missing);
}

Result<store::CheckpointContent> read_source(const fs::path& source, report::Sink& sink) {
  if (is_checkpoint(source)) return store::read_checkpoint(source);
  std::vector<std::string> warnings;
  Result<store::CheckpointContent> content = store::read_latest_checkpoint(source, warnings);
  for (const std::string& warning : warnings) sink.take(report::Note{warning});
  if (content || content.error().code != ErrorCode::input) return content;
  // The reader's own advice is for those who resume.
  return Error{ErrorCode::input, content.error().message, "name a run's directory, such as runs/NAME-1"};
}

}  // namespace motley::cli
