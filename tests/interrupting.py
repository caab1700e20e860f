"""An interrupt at each moment, one after the other, at which the interpreter handles signals."""

from __future__ import annotations

import dis
import sys
from functools import cache


@cache
def moments(code):
    """Offsets of the instructions before which the interpreter handles signals."""
    found, asked = set(), False
    for instruction in dis.get_instructions(code):
        if asked:
            found.add(instruction.offset)
        asked = instruction.opname.startswith(("RESUME", "CALL", "JUMP_BACKWARD"))
    return found


def interrupted(at, work, module):
    """Raise KeyboardInterrupt at the moment number ``at`` in a module; false if there is none."""
    left = at

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename != module.__file__ and frame.f_code is not work.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in moments(frame.f_code):
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False
