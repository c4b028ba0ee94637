import type { Connection, RepositoryConnection } from '../../connections/connection.ts';
import type { AgentRepository } from '../../gateway-api/repositories/repository-api.ts';
import { repositoryAddress } from '../../toolbox/git/remote/port.ts';
import { type GitToolDeps, gitTools } from './git-tools.ts';
import type { GitTool } from './port.ts';

/** The repositories that connections name, each for some namespaces. */
export interface AgentRepositories {
  list(namespace: string): readonly AgentRepository[];
  tool(namespace: string, name: string): GitTool | undefined;
}

export function openRepositories(connections: readonly Connection[], deps: GitToolDeps): AgentRepositories {
  const named = connections.flatMap((one) => (one.repository === undefined ? [] : [one as RepositoryConnection]));
  const namespaces = new Set(named.flatMap((one) => one.namespaces));
  const own = new Map(
    Array.from(namespaces, (namespace) => {
      const connected = named.filter((one) => one.namespaces.includes(namespace));
      return [namespace, { listed: connected.map(listed), tools: toolsOf(connected, deps) }];
    }),
  );
  return {
    list: (namespace) => own.get(namespace)?.listed ?? [],
    tool: (namespace, name) => own.get(namespace)?.tools.get(name),
  };
}

function listed({ repository, private: isPrivate }: RepositoryConnection): AgentRepository {
  return { url: repository.url, ...(isPrivate === true ? { private: true } : {}) };
}

/** They know the repositories of one namespace alone. */
function toolsOf(connected: readonly RepositoryConnection[], deps: GitToolDeps): ReadonlyMap<string, GitTool> {
  const byAddress = new Map(connected.map((one) => [repositoryAddress(one.repository.url), one]));
  const tools = gitTools((url) => byAddress.get(repositoryAddress(url)), deps);
  return new Map(tools.map((tool) => [tool.descriptor.name, tool]));
}
