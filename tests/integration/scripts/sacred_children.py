"""Starts Python in the ways there are, with environments of their own; the pid of each goes to the folder it is given.

Each child prints what it sees of its environment.
"""

import os
import subprocess
import sys

folder = sys.argv[1]
CHILD = """
import json, os, sys
seen = {name: value for name, value in os.environ.items() if name not in ("LC_CTYPE", "UNSTUCK_FLIGHT_DIR")}
told = seen if len(seen) < 4 else [len(seen), seen.get("PYTHONPATH")]
print(sys.argv[1], json.dumps(told), sys.path[1:2], flush=True)
with open(os.path.join(sys.argv[2], sys.argv[1]), "w") as file:
    print(os.getpid(), file=file)
if len(sys.argv) > 3:
    import subprocess
    subprocess.run([sys.executable, "-c", sys.argv[3], sys.argv[1] + " of it", sys.argv[2]])
sys.exit(3)
"""


def words(name, *more):
    return [sys.executable, "-c", CHILD, name, folder, *more]


def ended(name, code):
    print("ended", name, code, flush=True)


def run(name, env, *more, python=sys.executable, **options):
    before = dict(env or {})
    done = subprocess.run([python, *words(name, *more)[1:]], env=env, check=False, **options)
    assert before == dict(env or {}), "it is the script's own"
    ended(name, done.returncode)


def waited(name, pid):
    ended(name, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


some = {"PATH": os.environ["PATH"], "PYTHONPATH": "/my/own"}
run("inherited", None)
run("nothing", {})
run("nothing, with a child", {}, CHILD)
run("own path", some)
run("empty path", {"PYTHONPATH": ""})
run("bytes", {b"A": b"1"})
run("copied", {**os.environ, "MORE": "1"})
run("without PYTHONPATH", {name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
run("prepared", {}, preexec_fn=lambda: None)
run("not closing", {}, close_fds=False)
link = os.path.join(folder, "python3")
os.symlink(sys.executable, link)
run("by a link", {}, python=link)
run("by name", {"PATH": folder}, python="python3")
waited("posix_spawn", os.posix_spawn(sys.executable, words("posix_spawn"), {}))
waited("posix_spawn, own", os.posix_spawn(sys.executable, words("posix_spawn, own"), os.environ))
ended("spawnve", os.spawnve(os.P_WAIT, sys.executable, words("spawnve"), {}))
for name in ("execve", "execvpe"):
    child = os.fork()
    if child == 0:
        if name == "execve":
            os.execve(sys.executable, words(name), {})
        os.execvpe("python3", words(name), {"PATH": folder})
    waited(name, child)
try:
    subprocess.run([os.path.join(folder, "nothing-here")], env={}, check=False)
except FileNotFoundError as error:
    print(error.errno, flush=True)
subprocess.run(["sh", "-c", 'echo "$PYTHONPATH" "$UNSTUCK_FLIGHT_DIR"'], env={}, check=True)
os.environ.clear()
run("cleared", None)
print(sorted(os.environ), flush=True)
