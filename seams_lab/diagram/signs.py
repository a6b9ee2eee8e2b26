"""The signs of the notation, as SVG paths, and the badges that stand beside timers."""

from __future__ import annotations

from dataclasses import dataclass

from seams_lab.errors import UnusableInput

# Tone: (line, fill, text) colours and the glyph, a path in a square of 12 by 12. The colours
# are told apart with any kind of colour vision; the glyph says the same without colour.
TONES: dict[str, tuple[str, str, str, str]] = {
    "ok": ("#1f6fb5", "#e8f2fb", "#111111", "M1,6.5L4.5,10L11,2"),
    "warning": ("#b36b00", "#fff3d9", "#111111", "M6,1L11.5,11H.5ZM6,4.5V7.5M6,9V9.6"),
    "refused": ("#bd1f01", "#fdeae6", "#111111", "M2,2L10,10M10,2L2,10"),
    "off": ("#6b7675", "#f3f4f4", "#333333", "M1,6H11"),
    "dead": ("#111111", "#3a3a3a", "#ffffff", "M6,1V11M2,7L6,11L10,7"),
}


# Signs inside events, drawn around the origin inside a circle of radius 18.
EVENT_SIGNS = {
    "timer": "M0,-9A9,9 0 1 0 .01,-9ZM0,-6V0L4.5,2.5M0,-9V-7M0,9V7M-9,0H-7M9,0H7",
    "message": "M-8,-5.5H8V5.5H-8ZM-8,-5.5L0,1L8,-5.5",
    "error": "M-7,6L-3,-6L2,2L7,-6L3,7L-2,-1Z",
    "signal": "M0,-8L8,6H-8Z",
    "escalation": "M0,-8L6,8L0,2L-6,8Z",
    "terminate": "M0,-9A9,9 0 1 0 .01,-9Z",
    "conditional": "M-6,-8H6V8H-6ZM-4,-4H4M-4,0H4M-4,4H4",
    "link": "M-8,-3H2V-7L9,0L2,7V3H-8Z",
    "compensate": "M0,-6V6L-8,0ZM8,-6V6L0,0Z",
    "cancel": "M-7,-5L-5,-7L0,-2L5,-7L7,-5L2,0L7,5L5,7L0,2L-5,7L-7,5L-2,0Z",
    "multiple": "M0,-8L8,-2L5,7H-5L-8,-2Z",
    "parallelMultiple": "M-2,-8H2V-2H8V2H2V8H-2V2H-8V-2H-2Z",
}


# Signs of tasks, in a square of 16 by 16; the flag says whether the sign is filled.
TASK_SIGNS = {
    "userTask": ("M8,1A3.5,3.5 0 1 0 8.01,1ZM1.5,15C1.5,8 14.5,8 14.5,15Z", False),
    "serviceTask": (
        "M8,3.2A4.8,4.8 0 1 0 8.01,3.2ZM8,6.2A1.8,1.8 0 1 0 8.01,6.2ZM8,.4V3.2M8,12.8V15.6"
        "M.4,8H3.2M12.8,8H15.6M2.6,2.6L4.6,4.6M11.4,11.4L13.4,13.4M13.4,2.6L11.4,4.6"
        "M4.6,11.4L2.6,13.4",
        False,
    ),
    "scriptTask": ("M4,1H14C10,5 14,9 11,15H1C5,10 1,6 4,1ZM5.5,5H11M5,8H11M5,11H10.5", False),
    "manualTask": ("M1,6L5,2H9L8,4H15V6H9M15,6V8H9M14,8V10H9M13,10V12.5H5L1,10Z", False),
    "businessRuleTask": ("M1,2H15V14H1ZM1,5.5H15M1,10H15M5.5,5.5V14", False),
    "sendTask": ("M1,3H15V13H1ZM1,3L8,9L15,3", True),
    "receiveTask": ("M1,3H15V13H1ZM1,3L8,9L15,3", False),
}


GATEWAY_SIGNS = {
    "exclusiveGateway": "M-8,-9L8,9M8,-9L-8,9",
    "parallelGateway": "M0,-11V11M-11,0H11",
    "inclusiveGateway": "M0,-10A10,10 0 1 0 .01,-10Z",
    "complexGateway": "M0,-11V11M-11,0H11M-8,-8L8,8M8,-8L-8,8",
    "eventBasedGateway": "M0,-13A13,13 0 1 0 .01,-13ZM0,-10.5A10.5,10.5 0 1 0 .01,-10.5Z"
    "M0,-7L7,-1.5L4.5,6H-4.5L-7,-1.5Z",
}


@dataclass(frozen=True)
class Badge:
    """What is written beside a timer.

    Parameters
    ----------
    text : str
        A few words: ``daily 08:00Z``, ``NO_START``. More than 34 characters are cut in the
        picture and kept in its text alternative.
    tone : str
        ``ok``, ``warning``, ``refused``, ``off`` (out of scope, not lifted) or ``dead``
        (nobody is left to fire it). Any other tone raises `UnusableInput`.
    """

    text: str
    tone: str

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise UnusableInput(
                "Badge",
                f"tone {self.tone!r}",
                f"one of {', '.join(TONES)}",
                "use one of these tones",
            )
