"""The lexicon of :mod:`serving.answer.navigation`: site names, words for parts of a site, and what code looks like."""

from __future__ import annotations

import sys


def _entries(text: str) -> frozenset[str]:
    return frozenset(entry.strip() for entry in text.replace("\n", ",").split(",") if entry.strip())


SITE_NAMES = _entries(
    """
    airbnb, aliexpress, alibaba, arxiv, baidu, bandcamp, bbc, bbc news, bilibili, bing, bitbucket, chatgpt, cnn,
    codepen, coursera, craigslist, crates.io, crunchbase, dailymotion, deviantart, devdocs, discord, docker hub,
    docs.rs, dropbox, duckduckgo, ebay, ecosia, etsy, facebook, figma, fiverr, flickr, gitea, github, gitlab,
    gmail, goodreads, google, google docs, google drive, google maps, google news, google scholar,
    google translate, grammarly, hacker news, hotmail, hugging face, huggingface, hulu, icloud, imdb, imgur,
    instagram, kaggle, khan academy, leetcode, lichess, linkedin, lobste.rs, mailchimp, mdn, mediafire, myspace,
    netflix, new york times, npmjs, nytimes, openstreetmap, patreon, paypal, pinterest, pixiv, pypi, quora,
    read the docs, readthedocs, reddit, researchgate, roblox, rotten tomatoes, scribd, semantic scholar, shopify,
    skyscanner, slideshare, snapchat, soundcloud, sourceforge, spotify, stack exchange, stack overflow,
    stackexchange, stackoverflow, substack, taobao, thingiverse, tiktok, tripadvisor, trustpilot, tumblr, twitch,
    twitter, udemy, unsplash, vimeo, w3schools, weibo, whatsapp, wikihow, wikimedia, wikipedia, wiktionary,
    wolfram alpha, wolframalpha, wordpress, yahoo, yahoo mail, yandex, yelp, youtube, youtube music, zillow
    """
)
"""Names that are a site first and a topic second. ``redis`` and ``amazon`` are not."""

SITE_WORDS = (
    *("login", "log in", "logon", "log on", "signin", "sign in", "signup", "sign up", "webmail", "admin panel"),
    *("homepage", "home page", "official site", "official website", "official page", "website", "web site"),
    *("download page", "status page", "contact page"),
)
"""After almost any name these ask for a page of that site."""

WORDS_AFTER_A_SITE = (
    *("account", "portal", "dashboard", "download", "app", "support", "contact", "customer service"),
    *("site", "page", "docs", "status"),
)
"""These do so only after what is surely a site: ``savings account`` and ``python 3.12 support`` are topics."""

GO_TO = ("go to", "take me to", "navigate to", "log in to", "log into", "login to", "sign in to", "sign into")
OPEN = ("open", "visit")

INFORMATIONAL = _entries(
    """
    a, an, about, and, best, bug, build, causes, code, create, definition, design, error, example, examples,
    explained, fix, flow, for, form, from, guide, history, how, implementation, in, into, is, issue, issues, make,
    meaning, of, on, or, problem, problems, security, statement, test, tutorial, using, vs, versus, what, when,
    why, with, without, words
    """
)
"""With one of these in it, what comes before a site word is a topic and not a name."""

GENERIC_ENDINGS = _entries("com, org, net, edu, gov, mil, int")
"""No module has an attribute called like these, so ``code.org`` and ``time.com`` are sites for all that."""

ENDINGS = GENERIC_ENDINGS | _entries(
    """
    ac, ai, am, app, art, at, au, be, bg, biz, blog, br, ca, cat, ch, cl, cloud, club, cn, co, cz, de, dev, dk,
    ee, es, eu, fi, fm, fr, games, gg, gr, hk, hr, hu, id, ie, il, in, info, io, ir, is, it, jobs, jp, kr, live,
    lt, lu, lv, me, mobi, museum, mx, my, news, nl, no, nu, nz, online, page, pt, ro, ru, se, sg, shop, si, site,
    sk, space, store, tech, to, tr, tv, tw, ua, uk, us, wiki, world, xyz, za
    """
)
"""Endings that sites have more often than files. ``py``, ``rs``, ``sh``, ``pl``, ``cc``, ``md``, ``ml``, ``ps`` and
``so`` are countries, but not here."""

CODE_HEADS = frozenset(name.casefold() for name in sys.stdlib_module_names) | _entries(
    """
    config, dart, fs, go, index, java, javafx, javax, main, makefile, manifest, np, numpy, package, pandas, pd,
    readme, request, requirements, response, scala, self, setup, std, system, this, torch, window
    """
)
"""First parts of dotted names and files: ``logging.info``, ``java.io``, ``requirements.in``."""

FRAMEWORKS = _entries("ado.net, asp.net, ml.net, vb.net")
