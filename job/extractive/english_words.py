"""English signs of how a clause is meant: failure, complaint, mood, praise, and none of it.

Invariant: at one place the earlier group of `SIGNS` wins, so praise in words that elsewhere deny
("not bad") and denied failure ("no errors") come first.
"""

from __future__ import annotations

from job.extractive.english_failure import FAILURE, FAULT, FILL, MILD, NOT, STRONG
from job.extractive.grammar import either, signs, words

_MOOD = words(
    r"""
    terribl[ey] awful(?:ly)? horribl[ey] bad(?:ly)? worse worst disappoint\w* frustrat\w*
    annoy\w* angry furious unhappy upset unacceptable ridiculous pathetic disgust\w* nightmare
    a_joke shame(?:ful)? dissatisf\w* never_again regret\w* appalling dreadful hate[sd]? lousy
    one_star 1_star waste(?:d)?_of fed_up thanks_for_nothing avoid_(?:this|them|it|at)
    complain(?:t|ts|ed|ing)? not_worth do_not_(?:buy|recommend)
    """
)
"""A feeling or a verdict, about nothing in particular."""

_COMPLAINT = words(
    r"""
    poor(?:ly)? rude(?:ly)? dirty filthy mess(?:y)? unprofessional careless sloppy
    ignor(?:es?|ed|ing) unfair misleading confusing inconvenien\w* uncomfortable bland tasteless
    stale sour overpriced pricey expensive cheap_(?:plastic|material|quality|feel)\w* mediocre
    underwhelm\w* shoddy flimsy unhelpful noisy smell(?:s|y) stink\w* shrug\w* unclear
    too_(?!much_fun|good|kind|many_to|much_to|happy|pleased)\w+ dislike[sd]? dull unsafe hard_to
    difficult_to half_(?:the|of|my|our)\b
    """
)
"""A complaint about a thing."""

_PRAISE = words(
    r"""
    great excellent perfect(?:ly)? amazing(?:ly)? awesome fantastic wonderful(?:ly)?
    lov(?:e|ed|es|ely|ing) brilliant(?:ly)? superb(?:ly)? outstanding delight\w*
    impress(?:ed|ive|es) pleased satisf(?:ied|ying) enjoy\w* friendly helpful appreciat\w+
    grateful kudos well_done recommend(?:ed)? best favou?rite worth_(?:it|every|the)
    beautiful(?:ly)? delicious tasty spotless flawless(?:ly)? (?:five|5)_stars? top[-_]notch
    first[-_]class thrilled stunning gorgeous generous courteous attentive life-?saver
    made_my_day full_marks (?:just|exactly)_what_(?:i|we)_(?:wanted|needed) like_a_charm
    smooth(?:ly|est)? exceptional(?:ly)? polite
    """
)

_LIKING = words(
    r"""
    good nice(?:ly)? happy glad fine easy easily fast quick(?:ly)? prompt(?:ly)? reliable
    comfortable clean tidy useful handy convenient professional clear(?:ly)? quiet solid cozy
    cosy pretty_(?:good|nice) fun cheerful on_time works?_well like_(?:it|this|the|how) fits
    """
)
"""A milder praise."""

_PRAISING = either(_PRAISE, _LIKING)

_IDIOM_PRAISE = words(
    r"""
    not_(?:at_all_)?(?:bad|too_bad) no_complaints? nothing_to_complain
    not_a_single_(?:complaint|problem|issue|fault)
    (?:can't|cannot|couldn't)_(?:fault|complain|wait|praise|recommend)\b
    couldn't_(?:be|have_been|ask|have_asked|fault)\b
    could_not_(?:be|have_been|ask)_(?:better|happier|more)
    (?:without|not)_(?:a_)?(?:hitch|glitch) trouble[-_]free hassle[-_]free
    (?:(?:has|have|had|could|can)_)?(?:\w+n't|not|never)_put_(?:it|this|them)_down
    exceed(?:s|ed)?(?:_\w+){0,2}_expectations went_(?:out_of_\w+_way|above_and_beyond) extra_mile
    would_(?:\w+_)?(?:buy|come|come_back|stay|order|visit|use|book|go)(?:_\w+)?_again
    will_(?:definitely_)?(?:be_back|(?:buy|order|return|use|visit|stay|book|come)_again)
    as_described never_(?:disappoints?|lets?_(?:me|us)_down)
    works?_(?:\w+_)?(?:well|great|fine|perfectly|flawlessly|beautifully|like_a_charm|now)
    keep_(?:it_)?up (?:too|so)_(?:good|kind)
    """
)
"""Praise in words that elsewhere deny or complain."""

