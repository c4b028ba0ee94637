import { dottedPath } from '../../findings.ts';
import type { Finding, ValidPart } from '../../findings.ts';
import { parseDuration } from '../../quantities.ts';
import { NO_HOOK_TOOLS } from '../../v1alpha1/agent/hooks.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';
import { checkMeasures, itemsOf, quoted } from '../shared.ts';

/** The rules of `spec.hooks`. */
export function hooksAreSound({ hooks }: ValidPart<AgentSpec>): Finding[] {
  return [...itemsOf(hooks, ['spec', 'hooks'])].flatMap(([hook, path]): Finding[] => [
    ...toolFindings(hook.tool, [...path, 'tool']),
    ...checkMeasures([
      {
        path: [...path, 'timeout'],
        value: hook.timeout,
        parse: parseDuration,
        minimum: 10,
        maximum: 60_000,
        allowed: 'a duration from 10ms to 60s',
      },
    ]),
  ]);
}

function toolFindings(tool: string | undefined, path: Finding['path']): Finding[] {
  if (tool === undefined || !NO_HOOK_TOOLS.includes(tool)) return [];
  return [
    {
      path,
      rule: 'hook-tool',
      message: `${dottedPath(path)} ${quoted(tool)} cannot be a hook: it changes the tools of the session or ends the message`,
      fix: 'name a tool that only reads the event and gives a directive',
    },
  ];
}
