import pytest
from click.testing import CliRunner

from torchcompile_suite.cli.releases import app
from torchcompile_suite.releases import catalogue, environments

from ..conftest import NEWEST


def test_list_shows_every_release():
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    for release in catalogue.read():
        assert release.tag in result.stdout
    assert "aae54906" in result.stdout


@pytest.mark.parametrize("arguments", [["verify", "2.99"], ["lock", "nonsense"], ["lock", "2.4.9"]])
def test_bad_input_is_one_line(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_verify_proves_a_lock(tmp_path, monkeypatch, make_environment):
    # The new environment begins with the packages of the release, so uv has only to check them.
    # The environments of all other tests begin empty (tests/conftest.py).
    made = make_environment(NEWEST)
    monkeypatch.setattr(environments, "_create", lambda release, folder, python: made.copy(folder))
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path))
    result = CliRunner().invoke(app, ["verify", made.version])
    assert result.exit_code == 0, result.output
    assert f"git_version {environments.read_git_version(made.folder)}" in result.stdout
    assert list(tmp_path.iterdir()) == []
