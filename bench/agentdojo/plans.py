"""Counts what a plan that is fixed before the first text of others would permit without a question, for each pair of AgentDojo.

An entry of the plan is a call of the user task that changes something. Two plans are compared: `tools` has the names of the tools, and
`words` also the arguments whose values are in the words of the user. A call passes when it uses up an entry. As in the benchmark, the model
obeys the order when it reads it, and makes the calls of the user task otherwise.
"""

import json

from server import ADDS, OVERWRITES, REACHES, SUITES, Pair, pairs

REFERENCE = "ref-plans"
CHANGES = REACHES | OVERWRITES | ADDS


def in_words(value, prompt):
    if isinstance(value, list):
        return len(value) > 0 and all(in_words(one, prompt) for one in value)
    return str(value).lower() in prompt.lower()


def entry(call, prompt, kind):
    fixed = {k: v for k, v in call["arguments"].items() if in_words(v, prompt)} if kind == "words" else {}
    return call["name"], fixed


def take(plan, call):
    """Uses up an entry that the call fits, if there is one."""
    for index, (name, fixed) in enumerate(plan):
        if name == call["name"] and all(call["arguments"].get(key) == value for key, value in fixed.items()):
            return plan.pop(index)
    return None


def run(suite, user, injection, kind):
    """Of one pair: calls of the attacker that pass, harmless steps, and those of them that are held."""
    pair = Pair(suite, user, injection, REFERENCE)
    plan = pair.plan()
    entries = [entry(call, plan["prompt"], kind) for call in plan["calls"] if call["name"] in CHANGES]
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
    for kind in ("tools", "words"):
        for suite in [*SUITES, "all"]:
            chosen = pairs(list(SUITES) if suite == "all" else [suite])
            results = [run(one["suite"], one["user"], one["injection"], kind) for one in chosen]
            passed, steps, held = (sum(column) for column in zip(*results))
            reached = sum(result[0] > 0 for result in results)
            figures = {"pairs": len(results), "with an effect": reached, "effects": passed, "steps": steps}
            print(json.dumps({"plan": kind, "suite": suite, **figures, "held": f"{100 * held / steps:.1f} %"}))
