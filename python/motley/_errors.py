"""The exception of this package, and others in words. Imported by the extension module, so it imports nothing of the package."""

import traceback


class Error(RuntimeError):
    """What was expected and what was found; `hint` says what to try, `code` is the word of the JSON error event."""

    code: str = "input"
    hint: str = ""

    def __init__(self, message: str, hint: str = "", code: str = "input"):
        super().__init__(message)
        self.hint = hint
        self.code = code

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  try: {self.hint}" if self.hint else message


def in_words(error: BaseException) -> str:
    """Its type and what it says, as at the end of a traceback."""
    return "".join(traceback.format_exception_only(error)).strip()
