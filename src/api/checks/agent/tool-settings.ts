import { isJsonObject, parseUntrustedJson } from '../../../lib/json.ts';
import type { Finding, ValidPart } from '../../findings.ts';
import { parseDuration } from '../../quantities.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';
import { checkMeasures, itemsOf } from '../shared.ts';

const DEFAULT_TOOL_TIMEOUT = '60s';

/** The form of `spec.toolSettings`. The agent checks the values against the arguments of the tools. */
export function toolSettingsAreSound({ toolSettings, limits }: ValidPart<AgentSpec>): Finding[] {
  const standard = limits?.toolTimeout ?? DEFAULT_TOOL_TIMEOUT;
  const maximum = parseDuration(standard) ?? Number.POSITIVE_INFINITY;
  return [...itemsOf(toolSettings, ['spec', 'toolSettings'])].flatMap(([{ timeout, defaults }, path]): Finding[] => {
    const allowed = `a duration from 1ms to limits.toolTimeout (${standard})`;
    const time = { path: [...path, 'timeout'], value: timeout, parse: parseDuration, minimum: 1, maximum, allowed };
    const found = checkMeasures([time]);
    if (defaults === undefined || isObjectText(defaults)) return found;
    const message = 'the defaults of a tool are not a JSON object';
    const fix = `write an object as JSON text: '{"limit": 10}'`;
    return [...found, { path: [...path, 'defaults'], rule: 'json-text', message, fix }];
  });
}

function isObjectText(text: string): boolean {
  try {
    return isJsonObject(parseUntrustedJson(text));
  } catch {
    return false;
  }
}
