"""Where a tag stands, by the stated rule, in many languages."""

from __future__ import annotations

import time

import pytest

from sidecar_core.grounding import MAX_PASSAGE, Texts, ground, is_in, names, split, stems
from sidecar_core.language.stems import language_of

SUMMARY = "Blue Bell recalled ice-cream products. Three patients died in a Kansas hospital."
DOCUMENT = (
    "Blue Bell recalled ice cream. The company's Broken Arrow, Oklahoma, plant was shut. "
    "Officials at the Centers for Disease Control were warned."
)


@pytest.mark.parametrize(
    "family",
    [
        ("recall", "recalls", "recalled", "recalling"),
        ("bakery", "bakeries"),
        ("plan", "plans", "planned", "planning"),
        ("illness", "illnesses"),
        ("bake", "baked", "baking"),
        ("box", "boxes"),
        ("study", "studies", "studied"),
    ],
)
def test_the_forms_of_a_word_share_a_stem(family: tuple[str, ...]) -> None:
    assert len({stems(word, "en") for word in family}) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [("new", "news"), ("bus", "bust"), ("plan", "plant"), ("thin", "thing"), ("car", "care")],
)
def test_different_words_keep_different_stems(a: str, b: str) -> None:
    assert stems(a, "en") != stems(b, "en")


def test_without_a_sure_language_there_are_no_stems() -> None:
    assert language_of("ok") == language_of("Bell") == language_of("😀" * 50) == ""
    assert stems("plans") == {"plans"}


@pytest.mark.parametrize(
    ("tag", "place", "words"),
    [
        ("ice-cream", "summary", ()),
        ("product-recall", "summary", ()),
        ("brokenarrow", "document", ("broken", "arrow")),
        ("broken-arrow-plant", "document", ("broken", "arrow", "plant")),
        ("oklahoma-plants", "document", ("oklahoma", "plants")),
        ("broken-hospital", "document", ("broken",)),
        ("oklahoma-salmonella", "document", ("oklahoma",)),
        ("kansas-salmonella", "neither", ("salmonella",)),
        ("of-the", "neither", ()),
        ("the-hospital", "summary", ()),
        ("", "neither", ()),
    ],
)
def test_one_word_that_stands_only_in_the_document_is_a_leak(
    tag: str, place: str, words: tuple[str, ...]
) -> None:
    found = ground(tag, SUMMARY, DOCUMENT)
    assert (found.place, found.words) == (place, words)


