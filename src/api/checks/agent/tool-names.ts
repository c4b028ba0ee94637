import { suggestName } from '../../../lib/suggest.ts';
import { dottedPath, type FieldPath, type Finding, type ValidPart } from '../../findings.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';
import { itemsOf, quoted } from '../shared.ts';

/** In a shorter name, two edits may as well lead to another tool. */
const LONG_NAME = 10;

/**
 * Names in fields for tools that are probably mistyped: no known tool has the name, and a known one differs from it by an edit or two. Other
 * unknown names are right as far as a check can know, because tools may be forged later, or exist on the cluster alone.
 */
export function toolNameFindings(spec: ValidPart<AgentSpec>, known: ReadonlySet<string>): Finding[] {
  return [...namedTools(spec)].flatMap(([text, path]): Finding[] => {
    const name = text.trim().toLowerCase();
    if (known.has(name) || /[*@]/.test(name)) return [];
    const near = suggestName(name, known, name.length < LONG_NAME ? 1 : 2);
    if (near === undefined) return [];
    return [
      {
        path,
        rule: 'unknown-tool',
        message: `${dottedPath(path)} ${quoted(text)} is not the name of a built-in tool, nor of a tool in these manifests, the state folder or the configuration of the user`,
        fix: `did you mean "${near}"? Keep the name if the agent forges such a tool later, or the cluster has it`,
      },
    ];
  });
}

function* namedTools({ grants, denyTools, toolSettings, hooks }: ValidPart<AgentSpec>): Generator<[string, FieldPath]> {
  yield* itemsOf(grants?.tools, ['spec', 'grants', 'tools']);
  yield* itemsOf(denyTools, ['spec', 'denyTools']);
  for (const [{ name }, path] of itemsOf(toolSettings, ['spec', 'toolSettings']))
    if (name !== undefined) yield [name, [...path, 'name']];
  for (const [{ tool }, path] of itemsOf(hooks, ['spec', 'hooks']))
    if (tool !== undefined) yield [tool, [...path, 'tool']];
}
