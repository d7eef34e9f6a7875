"""Runs a command on a terminal of its own. Reads what to do as JSON, writes what came of it as JSON.

command, env, cwd   as they are
stdout              "terminal", or "pipe": then standard output is apart from the screen
typed               pairs: what the screen has to show, and what is typed then
"""
import json, os, pty, select, subprocess, sys, termios, fcntl, time

told = json.load(sys.stdin)
master, slave = pty.openpty()


def own_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


child = subprocess.Popen(
    told["command"], env=told["env"], cwd=told["cwd"], preexec_fn=own_terminal,
    stdin=slave, stderr=slave, stdout=slave if told["stdout"] == "terminal" else subprocess.PIPE,
)
os.close(slave)
screen, stdout, typed = b"", b"", list(told["typed"])
sources = [master] + ([child.stdout.fileno()] if child.stdout else [])
end = time.monotonic() + 60
while sources and time.monotonic() < end:
    for source in select.select(sources, [], [], 1)[0]:
        try:
            chunk = os.read(source, 65536)
        except OSError:  # a terminal that nobody has open any more
            chunk = b""
        if not chunk:
            sources.remove(source)
        elif source == master:
            screen += chunk
        else:
            stdout += chunk
    if typed and typed[0][0].encode() in screen:
        os.write(master, typed.pop(0)[1].encode())
child.kill() if sources else None
json.dump({"code": child.wait(), "screen": screen.decode(), "stdout": stdout.decode()}, sys.stdout)