GERMAN = (
    "Der Hafenrat hat am Montag beschlossen, dass es im Hafen eine neue Rundfahrt für Besucher "
    "gibt. Die Straßenbahn nach München fährt weiter, sagte Bürgermeisterin Öztürk.",
    "Im Hafen gibt es bald etwas Neues für die Besucher der Stadt.",
)
FRENCH = (
    "Le conseil du port a décidé lundi de remplacer deux bateaux diesel par des navires "
    "électriques. Le prix de l’énergie a baissé, selon la mairie de Marseille.",
    "Le port remplace ses bateaux. Le prix de l’énergie a baissé cette année.",
)
SPANISH = (
    "El consejo del puerto decidió el lunes sustituir dos barcos diésel por naves eléctricas. "
    "La alcaldesa de Málaga espera menos ruido.",
    "El puerto va a sustituir dos barcos por naves eléctricas este año.",
)
PORTUGUESE = (
    "O conselho do porto decidiu na segunda-feira substituir dois barcos a gasóleo. A poluição "
    "em Lisboa vai diminuir, disse o presidente da câmara.",
    "O porto vai substituir dois barcos e a poluição vai diminuir.",
)
TURKISH = (
    "Liman kurulu pazartesi günü iki dizel vapuru değiştirmeye karar verdi. İstanbul'da ışıklar "
    "yenilendi ve Kadıköy iskelesi kapandı.",
    "Liman kurulu vapurları değiştiriyor. İstanbul'da ışıklar yenilendi.",
)
RUSSIAN = (
    "Совет порта решил в понедельник заменить два дизельных парома электрическими. Мэр Казани "
    "ждёт меньше шума.",
    "Порт заменит дизельные паромы. Мэр ждёт меньше шума.",
)
ARABIC = (
    "قرر مجلس الميناء يوم الاثنين استبدال عبارتين تعملان بالديزل بأخرى كهربائية. وقال العمدة في "
    "الإسكندرية إن الضوضاء ستقل.",
    "قرر مجلس الميناء استبدال عبارتين بأخرى كهربائية هذا العام.",
)
HINDI = (
    "मुंबई में नई रेल सेवा की तैयारी शुरू हुई। यात्रियों को राहत मिलेगी।",
    "मुंबई में नई रेल सेवा की तैयारी शुरू हुई।",
)
CHINESE = (
    "港口委员会周一决定，明年春天用电动渡轮取代两艘柴油渡轮。市长表示，新船将减少噪音和废气。",
    "港口将用电动渡轮取代柴油渡轮。",
)
JAPANESE = (
    "東京都の港湾委員会は月曜日、ディーゼルフェリーを電動フェリーに置き換えると決めた。"
    "市長は騒音が減ると話した。",
    "東京都は電動フェリーを導入する。",
)
THAI = (
    "สภาท่าเรือตัดสินใจเปลี่ยนเรือข้ามฟากดีเซลเป็นเรือไฟฟ้าในฤดูใบไม้ผลิ นายกเทศมนตรีคาดว่าเสียงรบกวนจะลดลง",
    "สภาท่าเรือตัดสินใจเปลี่ยนเรือข้ามฟาก",
)
KHMER = (
    "គណៈកម្មាធិការកំពង់ផែបានសម្រេចប្តូរសាឡាងម៉ាស៊ូតទៅជាសាឡាងអគ្គិសនី។",
    "គណៈកម្មាធិការកំពង់ផែបានសម្រេច។",
)
KOREAN = (
    "서울시는 월요일 디젤 여객선 두 척을 전기 여객선으로 바꾸기로 했다. "
    "시장은 소음이 줄 것이라고 말했다.",
    "서울시는 여객선을 전기로 바꾼다.",
)
SWEDISH = (
    "Hamnstyrelsen beslutade i måndags att ersätta två dieselfärjor med elektriska färjor. "
    "Borgmästaren i Göteborg väntar sig mindre buller.",
    "Hamnen ska ersätta sina gamla färjor med elektriska i vår.",
)


@pytest.mark.parametrize(
    ("texts", "tag", "place", "words"),
    [
        (GERMAN, "besuchern", "summary", ()),
        (GERMAN, "hafen", "summary", ()),
        (GERMAN, "muenchen", "document", ("muenchen",)),
        (GERMAN, "strassenbahn", "document", ("strassenbahn",)),
        (GERMAN, "hafen-öztürk", "document", ("öztürk",)),
        # a compound: all of its parts support it, one of them does not
        (GERMAN, "hafenrundfahrt", "document", ("rundfahrt",)),
        ((GERMAN[1], GERMAN[0]), "hafenrundfahrt", "summary", ()),
        ((GERMAN[1], GERMAN[1]), "hafenrundfahrt", "neither", ("hafenrundfahrt",)),
        (("Die Hafenrundfahrt beginnt am Montag.", "Am Hafen."), "hafenrundfahrt", "document",
         ("hafenrundfahrt",)),
        (("", "Die Hafenrundfahrt beginnt."), "hafen-rundfahrt", "summary", ()),
        (FRENCH, "prix-de-l-énergie", "summary", ()),
        (FRENCH, "lénergie", "summary", ()),
        (FRENCH, "energie", "summary", ()),
        (FRENCH, "bateau", "summary", ()),
        (FRENCH, "port-de-marseille", "document", ("marseille",)),
        (SPANISH, "nave-electrica", "summary", ()),
        (SPANISH, "alcaldesa-del-puerto", "document", ("alcaldesa",)),
        (SPANISH, "malaga", "document", ("malaga",)),
        (PORTUGUESE, "poluicao", "summary", ()),
        (PORTUGUESE, "barco", "summary", ()),
        (PORTUGUESE, "porto-de-lisboa", "document", ("lisboa",)),
        (TURKISH, "istanbul", "summary", ()),
        (TURKISH, "vapur", "summary", ()),
        (TURKISH, "isiklar", "summary", ()),
        (TURKISH, "kadikoy", "document", ("kadikoy",)),
        (RUSSIAN, "дизельный-паром", "summary", ()),
        (RUSSIAN, "ждет-мэр", "summary", ()),
        (RUSSIAN, "казань-порт", "document", ("казань",)),
        (RUSSIAN, "трамвай", "neither", ("трамвай",)),
        (ARABIC, "ميناء", "summary", ()),
        (ARABIC, "الإسكندرية", "document", ("الإسكندرية",)),
        (HINDI, "रेल-सेवा", "summary", ()),
        (HINDI, "राम", "neither", ("राम",)),
        (HINDI, "मेरी", "neither", ("मेरी",)),
        (HINDI, "मुंबई-यात्रियों", "document", ("यात्रियों",)),
        (CHINESE, "渡轮", "summary", ()),
        (CHINESE, "电动渡轮", "summary", ()),
        (CHINESE, "港口的渡轮", "summary", ()),
        (CHINESE, "渡轮噪音", "document", ("噪音",)),
        (CHINESE, "飞机", "neither", ("飞机",)),
        (JAPANESE, "フェリー", "summary", ()),
        (JAPANESE, "東京", "summary", ()),
        (JAPANESE, "京都", "neither", ("京都",)),
        (JAPANESE, "電動フェリー", "summary", ()),
        (JAPANESE, "騒音", "document", ("騒音",)),
        (THAI, "ท่าเรือ", "summary", ()),
        (THAI, "ดีเซล", "document", ("ดีเซล",)),
        (KHMER, "កំពង់ផែ", "summary", ()),
        (KHMER, "អគ្គិសនី", "document", ("អគ្គិសនី",)),
        (KOREAN, "서울시", "summary", ()),
        (KOREAN, "전기-여객선", "summary", ()),
        (KOREAN, "여객선-소음", "document", ("소음",)),
        (SWEDISH, "elektrisk-färja", "summary", ()),
        (SWEDISH, "göteborg", "document", ("göteborg",)),
    ],
)  # fmt: skip
def test_a_tag_is_grounded_in_its_own_language(
    texts: tuple[str, str], tag: str, place: str, words: tuple[str, ...]
) -> None:
    article, summary = texts
    found = ground(tag, summary, article)
    assert (found.place, found.words) == (place, words)


