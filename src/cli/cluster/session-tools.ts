import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { type Cluster, toTemperError } from './cluster.ts';
import { AGENTS } from './cluster-kinds.ts';
import type { GatewayUserClient } from './gateway-user-client.ts';

/** The tools in open sessions of one agent, or of all agents of the namespace, each with the name of its agent. */
export async function readSessionTools(
  cluster: Cluster,
  gateway: GatewayUserClient,
  agent: string | undefined,
  signal: AbortSignal,
): Promise<JsonObject[]> {
  const agents = agent === undefined ? await agentNames(cluster, signal) : [agent];
  const tools: JsonObject[] = [];
  for (const name of agents) {
    const found = await gateway.call({ method: 'GET', path: `agents/${encodeURIComponent(name)}/tools` });
    for (const tool of listOf(found)) if (isJsonObject(tool)) tools.push({ ...tool, agent: name });
  }
  return tools;
}

export function listOf(value: Json): Json[] {
  return Array.isArray(value) ? value : [];
}

async function agentNames(cluster: Cluster, signal: AbortSignal): Promise<string[]> {
  const { kube, namespace } = cluster;
  const agents = await kube.list(AGENTS, { namespace }, signal).catch((error: unknown) => {
    throw toTemperError(error, 'listing agents', cluster);
  });
  return agents.map(({ metadata }) => metadata.name);
}
