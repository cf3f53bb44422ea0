"""Commands in processes of their own that need no time to begin: they are forked from one that has loaded all modules.

`python -m pointing` loads torch for two seconds. What depends on how Python itself begins (closed streams, the locale,
what is installed) is tested with that, by `tiny.command`; everything else with these.
"""

import atexit
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

LOADED = [
    "torch._dynamo",  # which torch loads when an optimiser is made
    "pointing.cli",
    "pointing.demo",
    "pointing.generation.command",
    "pointing.init.initialize",
    "pointing.evaluation.calibration",
    "pointing.evaluation.evaluate",
    "pointing.reproduce.rarest_word_runs",
    "pointing.server.serve",
    "pointing.sharing",
    "pointing.training.check",
    "pointing.training.loop",
    "pointing.translation.translate",
]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(LOADED)


class Forked:
    """A command that runs; its streams are files. It can be waited for and killed as `subprocess.Popen` can."""

    def __init__(self, *arguments, stdout, stderr, stdin=os.devnull, cwd=None, env=None, limits=None):
        """`limits` are what the process may use: numbers of `resource.RLIMIT_…` and how much of each."""
        streams = [
            (str(stdin), os.O_RDONLY),
            *((str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in (stdout, stderr)),
        ]
        self.arguments = list(map(str, arguments))
        asked = (
            self.arguments,
            str(cwd or Path.cwd()),
            dict(os.environ if env is None else env),
            streams,
            limits or {},
        )
        self.process = CONTEXT.Process(target=_command, args=asked)
        self.process.start()
        self.pid = self.process.pid

    @property
    def returncode(self):
        return self.process.exitcode

    def poll(self):
        return self.process.exitcode

    def wait(self, timeout=None):
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired(self.arguments, timeout)
        return self.process.exitcode

    def send_signal(self, number):
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


def run(*arguments, lines=b"", cwd=None, env=None, text=True, timeout=300):
    """A command to its end: exit code, standard output and error, as text or as bytes."""
    with TemporaryDirectory(prefix="pointing-test-") as folder:
        streams = {name: Path(folder, name) for name in ("stdin", "stdout", "stderr")}
        streams["stdin"].write_bytes(lines)
        process = Forked(*arguments, **streams, cwd=cwd, env=env)
        try:
            process.wait(timeout)
        finally:
            process.kill()
        said = [streams[name].read_bytes() for name in ("stdout", "stderr")]
    out, error = (each.decode() for each in said) if text else said
    return subprocess.CompletedProcess(process.arguments, process.returncode, out, error)


def _command(arguments, folder, environment, streams, limits):
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, (path, flags) in enumerate(streams):
        opened = os.open(path, flags, 0o666)
        os.dup2(opened, number)
        os.close(opened)
    for number, most in limits.items():
        resource.setrlimit(number, (most, most))
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv = ["pointing", *arguments]
    from pointing.cli import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which multiprocessing leaves out
