"""A small raw WebSocket client for tests: it can do what no decent client does."""
import base64
import json
import os
import socket
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The handshake got another answer than 101; status 0 = closed without one."""

    def __init__(self, status, head, body):
        super().__init__("handshake refused: %s" % (head.split("\r\n")[0] or "closed"))
        self.status, self.head, self.body = status, head, body


class Closed(Exception):
    def __init__(self, code, reason):
        super().__init__("closed %s %s" % (code, reason))
        self.code, self.reason = code, reason


def connect_socket(target, timeout=5, receive_buffer=None):
    """`target` is a port of 127.0.0.1, a (host, port), or the path of a Unix socket."""
    if isinstance(target, int):
        target = ("127.0.0.1", target)
    family = socket.AF_UNIX if not isinstance(target, tuple) else socket.AF_INET6 if ":" in target[0] else socket.AF_INET
    s = socket.socket(family)
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.settimeout(timeout)
    s.connect(target if isinstance(target, tuple) else str(target))
    return s


def read_head(s):
    """The head of an HTTP answer as text, and what came after it; an empty head when the connection was closed first."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            got = s.recv(4096)
        except ConnectionError:
            got = b""
        if not got:
            return "", data
        data += got
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def status_of(head):
    return int(head.split(" ")[1]) if head else 0


def raw_request(target, text, timeout=5):
    """Sends bytes, reads until the other side closes or stops for a moment: (status, head, body)."""
    with connect_socket(target, timeout) as s:
        s.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))
        head, body = read_head(s)
        length = next((int(l.split(":")[1]) for l in head.split("\r\n") if l.lower().startswith("content-length:")), None)
        if head.startswith("HTTP/1.1 304") or text[:4] in ("HEAD", b"HEAD"):
            length = 0
        while length is None or len(body) < length:
            try:
                got = s.recv(65536)
            except (socket.timeout, ConnectionError):
                break
            if not got:
                break
            body += got
        return status_of(head), head, body


class WebSocket:
    def __init__(self, target, path="/ws", protocols="gputap.v1", headers=None, timeout=5, receive_buffer=None, method="GET",
                 version="13", upgrade="websocket"):
        port = target if isinstance(target, int) else target[1] if isinstance(target, tuple) else 0
        fields = {"Host": "127.0.0.1:%d" % port if port else "localhost", "Upgrade": upgrade, "Connection": "Upgrade",
                  "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Version": version,
                  "Sec-WebSocket-Protocol": protocols}
        fields.update(headers or {})
        lines = ["%s: %s" % (k, v) for k, v in fields.items() if v is not None]
        self.socket = connect_socket(target, timeout, receive_buffer)
        try:
            self.socket.sendall(("%s %s HTTP/1.1\r\n%s\r\n\r\n" % (method, path, "\r\n".join(lines))).encode("latin-1"))
        except ConnectionError:
            pass
        head, self.data = read_head(self.socket)
        self.status, self.head = status_of(head), head
        if self.status != 101:
            try:
                self.data += self.socket.recv(65536)
            except (OSError, ConnectionError):
                pass
            self.socket.close()
            raise Refused(self.status, head, self.data)
        self.fragment = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # ---- sending ----

    def send_frame(self, opcode, payload=b"", final=True, mask=True, length=None):
        """`length`: what the header claims, where that is not the payload's."""
        claimed = len(payload) if length is None else length
        first = (0x80 if final else 0) | opcode
        bit = 0x80 if mask else 0
        if claimed < 126:
            header = struct.pack("!BB", first, bit | claimed)
        elif claimed < 65536:
            header = struct.pack("!BBH", first, bit | 126, claimed)
        else:
            header = struct.pack("!BBQ", first, bit | 127, claimed)
        key = os.urandom(4)
        if mask:
            payload = bytes(b ^ key[i % 4] for i, b in enumerate(payload))
            header += key
        self.socket.sendall(header + payload)

    def send(self, message):
        text = message if isinstance(message, str) else json.dumps(message)
        self.send_frame(TEXT, text.encode())

    # ---- receiving ----

    def _need(self, count):
        while len(self.data) < count:
            try:
                got = self.socket.recv(65536)
            except ConnectionError:
                got = b""
            if not got:
                raise Closed(1006, "")
            self.data += got

    def _take(self, count):
        self._need(count)
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def frame(self):
        """One frame: (opcode, final, payload)."""
        first, second = self._take(2)
        length = second & 127
        if length == 126:
            length = struct.unpack("!H", self._take(2))[0]
        elif length == 127:
            length = struct.unpack("!Q", self._take(8))[0]
        assert not second & 0x80, "a server does not mask"
        assert not first & 0x70, "no extension was agreed on"
        return first & 15, bool(first & 0x80), self._take(length)

    def receive(self, timeout=5):
        """The next message, decoded. Raises Closed, or TimeoutError."""
        self.socket.settimeout(timeout)
        while True:
            opcode, final, payload = self.frame()
            if opcode == CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
                try:
                    self.send_frame(CLOSE, payload[:2])
                except OSError:
                    pass
                raise Closed(code, payload[2:].decode())
            if opcode == PING:
                self.send_frame(PONG, payload)
            elif opcode in (TEXT, 0):
                self.fragment += payload
                if final:
                    text, self.fragment = self.fragment, b""
                    return json.loads(text.decode())

    def until(self, kind, timeout=5, also=None):
        """The next message of a type; what came before is appended to `also`."""
        end = time.monotonic() + timeout
        while True:
            message = self.receive(max(0.01, end - time.monotonic()))
            if message["type"] == kind:
                return message
            if also is not None:
                also.append(message)

    def closed(self, timeout=5, also=None):
        """Reads until the other side closes; returns (code, reason)."""
        end = time.monotonic() + timeout
        while True:
            try:
                message = self.receive(max(0.01, end - time.monotonic()))
                if also is not None:
                    also.append(message)
            except Closed as closed:
                return closed.code, closed.reason
