"""The command `dos` as tests call it, and what it says where it refuses."""

from typer.testing import CliRunner, Result

from deep_oversampling import InputError, cli


def called(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments])


def refused(*arguments: object) -> str:
    """The one line that an error is."""
    result = called(*arguments)
    assert isinstance(result.exception, InputError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)
