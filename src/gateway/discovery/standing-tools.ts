import type { SessionRegistry } from '../../nats/session-registry.ts';
import type { Directory } from '../deps.ts';
import type { Library } from './library.ts';

/** The tools of a session and, behind them, those of tiers Agent and Shared: what a pod gets and a review looks at. */
export function withStandingTools(
  registry: SessionRegistry,
  library: Pick<Library, 'tools'>,
  directory: Pick<Directory, 'byUid'>,
): SessionRegistry {
  const standing = async (agentUid: string) => {
    const metadata = directory.byUid(agentUid)?.agent.metadata;
    return metadata === undefined ? [] : library.tools(metadata.namespace ?? '', metadata.name);
  };
  return {
    async tools(agentUid, session) {
      const [own, others] = await Promise.all([registry.tools(agentUid, session), standing(agentUid)]);
      const names = new Set(own.map(({ artifact }) => artifact.name));
      return [...own, ...others.filter(({ artifact }) => !names.has(artifact.name))];
    },
    async register(agentUid, tool, check) {
      const others = await standing(agentUid);
      await registry.register(agentUid, tool, (actives) => check([...actives, ...others]));
    },
    // Of sessions alone: what is counted and reported there.
    allTools: (agentUid) => registry.allTools(agentUid),
    digests: (agentUid, session) => registry.digests(agentUid, session),
    close: (agentUid, session) => registry.close(agentUid, session),
  };
}
