import { fieldsNotInForce } from '../../../api/not-in-force.ts';
import { printable } from '../../../lib/printable.ts';
import type { AgentDefinition } from '../../../standalone/team/member.ts';

/** Names the fields of the agents and their policies that this process does not act on; undefined when no manifest sets one. */
export function clusterFieldsNote(agents: readonly AgentDefinition[]): string | undefined {
  const objects = new Set(agents.flatMap(({ agent, policy }) => [agent, policy]));
  const named = [...objects].flatMap(({ kind, metadata, spec }) => {
    const fields = fieldsNotInForce(kind, spec)
      .filter(({ where }) => where !== 'cluster')
      .map(({ field }) => field);
    return fields.length === 0 ? [] : [`${kind} "${metadata.name}": ${fields.join(', ')}`];
  });
  if (named.length === 0) return undefined;
  return printable(`these fields have no effect with temper run, only on a cluster: ${named.join('; ')}`, 2_000);
}
