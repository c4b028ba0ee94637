import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { openAudit } from '../../audit/recorded-trail.ts';
import type { AuditKey } from '../../audit/signature.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import {
  type AttestationKey,
  createAttestationKey,
  openEnvelope,
  sealStatement,
} from '../../tempering/attestation/envelope.ts';
import { assertStatementAbout, toolStatement } from '../../tempering/attestation/statement.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { readInputFile } from '../input/input-files.ts';
import { type CliIo, EXIT } from '../io.ts';
import { configFolder } from '../state/config-folder.ts';

/** Prints the public key of this user's attestations. */
export async function attestationKey(io: CliIo): Promise<number> {
  io.out(keyOf(await stateKeys(configFolder(io)).findOrCreate()).publicPem);
  return EXIT.ok;
}

/** Writes the signed attestation of a tool. Throws TEMPER_AUDIT_CHAIN_INVALID for a chain that this user did not sign. */
export async function writeAttestation(
  tool: RegisteredTool,
  records: RecordStore,
  file: string,
  io: CliIo,
): Promise<void> {
  const key = await stateKeys(configFolder(io)).find();
  if (key === undefined)
    throw new TemperError(
      'TEMPER_STATE_KEY_UNUSABLE',
      'there is no key to sign an attestation with; temper run creates it',
    );
  const chain = await openAudit({ records, clock: systemClock, key });
  const statement = toolStatement(tool, await chain.records(), chain.head(), systemClock.now().toISOString());
  await writeFile(resolve(io.cwd, file), sealStatement(statement, keyOf(key)), { mode: 0o600 });
}

/** Verifies the attestation of a package against the digest of its content. Throws TEMPER_ATTESTATION_INVALID or TEMPER_USAGE. */
export async function verifyAttestation(
  { attestation, trustedKey }: { attestation?: string | undefined; trustedKey?: string | undefined },
  digest: string,
  io: CliIo,
): Promise<void> {
  if (attestation === undefined && trustedKey === undefined) return;
  if (attestation === undefined || trustedKey === undefined)
    throw new TemperError('TEMPER_USAGE', '--attestation and --trusted-key belong together; give both, or none');
  const pem = await readInputFile(trustedKey, '--trusted-key', io);
  assertStatementAbout(openEnvelope(await readInputFile(attestation, '--attestation', io), pem), digest);
}

/** Derived from the key of the user, so that it needs no file of its own. */
function keyOf(key: AuditKey): AttestationKey {
  return createAttestationKey(Buffer.from(key.sign('temper attestation key 1'), 'hex'));
}
