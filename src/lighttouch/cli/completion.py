"""Completion scripts, made from the parser so that they never fall behind it."""

from __future__ import annotations

import argparse

Words = dict[str, tuple[str, list[str]]]  # command -> (what it does, options)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    words = commands(parser)
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](words)


def commands(parser: argparse.ArgumentParser) -> Words:
    group = next(
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    summaries = {choice.dest: choice.help or "" for choice in group._choices_actions}
    return {name: (summaries.get(name, ""), _options(sub)) for name, sub in group.choices.items()}


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return sorted(
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    )


def _bash(words: Words) -> str:
    cases = "\n".join(
        f'    {name}) options="{" ".join(options)}" ;;' for name, (_, options) in words.items()
    )
    return f"""\
_lighttouch() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" options=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(words)} --help --version" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) [ "${{COMP_WORDS[1]}}" = completion ] && COMPREPLY=($(compgen -W "bash zsh fish" -- "$current")) ;;
  esac
}}
complete -o default -o bashdefault -F _lighttouch lighttouch
"""


def _zsh(words: Words) -> str:
    listed = "\n".join(f"    '{name}:{_quoted(about)}'" for name, (about, _) in words.items())
    cases = "\n".join(
        f"    {name}) _arguments '*:file:_files' {' '.join(options)} ;;"
        for name, (_, options) in words.items()
    )
    return f"""\
#compdef lighttouch
_lighttouch() {{
  local -a commands
  commands=(
{listed}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "${{words[2]}}" in
{cases}
  esac
}}
compdef _lighttouch lighttouch
"""


def _fish(words: Words) -> str:
    lines = ["complete -c lighttouch -n __fish_use_subcommand -f"]
    for name, (about, options) in words.items():
        lines.append(
            f"complete -c lighttouch -n __fish_use_subcommand -f -a {name} -d '{_quoted(about)}'"
        )
        lines += [
            f"complete -c lighttouch -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
            for option in options
        ]
    lines.append(
        "complete -c lighttouch -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'"
    )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("'", "").replace(":", ",")
