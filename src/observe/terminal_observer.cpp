#include "observe/observer.h"

namespace motley::observe {

std::unique_ptr<Observer> make_terminal_observer(int descriptor) { return make_plain_observer(descriptor, 0.5); }

}  // namespace motley::observe
