// Trains a network on Fashion-MNIST on this machine and on those that join:
//
//   fashion_cnn [--listen ADDRESS:PORT] [--set KEY=VALUE]… [ARGUMENT]…      the head: prints how others join
//   fashion_cnn join "ADDRESS CODE"|TOKEN [ARGUMENT]…                       lends this machine, with the head's
//   arguments
//
// ARGUMENT: --data DIR, --samples N, --epochs N, --batch-size N, --lr RATE, --seed N

#include <csignal>
#include <iostream>
#include <thread>

#include "fashion_model.h"
#include "motley/run.h"

static int fail(const motley::Error& error) {
  std::cerr << "fashion_cnn: " << error.message << (error.hint.empty() ? "" : "; try: ") << error.hint << "\n";
  return motley::exit_status(error.code);
}

static void show(const motley::Event& event) {
  const motley::overloaded told{
      [](const motley::RunBegun& e) {
        std::cout << "join with: " << e.addresses[0] << " " << e.code << "\nor with: " << e.token << "\n";
      },
      [](const motley::WorkerChanged& e) { std::cout << e.worker << " " << e.change << ": " << e.reason << "\n"; },
      [](const motley::StepMade& e) {
        if ((e.step + 1) % 50 == 0) std::cout << "step " << e.step + 1 << ": loss " << e.loss << "\n";
      },
      [](const motley::Evaluated& e) { std::cout << "accuracy " << e.scores[0].second << "\n"; },
      [](const motley::Note& e) { std::cout << e.text << "\n"; },
      [](const motley::Failed& e) { std::cout << e.error.message << "\n"; },
      [](const auto&) {},
  };
  std::visit(told, event);
  std::cout << std::flush;
}

int main(int count, char** words) try {
  Arguments arguments;
  motley::RunOptions run{.name = "fashion-cnn", .pair = true, .events = show};
  std::string invitation;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i], value = words[i + 1];
    if (word == "join") {
      invitation = value;
    } else if (word == "--listen") {
      run.listen = value;
    } else if (word == "--set") {
      run.settings.push_back(value);
    } else {
      arguments.words.insert(arguments.words.end(), {word, value});
      arguments.named[word] = value;
    }
  }
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  std::thread([interrupt, stop = run.stop]() mutable {  // Ctrl-C ends the run in good order
    int which = 0;
    sigwait(&interrupt, &which);
    stop.request();
  })
      .detach();

  FashionModel model(arguments);
  if (!invitation.empty()) {
    const motley::Status status = motley::join(model, invitation, {.events = show, .stop = run.stop});
    return status ? 0 : fail(status.error());
  }
  run.settings.insert(run.settings.begin(), {"train.epochs=" + std::to_string(arguments.epochs()),
                                             "train.global_batch=" + std::to_string(arguments.batch()),
                                             "train.seed=" + std::to_string(arguments.seed())});
  const motley::Result<motley::Trained> trained = motley::train(model, run);
  if (!trained) return fail(trained.error());
  std::cout << trained->steps << " steps; the run is in " << trained->directory << "\n";
  return 0;
} catch (const std::exception& error) {
  return fail({motley::ErrorCode::input, error.what(), ""});
}
