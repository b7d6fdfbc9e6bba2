"""A proxy that cuts connections in mid-call: `python -m tools.prove.proxy SOCKET TARGET`.

Each line on its input cuts one connection: `before` drops the next request that a client sends, `after` lets the next
request through and drops its answer. The client cannot tell which.
"""

import random
import selectors
import socket
import sys
from contextlib import suppress


class Link:
    """One client and its server. `cut` is what happens to the next thing that is sent."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.cut = ""

    def close(self, selector: selectors.BaseSelector) -> None:
        for end in (self.client, self.server):
            with suppress(KeyError, ValueError):
                selector.unregister(end)
            end.close()


def main(path: str, target: str) -> None:
    selector = selectors.DefaultSelector()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    selector.register(listener, selectors.EVENT_READ, None)
    selector.register(sys.stdin, selectors.EVENT_READ, "input")
    links: list[Link] = []
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(target)
                except OSError:
                    client.close()
                    server.close()
                    continue
                link = Link(client, server)
                links.append(link)
                for end in (client, server):
                    selector.register(end, selectors.EVENT_READ, link)
            elif key.data == "input":
                word = sys.stdin.readline().strip()
                if not word:
                    return
                links = [link for link in links if link.client.fileno() >= 0]
                if links:
                    random.choice(links).cut = word
            else:
                link = key.data
                if link.client.fileno() < 0:
                    continue
                source = key.fileobj
                other = link.server if source is link.client else link.client
                try:
                    data = source.recv(65536)  # type: ignore[union-attr]
                    doomed = link.cut == ("before" if source is link.client else "after")
                    if not data or doomed:
                        link.close(selector)
                    else:
                        other.sendall(data)
                except OSError:
                    link.close(selector)


if __name__ == "__main__":
    main(*sys.argv[1:])
