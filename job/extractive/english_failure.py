"""English words of failure, and what may stand between a negation and them.

Invariant: only words of the language, none of a trade: what they name (failing, being late, being
refused) can befall anything. All are regular expressions for lower-case text, see `words`.
"""

from __future__ import annotations

from job.extractive.grammar import either, words

FILL = words(
    r"""
    any an? the been be being is are was were so that too very really yet seen had have has see
    get got find found detected single more longer further known other new critical major serious
    significant obvious visible reported encounter(?:ed)? caused? experienced? noticed? of to my
    our this these it with logged raised recorded observed even actually
    """
)
"""What may stand between a negation and what it denies."""

NOT = words(
    r"""
    no not never without zero 0 nothing none nor neither free_(?:of|from) hardly barely rarely
    \w+n't cannot
    """
)

FAULT = words(
    r"""
    fail(?:s|ed|ing|ures?)? errors? exceptions? crash(?:es|ed|ing)? panic(?:s|ked)? timeouts?
    outages? lost loss(?:es)? missing broken? breaks breakage wrong incorrect invalid
    corrupt(?:ed|ion)? abort(?:s|ed)? refus(?:es|ed|als?) denied rejected rejections? declined
    stuck frozen freez(?:es|ing) glitch(?:es|y)? malfunction(?:s|ed|ing)? faults? faulty defects?
    defective damaged? problems? issues? trouble bugs? delay(?:s|ed)? late slow interruptions?
    interrupted conflicts? mismatch(?:es)? duplicates? anomal(?:y|ies) disconnect(?:s|ed)? leaks?
    dropped complaints? mistakes? warnings? hitch(?:es)?
    """
)
"""What may be denied or counted ("no errors", "0 failed"): it holds no negation of its own."""

STRONG = either(
    words(
        r"""
        fail(?:s|ed|ing|ures?)? errors? exceptions? crash(?:es|ed|ing)? panic(?:s|ked)?
        time[sd]?[_-]?outs? outages? lost los(?:es|ing) missing broken? breaks incorrect(?:ly)?
        wrong(?:ly)? invalid corrupt(?:ed|ion|s)? abort(?:s|ed|ing)? refus(?:es?|ed|ing|als?)
        denied denies reject(?:s|ed|ions?) declined stuck frozen froze freez(?:es?|ing) hangs
        hung glitch(?:es|y|ed)? malfunction(?:s|ed|ing)? faults? faulty defects? defective dead
        died unable unreachable unavailable unresponsive unusable useless unauthori[sz]ed
        forbidden cannot can_not can't cant (?:can|could)_never couldn't could_not impossible
        overflow(?:s|ed)? insufficient breach(?:es|ed)? hacked stolen vulnerab\w+ scam(?:med)?
        fraud\w* rip[-_]?off cheated vanish(?:es|ed)? disappear(?:s|ed|ing)? mismatch(?:es|ed)?
        garbled unreadable out_of_order permission_denied no_such not_found not_authori[sz]ed
        not_permitted not_allowed
        """
    ),
    r"(?:does not|doesn't|\w+ do not|\w+ don't|not|stopp?(?:ed|s)?|quit|never) "
    r"(?:even )?(?:work|respond|load|start|open|connect|exist|recogni[sz]e|turn on|switch on|sync|"
    r"answer|arriv|function)(?:s|es|e?d|ing)?",
    r"(?:(?:(?:has|have|had|is|are|was|were|did|does|do) )?(?:not|never|yet to)|\w+n't)"
    r"(?: been| yet| be| being| get)* (?:fix(?:ed)?|resolved?|"
    r"solved?|sorted|repair(?:ed)?|answered|corrected|received?|delivered|arrived?|"
    r"recovered|returned)",
    words(
        r"""
        unresolved unanswered
        (?:is|are|was|were|went|goes|go|been|still|be)_(?:down|gone|missing)
        shut(?:s|ting)?_down_unexpectedly broke_down breaks?_down fell_(?:off|apart)
        falls?_(?:off|apart) came_(?:off|apart|loose) com(?:es|ing)_(?:off|apart|loose)
        lock(?:s|ed)_(?:me|us|him|her|them)?_?out
        (?:went|go(?:es|ne)?)_(?:silent|dark|dead|blank|missing|wrong|haywire)
        """
    ),
)
"""Certainly a failure."""

