"""The one exception for a user's mistake, and the search for the name that was probably meant."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence

AGAIN = "then start the same command again: it goes on where it stopped"
DISK_TROUBLE = {
    errno.ENOSPC: ("the disk is full", f"make room, {AGAIN}"),
    errno.EDQUOT: ("your quota of the disk is used up", f"make room, {AGAIN}"),
    errno.EROFS: ("the file system can only be read", f"make it writable, {AGAIN}"),
    errno.EACCES: ("access is not permitted", f"change the owner or the permissions, {AGAIN}"),
    errno.EPERM: ("access is not permitted", f"change the owner, the permissions or attributes, {AGAIN}"),
}
LONGEST_SENTENCE = 1000  # characters; a file may hold a key or a value of any length


class UserError(Exception):
    """A mistake that the user can correct. It is shown as one paragraph, without a traceback, in characters that a
    terminal prints.

    what      what is wrong, in plain words
    where     file and key, command-line option, or input that contains the mistake
    expected  what would have been right
    remedy    what to do
    errors    the mistakes themselves: this one, or those of `UserErrors`
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "", remedy: str = "") -> None:
        self.what, self.where, self.expected, self.remedy = what, where, expected, remedy
        self.errors: tuple[UserError, ...] = (self,)
        sentences = [f"{where}: {what}" if where else what]
        if expected:
            sentences.append(f"expected {expected}")
        if remedy:
            sentences.append(remedy)
        text = "; ".join(_cut(_without_end(sentence)) for sentence in sentences)
        super().__init__(_printed(text if text.endswith(("?", "...")) else text + "."))


def disk_trouble(error: BaseException, where: str = "") -> UserError | None:
    """Return the message for an error of the disk that the user can correct, None for other errors. where: file or
    folder to name if the error names none.
    """
    if not isinstance(error, OSError) or error.errno not in DISK_TROUBLE:
        return None
    what, remedy = DISK_TROUBLE[error.errno]
    return UserError(what, where=str(error.filename or where), remedy=remedy)


def _cut(sentence: str) -> str:
    """Return a sentence, with its middle left out if it is longer than LONGEST_SENTENCE."""
    half = LONGEST_SENTENCE // 2
    return sentence if len(sentence) <= LONGEST_SENTENCE else f"{sentence[:half]} ... {sentence[-half:]}"


def _printed(text: str) -> str:
    """Return a text without control characters of terminals: a file or the output of a script may contain any
    characters.
    """
    return "".join(sign if sign.isprintable() or sign == "\n" else "?" for sign in text)


def _without_end(sentence: str) -> str:
    """Return a sentence without its full stop; three dots are kept."""
    text = sentence.rstrip("; ")
    return text if text.endswith("...") else text.rstrip(".; ")


class UserErrors(UserError):
    """Several independent mistakes found together, each listed once; the text has one paragraph for each."""

    def __init__(self, errors: Iterable[UserError]) -> None:
        self.errors = tuple({str(error): error for error in errors}.values())
        Exception.__init__(self, "\n".join(str(error) for error in self.errors))


WHOLE_LIST = 30  # a message lists so many names completely, so that the right name is not hidden among "more"
MOST_NAMES = 12  # of a longer list, about two lines of a terminal; a study may have thousands of scenarios


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the valid name that was probably meant; empty if none is similar."""
    return next(iter(difflib.get_close_matches(name, sorted(set(valid)), n=1, cutoff=0.6)), "")


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return a sentence that names the most similar valid name, or lists the valid names if none is similar."""
    names = sorted(set(valid))
    if near := nearest(name, names):
        return f"did you mean '{near}'?"
    if not names:
        return "none is valid here"
    return f"valid: {', '.join(names) if len(names) <= WHOLE_LIST else shortened(names)}"


def shortened(names: Sequence[str]) -> str:
    """Return names as a list for a sentence; a long list is cut to its first names and the number of the others."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, as '1 seed' or '3 seeds'; many: the plural if it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
