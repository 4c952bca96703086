"""The English half of the built-in analyst: words of failure, complaint and praise, the
connectives of cause, requests and fillers.

Invariant: only words of the language, none of a trade: what a rule names (failing, being late,
being refused) can befall anything. Every pattern is matched against lower-case text.
"""

from __future__ import annotations

import re

from job.extractive.grammar import Connective, Grammar, signs

_FILL = (
    r"(?:any|an?|the|been|be|being|is|are|was|were|so|that|too|very|really|yet|seen|had|have|has|"
    r"see|get|got|find|found|detected|single|more|longer|further|known|other|new|critical|major|"
    r"serious|significant|obvious|visible|reported|encounter(?:ed)?|caused?|experienced?|noticed?|"
    r"of|to|my|our|this|these|it|with|logged|raised|recorded|observed|even|actually)"
)
_NOT = (
    r"(?:no|not|never|without|zero|0|nothing|none|nor|neither|free (?:of|from)|hardly|barely|"
    r"rarely|\w+n't|cannot)"
)

# What may be denied or counted ("no errors", "0 failed"): it holds no negation of its own.
_FAULT = (
    r"(?:fail(?:s|ed|ing|ures?)?|errors?|exceptions?|crash(?:es|ed|ing)?|panic(?:s|ked)?|"
    r"timeouts?|outages?|lost|loss(?:es)?|missing|broken?|breaks|breakage|wrong|incorrect|invalid|"
    r"corrupt(?:ed|ion)?|abort(?:s|ed)?|refus(?:es|ed|als?)|denied|rejected|rejections?|declined|"
    r"stuck|frozen|freez(?:es|ing)|glitch(?:es|y)?|malfunction(?:s|ed|ing)?|faults?|faulty|"
    r"defects?|defective|damaged?|problems?|issues?|trouble|bugs?|delay(?:s|ed)?|late|slow|"
    r"interruptions?|interrupted|conflicts?|mismatch(?:es)?|duplicates?|anomal(?:y|ies)|"
    r"disconnect(?:s|ed)?|leaks?|dropped|complaints?|mistakes?|warnings?|hitch(?:es)?)"
)
_STRONG = (
    r"(?:fail(?:s|ed|ing|ures?)?|errors?|exceptions?|crash(?:es|ed|ing)?|panic(?:s|ked)?|"
    r"time[sd]?[ -]?outs?|outages?|lost|los(?:es|ing)|missing|broken?|breaks|incorrect(?:ly)?|"
    r"wrong(?:ly)?|invalid|corrupt(?:ed|ion|s)?|abort(?:s|ed|ing)?|refus(?:es?|ed|ing|als?)|denied|"
    r"denies|reject(?:s|ed|ions?)|declined|stuck|frozen|froze|freez(?:es?|ing)|hangs|hung|"
    r"glitch(?:es|y|ed)?|malfunction(?:s|ed|ing)?|faults?|faulty|defects?|defective|dead|died|"
    r"unable|unreachable|unavailable|unresponsive|unusable|useless|unauthori[sz]ed|forbidden|"
    r"cannot|can not|can't|cant|(?:can|could) never|couldn't|could not|impossible|overflow(?:s|ed)?|insufficient|"
    r"breach(?:es|ed)?|hacked|stolen|vulnerab\w+|scam(?:med)?|fraud\w*|rip[- ]?off|cheated|"
    r"vanish(?:es|ed)?|disappear(?:s|ed|ing)?|mismatch(?:es|ed)?|garbled|unreadable|out of order|"
    r"permission denied|no such|not found|not authori[sz]ed|not permitted|not allowed|"
    r"(?:does not|doesn't|\w+ do not|\w+ don't|not|stopp?(?:ed|s)?|quit|never) (?:even )?(?:work|respond|"
    r"load|start|open|connect|exist|recogni[sz]e|turn on|switch on|sync|answer|arriv|function)(?:s|es|e?d|ing)?|"
    r"(?:not|never|n't|yet to)(?: been| yet| be| being| get)* (?:fix(?:ed)?|resolved?|solved?|"
    r"sorted|repair(?:ed)?|answered|corrected|received?|delivered|arrived?|"
    r"recovered|returned)|unresolved|unanswered|"
    r"(?:is|are|was|were|went|goes|go|been|still|be) (?:down|gone|missing)|"
    r"shut(?:s|ting)? down unexpectedly|broke down|breaks? down|fell (?:off|apart)|"
    r"falls? (?:off|apart)|came (?:off|apart|loose)|com(?:es|ing) (?:off|apart|loose)|"
    r"lock(?:s|ed) (?:me|us|him|her|them)? ?out|"
    r"(?:went|go(?:es|ne)?) (?:silent|dark|dead|blank|missing|wrong|haywire))"
)
_FAILURE = (
    r"(?:problems?|issues?|trouble|bugs?|late|delay(?:s|ed|ing)?|overdue|behind schedule|"
    r"slow(?:er|ly|s|ed)?|sluggish|lag(?:s|gy|ging)?|damaged?|damages|crack(?:ed|s)|torn|tore|"
    r"leak(?:s|y|ed|ing|age)?|stain(?:ed|s)|rust(?:y|ed)|worn(?: out)?|bent|smash(?:ed)?|"
    r"crush(?:ed)?|scratch(?:ed|es)|shattered|burn(?:t|ed)|smear\w*|jam(?:s|med)|"
    r"rattl\w+|squeak\w*|unstable|unreliable|unsupported|offline|disconnect(?:s|ed|ing)?|"
    r"interrupt(?:s|ed|ion)?|suspended|cancel(?:s|led|ed)|blocked|banned|evicted|"
    r"stall(?:s|ed)|halt(?:s|ed)|tripp?(?:ed|s)|terminated|killed|drop(?:s|ped)|exceed(?:s|ed)|"
    r"violat\w+|expired?|expires|lapsed|lack(?:s|ed|ing)?|shortage|not enough|ran out|run(?:s|ning)?"
    r" out|out of (?:service|stock|memory|space|date|sync|paper|range|reach|control|tune)|"
    r"duplicate[sd]?|unexpected(?:ly)?|mistakes?|mistaken(?:ly)?|inaccurate|inconsistent|illegible|"
    r"blank|skipp?(?:s|ed)(?= (?!to\b))|cut(?:s|ting)? (?:off|out|short)|"
    r"kick(?:s|ed) (?:me|us|him|her|them)? ?(?:out|off)|logg?(?:s|ed) (?:me|us) (?:out|off)|"
    r"turned (?:down|away)|gave up|gives up|"
    r"keep(?:s)? (?:on )?(?!up\b)\w+ing|kept (?:on )?\w+ing|stopp?(?:ed|s) \w+ing|no longer|"
    r"(?:does|did|has|have|had|will|would|wo|was|were|is|are)(?:n't| not)|won't|wouldn't|"
    r"never (?:\w+ed|came?|come|got|get|shows?|sent|again|went|heard|told|once)|never \w+(?:s|es)|"
    r"(?:nobody|no one|no-one|none of|nothing) (?!was (?:hurt|lost)|else|more|special|to\b)\w+|"
    r"no (?:response|reply|repl(?:y|ies)|answer|signal|sound|power|record|trace|explanation|"
    r"reason|warning|way|access|connection|output|data|sign|help|use)|"
    r"(?:there (?:is|was|are|were)|and|with|but|had|have|has|got|get|still) no (?!idea|need|doubt|worries|"
    r"matter|question|wonder|hassle|fuss|waiting|queue|way to|chance|difference|other|more|less|than|"
    r"problem|issue|trouble|complaint)\w+|"
    r"no (?!one|thanks|way|wait|fuss|problem|issue|complaint)\w+(?=\s*(?:$|[,.!?;]))|"
    r"not (?:a single|there|what|as (?:described|promised|advertised|expected)|even)|"
    r"still (?:no|not|waiting|nothing|without)|nowhere to be (?:found|seen)|"
    r"(?:was|were|been) promised|(?:sent|turned|waved) (?:me |us |him |her |them )?(?:home|away)|"
    r"double[- ]\w+ed|(?:second|third|fourth|fifth|sixth|\d+(?:nd|rd|th)) (?:time|day|week|"
    r"month)(?: in a row| running| this)|(?:times|days|weeks) in a row|over and over|again and again|"
    r"alarms?(?: had| has| have)? (?:went|gone|goes|going|been) (?:off|on)|discarded|"
    r"(?:want|need|demand|give (?:me|us|him|her)) (?:my|our|his|her|the) \w+ back|"
    r"\w+ed (?:\w+ ){0,2}(?:twice|two times|double)|over-?(?!joyed|all|seen)\w{3,}(?:ed|ing)|"
    r"(?:had|have|has) to (?:wait|call|ask|restart|re\w+|chase|beg|queue)|"
    r"wait(?:ed|ing)?\b(?: \w+){0,4} (?:minutes?|hours?|days?|weeks?|months?|ages|forever)|"
    r"takes? (?:forever|ages|so long|too long|hours|days)|far too|way too)"
)
_MILD = (
    r"(?:retry(?:ing)?|retried|incident|a (?:bit|little)|slightly|somewhat|could be better|"
    r"should (?:be|have)|supposed to|instead of|only (?:complaint|downside|gripe)|minor|"
    r"isn't|aren't|odd(?:ly)?|strange(?:ly)?|empty|cold|dim|tiny|cramped|loud|deprecated)"
)
_MOOD = (
    r"(?:terribl[ey]|awful(?:ly)?|horribl[ey]|bad(?:ly)?|worse|worst|disappoint\w*|frustrat\w*|"
    r"annoy\w*|angry|furious|unhappy|upset|unacceptable|ridiculous|pathetic|disgust\w*|nightmare|"
    r"a joke|shame(?:ful)?|dissatisf\w*|never again|regret\w*|appalling|dreadful|hate[sd]?|lousy|"
    r"one star|1 star|waste(?:d)? of|fed up|thanks for nothing|avoid (?:this|them|it|at)|"
    r"complain(?:t|ts|ed|ing)?|not worth|do not (?:buy|recommend))"
)
_COMPLAINT = (
    r"(?:poor(?:ly)?|rude(?:ly)?|dirty|filthy|mess(?:y)?|unprofessional|careless|sloppy|"
    r"ignor(?:es?|ed|ing)|unfair|misleading|confusing|inconvenien\w*|uncomfortable|bland|tasteless|"
    r"stale|sour|overpriced|pricey|expensive|cheap (?:plastic|material|quality|feel)\w*|mediocre|"
    r"underwhelm\w*|shoddy|flimsy|unhelpful|noisy|smell(?:s|y)|stink\w*|shrug\w*|unclear|"
    r"too (?!much fun|good|kind|many to|much to|happy|pleased)\w+|dislike[sd]?|dull|unsafe|"
    r"hard to|difficult to|half (?:the|of|my|our)\b)"
)
_PRAISE = (
    r"(?:great|excellent|perfect(?:ly)?|amazing(?:ly)?|awesome|fantastic|wonderful(?:ly)?|"
    r"lov(?:e|ed|es|ely|ing)|brilliant(?:ly)?|superb(?:ly)?|outstanding|delight\w*|"
    r"impress(?:ed|ive|es)|pleased|satisf(?:ied|ying)|enjoy\w*|friendly|helpful|appreciat\w+|"
    r"grateful|kudos|well done|recommend(?:ed)?|best|favou?rite|worth (?:it|every|the)|"
    r"beautiful(?:ly)?|delicious|tasty|spotless|flawless(?:ly)?|(?:five|5) stars?|top[- ]notch|"
    r"first[- ]class|thrilled|stunning|gorgeous|generous|courteous|attentive|life-?saver|"
    r"made my day|like a charm|smooth(?:ly|est)?|exceptional(?:ly)?|polite)"
)
_LIKING = (
    r"(?:good|nice(?:ly)?|happy|glad|fine|easy|easily|fast|quick(?:ly)?|prompt(?:ly)?|reliable|"
    r"comfortable|clean|tidy|useful|handy|convenient|professional|clear(?:ly)?|quiet|solid|cozy|"
    r"cosy|pretty (?:good|nice)|fun|cheerful|on time|works? well|like (?:it|this|the|how)|fits)"
)
_PRAISING = rf"(?:{_PRAISE}|{_LIKING})"

