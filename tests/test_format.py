import subprocess

from paths import ROOT


def test_sources_are_formatted():
    done = subprocess.run([ROOT / "scripts" / "format", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
