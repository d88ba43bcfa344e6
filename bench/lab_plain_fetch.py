"""Fetches what lies at an address over and over, hashes and writes it: lab_plain_fetch.py ADDRESS BYTES. It says "{}" after each piece."""

import hashlib
import http.client
import sys
import urllib.parse

PIECE_BYTES, BLOCK_BYTES = 8 << 20, 1 << 20

if __name__ == "__main__":
    where, size = urllib.parse.urlsplit(sys.argv[1]), int(sys.argv[2])
    link = http.client.HTTPConnection(where.netloc)
    with open("came.bin", "wb") as out:
        while True:
            out.seek(0)
            for at in range(0, size - PIECE_BYTES, PIECE_BYTES):
                link.request("GET", where.path, headers={"Range": f"bytes={at}-{at + PIECE_BYTES - 1}"})
                with link.getresponse() as answer:
                    while block := answer.read(BLOCK_BYTES):
                        hashlib.sha256(block).digest()
                        out.write(block)
                print("{}", flush=True)
