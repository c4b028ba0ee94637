import { TemperError } from '../../lib/errors.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { AgentDirectory } from '../deps.ts';
import type { CapabilityCatalog } from './catalog.ts';

/** The tools of a session followed by those of tiers Agent and Shared: the tools a pod receives and a review considers. */
export function withPromotedTools(
  registry: SessionRegistry,
  catalog: Pick<CapabilityCatalog, 'tools'>,
  directory: Pick<AgentDirectory, 'byUid'>,
): SessionRegistry {
  const promoted = async (agentUid: string) => {
    const metadata = directory.byUid(agentUid)?.agent.metadata;
    return metadata === undefined ? [] : catalog.tools(metadata.namespace ?? '', metadata.name);
  };
  return {
    async tools(agentUid, session) {
      const [own, others] = await Promise.all([registry.tools(agentUid, session), promoted(agentUid)]);
      const names = new Set(own.map(({ artifact }) => artifact.name));
      return [...own, ...others.filter(({ artifact }) => !names.has(artifact.name))];
    },
    async register(agentUid, tool, check) {
      const others = await promoted(agentUid);
      return registry.register(agentUid, tool, (actives) => check([...actives, ...others]));
    },
    async drop(agentUid, session, digest) {
      const promotion = (await promoted(agentUid)).find((tool) => tool.digest === digest);
      if (promotion === undefined) return registry.drop(agentUid, session, digest);
      const { artifact, tier } = promotion;
      throw new TemperError(
        'TEMPER_TOOL_NOT_DROPPABLE',
        `"${artifact.name}" has tier ${tier} now, so only a user can remove it (kubectl temper demote)`,
      );
    },
    // Session tools only, for counting and reports.
    allTools: (agentUid) => registry.allTools(agentUid),
    digests: (agentUid, session) => registry.digests(agentUid, session),
    close: (agentUid, session) => registry.close(agentUid, session),
  };
}