_NEUTRAL = either(
    words(
        r"""
        no_problem(?:_at_all)? not_only not_just not_to_mention why_not whether_or_not or_not
        do(?:n't|_not)_(?:worry|forget|hesitate|reply|need|have_to|know|mind|want|think|care)
        """
    ),
    r"(?:i|we|you|they) (?:do|did|would|could|have|had|will|was|were|are|am)(?:n't| not)"
    r"(?: really| even)? (?:know|think|want|need|mind|care|believe|remember|expect|eat|"
    r"drink|like to|mean|sure|a)\b",
    words(
        r"""
        not_sure if_not is(?:n't|_not)_it are(?:n't|_not)_(?:you|they)
        (?:to|will|can|could|please|we|i|they)_issues?\b
        """
    ),
    r"(?:is|are|was|would|will) (?:there|that|it|this)(?: be)? (?:an? |any )(?:problem|"
    r"issue|trouble)s?",
    r"would (?:be|have been) (?:\w+ )?(?:great|nice|good|better|helpful|lovely|perfect|"
    r"handy|useful|convenient|easier|fine|cool)",
    words(
        r"""
        good_(?:morning|afternoon|evening|day) best_(?:regards|wishes)
        """
    ),
    rf"{NOT}(?: {FILL}){{0,3}} {FAULT}",
    rf"{FAULT}(?: count| rate)?s?\s*(?:[=:]\s*)?(?:0|zero|none|null|nil|false|n/a)"
    rf"(?![\w.%])",
    rf"{FAULT}(?: (?:has|have|had|was|were|is|are|been|being|got|gets|now|all|\w+ly))* "
    rf"(?:fixed|resolved|solved|cleared|corrected|handled|recovered|sorted)",
    rf"(?:fixed|resolved|solved|cleared|corrected|recovered(?: from)?)(?: {FILL}){{0,2}} "
    rf"{FAULT}",
    rf"(?:avoid\w*|prevent\w*|handl\w+|ignor(?:es|ed|ing)|tolerat\w+|check(?:s|ed|ing)? "
    rf"for|scan\w* for|look\w* for|watch\w* for)(?: {FILL}){{0,2}} {FAULT}",
    words(
        r"""
        (?:on|upon|for)(?:_any|_an)?_(?:error|failure|exception|timeout|crash)(?:e?s)?
        """
    ),
    rf"(?:if|in case(?: of)?|unless|whether|when a|when an)(?: \w+){{0,2}} {FAULT}",
    r"(?:error|exception|failure|fault|crash|bug|issue|timeout|leak|retry|problem|loss)[ "
    r"-](?:handl\w+|report(?:s|ing|er)?|log(?:s|ging|ger)?|callback|correction|page|"
    r"track\w+|recovery|detect\w+|budget|policy|toleran\w+|injection|listener|solving|"
    r"value|limit|setting)",
    words(
        r"""
        of_late late_(?:night|afternoon|evening|summer|autumn|winter|spring)
        without_(?:delay|fail|failing|trouble|problems?|issues?|interruption)
        """
    ),
)
"""Signs that are none: denied, counted as zero, repaired, only supposed, or said of talk."""

SIGNS = signs(
    ("praise", _IDIOM_PRAISE),
    ("strong", r"(?:not|never|n't|yet to)(?: been| yet| be)* (?:fixed|resolved|solved|sorted)"),
    ("neutral", _NEUTRAL),
    (
        "complaint",
        rf"(?:{NOT}|no longer|far from|anything but|less than|would(?: not|n't)|nothing)"
        r"(?: (?:very|really|so|that|too|at all|even|particularly|exactly|been|be|an?|the|all|as|"
        r"quite|much|feel|seem|look|it|this|them|would|to|or)){0,3} "
        rf"{_PRAISING}",
    ),
    ("strong", STRONG),
    ("failure", FAILURE),
    ("mood", _MOOD),
    ("complaint", _COMPLAINT),
    ("mild", MILD),
    ("praise", _PRAISE),
    ("liking", _LIKING),
    ("thanks", r"(?:thanks|thank you|thx|cheers)"),
    before=r"(?<![\w./@$-])",
    after=r"(?![\w-]|[./@]\w)",
)
