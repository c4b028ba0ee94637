import { hasConnection } from '../../capabilities/assess.ts';
import { watchCapabilities } from '../capabilities/start.ts';
import type { AgentRepositories } from '../git/agent-repositories.ts';
import { openServiceTools, type ServiceToolsDeps } from '../services/start.ts';
import type { BrokeredTool, AllBrokeredTools } from './port.ts';

type BrokeredToolsDeps = Omit<Parameters<typeof watchCapabilities>[1], 'services'> &
  ServiceToolsDeps & { repositories: AgentRepositories };

/** The tools that the gateway executes: those of services of the platform, and those of Capabilities, which take no name of the former. */
export function openBrokeredTools(
  watches: Parameters<typeof watchCapabilities>[0],
  deps: BrokeredToolsDeps,
): AllBrokeredTools {
  const services = openServiceTools(deps);
  // A Capability would use the credential of a repository without the rules for its branches.
  const connections = deps.connections.filter(({ repository }) => repository === undefined);
  const capabilities = watchCapabilities(watches, { ...deps, connections, services });
  return {
    list: (namespace) => [...services.list(namespace), ...capabilities.list(namespace)],
    find: (namespace, name) =>
      services.find(namespace, name) ??
      capabilities.find(namespace, name) ??
      executedGitTool(deps.repositories, namespace, name),
    services: (namespace) => services.list(namespace),
    hasConnection: (namespace, name) => hasConnection(name, namespace, connections),
  };
}

/** The tools of pods that change a repository. */
export function executedGitTool(
  repositories: AgentRepositories,
  namespace: string,
  name: string,
): BrokeredTool | undefined {
  const found = repositories.tool(namespace, name);
  return found?.execute === undefined ? undefined : { ...found, execute: found.execute };
}
