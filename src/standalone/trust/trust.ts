import type { AuditKey, SignatureState } from '../../audit/signature.ts';
import { checkpointSignature, startChain } from '../../audit/recorded-trail.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { lockState } from '../lock.ts';
import { unusable } from '../state-folder.ts';
import { privateFiles } from './private-folder.ts';
import type { StateKeys } from './state-key.ts';

export interface TrustDeps {
  /** Absolute path of the state folder. The caller holds its lock. */
  folder: string;
  records: RecordStore;
  keys: StateKeys;
}

/**
 * The key that signs this state folder. A folder without content is trusted by its creation and gets its first signature here. Throws
 * TEMPER_STATE_UNTRUSTED for a folder that other users may change, and for one that this user's key did not sign.
 */
export async function trustedKey({ folder, records, keys }: TrustDeps): Promise<AuditKey> {
  if (isFresh(privateFiles(folder))) {
    const key = await keys.findOrCreate();
    await startChain(records, key).catch((error: unknown) => {
      throw unusable(folder, error);
    });
    return key;
  }
  const key = await keys.find();
  const signature = await checkpointSignature(records, key);
  if (key !== undefined && signature === 'valid') return key;
  throw new TemperError('TEMPER_STATE_UNTRUSTED', untrustedText(folder, signature, key !== undefined));
}

/**
 * Creates the state folder when it does not exist, so that a command other than a run may write to it. Throws as `trustedKey` does. While a
 * run has locked the folder, that run has checked it.
 */
export async function prepareStateFolder(folder: string, keys: StateKeys): Promise<void> {
  try {
    const lock = await lockState(folder, 'temper tool import');
    try {
      await trustedKey({ folder, records: fileRecordStore(folder), keys });
    } finally {
      lock.release();
    }
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_STATE_LOCKED')) throw error;
    privateFiles(folder);
  }
}

/** What the creation of a folder leaves when it is killed: the lock, and a part of the first checkpoint. */
function isFresh(files: readonly string[]): boolean {
  return files.every((file) => /^(?:lock\.db|lock\.json|audit\/head\.json\.\d+\.tmp)$/.test(file));
}

/** Why nothing proves that the state folder is the user's. */
export function signatureProblem(signature: SignatureState, hasKey: boolean): string {
  if (signature === 'absent') return 'it has no signature: an earlier version wrote it, or it comes from elsewhere';
  if (signature === 'wrong') return 'its checkpoint was changed after you signed it';
  return hasKey ? 'another user or a lost key signed it' : 'a key signed it, and you have none';
}

function untrustedText(folder: string, signature: SignatureState, hasKey: boolean): string {
  const problem = signatureProblem(signature, hasKey);
  return `nothing proves that you wrote ${printable(folder, 500)}: ${problem}. Look at it (temper audit, temper get tools), then take it over with temper audit --adopt (its tools become inactive; --with-tools trusts them), or use another --state`;
}
