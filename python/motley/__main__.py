"""`python -m motley` is `motley`."""

import sys

from motley._command import main

sys.exit(main())
