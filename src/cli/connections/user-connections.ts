import { readPrivateConfig } from '../input/private-config.ts';
import type { CliIo } from '../io.ts';
import { parseUserConnections, type UserConnection } from './read-connections.ts';

/** The connections of the user. No manifest names where a run sends a credential. Throws TEMPER_MANIFEST_INVALID, or TEMPER_USAGE for a file that cannot be read. */
export async function userConnections(io: CliIo): Promise<UserConnection[]> {
  const { file, value } = await readPrivateConfig('connections.yaml', 'the file of connections', io);
  return value === undefined ? [] : parseUserConnections(file, value);
}

/** The connections that a Capability may name. With the credential of a repository it would act without the rules for its branches. */
export function withoutRepositories<C extends Pick<UserConnection, 'git'>>(connections: readonly C[]): C[] {
  return connections.filter(({ git }) => git === undefined);
}

/** The names that `requiredSecrets` of a Capability may have in a run: those of connections without a repository, and of MCP servers with accepted tools. */
export function connectionNames(
  connections: readonly Pick<UserConnection, 'name' | 'git'>[],
  servers: readonly { readonly name: string }[],
): ReadonlySet<string> {
  return new Set([...withoutRepositories(connections), ...servers].map(({ name }) => name));
}
