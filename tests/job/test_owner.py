from __future__ import annotations

import subprocess
import sys

from job.analyse.owner import Owner


def test_an_owner_that_was_killed_is_known_to_be_gone_before_it_is_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        watch = Owner(pid=process.pid).watch()
        assert watch.alive()
        process.kill()
        while watch.alive():
            pass
    assert not Owner(pid=process.pid).watch().alive()


def test_an_owner_elsewhere_counts_as_alive() -> None:
    assert Owner(host="another machine", pid=1).watch().alive()
