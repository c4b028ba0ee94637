import { openAudit } from '../../audit/recorded-trail.ts';
import type { AuditKey } from '../../audit/signature.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
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

/** The signed attestation of a tool. Throws TEMPER_AUDIT_CHAIN_INVALID for a chain that this user did not sign. */
export async function signAttestation(tool: RegisteredTool, records: RecordStore, io: CliIo): Promise<string> {
  const key = await stateKeys(configFolder(io)).find();
  if (key === undefined)
    throw new TemperError(
      'TEMPER_STATE_KEY_UNUSABLE',
      'there is no key to sign an attestation with; temper run creates it',
    );
  const chain = await openAudit({ records, clock: systemClock, key });
  const statement = toolStatement(tool, await chain.records(), chain.head(), systemClock.now().toISOString());
  return sealStatement(statement, keyOf(key));
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

/** The first of several attestations of one tool that the trusted key signed. Throws TEMPER_ATTESTATION_INVALID when there is none. */
export function attestedBy(envelopes: readonly string[], pem: string, digest: string): string {
  let last = new TemperError('TEMPER_ATTESTATION_INVALID', 'the tool has no attestation; nothing was written');
  for (const envelope of envelopes) {
    try {
      assertStatementAbout(openEnvelope(envelope, pem), digest);
      return envelope;
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_ATTESTATION_INVALID')) throw error;
      last = error;
    }
  }
  throw last;
}

/** Derived from the key of the user, so that it needs no file of its own. */
function keyOf(key: AuditKey): AttestationKey {
  return createAttestationKey(Buffer.from(key.sign('temper attestation key 1'), 'hex'));
}
