"""`ndtune`, `python -m ndtune`: becomes the bundled program."""

import os
import sys

from ._errors import NdtuneError
from ._program import program


def main() -> None:
    try:
        path = program()
    except NdtuneError as error:
        print(f"ndtune: error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    os.execv(path, ["ndtune", *sys.argv[1:]])


if __name__ == "__main__":
    main()
