#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"

namespace motley::cli {

void add_devices(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("devices", "list the devices of this machine");
  command->callback([&chosen] {
    chosen = [](Context& context) -> Status {
      for (const runtime::Device& device : context.torch->devices()) {
        if (context.json) {
          print_json_line(nlohmann::ordered_json{{"event", "device"},
                                                 {"device", device.name},
                                                 {"description", device.description},
                                                 {"memory_bytes", device.memory_bytes},
                                                 {"threads", device.threads}}
                              .dump());
          continue;
        }
        std::printf("%-8s %s", device.name.c_str(), device.description.c_str());
        if (device.threads > 0) std::printf(", %u threads", device.threads);
        if (device.memory_bytes > 0) std::printf(", %.1f GiB", static_cast<double>(device.memory_bytes) / (1U << 30));
        std::printf("\n");
      }
      return {};
    };
  });
}

}  // namespace motley::cli
