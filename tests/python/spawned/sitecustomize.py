"""On the path of every Python that tests start with `--start-method`, however they start it: by a launcher, in a lab, on a cluster."""

import multiprocessing
import os

multiprocessing.set_start_method(os.environ["MOTLEY_TESTS_START_METHOD"])
