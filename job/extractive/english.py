"""English as a grammar: connectives of cause, requests, apologies, and what adds nothing.

Invariant: every pattern is matched against lower-case text, and none holds a word of a trade.
"""

from __future__ import annotations

import re

from job.extractive.english_words import SIGNS
from job.extractive.grammar import Connective, Grammar, either, words

_SUBJECT = words(
    r"""
    i we you he she it they the my our his her their this that these there nobody no_one all
    everyone every each customers? users? people nothing none
    """
)
_TIME = words(
    r"""
    \d an?\b the_(?:start|beginning|first|morning|evening|early|age) yesterday today last this
    then early late mon tue wed thu fri sat sun jan feb mar\w*\b apr may\b jun jul aug sep oct nov
    dec one two three four five six ten half several some many about over more only all around
    noon midnight that\b i_(?:was|started|joined)
    """
)
"""After "since" or "after": a moment or a span of time, and no cause."""
_VERB = words(
    r"""
    is are was were has have had does do did will can cannot could would \w+n't \w{3,}ed went
    broke got ran fell lost left came keeps? stays?
    """
)
_BEING = words(
    r"""
    is was were are be been being it this that which probably apparently likely partly mostly
    simply just only all mainly perhaps maybe
    """
)
_SPAN = "".join(
    rf"(?<!\b{unit} )"
    for unit in (
        *("year", "years", "month", "months", "week", "weeks", "day", "days", "hour", "hours"),
        *("ages", "long", "ever"),
    )
)
"""Before "since": a span of time, which it measures and does not explain."""
_SINCE = rf"{_SPAN}since(?=\s+(?!{_TIME})[^,]*\b{_VERB}\b)"
_LINKING = r"(?:and|which|that|this|it|has|have|had|is|was|are|then|also|thereby)"
_CAUSING = words(
    r"""
    caus(?:es|ed|ing) le(?:d|ads|ading)_to result(?:s|ed|ing)_in trigger(?:s|ed|ing)
    br(?:ings|inging|ought)_about (?:makes?|making|made)_it_impossible_to
    """
)
_CAUSED = words(
    r"""
    caused_by because_of because due_to owing_to as_a_(?:direct_)?(?:result|consequence)_of
    on_account_of attributed_to traced_(?:(?:it|this|that)_)?(?:back_)?to down_to
    stem(?:s|med|ming)_from result(?:s|ed|ing)_from aris\w+_from
    """
)
_SAYING = words(
    r"says? said admit(?:s|ted) explain(?:s|ed) confirm(?:s|ed) claim(?:s|ed) told_(?:me|us)"
)

_EXPLAINING = words(r"admit(?:s|ted)? explain(?:s|ed)?")
_HEARD = words(
    r"""
    apparently supposedly reportedly allegedly they_say word_is
    (?:i|we)_(?:have_|had_)?(?:hear|heard|gather|found_out|learned|learnt)
    """
)
_OFFER = words(
    r"""
    will shall going_to soon tomorrow within please should let_me let_us try can_you could_you
    would_you may_i thanks thank_you
    """
)

