import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { CallOptions } from '../../../lib/call-options.ts';
import { systemClock } from '../../../lib/clock.ts';
import { hasErrno, TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { credentialIn, type CredentialSource } from '../../../oci/docker-config.ts';
import { type OciReference, parseReference } from '../../../oci/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../../oci/registry-client.ts';
import type { CliIo } from '../../io.ts';

export interface RegistryAccessOptions {
  reference: string;
  plainHttp?: boolean;
}

export interface RegistryAccess {
  reference: OciReference;
  client: RegistryClient;
  op: CallOptions;
}

const TIMEOUT_MS = 120_000;

/** Access to the repository that the command line names, with the credential of the Docker configuration file. Throws TEMPER_USAGE. */
export function registryAccess(
  { reference: text, plainHttp = false }: RegistryAccessOptions,
  access: 'pull' | 'pull,push',
  io: CliIo,
): RegistryAccess {
  const reference = parseReference(text, { plainHttp });
  const client = createRegistryClient(reference, access, { clock: systemClock, credentials: dockerCredentials(io) });
  return { reference, client, op: { signal: io.signal, deadline: systemClock.monotonic() + TIMEOUT_MS, key: 'oci' } };
}

/** Reads `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`, only when a registry asks for a credential. */
function dockerCredentials({ environment }: CliIo): CredentialSource {
  const folder = environment['DOCKER_CONFIG'] || join(environment['HOME'] || homedir(), '.docker');
  const file = join(folder, 'config.json');
  return async (registry) => {
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      if (hasErrno(error, 'ENOENT')) return undefined;
      throw new TemperError('TEMPER_OCI_UNAUTHORIZED', `${printable(file, 400)} cannot be read`, { cause: error });
    });
    return text === undefined ? undefined : credentialIn(text, registry);
  };
}
