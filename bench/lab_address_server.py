"""Serves a file on port 7118: lab_address_server.py http|s3|moto FILE RESETS. Every so many answers are cut off in their middle; 0: none.

Of http that is /set.bin; of the two that speak S3, pieces below bucket/set: s3 sends them from the file, as a store does, to who has signed
with the key; moto (moto's server) looks at no signature, and copies all of a piece for each part that it gives of it.
It says "{}" once it can be asked.
"""

import http.server
import itertools
import os
import socket
import struct
import sys
import threading
import urllib.parse

PORT = 7118
PIECE_BYTES = 40 << 20
SCOPE = ("test", "us-east-1", "s3")


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


class Ranges(http.server.BaseHTTPRequestHandler):
    """Parts of a file, by sendfile."""

    protocol_version = "HTTP/1.1"
    path_of_file, cuts = "", Cuts(0)

    def send_range(self, tag, begins, size):
        """What is asked for of `size` bytes from `begins` on."""
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, size - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("ETag", f'"{tag}"')
        self.end_headers()
        ends_early = self.cuts.next()
        with open(self.path_of_file, "rb") as file:
            self.connection.sendfile(file, begins + first, (last + 1 - first) // (2 if ends_early else 1))
        if ends_early:
            cut(self)

    def log_message(self, *_):
        pass

    def finish(self):
        if not self.wfile.closed and self.connection.fileno() >= 0:
            super().finish()


class File(Ranges):
    def do_GET(self):
        self.send_range("one", 0, os.path.getsize(self.path_of_file))


class Store(Ranges):
    """As much of S3 as reading takes."""

    def is_signed(self):
        from botocore import auth, awsrequest, credentials

        key, region, service = SCOPE
        said = dict(part.strip().split("=", 1) for part in self.headers.get("Authorization", "").partition(" ")[2].split(","))
        signed = {name: self.headers[name] for name in said["SignedHeaders"].split(";")}
        request = awsrequest.AWSRequest(self.command, f"http://{self.headers['Host']}{self.path}", headers=signed)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        signer = auth.S3SigV4Auth(credentials.Credentials(key, key), service, region)
        return said["Signature"] == signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)

    def pieces(self):
        """By key, where each begins and its size."""
        size = os.path.getsize(self.path_of_file)
        return {f"set/{number:03}.bin": (begins, min(PIECE_BYTES, size - begins))
                for number, begins in enumerate(range(0, size, PIECE_BYTES))}

    def answer(self, status, text="", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(text), "Content-Type": "application/xml", **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_HEAD(self):
        begins, size = self.pieces().get(self.path.removeprefix("/bucket/"), (0, 0))
        if not self.is_signed():
            self.answer(403)
        elif size:
            self.answer(200, Content_Length=size, ETag=f'"{begins}"', Last_Modified="Thu, 26 Nov 2026 00:00:00 GMT")
        else:
            self.answer(404)

    def do_GET(self):
        where = urllib.parse.urlsplit(self.path)
        begins, size = self.pieces().get(where.path.removeprefix("/bucket/"), (0, 0))
        if not self.is_signed():
            self.answer(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
        elif size:
            self.send_range(begins, begins, size)
        elif where.query:
            prefix = dict(urllib.parse.parse_qsl(where.query)).get("prefix", "")
            self.answer(200, "<ListBucketResult><IsTruncated>false</IsTruncated>" + "".join(
                f"<Contents><Key>{key}</Key><LastModified>2026-11-26T00:00:00.000Z</LastModified><ETag>&quot;{begins}&quot;</ETag>"
                f"<Size>{size}</Size></Contents>" for key, (begins, size) in self.pieces().items() if key.startswith(prefix))
                + "</ListBucketResult>")
        else:
            self.answer(404, "<Error><Code>NoSuchKey</Code></Error>")


def serve_store(path, cuts):
    import botocore.auth  # noqa: F401  # takes a while, which is not the first question's

    serve(Store, path, cuts)


def serve(kind, path, cuts):
    handler = type("Handler", (kind,), {"path_of_file": path, "cuts": cuts})
    server = http.server.ThreadingHTTPServer(("0.0.0.0", PORT), handler)
    print("{}", flush=True)
    server.serve_forever()


def serve_moto(path, cuts):
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
    kinds = {"http": lambda *given: serve(File, *given), "s3": serve_store, "moto": serve_moto}
    kinds[kind](file, Cuts(int(resets)))
