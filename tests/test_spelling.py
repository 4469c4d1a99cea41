"""Numbers, signs and entities in letters and digits."""

from __future__ import annotations

import pytest

from sidecar_core.language.spelling import spelled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,000 jobs", "1000 jobs"),
        ("1.000.000 Euro", "1000000 Euro"),
        ("12 500 000 euros", "12500000 euros"),
        ("12\u202f500 euros", "12500 euros"),
        ("10’000 Franken", "10000 Franken"),
        ("1,20,000 rupees", "120000 rupees"),
        ("1,234.5 km", "1234_5 km"),
        ("1.234,5 km", "1234_5 km"),
        ("1.5C, 0.125 and 2,75", "1_5C, 0_125 and 2_75"),
        ("١٬٠٠٠ and ١٫٥", "١٠٠٠ and ١_٥"),
        ("Python 3.12.1 of 24.12.2026", "Python 3_12_1 of 24_12_2026"),
        ("In 2020 100 came. 5, 6. 7", "In 2020 100 came. 5, 6. 7"),
        ("5% or 5 %", "5 percent or 5 percent"),
        ("at -5 or −3 degrees, 2020-2024", "at minus 5 or minus 3 degrees, 2020-2024"),
        ("C++, g++ and C#, F#; A# #c", "Cpp, gpp and Csharp, Fsharp; Asharp #c"),
        ("sea_level _a_ 1_5", "sea level  a  1_5"),
        ("Disney+ 1+1 a+b", "Disneyplus 1+1 a+b"),
        ("R&amp;D, R&amp;amp;D, R&D; &#39;x&#x27;", "R&D, R&D, R&D; 'x'"),
        ("&quot;a&quot; &#35;b &lbrack;c", " a   b  c"),
        ("&nbsp;&unknown; & &amp", "\u00a0&unknown; & &amp"),
    ],
)
def test_what_a_hashtag_cannot_hold_is_spelled_out(text: str, words: str) -> None:
    assert spelled(text) == words