_IDIOM_PRAISE = (
    r"(?:not (?:at all )?(?:bad|too bad)|no complaints?|nothing to complain|not a single (?:complaint"
    r"|problem|issue|fault)|(?:can't|cannot|couldn't) (?:fault|complain|wait|praise|recommend)\b|"
    r"couldn't (?:be|have been|ask|have asked|fault)\b|could not (?:be|have been|ask) (?:better|"
    r"happier|more)|(?:without|not) (?:a )?(?:hitch|glitch)|trouble[- ]free|hassle[- ]free|"
    r"(?:(?:has|have|had|could|can) )?(?:\w+n't|not|never) put (?:it|this|them) down|exceed(?:s|ed)?(?: \w+){0,2} expectations|went (?:out of \w+ way|above and beyond)|"
    r"extra mile|would (?:\w+ )?(?:buy|come|come back|stay|order|visit|use|book|go)(?: \w+)? again|"
    r"will (?:be back|\w+ again)|as described|never (?:disappoints?|lets? (?:me|us) down)|"
    r"works? (?:\w+ )?(?:well|great|fine|perfectly|flawlessly|beautifully|like a charm|now)|"
    r"keep (?:it )?up|(?:too|so) (?:good|kind))"
)
_NEUTRAL = (
    r"(?:no problem(?: at all)?|not only|not just|not to mention|why not|whether or not|or not|"
    r"do(?:n't| not) (?:worry|forget|hesitate|reply|need|have to|know|mind|want|think|care)|"
    r"(?:i|we|you|they) (?:do|did|would|could|have|had|will|was|were|are|am)(?:n't| not)"
    r"(?: really| even)? (?:know|think|want|need|mind|care|believe|remember|expect|"
    r"eat|drink|like to|mean|sure|a)\b|not sure|if not|is(?:n't| not) it|are(?:n't| not) (?:you|they)|"
    r"(?:to|will|can|could|please|we|i|they) issues?\b|"
    r"(?:is|are|was|would|will) (?:there|that|it|this)(?: be)? (?:an? |any )(?:problem|issue|trouble)s?|"
    r"would (?:be|have been) (?:\w+ )?(?:great|nice|good|better|helpful|lovely|perfect)|"
    r"good (?:morning|afternoon|evening|day)|best (?:regards|wishes)|"
    rf"{_NOT}(?: {_FILL}){{0,3}} {_FAULT}|"
    rf"{_FAULT}(?: count| rate)?s?\s*(?:[=:]\s*)?(?:0|zero|none|null|nil|false|n/a)(?![\w.%])|"
    rf"{_FAULT}(?: (?:has|have|had|was|were|is|are|been|being|got|gets|now|all|\w+ly))* "
    r"(?:fixed|resolved|solved|cleared|corrected|handled|recovered|sorted)|"
    rf"(?:fixed|resolved|solved|cleared|corrected|recovered(?: from)?)(?: {_FILL}){{0,2}} {_FAULT}|"
    rf"(?:avoid\w*|prevent\w*|handl\w+|ignor(?:es|ed|ing)|tolerat\w+|check(?:s|ed|ing)? for|"
    rf"scan\w* for|look\w* for|watch\w* for)(?: {_FILL}){{0,2}} {_FAULT}|"
    r"(?:on|upon|for)(?: any| an)? (?:error|failure|exception|timeout|crash)(?:e?s)?|"
    rf"(?:if|in case(?: of)?|unless|whether|when a|when an)(?: \w+){{0,2}} {_FAULT}|"
    r"(?:error|exception|failure|fault|crash|bug|issue|timeout|leak|retry|problem|loss)[ -]"
    r"(?:handl\w+|report(?:s|ing|er)?|log(?:s|ging|ger)?|callback|correction|page|track\w+|"
    r"recovery|detect\w+|budget|policy|toleran\w+|injection|listener|solving|value|limit|setting)|"
    r"of late|late (?:night|afternoon|evening|summer|autumn|winter|spring)|"
    r"without (?:delay|fail|failing|trouble|problems?|issues?|interruption))"
)

