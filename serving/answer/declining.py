"""What a decline says, in the language of the question where that is known.

The codes are :class:`~serving.answer.types.DeclineReason` and :class:`~serving.answer.types.RefusalCause`; these
sentences are for people, and may be reworded.
"""

from __future__ import annotations

from serving.answer.types import DeclineReason, RefusalCause

__all__ = ["FALLBACK", "LANGUAGES", "in_english", "message"]

FALLBACK = "en"

_REASONS = (
    DeclineReason.NOT_IN_PASSAGES,
    DeclineReason.NOTHING_RETRIEVED,
    DeclineReason.NOTHING_PROVEN,
    DeclineReason.REFUSED,
    RefusalCause.UNGROUNDED,
    RefusalCause.FABRICATED_CITATION,
)

# By ISO 639-1 code, one sentence for each of the reasons above, in that order.
_SENTENCES = {
    "en": (
        "The passages that were found do not answer this question.",
        "Nothing in the index bears on this question.",
        "No statement of the answer could be proven from the passages that were found.",
        "The answer that was written did not hold, so it was refused.",
        "The answer that was written cited nothing, so it was refused.",
        "The answer that was written cited a passage it was not given, so it was refused.",
    ),
    "ar": (
        "المقاطع التي عُثر عليها لا تجيب عن هذا السؤال.",
        "لا يوجد في الفهرس ما يتعلق بهذا السؤال.",
        "لم يمكن إثبات أي عبارة من الإجابة بالمقاطع التي عُثر عليها.",
        "لم تصمد الإجابة المكتوبة عند التحقق، فرُفضت.",
        "الإجابة المكتوبة لم تستشهد بأي مصدر، فرُفضت.",
        "الإجابة المكتوبة استشهدت بمقطع لم يُقدَّم لها، فرُفضت.",
    ),
    "cs": (
        "Nalezené pasáže na tuto otázku neodpovídají.",
        "V indexu není nic, co by se týkalo této otázky.",
        "Žádné tvrzení odpovědi se nepodařilo z nalezených pasáží doložit.",
        "Napsaná odpověď neobstála, proto byla odmítnuta.",
        "Napsaná odpověď neuváděla žádný zdroj, proto byla odmítnuta.",
        "Napsaná odpověď citovala pasáž, kterou nedostala, proto byla odmítnuta.",
    ),
    "de": (
        "Die gefundenen Textstellen beantworten diese Frage nicht.",
        "Nichts im Index bezieht sich auf diese Frage.",
        "Keine Aussage der Antwort ließ sich aus den gefundenen Textstellen belegen.",
        "Die geschriebene Antwort hielt der Prüfung nicht stand und wurde abgelehnt.",
        "Die geschriebene Antwort nannte keine Quelle und wurde abgelehnt.",
        "Die geschriebene Antwort berief sich auf eine Textstelle, die es nicht gab, und wurde abgelehnt.",
    ),
    "es": (
        "Los pasajes encontrados no responden a esta pregunta.",
        "Nada en el índice tiene que ver con esta pregunta.",
        "Ninguna afirmación de la respuesta pudo probarse con los pasajes encontrados.",
        "La respuesta escrita no se sostuvo y fue rechazada.",
        "La respuesta escrita no citaba nada y fue rechazada.",
        "La respuesta escrita citaba un pasaje que no se le había dado y fue rechazada.",
    ),
    "fr": (
        "Les passages trouvés ne répondent pas à cette question.",
        "Rien dans l’index ne concerne cette question.",
        "Aucune affirmation de la réponse n’a pu être prouvée par les passages trouvés.",
        "La réponse rédigée n’a pas résisté à la vérification et a été refusée.",
        "La réponse rédigée ne citait rien et a été refusée.",
        "La réponse rédigée citait un passage qui ne lui avait pas été donné et a été refusée.",
    ),
    "hi": (
        "मिले हुए अंश इस प्रश्न का उत्तर नहीं देते।",
        "सूचकांक में इस प्रश्न से संबंधित कुछ नहीं है।",
        "उत्तर का कोई भी कथन मिले हुए अंशों से सिद्ध नहीं हो सका।",
        "लिखा गया उत्तर जाँच में खरा नहीं उतरा, इसलिए अस्वीकार किया गया।",
        "लिखे गए उत्तर में कोई स्रोत नहीं था, इसलिए उसे अस्वीकार किया गया।",
        "लिखे गए उत्तर में ऐसा अंश उद्धृत था जो दिया नहीं गया था, इसलिए उसे अस्वीकार किया गया।",
    ),
    "it": (
        "I passaggi trovati non rispondono a questa domanda.",
        "Nulla nell’indice riguarda questa domanda.",
        "Nessuna affermazione della risposta ha potuto essere dimostrata con i passaggi trovati.",
        "La risposta scritta non ha retto alla verifica ed è stata rifiutata.",
        "La risposta scritta non citava nulla ed è stata rifiutata.",
        "La risposta scritta citava un passaggio che non le era stato dato ed è stata rifiutata.",
    ),
    "ja": (
        "見つかった文章には、この質問の答えがありません。",
        "索引には、この質問に関するものがありません。",
        "見つかった文章からは、回答のどの記述も裏付けられませんでした。",
        "作成された回答は検証に耐えなかったため、却下されました。",
        "作成された回答は何も引用していなかったため、却下されました。",
        "作成された回答は与えられていない文章を引用していたため、却下されました。",
    ),
    "ko": (
        "찾은 구절에는 이 질문에 대한 답이 없습니다.",
        "색인에는 이 질문과 관련된 내용이 없습니다.",
        "찾은 구절로는 답변의 어떤 내용도 입증할 수 없었습니다.",
        "작성된 답변이 검증을 통과하지 못해 거부되었습니다.",
        "작성된 답변이 아무것도 인용하지 않아 거부되었습니다.",
        "작성된 답변이 주어지지 않은 구절을 인용하여 거부되었습니다.",
    ),
    "nl": (
        "De gevonden passages beantwoorden deze vraag niet.",
        "Niets in de index heeft betrekking op deze vraag.",
        "Geen enkele bewering van het antwoord kon met de gevonden passages worden bewezen.",
        "Het geschreven antwoord hield geen stand en is geweigerd.",
        "Het geschreven antwoord noemde geen bron en is geweigerd.",
        "Het geschreven antwoord verwees naar een passage die niet was gegeven en is geweigerd.",
    ),
    "pl": (
        "Znalezione fragmenty nie odpowiadają na to pytanie.",
        "Nic w indeksie nie dotyczy tego pytania.",
        "Żadnego stwierdzenia odpowiedzi nie udało się potwierdzić na podstawie znalezionych fragmentów.",
        "Napisana odpowiedź nie przeszła weryfikacji i została odrzucona.",
        "Napisana odpowiedź niczego nie cytowała i została odrzucona.",
        "Napisana odpowiedź powoływała się na fragment, którego nie podano, i została odrzucona.",
    ),
    "pt": (
        "Os trechos encontrados não respondem a esta pergunta.",
        "Nada no índice diz respeito a esta pergunta.",
        "Nenhuma afirmação da resposta pôde ser comprovada pelos trechos encontrados.",
        "A resposta escrita não se sustentou e foi recusada.",
        "A resposta escrita não citava nada e foi recusada.",
        "A resposta escrita citava um trecho que não lhe foi dado e foi recusada.",
    ),
    "ru": (
        "В найденных фрагментах нет ответа на этот вопрос.",
        "В индексе нет ничего, что относится к этому вопросу.",
        "Ни одно утверждение ответа не удалось подтвердить найденными фрагментами.",
        "Написанный ответ не выдержал проверки и был отклонён.",
        "В написанном ответе не было ссылок, и он был отклонён.",
        "Написанный ответ ссылался на фрагмент, которого не было, и был отклонён.",
    ),
    "sv": (
        "De hittade avsnitten besvarar inte frågan.",
        "Inget i indexet rör den här frågan.",
        "Inget påstående i svaret kunde beläggas med de hittade avsnitten.",
        "Det skrivna svaret höll inte och avvisades.",
        "Det skrivna svaret angav ingen källa och avvisades.",
        "Det skrivna svaret hänvisade till ett avsnitt som inte fanns och avvisades.",
    ),
    "tr": (
        "Bulunan parçalar bu soruyu yanıtlamıyor.",
        "Dizinde bu soruyla ilgili bir şey yok.",
        "Yanıttaki hiçbir ifade bulunan parçalarla kanıtlanamadı.",
        "Yazılan yanıt doğrulamadan geçemediği için reddedildi.",
        "Yazılan yanıt hiçbir kaynak göstermediği için reddedildi.",
        "Yazılan yanıt kendisine verilmeyen bir parçaya atıf yaptığı için reddedildi.",
    ),
    "uk": (
        "У знайдених фрагментах немає відповіді на це запитання.",
        "В індексі немає нічого, що стосується цього запитання.",
        "Жодного твердження відповіді не вдалося підтвердити знайденими фрагментами.",
        "Написана відповідь не витримала перевірки, тому її відхилено.",
        "Написана відповідь нічого не цитувала, тому її відхилено.",
        "Написана відповідь посилалася на фрагмент, якого не було, тому її відхилено.",
    ),
    "zh": (
        "找到的段落没有回答这个问题。",
        "索引中没有与这个问题有关的内容。",
        "找到的段落无法证实答案中的任何陈述。",
        "写出的答案未能通过核实，因此被拒绝。",
        "写出的答案没有引用任何来源，因此被拒绝。",
        "写出的答案引用了并未提供的段落，因此被拒绝。",
    ),
}

LANGUAGES = tuple(_SENTENCES)
"""The languages that declines are told in, by ISO 639-1 code, English first."""

_MESSAGES = {language: dict(zip(_REASONS, said, strict=True)) for language, said in _SENTENCES.items()}


def message(reason: DeclineReason | RefusalCause, language: str = FALLBACK) -> str:
    """The sentence for a reason, in English when there is none in ``language``."""
    return _MESSAGES.get(language, _MESSAGES[FALLBACK])[reason]


def in_english() -> str:
    """The language of a question whose language nobody asked about."""
    return FALLBACK
