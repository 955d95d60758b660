"""Words that a full stop follows within a sentence, and words that begin one. Lower case, without the last stop."""

from __future__ import annotations

NEVER_LAST = frozenset(
    """
    dr mr mrs ms mx prof st messrs mme mlle m gen rep sen gov capt cpt cmdr lt col sgt rev hon fr sr. pres supt mt ft
    e.g i.e eg ie cf viz vs approx incl resp esp ca al. op z.b d.h u.a bzw usw. ggf evtl p.ej p.ex tel attn
    """.split()
)
"""What follows always belongs to them: titles, ``e.g.``."""

BEFORE_NUMBERS = frozenset(
    """
    no nos nr nº núm vol vols p pp pg pgs fig figs ch chap sec sect art eq eqs ver v c ed eds par para app ex tab
    jan feb mar apr jun jul aug sep sept oct nov dec abs kap bd str
    """.split()
)
"""A number, a roman one or a letter goes on after them: ``no. 5``."""

MAYBE_LAST = frozenset(
    "al inc ltd co corp jr sr ph.d m.d b.a m.a dept est bros llc plc gmbh ave blvd rd hrs hr min mins sec lb lbs oz "
    "ft approx. u.s u.k e.u a.m p.m b.c a.d usw dgl".split()
)
"""They end a sentence only when a word follows that is known to begin one."""

STARTERS = frozenset(
    """
    the a an it its he his she her they their them we our you your i this that these those there here in on at by for
    from with without as if when while where which who what why how after before since until although though because
    however but and or so yet then thus hence therefore moreover furthermore also both each every some many most all
    no not only one two three unlike like during within under over between among to of is are was were do does did can
    use see note another other such given once instead
    """.split()
)
"""English words that, capitalised after a full stop, begin a sentence rather than go on with a name."""

MONTHS = frozenset(
    """
    january february march april may june july august september october november december januar februar märz mai juni
    juli oktober dezember
    """.split()
)
