"""What the core downloads, by Python's own HTTP and the certificates that this Python trusts."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable

STALL_SECONDS = 30  # nothing came for so long: given up
PIECE_BYTES = 1 << 18


class Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise urllib.error.URLError(f"it leads from https to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def retrieve(url: str, take: Callable[[bytes, int], bool]) -> str:
    """Hands on what lies at `url` as take(bytes, bytes in all or 0) until that returns False; returns why it failed, or ""."""
    if not url.startswith(("http://", "https://")):
        return "expected an address that begins with http:// or https://"
    try:
        with urllib.request.build_opener(Redirects).open(url, timeout=STALL_SECONDS) as answer:
            total = max(int(answer.headers.get("Content-Length") or 0), 0)
            done = 0
            while piece := answer.read(PIECE_BYTES):
                done += len(piece)
                if not take(piece, total):
                    return "it is longer than it may be"
            if done < total:
                return f"the answer ended after {done} of {total} bytes"
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code} {error.reason}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    return ""