US = "The U.S. economy grew by 1.5 percent, and 1,000 jobs came back, they told us."


@pytest.mark.parametrize(
    ("article", "summary", "tag", "place", "words"),
    [
        # the acronym is not the pronoun
        (US, "They told us that the economy grew.", "us-economy", "document", ("us",)),
        (US, "The US economy grew.", "us-economy", "summary", ()),
        ("The economy grew, they told us.", "They told us: the economy grew.", "us-economy",
         "neither", ("us",)),
        ("IT jobs came back to the town.", "It has jobs.", "it-jobs", "document", ("it",)),
        ("It has jobs again, said the mayor.", "It has jobs.", "it-jobs", "summary", ()),
        ("AIDS research got more money.", "The state aids research.", "aids-research", "document",
         ("aids",)),
        ("NASA launched it.", "Nasa launched a probe.", "nasa", "summary", ()),
        ("WHO REPORT SAYS US SHOULD PAY\nThe report is out.", "The report is out.", "who-report",
         "summary", ()),
        # numbers
        (US, "Jobs came back.", "1000-jobs", "document", ("1000",)),
        (US, "1 000 jobs came back.", "1000-jobs", "summary", ()),
        (US, "It grew by 1.5 %.", "1_5-percent", "summary", ()),
        (US, "It grew by 15 percent.", "1_5-percent", "document", ("1_5",)),
        ("Keep to the 1.5 °C limit.", "Keep to 1.5°C.", "1_5c", "summary", ()),
        # signs, entities, emoji
        ("R&amp;D spending rose.", "R&amp;D spending rose.", "r-d", "summary", ()),
        ("R&amp;D spending rose.", "R&amp;D spending rose.", "r-amp", "neither", ("amp",)),
        ("They use C++ and C#.", "They use C++.", "cpp", "summary", ()),
        ("They use C++ and C#.", "They use C++.", "csharp", "document", ("csharp",)),
        ("Fire🔥truck 👩‍🚒 wins", "The fire🔥truck 👩‍🚒 wins.", "fire-truck", "summary", ()),
        # words run together, in one tag and across both texts
        (DOCUMENT, SUMMARY, "icecream", "summary", ()),
        (DOCUMENT, "A blaze was put out at a plant.", "oklahomablaze", "document", ("oklahoma",)),
        (DOCUMENT, "A blaze was put out at a plant.", "oklahoma-blaze", "document", ("oklahoma",)),
        (DOCUMENT, SUMMARY, "bluebellplants", "document", ("plants",)),
        # a summary in another language than its article
        (CHINESE[0], "The harbour council will replace two diesel ferries with electric ones by "
         "next spring, and the mayor expects less noise.", "ferry", "summary", ()),
    ],
)  # fmt: skip
def test_acronyms_numbers_signs_and_words_run_together(
    article: str, summary: str, tag: str, place: str, words: tuple[str, ...]
) -> None:
    found = ground(tag, summary, article)
    assert (found.place, found.words) == (place, words)


