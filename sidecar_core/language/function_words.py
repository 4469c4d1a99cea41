"""Words that only join others, by language: articles, prepositions, conjunctions, pronouns.

The lists are short on purpose: published stop word lists also hold "fire" and "new"."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_LISTS = {
    "en": "a an and are as at be been but by for from had has have he her his i in into is it its "
    "my not of off on or our over s she that the their them these they this those to under was we "
    "were which who will with you your",
    "de": "aber als am an auch auf aus bei das dass dem den der des die durch ein eine einem einen "
    "einer eines er es für gegen hat im in ins ist mit nach nicht oder seine sich sie sind über um "
    "und unter vom von vor war was wer wie wird zu zum zur",
    "fr": "à au aux avec c ce ces d dans de des du elle en est et il ils j je l la le les leur n "
    "ne ou où par pas pour qu que qui s sa se ses son sont sous sur un une y",
    "es": "a al con de del e el ella en entre es esta este la las lo los no o para por que se sin "
    "son su sus un una y",
    "pt": "a à ao aos as com da das de do dos e em é entre na nas no nos não o os ou para pela "
    "pelo por que se sem seu sua são um uma",
    "it": "a ai al alla alle anche che con d da dal dalla degli dei del della delle dello di e è "
    "gli i il in l la le lo nel nella nei non o per più si sono su sul sulla tra un una uno",
    "nl": "aan als bij dat de die door een en er het hun in is met naar niet of om onder op over "
    "te ten tot uit van voor was wordt zijn",
    "sv": "att av de den det en ett från för har i inte med mot och om på som till under var är",
    "da": "af at de den der det en er et for fra har i ikke med mod og om på som til under var ved",
    "no": "av at de den det der en er et for fra har i ikke med mot og om på som til under var ved",
    "fi": "ei että ja joka kun ne on ovat se sekä tai vai",
    "pl": "a aby ale co dla do i jak jest na nad nie o od oraz po pod przez przy się są to w we z "
    "za ze że",
    "cs": "a ale aby do i je jako k ke na nad o od po pod pro při s se si u v ve z za ze že",
    "ro": "a al ai ale ca cu cea cel de din în între la nu o pe pentru prin sau se și un una",
    "hu": "a az és egy hogy is meg nem vagy",
    "tr": "bir bu da daha de en gibi ile için ki mi ve veya",
    "id": "adalah akan atau dalam dan dari di ini itu ke oleh pada untuk yang",
    "ca": "a al amb d de del dels el els en és i l la les o per que s un una",
    "el": "από για η ή και με να ο οι στη στην στις στο στον στους τα την της τις το του των τον "
    "σε που είναι",
    "ru": "а без в во для до и из или к ко на не но о об от по под при с со у что это",
    "uk": "а без в для до з за й і із на не о об від по під при та у що це як",
    "ar": "أن إلى أو التي الذي إن عن على في ما من مع هذا هذه هو هي و",
    "he": "או אל את הוא היא זה זו כי לא על עם של",
    "fa": "از است این آن با برای به بر در را که و یا",
    "hi": "और का की के को में से है हैं पर ने भी यह वह एक लिए या",
    "zh": "的 了 和 与 與 及 在 是 把 被 将 將 对 對 为 為 从 從 到 也 或 之 于 於",
    "ja": "の に を は が で と も へ や から まで より な た て する",
    "ko": "의 에 을 를 은 는 이 가 과 와 및 에서 으로 로",
    "th": "และ ของ ใน ที่ เป็น การ ให้ ได้ จะ กับ หรือ โดย จาก",
}

FUNCTION_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {language: frozenset(words.split()) for language, words in _LISTS.items()}
)
"""ISO 639-1 code → lower-case words."""