FAILURE = either(
    words(
        r"""
        problems? issues? trouble bugs? late delay(?:s|ed|ing)? overdue behind_schedule
        slow(?:er|ly|s|ed)? sluggish lag(?:s|gy|ging)? damaged? damages crack(?:ed|s) torn tore
        leak(?:s|y|ed|ing|age)? stain(?:ed|s) rust(?:y|ed) worn(?:_out)? bent smash(?:ed)?
        crush(?:ed)? scratch(?:ed|es) shattered burn(?:t|ed) smear\w* jam(?:s|med) rattl\w+
        squeak\w* unstable unreliable unsupported offline disconnect(?:s|ed|ing)?
        interrupt(?:s|ed|ion)? suspended cancel(?:s|led|ed) blocked banned evicted stall(?:s|ed)
        halt(?:s|ed) tripp?(?:ed|s) terminated killed drop(?:s|ped) exceed(?:s|ed) violat\w+
        expired? expires lapsed lack(?:s|ed|ing)? shortage not_enough ran_out run(?:s|ning)?_out
        out_of_(?:service|stock|memory|space|date|sync|paper|range|reach|control|tune)
        duplicate[sd]? unexpected(?:ly)? mistakes? mistaken(?:ly)? inaccurate inconsistent
        illegible blank skipp?(?:s|ed)(?=_(?!to\b)) cut(?:s|ting)?_(?:off|out|short)
        kick(?:s|ed)_(?:me|us|him|her|them)?_?(?:out|off) logg?(?:s|ed)_(?:me|us)_(?:out|off)
        turned_(?:down|away) gave_up gives_up keep(?:s)?_(?:on_)?(?!up\b)\w+ing
        kept_(?:on_)?\w+ing stopp?(?:ed|s)_\w+ing no_longer
        (?:does|did|has|have|had|will|would|wo|was|were|is|are)(?:n't|_not) won't wouldn't
        never_(?:\w+ed|came?|come|got|get|shows?|sent|again|went|heard|told|once)
        never_\w+(?:s|es)
        (?:nobody|no_one|no-one|none_of|nothing)_(?!was_(?:hurt|lost)|else|more|special|to\b)\w+
        """
    ),
    r"no (?:response|reply|repl(?:y|ies)|answer|signal|sound|power|record|trace|"
    r"explanation|reason|warning|way|access|connection|output|data|sign|help|use)",
    r"(?:there (?:is|was|are|were)|and|with|but|had|have|has|got|get|still) no (?!idea|"
    r"need|doubt|worries|matter|question|wonder|hassle|fuss|waiting|queue|way to|chance|"
    r"difference|other|more|less|than|problem|issue|trouble|complaint)\w+",
    words(
        r"""
        no_(?!one|thanks|way|wait|fuss|problem|issue|complaint)\w+(?=\s*(?:$|[,.!?;]))
        not_(?:a_single|there|what|as_(?:described|promised|advertised|expected)|even)
        still_(?:no|not|waiting|nothing|without) nowhere_to_be_(?:found|seen)
        (?:was|were|been)_promised
        (?:sent|turned|waved)_(?:me_|us_|him_|her_|them_)?(?:home|away) double[-_]\w+ed
        """
    ),
    r"(?:second|third|fourth|fifth|sixth|\d+(?:nd|rd|th)) (?:time|day|week|month)(?: in a "
    r"row| running| this)",
    words(
        r"""
        (?:times|days|weeks)_in_a_row over_and_over thr[eo]wn?_away incomplete root_cause
        caus(?:es|ed|ing)
        (?:tried|called|asked|attempted|rang|wrote|e-?mailed|restarted)(?:_\w+){0,3}_times
        again_and_again
        alarms?(?:_had|_has|_have)?_(?:went|gone|goes|going|been)_(?:off|on) discarded
        (?:want|need|demand|give_(?:me|us|him|her))_(?:my|our|his|her|the)_\w+_back
        \w+ed_(?:\w+_){0,2}(?:twice|two_times|double) over-?(?!joyed|all|seen)\w{3,}(?:ed|ing)
        (?:had|have|has)_to_(?:wait|call|ask|restart|re\w+|chase|beg|queue)
        wait(?:ed|ing)?\b(?:_\w+){0,4}_(?:minutes?|hours?|days?|weeks?|months?|ages|forever)
        takes?_(?:forever|ages|so_long|too_long|hours|days) far_too way_too
        """
    ),
)
"""Likely a failure."""

MILD = words(
    r"""
    retry(?:ing)? retried incident a_(?:bit|little) slightly somewhat could_be_better
    should_(?:be|have) supposed_to instead_of only_(?:complaint|downside|gripe) minor isn't
    aren't odd(?:ly)? strange(?:ly)? empty cold dim tiny cramped loud deprecated
    """
)
"""A hint of one."""
