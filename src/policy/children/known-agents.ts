import type { Decider } from '../types.ts';

/** An agent of the namespace, as the agent that lists it sees it. */
export interface OtherAgent {
  readonly name: string;
  readonly description?: string | undefined;
  /** The listing agent started it. */
  readonly child: boolean;
  /** A user marked it with `children.template`. */
  readonly template: boolean;
  readonly suspended: boolean;
}

/** An agent of the output of `agent_list`. */
interface ListedAgent {
  name: string;
  description?: string;
  relation: 'Child' | 'Peer' | 'Template';
  suspended: boolean;
}

const MAX_AGENTS = 100;
const MAX_DESCRIPTION = 300;

/** Those that the agent may message, end or copy, its children first. */
export function listAgents(
  others: readonly OtherAgent[],
  decider: Pick<Decider, 'decide'>,
): { agents: ListedAgent[]; complete: boolean } {
  const known = others.flatMap((other): ListedAgent[] => {
    const { name, child, suspended } = other;
    const may = (request: Parameters<Decider['decide']>[0]): boolean => decider.decide(request).effect === 'Allow';
    const isPeer = may({ kind: 'Message', agent: name, child });
    const isTemplate = other.template && may({ kind: 'Spawn', template: name });
    if (!child && !isPeer && !isTemplate) return [];
    const description = other.description?.slice(0, MAX_DESCRIPTION).toWellFormed();
    const relation = child ? 'Child' : isPeer ? 'Peer' : 'Template';
    return [{ name, ...(description === undefined ? {} : { description }), relation, suspended }];
  });
  known.sort((a, b) => Number(b.relation === 'Child') - Number(a.relation === 'Child') || (a.name < b.name ? -1 : 1));
  return { agents: known.slice(0, MAX_AGENTS), complete: known.length <= MAX_AGENTS };
}