def test_letters_run_together_must_be_whole_words() -> None:
    assert is_in("icecream", "They sold ice cream.")
    assert is_in("icecream", "They sold ice creams.")
    assert not is_in("rice", "Their ice was gone.")
    assert not is_in("arrow", "A narrow street.")
    assert not is_in("usa", "They told us a story.")


def test_a_word_is_cut_into_the_fewest_words_or_not_at_all() -> None:
    known = {"broken", "arrow", "plant", "brokenarrow", "hafen", "arbeit"}

    def cut(word: str, *links: str) -> tuple[str, ...]:
        return split(word, known, lambda last: last == "plants", links)

    assert cut("brokenarrowplant") == ("brokenarrow", "plant")
    assert cut("arrowplants") == ("arrow", "plants")
    assert cut("arrowx") == ("arrowx",)
    assert cut("hafensarbeit", "s") == ("hafen", "arbeit")
    assert cut("hafenarbeits", "s") == cut("hafenarbeits") == ("hafenarbeits",)
    assert cut("plant") == ("plant",)
    assert cut("plant" * 20) == ("plant" * 20,)


@pytest.mark.parametrize(
    ("tag", "fact", "texts"),
    [
        ("iran", "iran", ()),
        ("iran-deal", "Iran", ()),
        ("tehraniran", "Iran", ("Talks in Tehran.",)),
        ("电动渡轮", "渡轮", ()),
        ("harbour-ferries", "ferry", (US, "Two ferries left the harbour on Monday.")),
        ("i̇stanbul-limanı", "İSTANBUL", ()),
    ],
)
def test_a_watched_word_is_named_whole(tag: str, fact: str, texts: tuple[str, ...]) -> None:
    assert names(tag, fact, texts)


@pytest.mark.parametrize(
    ("tag", "fact", "texts"),
    [
        ("tirana", "iran", ()),
        ("tirana", "iran", ("Iran and Tirana met.",)),
        ("carpet", "car", ()),
        ("東京都", "京都", ()),
        ("मुंबई", "म", ()),
        ("iran", "", ()),
    ],
)
def test_part_of_a_word_does_not_name_a_fact(tag: str, fact: str, texts: tuple[str, ...]) -> None:
    assert not names(tag, fact, texts)


def test_the_passage_is_the_sentence_that_shows_it() -> None:
    assert ground("blue-bell", SUMMARY, DOCUMENT).passage.startswith("Blue Bell recalled ice-cream")
    assert ground("broken-arrow", "", DOCUMENT).passage.startswith("The company's Broken Arrow")
    assert ground("brokenarrow", "", DOCUMENT).passage.startswith("The company's Broken Arrow")
    assert ground("噪音", CHINESE[1], CHINESE[0]).passage.startswith("市长表示")
    assert ground("salmonella", SUMMARY, DOCUMENT).passage == ""


def test_a_long_passage_is_cut_around_the_word() -> None:
    text = "word " * 300 + "listeria " + "word " * 300
    found = ground("listeria", "", text).passage
    assert "listeria" in found
    assert len(found) <= MAX_PASSAGE + 2


@pytest.mark.parametrize("text", ["", " ", "\ud800", "a\ud800b", "&amp;" * 50, "1,0" * 99, "\x00"])
def test_any_text_can_be_asked(text: str) -> None:
    assert ground("harbour", text, text).place == "neither"
    assert ground(text, SUMMARY, DOCUMENT).place in ("summary", "document", "neither")


def test_a_long_article_is_indexed_once_and_quickly() -> None:
    article = " ".join(f"{DOCUMENT} Number{n} {'x' * (n % 9)}" for n in range(600))
    started = time.process_time()
    texts = Texts(SUMMARY, article)
    first = time.process_time() - started
    texts.ground("oklahoma")
    started = time.process_time()
    for tag in ("oklahomasalmonella", "x" * 60, "number7-number8", "arrow", "ice") * 10:
        texts.ground(tag)
    again = time.process_time() - started
    assert len(article) > 80_000
    assert first < 5
    assert again < 5 * first
