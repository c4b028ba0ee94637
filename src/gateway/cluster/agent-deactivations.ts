import { deactivationOf } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import type { Digest } from '../../lib/canonical.ts';
import { printable } from '../../lib/printable.ts';
import type { AgentDirectory } from '../deps.ts';

const MAX_REASON = 1_024;

/** The tools that single agents do not have any more, from their statuses, which only the operator writes. */
export class AgentDeactivations {
  readonly #directory: Pick<AgentDirectory, 'agent' | 'byUid'>;

  constructor(directory: Pick<AgentDirectory, 'agent' | 'byUid'>) {
    this.#directory = directory;
  }

  readonly reason = (agentUid: string, digest: Digest): string | undefined => {
    const entry = deactivationOf(this.#directory.byUid(agentUid)?.agent.status?.deactivatedTools, digest);
    return entry === undefined ? undefined : printable(entry.message, MAX_REASON);
  };

  has(namespace: string, agent: string, digest: Digest): boolean {
    const tools = this.#directory.agent(namespace, agent)?.agent.status?.deactivatedTools;
    return deactivationOf(tools, digest) !== undefined;
  }
}
