"""Writes a CSV file of 3,000 strings of an invented web shop, English and French, for docs/your-own-strings.md.

    python docs/shop_strings.py strings.csv

Strings have placeholders, tags, numbers, and names of products, people and cities, of one word or several. Names are
made up as they are needed, so that every string has some that no model has seen.
"""

from __future__ import annotations

import csv
import random
import re
import sys
from pathlib import Path

STRINGS = 3000
# In a template @P is a product, @N a person, @T a city, @F a file, @# a number. Of [a|b] one word is chosen, on both
# sides the one in the same place.
TEMPLATES = """
@P is now in your [cart|basket|wish list].
@P est maintenant dans votre [panier|corbeille|liste de souhaits].
Add @P to your [cart|basket|wish list]
Ajouter @P à votre [panier|corbeille|liste de souhaits]
Remove @P from the [cart|basket|wish list]?
Retirer @P [du panier|de la corbeille|de la liste de souhaits] ?
Only @# pieces of @P are left in [stock|our store|the warehouse].
Il ne reste que @# pièces de @P [en stock|dans notre boutique|dans l'entrepôt].
<b>@P</b> has been [ordered|shipped|delivered|cancelled].
<b>@P</b> a été [commandé|expédié|livré|annulé].
Your parcel to @T will arrive [today|tomorrow|on Monday|next week].
Votre colis pour @T arrivera [aujourd'hui|demain|lundi|la semaine prochaine].
@N has [rated|bought|returned|recommended] @P.
@N a [évalué|acheté|retourné|recommandé] @P.
Hello @N, welcome [back|to our shop|to the club]!
Bonjour @N, bienvenue [à nouveau|dans notre boutique|au club] !
{count} people in @T are looking at @P [right now|this week].
{count} personnes à @T regardent @P [en ce moment|cette semaine].
The file @F could not be [opened|saved|uploaded|printed].
Le fichier @F n'a pas pu être [ouvert|enregistré|envoyé|imprimé].
%s: cannot [open|read|delete] @F: %s
%s : impossible [d'ouvrir|de lire|de supprimer] @F : %s
Send the invoice for @P to @N
Envoyer la facture de @P à @N
{name}, your order of @P costs {price}.
{name}, votre commande de @P coûte {price}.
Our shop in @T is [open|closed] until {time}.
Notre boutique de @T est [ouverte|fermée] jusqu'à {time}.
@P is not available in @T.
@P n'est pas disponible à @T.
Do you want to replace @P by @P?
Voulez-vous remplacer @P par @P ?
@N lives in @T and sells @P.
@N habite à @T et vend @P.
Buy @P and get @# percent off @P.
Achetez @P et obtenez @# pour cent de réduction sur @P.
The [price|size|colour|weight] of @P has changed.
[Le prix|La taille|La couleur|Le poids] de @P a changé.
Ask @N about the [price|size|colour|weight] of @P
Demander à @N [le prix|la taille|la couleur|le poids] de @P
Please sign in as @N to see your [orders|invoices|messages].
Veuillez vous connecter en tant que @N pour voir vos [commandes|factures|messages].
You have {count} new [orders|invoices|messages] from @N.
Vous avez {count} [nouvelles commandes|nouvelles factures|nouveaux messages] de @N.
Compare @P with @P
Comparer @P avec @P
Shipping to @T is free for orders above {amount}.
La livraison à @T est gratuite pour les commandes de plus de {amount}.
@P needs @# batteries, which are [included|not included].
@P a besoin de @# piles, qui sont [incluses|non incluses].
Download the manual of @P (@F)
Télécharger le manuel de @P (@F)
@N wrote: "@P is [great|too small|too expensive|broken]".
@N a écrit : « @P est [formidable|trop petit|trop cher|cassé] ».
Go to <a href="{url}">@P</a>
Aller à <a href="{url}">@P</a>
Version @# of @F was [created|changed|deleted] by @N.
La version @# de @F a été [créée|modifiée|supprimée] par @N.
The voucher %(code)s is valid for @P [today|until tomorrow|all week].
Le bon %(code)s est valable pour @P [aujourd'hui|jusqu'à demain|toute la semaine].
""".strip().splitlines()  # English and French in turn
SYLLABLES = [
    *("ba", "ro", "ti", "ka", "lu", "mer", "vo", "zan", "pel", "qui", "dor", "fen", "gra"),
    *("hol", "nox", "sil"),
]
LINES = ["Pro", "Max", "Mini", "Studio", "Home", "Air", "Classic", "Plus"]
ENDS = ["pdf", "csv", "png", "conf", "txt"]


def made_up(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 3))).capitalize()


def name(kind: str, chance: random.Random) -> str:
    """A new name of a kind: a product of one to three words, a person of two, a city, a file, a number."""
    if kind == "P":
        words = [made_up(chance), *chance.sample(LINES, chance.randint(0, 1))]
        return " ".join([*words, str(chance.randint(2, 9000))] if chance.random() < 0.5 else words)
    if kind == "N":
        return f"{made_up(chance)} {made_up(chance)}"
    if kind == "F":
        return f"{made_up(chance).lower()}-{chance.randint(1, 99)}.{chance.choice(ENDS)}"
    return str(chance.randint(2, 900)) if kind == "#" else made_up(chance)


def filled(sides: list[str], chance: random.Random) -> list[str]:
    """A pair of strings: both sides of a template with the same names and the same choice."""
    choice = chance.random()
    names = [(kind, name(kind, chance)) for kind in re.findall(r"@(.)", sides[0])]
    return [_fill(side, list(names), choice) for side in sides]


def _fill(side: str, names: list[tuple[str, str]], choice: float) -> str:
    """One side with names in their slots; of two slots of a kind, the first gets the first name."""

    def take(match: re.Match[str]) -> str:
        return names.pop([kind for kind, _ in names].index(match[1]))[1]

    def choose(match: re.Match[str]) -> str:
        words = match[1].split("|")
        return words[int(choice * len(words))]

    return re.sub(r"@(.)", take, re.sub(r"\[([^]]*)\]", choose, side))


def main(path: Path) -> None:
    chance = random.Random(7)
    templates = [TEMPLATES[first : first + 2] for first in range(0, len(TEMPLATES), 2)]
    pairs = [filled(chance.choice(templates), chance) for _ in range(STRINGS)]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["key", "English", "French"])
        table.writerows([f"shop.{number:04}", *pair] for number, pair in enumerate(pairs))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
