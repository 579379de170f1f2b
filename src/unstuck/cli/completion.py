"""Print a script that completes unstuck's commands in your shell.

  unstuck completion bash    (or zsh, or fish; default: the shell you use)

It completes commands, options and their values, rules after `explain` and
demos after `demo`.
"""

from __future__ import annotations

import argparse
import os
import sys

from unstuck.cli import parser as parsers
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# To put it in place for good, from a shell of that kind.
INSTALL = {
    "bash": "mkdir -p ~/.local/share/bash-completion/completions && "
    "unstuck completion bash > ~/.local/share/bash-completion/completions/unstuck",
    "zsh": "echo 'eval \"$(unstuck completion zsh)\"' >> ~/.zshrc",
    "fish": "mkdir -p ~/.config/fish/completions && unstuck completion fish > ~/.config/fish/completions/unstuck.fish",
}

# zsh reads it too: `bashcompinit` gives it `complete` and `compgen`.
_BASH = """\
# unstuck: completion for {shell}. To keep it: {install}
{first}_unstuck() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
    local options="" values="" each
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    for each in "${{COMP_WORDS[@]:2:$((COMP_CWORD-2))}}"; do
        case "$each" in *.py|--) return ;; esac  # the rest is the script's
    done
    case "$command $before" in
{values}
    esac
    if [ -z "$values" ]; then
        case "$command" in
{options}
        esac
        case "$word" in -*) values="$options" ;; esac
    fi
    COMPREPLY=($(compgen -W "$values" -- "$word"))
}}
complete -o default -o bashdefault -F _unstuck unstuck
"""
_FIRST_IN_ZSH = (
    "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\nautoload -Uz bashcompinit && bashcompinit\n"
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "completion")
    parser.add_argument("shell", nargs="?", choices=tuple(INSTALL), help="the shell (default: that of $SHELL)")


def run(args: argparse.Namespace) -> int:
    shell = args.shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in INSTALL:
        raise UsageError(
            f"no completion for {shell}" if shell else "which shell is it?",
            cause=f"there is one for {', '.join(INSTALL)}",
            next_command="unstuck completion bash",
        )
    sys.stdout.write(_fish() if shell == "fish" else _bash(shell))
    if sys.stdout.isatty():
        print(f"  next: {INSTALL[shell]}", file=sys.stderr)
    return 0


def _bash(shell: str) -> str:
    values, options = [], []
    for command, parser in _commands():
        mine = [action for action in parser._actions if action.option_strings]
        for action in mine:
            if action.choices:
                flags = "|".join(f'"{command} {flag}"' for flag in action.option_strings)
                values.append(f'        {flags}) values="{" ".join(map(str, action.choices))}" ;;')
        flags = " ".join(flag for action in mine for flag in action.option_strings)
        options.append(f'            {command}) options="{flags}" values="{" ".join(_words(command, parser))}" ;;')
    return _BASH.format(
        shell=shell,
        install=INSTALL[shell],
        first=_FIRST_IN_ZSH if shell == "zsh" else "",
        commands=" ".join(command for command, _ in _commands()),
        values="\n".join(values),
        options="\n".join(options),
    )


def _fish() -> str:
    lines = [f"# unstuck: completion for fish. To keep it: {INSTALL['fish']}"]
    for command, parser in _commands():
        about = (parser.description or "").partition("\n")[0].rstrip(".")
        lines.append(f"complete -c unstuck -n __fish_use_subcommand -f -a {command} -d {_quoted(about)}")
        here = f"complete -c unstuck -n '__fish_seen_subcommand_from {command}'"
        for action in parser._actions:
            flags = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in action.option_strings]
            if flags and action.help != argparse.SUPPRESS:
                takes = f" -x -a '{' '.join(map(str, action.choices))}'" if action.choices else ""
                takes = takes or ("" if action.nargs == 0 else " -r")
                lines.append(f"{here} {' '.join(flags)}{takes} -d {_quoted(action.help or '')}")
        words = _words(command, parser)
        if words:
            lines.append(f"{here} -f -a '{' '.join(words)}'")
    return "\n".join(lines) + "\n"


def _commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    from unstuck.cli import build_parser

    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _words(command: str, parser: argparse.ArgumentParser) -> list[str]:
    """What can follow that is no option and no file."""
    if command == "explain":
        from unstuck.rules import RULES

        return [rule.name for rule in RULES]
    if command == "demo":
        from unstuck.cli.demo import available

        return list(available())
    positional = [action for action in parser._actions if not action.option_strings]
    return [str(choice) for action in positional for choice in action.choices or ()]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
