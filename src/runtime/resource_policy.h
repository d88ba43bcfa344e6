#pragma once
// How a worker behaves towards whoever else uses the machine.

namespace motley::runtime {

struct ResourcePolicy {
  double duty = 1;         // of the time, above 0: the device computes at most that part of it
  int nice = 0;            // of the threads that compute; 0 leaves them as they are
  bool keep_awake = true;  // while it works for a run, the machine does not go to sleep for want of use
};

}  // namespace motley::runtime
