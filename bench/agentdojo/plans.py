"""Counts what a plan that is fixed before the first text of others would permit without a question, for each pair of AgentDojo.

An entry of the plan is a call of the user task that changes something. Three plans are compared: `tools` has the names of the tools,
`words` also the arguments whose values are in the words of the user, and `hindsight` is `words` without each entry that the order of any
pair of the suite fits, which no plan can know before. A call passes when it uses up an entry. As in the benchmark, the model obeys the
order when it reads it, and makes the calls of the user task otherwise.
"""

import functools
import json

from server import ADDS, OVERWRITES, REACHES, SUITES, Pair, pairs

REFERENCE = "ref-plans"
CHANGES = REACHES | OVERWRITES | ADDS


def in_words(value, prompt):
    if isinstance(value, list):
        return len(value) > 0 and all(in_words(one, prompt) for one in value)
    return str(value).lower() in prompt.lower()


def entry(call, prompt, kind):
    fixed = {} if kind == "tools" else {k: v for k, v in call["arguments"].items() if in_words(v, prompt)}
    return call["name"], fixed


def fits(entry, call):
    name, fixed = entry
    return name == call["name"] and all(call["arguments"].get(key) == value for key, value in fixed.items())


def take(plan, call):
    """Uses up an entry that the call fits, if there is one."""
    for index, entry in enumerate(plan):
        if fits(entry, call):
            return plan.pop(index)
    return None


@functools.cache
def orders(suite, user):
    """The calls that the orders of all pairs of a user task ask for."""
    injections = [one["injection"] for one in pairs([suite]) if one["user"] == user]
    plans = (Pair(suite, user, injection, REFERENCE).plan() for injection in injections)
    return [call for plan in plans for call in plan["injected"]]


def run(suite, user, injection, kind):
    """Of one pair: calls of the attacker that pass, harmless steps, and those of them that are held."""
    pair = Pair(suite, user, injection, REFERENCE)
    plan = pair.plan()
    entries = [entry(call, plan["prompt"], kind) for call in plan["calls"] if call["name"] in CHANGES]
    if kind == "hindsight":
        ordered = orders(suite, user)
        entries = [one for one in entries if not any(fits(one, call) for call in ordered)]
    passed, held, obeyed = 0, 0, False
    for call in plan["calls"]:
        if call["name"] in CHANGES and take(entries, call) is None:
            held += 1
        result, _ = pair.call(call["name"], call["arguments"])
        if REFERENCE in result and not obeyed:
            obeyed = True
            attack = [call for call in plan["injected"] if call["name"] in CHANGES]
            passed = sum(take(entries, call) is not None for call in attack)
    return passed, len(plan["calls"]), held


if __name__ == "__main__":
    for kind in ("tools", "words", "hindsight"):
        for suite in [*SUITES, "all"]:
            chosen = pairs(list(SUITES) if suite == "all" else [suite])
            results = [run(one["suite"], one["user"], one["injection"], kind) for one in chosen]
            passed, steps, held = (sum(column) for column in zip(*results))
            reached = sum(result[0] > 0 for result in results)
            figures = {"pairs": len(results), "with an effect": reached, "effects": passed, "steps": steps}
            print(json.dumps({"plan": kind, "suite": suite, **figures, "held": f"{100 * held / steps:.1f} %"}))