CONNECTIVES = (
    Connective(
        r"(?:but |and |so |well )?(?:because(?: of)?|due to|owing to|as a result of|"
        rf"given(?: that)?|on account of|{_SINCE})\s+(?P<c>[^,]{{4,}}),\s*(?P<e>.+)"
    ),
    Connective(
        r"(?:because of|due to|owing to|as a result of|on account of)\s+"
        rf"(?P<c>\S+(?: \S+){{1,7}}?)\s+(?P<e>{_SUBJECT}\b.+)"
    ),
    Connective(
        r"the (?:root cause|reason|cause)\s+(?:that |why |of |for |behind )?"
        r"(?P<e>(?!is|was)\S+ .+?)\s+(?:is|was)\s+(?:that |because )?(?P<c>.+)"
    ),
    Connective(
        r"(?P<e>.*?)[,;.]?\s*\(?\b(?:the |its |and )*(?:(?:root|underlying) cause|reason|cause)"
        r"(?: (?:for|of|behind) (?:this|that|it|which))?\s*(?:[:=]|being|is|was|seems to be)\s*"
        r"(?:that |because )?(?P<c>[^)]+)"
    ),
    Connective(rf"(?P<e>.*?)[,;]?\s*\b(?:{_BEING} )*(?:{_CAUSED}|{_SINCE})\s+(?P<c>.+)"),
    Connective(
        r"(?P<c>.*?)[,;]?\s*\b(?:which|that|this)(?: is|'s| was) (?:\w+ly )?why\s+(?P<e>.+)"
    ),
    Connective(r"(?P<e>.*?)[,;]?\s*\b(?:it )?(?:turn(?:s|ed) out)(?: that|,)?\s+(?P<c>.+)"),
    Connective(rf"(?P<c>.*?)[,;]?\s*\b(?:{_LINKING} )*{_CAUSING}\s+(?P<e>.+)"),
    Connective(
        rf"(?P<c>.*?)(?:,|;|\band)?\s+(?:so(?: that)?(?=\s+{_SUBJECT}\b)|therefore|hence|thus|"
        r"consequently|as a (?:result|consequence)),?\s+(?P<e>.+)",
        weak=True,
    ),
    Connective(
        r"(?P<e>.*?)[,;]?\s*(?:\b(?:supposedly|apparently|probably|simply|just|only) )?\bas"
        r"(?=\s+(?!(?:an?|if|though|well|soon|long|far|usual|of|for|to|always)\b)"
        rf"(?:{_SUBJECT}\b|\w+ )[^,]*\b{_VERB}\b)\s+(?P<c>.+)",
        weak=True,
    ),
    Connective(
        r"(?P<e>|.*?[,;:]?\s)(?:(?:it|this|that)(?:(?: is|'s| was) not| (?:is|was)n't)|not)\s+"
        r"(?!only\b|just\b)[^,;.]{2,40}?(?:[,;]\s*|\s+)"
        r"(?:but(?: rather)?(?! also)|it(?:'s| is| was)|rather)\s+(?P<c>.+)",
        hearsay=True,
    ),
    Connective(
        rf"(?P<e>.*?)[,;:]?\s*\b(?:and |but )?(?:{_HEARD}|(?:\w+ ){{1,3}}?{_EXPLAINING})"
        r"(?: (?:to )?(?:me|us))?(?: that|,)?\s+(?P<c>.+)",
        hearsay=True,
    ),
    Connective(
        rf"(?P<e>.*?)[,;:]?\s*\b(?:and |but )?(?:\w+ ){{1,5}}?{_SAYING}(?: that)?\s+(?P<c>.+)",
        reported=True,
    ),
    Connective(
        r"(?P<e>.*?)\s+with (?:an? |the )?"
        r"(?P<c>(?:error|exception|status|code|message|reason|http|signal)\b.+)",
        weak=True,
    ),
    Connective(
        r"(?:but |and |so )?(?:ever |right |just |shortly )?(?:after|since|following)\s+"
        rf"(?P<c>(?!{_TIME})[^,]{{3,}}),\s*(?P<e>.+)",
        basis="inferred",
    ),
    Connective(
        r"(?P<e>.*?)\s+(?:ever |right |just |shortly |immediately )?(?:after|since|following)\s+"
        rf"(?P<c>(?!{_TIME})[^,]{{3,}})",
        weak=True,
        basis="inferred",
    ),
)

_ASKING = words(
    r"""
    please kindly now then and can_you could_you would_you will_you help_me(?:_to)?
    i_(?:want|need)_you_to i'd_like_you_to i_would_like_you_to let's your_task_is_to
    """
)
_TASK = words(
    r"""
    write compose draft generate create explain describe summari[sz]e translate list imagine act
    pretend rewrite rephrase design suggest provide compare discuss analy[sz]e classify extract
    identify evaluate solve calculate complete edit develop outline propose convert implement
    embrace assume take_on step_into
    read rate answer modify revise shorten expand continue repeat remove replace add use make
    do_(?:the|it|that) let_us give_(?:me|us)?_?(?:an?|some|\d+|the_(?:definition|steps)) which who
    what(?:'s|_is|_are|_was|_were|_do|_does|_did|_would|_if|_could|_can|_should|_kind|_time)
    where_(?:can|do|is|are) how_(?:do|does|did|to|can|many|much|would|should|is|are|could|long|far)
    tell_me_(?:about|how|what) suppose consider given the_following in_(?:this|the_following)
    (?:do|does|is|are|can|could|may|shall|should|will|would)_(?:i|you|we|it|they|he|she)
    (?:do|does|is|are|can|could|may|shall|should|will|would)_(?:there|this|that|the|these|those)
    (?:do|does|is|are|can|could|may|shall|should|will|would)_(?:one|two|an?) you_are_an?
    """
)
_ADMISSION = words(
    r"""
    sorry apolog\w+ unfortunately (?:i'm|i_am|we_are)_afraid regret\w*
    (?:i_am|i'm|we_are|we're)_(?:not_able|unable)
    i_(?:cannot|can't|could_not|couldn't|do_not_have|don't_have|failed)
    """
)
_JOINING = words(
    r"""
    and so because due_to owing_to since which also plus then causing leading resulting no not
    still even please
    """
)

_GREETING = (
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day))"
    r"(?: (?:there|team|all|everyone|sir|madam|support|folks))*[\s,.!:]+"
)
_FILLER = words(
    r"""
    please kindly sorry excuse_me well so and but yet or then also besides moreover plus however
    unfortunately sadly honestly basically apparently seriously actually again fyi ok okay yes
    though although even_though meanwhile today yesterday now this_morning last_night lately
    recently currently urgent help
    """
)
_TELLING = (
    r"(?:i|we) (?:just |only |would like to |want to |wanted to |'d like to |have to |must )*"
    r"(?:report|complain|say|note|mention|let you know|tell you|inform you|find|found|noticed?|see|"
    r"feel|think|believe|guess|fear)(?: (?:that|about|of))*\s+(?=\S+ \S+)"
)
_SEEMING = (
    r"(?:it (?:seems|appears|looks like)|looks like|seems|seems like|it turns out|turns out|"
    r"i'm afraid|i am afraid|the problem is|the issue is|my (?:problem|issue) is)"
    r"(?: that)?[\s,:]+"
)
_HELP = (
    r"(?:can|could|would) (?:you|someone|anyone) (?:please )?(?:help|check|fix|look)"
    r"[^,.!?]*[,.!?]\s*"
)
_STOPS = r"[\s,;:.!?)(\"'-]+"

