"""Serves a file on port 7118: lab_address_server.py http|s3 FILE RESETS. Every so many answers are cut off in their middle; 0: none.

Of http that is /set.bin, of s3 (moto's server, which copies all of an object for each part that it gives of it) pieces below bucket/set.
It says "{}" once it can be asked.
"""

import http.server
import itertools
import os
import socket
import struct
import sys
import threading

PORT = 7118
PIECE_BYTES = 40 << 20


class Cuts:
    """Which answers are cut off."""

    def __init__(self, each):
        self._each, self._asked, self._mutex = each, 0, threading.Lock()

    def next(self):
        with self._mutex:
            self._asked += 1
            return self._each > 0 and self._asked % self._each == 0


def cut(handler):
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def serve_http(path, cuts):
    size = os.path.getsize(path)

    class Ranges(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            last = min(last, size - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.send_header("Content-Length", str(last + 1 - first))
            self.send_header("ETag", '"one"')
            self.end_headers()
            ends_early = cuts.next()
            with open(path, "rb") as file:
                self.connection.sendfile(file, first, (last + 1 - first) // (2 if ends_early else 1))
            if ends_early:
                cut(self)

        def log_message(self, *_):
            pass

        def finish(self):
            if not self.wfile.closed and self.connection.fileno() >= 0:
                super().finish()

    server = http.server.ThreadingHTTPServer(("0.0.0.0", PORT), Ranges)
    print("{}", flush=True)
    server.serve_forever()


def serve_s3(path, cuts):
    import boto3
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def run_wsgi(self):
            if self.command == "GET" and cuts.next():
                self.wfile.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000000\r\n\r\nhalf")
                cut(self)
            else:
                super().run_wsgi()

        def log(self, *_):
            pass

    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("0.0.0.0", PORT, app, threaded=True, request_handler=Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    store = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{PORT}")
    store.create_bucket(Bucket="bucket")
    with open(path, "rb") as file:
        for number in itertools.takewhile(lambda _: file.tell() < os.path.getsize(path), itertools.count()):
            store.put_object(Bucket="bucket", Key=f"set/{number:03}.bin", Body=file.read(PIECE_BYTES))
    print("{}", flush=True)
    thread.join()


if __name__ == "__main__":
    kind, file, resets = sys.argv[1:]
    {"http": serve_http, "s3": serve_s3}[kind](file, Cuts(int(resets)))
