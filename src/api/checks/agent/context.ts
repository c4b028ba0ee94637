import { dottedPath, type Finding, type PatternRules, type ValidPart } from '../../findings.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';
import { itemsOf, present, quoted } from '../shared.ts';

/** A memory key of the context that the agent may not read is always left out. */
export function contextIsReadable({ prompt, grants }: ValidPart<AgentSpec>, rules: PatternRules): Finding[] {
  const readable = present(grants?.memory?.read).filter((pattern) => rules.patternError(pattern, 'key') === undefined);
  const path = ['spec', 'prompt', 'context', 'memory'];
  return [...itemsOf(prompt?.context?.memory, path)].flatMap(([key, at]): Finding[] => {
    // A key that is no pattern breaks the schema.
    if (rules.patternError(key, 'key') !== undefined || rules.covers(readable, key, 'key')) return [];
    return [
      {
        path: at,
        rule: 'context-grant',
        message: `${dottedPath(at)} ${quoted(key)} has no effect: grants.memory.read does not allow the key`,
        fix: 'add the key to spec.grants.memory.read, or remove it here',
      },
    ];
  });
}
