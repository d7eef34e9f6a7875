"""Runs a command on a terminal of its own.

Reads lines of JSON. The first: command, env, cwd as they are; stdout is "terminal", or "pipe": then standard output is apart
from the screen. Each further line is a text that is typed. The end of them ends the command.

Writes lines of JSON: ["screen", text] and ["stdout", text] as they come, then ["end", exit code].
"""
import codecs, json, os, pty, select, subprocess, sys, termios, fcntl

told = json.loads(sys.stdin.buffer.raw.readline())
master, slave = pty.openpty()


def own_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


child = subprocess.Popen(
    told["command"], env=told["env"], cwd=told["cwd"], preexec_fn=own_terminal,
    stdin=slave, stderr=slave, stdout=slave if told["stdout"] == "terminal" else subprocess.PIPE,
)
os.close(slave)


def tell(kind, what):
    print(json.dumps([kind, what]), flush=True)


decoders = {source: (kind, codecs.getincrementaldecoder("utf-8")())
            for source, kind in [(master, "screen")] + ([(child.stdout.fileno(), "stdout")] if child.stdout else [])}
typed = b""
sources = {0, *decoders}
while sources & decoders.keys():
    for source in select.select(list(sources), [], [])[0]:
        try:
            chunk = os.read(source, 65536)
        except OSError:  # no process has the terminal open any more
            chunk = b""
        if not chunk:
            sources.remove(source)
            if source == 0:
                child.kill()
        elif source == 0:
            *lines, typed = (typed + chunk).split(b"\n")
            for line in lines:
                os.write(master, json.loads(line).encode())
        else:
            kind, decoder = decoders[source]
            tell(kind, decoder.decode(chunk))
tell("end", child.wait())