_SUBJECT = (
    r"(?:i|we|you|he|she|it|they|the|my|our|his|her|their|this|that|these|there|nobody|no one|all|"
    r"everyone|every|each|customers?|users?|people|nothing|none)\b"
)
_TIME = (
    r"(?:\d|an?\b|the (?:start|beginning|first|morning|evening|early|age)|yesterday|today|last|this|"
    r"then|early|late|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar\w*\b|apr|may\b|jun|jul|aug|sep|oct|"
    r"nov|dec|one|two|three|four|five|six|ten|half|several|some|many|about|over|more|only|all|"
    r"around|noon|midnight|that\b|i (?:was|started|joined))"
)
_VERB = (
    r"\b(?:is|are|was|were|has|have|had|does|do|did|will|can|cannot|could|would|\w+n't|\w{3,}ed|"
    r"went|broke|got|ran|fell|lost|left|came|keeps?|stays?)\b"
)
_BE = r"(?:(?:is|was|were|are|be|been|being|it|this|that|which|probably|apparently|likely|partly|mostly|simply|just|only|all|mainly|perhaps|maybe) )*"

CONNECTIVES = (
    Connective(
        rf"(?:but |and |so |well )?(?:because(?: of)?|due to|owing to|as a result of|given(?: that)?"
        rf"|on account of|since(?=\s+(?!{_TIME})[^,]*{_VERB}))\s+(?P<c>[^,]{{4,}}),\s*(?P<e>.+)"
    ),
    Connective(
        r"(?:because of|due to|owing to|as a result of|on account of)\s+(?P<c>\S+(?: \S+){1,7}?)"
        rf"\s+(?P<e>{_SUBJECT}.+)"
    ),
    Connective(
        r"the (?:root cause|reason|cause)\s+(?:that |why |of |for |behind )?(?P<e>(?!is|was)\S+ .+?)\s+"
        r"(?:is|was)\s+(?:that |because )?(?P<c>.+)"
    ),
    Connective(
        r"(?P<e>.*?)[,;.]?\s*\(?\b(?:(?:the |its |and )*(?:root cause|reason|cause|underlying cause))"
        r"(?: (?:for|of|behind) (?:this|that|it|which))?\s*(?:[:=]|being|is|was|seems to be)\s*"
        r"(?:that |because )?(?P<c>[^)]+)"
    ),
    Connective(
        rf"(?P<e>.*?)[,;]?\s*\b{_BE}(?:caused by|because of|because|due to|owing to|"
        r"as a (?:direct )?(?:result|consequence) of|on account of|attributed to|"
        r"traced (?:back )?to|down to|stem(?:s|med|ming) from|result(?:s|ed|ing) from|aris\w+ from|"
        rf"since(?=\s+(?!{_TIME})[^,]*{_VERB}))\s+(?P<c>.+)"
    ),
    Connective(r"(?P<e>.*?)[,;]?\s*\b(?:it )?(?:turn(?:s|ed) out)(?: that|,)?\s+(?P<c>.+)"),
    Connective(
        r"(?P<c>.*?)[,;]?\s*\b(?:(?:and|which|that|this|it|has|have|had|is|was|are|then|also|thereby)"
        r" )*(?:caus(?:es|ed|ing)|le(?:d|ads|ading) to|result(?:s|ed|ing) in|trigger(?:s|ed|ing)|"
        r"br(?:ings|inging|ought) about|(?:makes?|making|made) it impossible to)\s+(?P<e>.+)"
    ),
    Connective(
        rf"(?P<c>.*?)(?:,|;|\band)?\s+(?:so(?: that)?(?=\s+{_SUBJECT})|therefore|hence|thus|"
        r"consequently|as a (?:result|consequence)),?\s+(?P<e>.+)",
        weak=True,
    ),
    Connective(
        rf"(?P<e>.*?)[,;]?\s*(?:\b(?:supposedly|apparently|probably|simply|just|only) )?\bas"
        rf"(?=\s+(?!(?:an?|if|though|well|soon|long|far|usual|of|for|to|always)\b)(?:{_SUBJECT}|\w+ )"
        rf"[^,]*{_VERB})\s+(?P<c>.+)",
        weak=True,
    ),
    Connective(
        r"(?P<e>.*?)[,;]?\s*\b(?:and |but )?(?:\w+ ){1,3}?(?:says?|said|admit(?:s|ted)|explain(?:s|ed)|"
        r"confirm(?:s|ed)|claim(?:s|ed)|told (?:me|us))(?: that)?\s+(?P<c>.+)",
        reported=True,
    ),
    Connective(
        r"(?P<e>.*?)\s+with (?:an? |the )?(?P<c>(?:error|exception|status|code|message|reason|"
        r"http|signal)\b.+)",
        weak=True,
    ),
    Connective(
        rf"(?:but |and |so )?(?:ever |right |just |shortly )?(?:after|since|following)\s+"
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

_TASK = (
    r"(?:please |kindly |now |then |and |can you |could you |would you |will you |help me (?:to )?|"
    r"i (?:want|need) you to |i'd like you to |i would like you to |let's |your task is to )*"
    r"(?:write|compose|draft|generate|create|explain|describe|summari[sz]e|translate|list|imagine|"
    r"act|pretend|rewrite|rephrase|design|suggest|provide|compare|discuss|analy[sz]e|classify|"
    r"extract|identify|evaluate|solve|calculate|complete|edit|develop|outline|propose|convert|"
    r"implement|read|rate|answer|give (?:me|us)? ?(?:an?|some|\d+|the (?:definition|steps))|"
    r"what(?:'s| is| are| was| were| do| does| did| would| if| could| can| should| kind| time)|which|who|"
    r"where (?:can|do|is|are)|how (?:do|does|did|to|can|many|much|would|should|is|are|could|long|far)|"
    r"tell me (?:about|how|what)|is it (?:possible|true|ok)|are there|is there|suppose|consider|"
    r"given|the following|in (?:this|the following)|you are an?)\b"
)

GRAMMAR = Grammar(
    signs=signs(
        (
            ("praise", _IDIOM_PRAISE),
            (
                "strong",
                r"(?:not|never|n't|yet to)(?: been| yet| be)* (?:fixed|resolved|solved|sorted)",
            ),
            ("neutral", _NEUTRAL),
            (
                "complaint",
                rf"(?:{_NOT}|no longer|far from|anything but|less than|would(?: not|n't)|nothing)"
                rf"(?: (?:very|really|so|that|too|at all|even|particularly|exactly|been|be|an?|the|"
                rf"all|as|quite|much|feel|seem|look|it|this|them|would|to|or)){{0,3}} {_PRAISING}",
            ),
            ("strong", _STRONG),
            ("failure", _FAILURE),
            ("mood", _MOOD),
            ("complaint", _COMPLAINT),
            ("mild", _MILD),
            ("praise", _PRAISE),
            ("liking", _LIKING),
            ("thanks", r"(?:thanks|thank you|thx|cheers)"),
        ),
        before=r"(?<![\w./@$-])",
        after=r"(?![\w-]|[./@]\w)",
    ),
    connectives=CONNECTIVES,
    task=re.compile(_TASK),
    about_self=re.compile(
        r"\b(?:my|our|why (?:is|was|did|does|has|are|were|do|can't|cannot|won't|isn't))\b"
    ),
    admission=re.compile(
        r"\b(?:sorry|apolog\w+|unfortunately|(?:i'm|i am|we are) afraid|regret\w*|"
        r"(?:i am|i'm|we are|we're) (?:not able|unable)|i (?:cannot|can't|could not|couldn't|"
        r"do not have|don't have|failed))\b"
    ),
    apology=re.compile(r"\b(?:sorry|apolog\w+|my (?:mistake|bad)|regret\w*)\b"),
    contrast=re.compile(
        r"\b(?:but|however|although|though|whereas|except that|on the (?:other hand|downside))\b|"
        r"(?<=, )yet\b"
    ),
    comma=re.compile(
        rf",\s+(?=(?:(?:and|so|then|or|while|because|since|due|owing|which|who|after|"
        rf"when|even|also|plus)\s+)?(?:{_SUBJECT})|(?:and|so|because|due to|owing to|since|which|also|"
        r"plus|then|causing|leading|resulting|no|not|still|even|please)\b)|\s+(?=and (?:the|my|our|i|we|it|they|nobody|no one"
        r"|nothing|there|then)\b)"
    ),
    addition=re.compile(
        r"(?:also|besides|moreover|furthermore|in addition|another|plus|and the)\b"
    ),
    leading=re.compile(
        r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day))(?: (?:there|team|all|everyone|"
        r"sir|madam|support|folks))*[\s,.!:]+|"
        r"(?:please|kindly|sorry|excuse me|well|so|and|but|yet|or|then|also|besides|moreover|plus|"
        r"however|unfortunately|sadly|honestly|basically|apparently|seriously|actually|again|fyi|ok|"
        r"okay|yes|though|although|even though|meanwhile|"
        r"today|yesterday|now|this morning|last night|lately|recently|currently|urgent|help)[\s,:!]+|"
        rf"(?:that|because|since|due to|owing to)\s+(?={_SUBJECT})|"
        r"(?:i|we) (?:just |only |would like to |want to |wanted to |'d like to |have to |must )*"
        r"(?:report|complain|say|note|mention|let you know|tell you|inform you|find|found|noticed?|"
        r"see|feel|think|believe|guess|fear)(?: (?:that|about|of))*\s+(?=\S+ \S+)|"
        r"(?:it (?:seems|appears|looks like)|looks like|seems|seems like|it turns out|turns out|"
        r"i'm afraid|i am afraid|the problem is|the issue is|my (?:problem|issue) is)(?: that)?[\s,:]+|"
        r"(?:can|could|would) (?:you|someone|anyone) (?:please )?(?:help|check|fix|look)[^,.!?]*[,.!?]\s*|"
        r"why (?:is|was|did|does|has|are|were|do)\s+"
    ),
    trailing=re.compile(
        r"(?:[\s,;:.!?)(\"'-]+(?:but|and|so|or|yet|because|as))?[\s,;:.!?)(\"'-]+(?:(?:thanks|thank you|please(?: help| advise| fix)?|help|again|any ideas|"
        r"can (?:someone|you|anyone) .*|what should i do|why)[\s.!?]*)?$"
    ),
    pronoun=re.compile(
        r"(?:it|this|that|they|these|those|he|she|them|one|which|who|the same|still|even|never|not|"
        r"cannot|can't|doesn't|didn't|won't|isn't|gave|gives)\b"
    ),
    hollow=re.compile(
        r"(?:[^,]{0,40}\b(?:said|says|told(?: (?:me|us))?|explained|found|think|thinks|guess|believe|that|"
        r"saw|see|learn(?:ed|t))\b)?\s*(?:it|this|that|which|they|these)?\s*"
        r"(?:is|was|were|are|'s|has been|seems to be|all|probably|apparently|maybe)*\s*"
    ),
)