GRAMMAR = Grammar(
    signs=SIGNS,
    connectives=CONNECTIVES,
    task=re.compile(rf"(?:{_ASKING},? )*{_TASK}\b"),
    about_self=re.compile(
        r"\b(?:my|our(?! (?:conversation|chat|discussion|interview))|"
        r"why (?:is|was|did|does|has|are|were|do|can't|cannot|won't|isn't))\b"
    ),
    admission=re.compile(rf"\b{_ADMISSION}\b"),
    apology=re.compile(
        r"\b(?:sorry(?! for (?:the |any )?(?:doubt|wait|delay|confusion|interruption))|"
        r"apolog\w+|my (?:mistake|bad)|regret\w*|you(?:'re| are) (?:right|correct))\b"
    ),
    finding=re.compile(
        r"\b(?:found|traced|checked|looked into|confirm(?:s|ed)?|turns? out|"
        r"(?:is|was)(?: not|n't) you\w*)\b"
    ),
    promise=re.compile(
        r"(?:i|i'm|i've|i'll|to|how|what|when|where|if|you|we(?:'ll| will|'ve| have| are|'re))\b|"
        rf".*\b{_OFFER}\b|.*\?$"
    ),
    saying=re.compile(
        rf"(?:{_HEARD}|(?:\w+ ){{1,4}}?(?:{_SAYING}|{_EXPLAINING}))(?: that|,)?\s+(?!to\b)"
    ),
    gratitude=re.compile(r"\b(?:thank(?:s| you)|glad|happy to hear|delighted|means a lot)\b"),
    contrast=re.compile(
        r"\b(?:but|however|although|though|whereas|except that|on the (?:other hand|downside))\b|"
        r"(?<=, )yet\b"
    ),
    comma=re.compile(
        r",\s+(?=(?:(?:and|so|then|or|while|because|since|due|owing|which|who|after|when|even|also|"
        rf"plus)\s+)?{_SUBJECT}\b|{_JOINING}\b)|"
        r"\s+(?=and (?:the|my|our|i|we|it|they|nobody|no one|nothing|there)\b|"
        rf"and then {_SUBJECT}\b)"
    ),
    addition=re.compile(
        r"(?:also|besides|moreover|furthermore|in addition|another|plus|and the)\b"
    ),
    leading=re.compile(
        either(
            _GREETING,
            rf"{_FILLER}[\s,:!]+",
            rf"(?:that|because|since|due to|owing to)\s+(?={_SUBJECT}\b)",
            _TELLING,
            _SEEMING,
            _HELP,
            r"(?:[\w'-]+ ){1,2}here\s*[,.:;!]\s*",
            r"(?:which|that|this)(?: is|'s| was) why\s+",
            r"my name is [\w'-]+\s*[,.:;!]\s*",
            r"why (?:is|was|did|does|has|are|were|do)\s+",
        )
    ),
    trailing=re.compile(
        rf"(?:{_STOPS}(?:but|and|so|or|yet|because|as))?{_STOPS}"
        r"(?:(?:thanks|thank you|please(?: help| advise| fix)?|(?<=[,.!?;] )help|again|any ideas|"
        r"can (?:someone|you|anyone) .*|what should i do|why)[\s.!?]*)?$"
    ),
    pronoun=re.compile(
        r"(?:it|this|that|they|these|those|he|she|them|one|which|who|the same|still|even|never|not|"
        r"cannot|can't|doesn't|didn't|won't|isn't|gave|gives)\b"
    ),
    hollow=re.compile(
        r"(?:[^,]{0,40}\b(?:said|says|told(?: (?:me|us))?|explained|found|think|thinks|guess|"
        r"believe|that|saw|see|learn(?:ed|t))\b)?\s*(?:it|this|that|which|they|these)?\s*"
        r"(?:is|was|were|are|'s|has been|seems to be|all|probably|apparently|maybe)*\s*"
    ),
    no_praise=re.compile(
        r"^(?:is|are|do|does|did|can|could|would|will|should|what|which|who|where|when|why|how)\b"
        r"|\bhave an? |\b(?:no need|should|hope|hopefully|wish|if|supposed to|used to)\b"
    ),
    assent=re.compile(
        r"(?:(?:ok(?:ay)?|oh|yes|yeah|well|and|that|it|this|all|is|'s|sounds?|looks?|very|just|so"
        r"|really)[\s,]*)*(?:great|good|perfect|awesome|excellent|nice|fine|cool|wonderful|amazing)"
    ),
)
