import { parse } from 'yaml';
import { type Connection, parseConnections } from '../../../connections/connection.ts';
import { messageOf, TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, member } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { type NamedRepositories, repositoryAddress } from '../../../toolbox/git/remote/port.ts';
import { readInputFile } from '../../input/input-files.ts';
import type { CliIo } from '../../io.ts';

/**
 * `gateway.connections` of Helm values, as the gateway gets them; the last file that has the list counts, as for Helm. Throws TEMPER_USAGE for a
 * file that cannot be read or has no values, and TEMPER_CONFIGURATION_INVALID for a connection that the gateway would refuse.
 */
export async function releaseConnections(files: readonly string[], io: CliIo): Promise<Connection[]> {
  let connections: Connection[] = [];
  for (const file of files) {
    const found = member(member(await valuesOf(file, io), 'gateway'), 'connections');
    if (found === undefined) continue;
    const source = `gateway.connections of ${printable(file, 400)}`;
    connections = parseConnections(Array.isArray(found) ? found.map(mounted) : found, source);
  }
  return connections;
}

async function valuesOf(file: string, io: CliIo): Promise<Json> {
  const text = await readInputFile(file, '--values', io);
  let values: unknown;
  try {
    values = parse(text, { maxAliasCount: 20 });
  } catch (error) {
    throw new TemperError('TEMPER_USAGE', `--values ${printable(file, 400)} is not YAML: ${messageOf(error, 300)}`);
  }
  if (isJsonObject(values as Json)) return values as Json;
  throw new TemperError(
    'TEMPER_USAGE',
    `--values ${printable(file, 400)} has no values; write them with helm get values RELEASE -o yaml`,
  );
}

/** The chart mounts the credential; the explanation needs none. */
function mounted(connection: Json): Json {
  if (!isJsonObject(connection)) return connection;
  const { credential: _credential, caBundle: _caBundle, ...rest } = connection;
  return { ...rest, credentialFile: '/etc/temper/connections/token' };
}

/** The repositories of the connections for one namespace. */
export function repositoriesOf(connections: readonly Connection[], namespace: string): NamedRepositories {
  const byAddress = new Map(
    connections.flatMap(({ namespaces, repository, private: isPrivate = false }) =>
      repository === undefined || !namespaces.includes(namespace)
        ? []
        : [[repositoryAddress(repository.url), { isPrivate }] as const],
    ),
  );
  return { owner: 'Platform', find: (url) => byAddress.get(repositoryAddress(url)) };
}
